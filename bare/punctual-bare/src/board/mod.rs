//! The board: its memory, devices, interrupt controller and cores.
//!
//! Each board is one file of this directory, which implements [`Board`], and one row of the table
//! in `Cargo.toml`, which names its feature and what builds and emulators need to know. The build
//! script selects the file.
//!
//! The addresses are those of *BCM2835 ARM Peripherals*, 1.2.3 (with the peripherals of BCM2836 and
//! BCM2837 at 0x3f000000), *ARM Quad A7 core*, 3, and *BCM2711 ARM Peripherals*, 1.2 and 6.5.1; for
//! `virt`, those of `hw/arm/virt.c` in QEMU. Interrupts have the numbers of the interrupt
//! controller: *BCM2835 ARM Peripherals*, 7.5, with 96 added on the BCM2711.

#[cfg(not(feature = "amp"))]
use core::{fmt, ops::Range};

#[cfg(not(feature = "amp"))]
use crate::cores::StartCores;
use crate::interrupt::Controller;

include!(concat!(env!("OUT_DIR"), "/board.rs"));

pub use chosen::This;
pub(crate) use chosen::interrupts;

/// The board's name.
pub const NAME: &str = This::NAME;

/// The pin of an LED: the board's green one, or pin 17 of the header on the Raspberry Pi 3B, where
/// the VideoCore drives the green one. `None` on a board without numbered pins.
#[cfg(not(feature = "amp"))]
pub const LED: Option<u8> = This::LED;

/// The board's interrupt controller.
pub(crate) type Interrupts = <This as Board>::Controller;

/// A board, or a CPU of a machine whose others run Linux.
pub trait Board {
    /// The board's name.
    const NAME: &'static str;

    /// Its interrupt controller.
    type Controller: Controller;
}

/// A board that runs nothing else.
#[cfg(not(feature = "amp"))]
pub trait Standalone: Board {
    /// Memory of the program. The settings of a Raspberry Pi's firmware determine the memory that
    /// it leaves to the ARM; it always leaves at least the amount given here.
    const RAM: Range<usize>;

    /// Addresses of device registers.
    const DEVICES: Range<usize>;

    /// Address of the first UART, a PL011.
    const UART: usize;

    /// The way in which the other cores wait and are started.
    type Cores: StartCores;

    /// The pin of an LED: the board's own, or that of the header at which programs expect one.
    const LED: Option<u8> = None;

    /// Connects the pins of the first UART, and sets the clocks.
    ///
    /// # Safety
    /// Called once, with the MMU on, before any device is used.
    unsafe fn prepare() {}

    /// Checks what the firmware reports, when the console can print.
    ///
    /// # Panics
    /// If the program cannot run.
    fn check() {}

    /// Returns the clock of the first UART in Hz, if its firmware reports it.
    fn uart_clock() -> Option<u32> {
        None
    }

    /// Writes the clocks and conditions on which times depend.
    ///
    /// # Errors
    /// Returns those of the formatter.
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no firmware reports clocks")
    }
}

/// The clocks and conditions on which times depend, as text for people: the counter of [`time`],
/// and on a Raspberry Pi the clocks as read at the start, the temperature, and the state of
/// throttling.
///
/// [`time`]: crate::time
#[cfg(not(feature = "amp"))]
#[derive(Clone, Copy, Debug)]
pub struct Conditions;

#[cfg(not(feature = "amp"))]
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counter {}; ", Hertz(Some(crate::arch::timer::frequency())))?;
        This::describe(f)
    }
}

/// A frequency, or that it is unknown.
#[cfg(not(feature = "amp"))]
pub(crate) struct Hertz(pub(crate) Option<u32>);

#[cfg(not(feature = "amp"))]
impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hertz) = self.0 else { return f.write_str("unknown") };
        // Rounded, as a measured frequency is.
        let tenths = (hertz + 50_000) / 100_000;
        match tenths % 10 {
            0 => write!(f, "{} MHz", tenths / 10),
            tenth => write!(f, "{}.{tenth} MHz", tenths / 10),
        }
    }
}

/// Maximum number of cores of a board. A Raspberry Pi has four; `virt` has as many as QEMU is
/// configured for.
#[cfg(not(feature = "amp"))]
pub(crate) const CORES: usize = 4;

/// Prepares the board's devices.
///
/// # Safety
/// As for [`Standalone::prepare`].
#[cfg(not(feature = "amp"))]
pub(crate) unsafe fn prepare() {
    // SAFETY: by this function's contract.
    unsafe { This::prepare() };
}

/// Returns the end of the program's memory.
pub(crate) fn memory_end() -> usize {
    #[cfg(feature = "amp")]
    return crate::layout::block() + crate::layout::BLOCK;
    #[cfg(not(feature = "amp"))]
    This::RAM.end
}

/// Returns the kind of a block of the address space of `size` bytes.
#[cfg(not(feature = "amp"))]
pub(crate) fn kind(address: usize, size: usize) -> Option<Kind> {
    let overlaps = |range: &Range<usize>| range.start < address + size && address < range.end;
    if overlaps(&This::RAM) { Some(Kind::Memory) } else { overlaps(&This::DEVICES).then_some(Kind::Device) }
}

/// Kinds of address ranges.
#[cfg(not(feature = "amp"))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cached memory.
    Memory,
    /// Device registers.
    Device,
}
