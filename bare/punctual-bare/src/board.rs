//! The devices and memory of the board, with their addresses.

#[cfg(not(feature = "amp"))]
use core::ops::Range;

macro_rules! boards {
    ($($feature:literal $arch:literal $module:ident: $name:literal, ram $ram:expr, devices $devices:expr, uart $uart:expr,
        interrupts by $controller:ident: $($interrupt:ident = $number:expr),*;)*) => {
        $(
            #[cfg(feature = $feature)]
            mod $module {
                use core::ops::Range;

                #[cfg(not(target_arch = $arch))]
                compile_error!(concat!("the board `", $feature, "` has another instruction set: build for ", $arch));

                /// The board's name.
                pub const NAME: &str = $name;
                pub(crate) const RAM: Range<usize> = $ram;
                pub(crate) const DEVICES: Range<usize> = $devices;
                pub(crate) const UART: usize = $uart;

                pub(crate) mod interrupts {
                    $(
                        #[doc = concat!("The interrupt ", stringify!($interrupt), " of the board.")]
                        pub const $interrupt: u32 = $number;
                    )*
                }
            }
            #[cfg(feature = $feature)]
            pub use $module::NAME;
            #[cfg(feature = $feature)]
            pub(crate) use {$module::{DEVICES, RAM, UART, interrupts}, crate::interrupt::$controller as controller};
        )*

        const CHOSEN: usize = cfg!(feature = "amp") as usize $(+ cfg!(feature = $feature) as usize)*;
        const _: () =
            assert!(CHOSEN == 1, concat!("punctual-bare: choose one board by a feature:" $(, " ", $feature)*, " amp"));
    };
}

// The addresses are those of *BCM2835 ARM Peripherals*, 1.2.3 (with the peripherals of BCM2836 and
// BCM2837 at 0x3f000000), *ARM Quad A7 core*, 3, and *BCM2711 ARM Peripherals*, 1.2 and 6.5.1; for
// `virt`, those of `hw/arm/virt.c` in QEMU. Interrupts have the numbers of the interrupt
// controller: *BCM2835 ARM Peripherals*, 7.5, with 96 added on the BCM2711. The settings of a
// Raspberry Pi's firmware determine the memory that it leaves to the ARM; it always leaves at least
// the amount given here.
boards! {
    "raspi2b" "arm" raspi2b: "Raspberry Pi 2B",
        ram 0..0x2000_0000, devices 0x3F00_0000..0x4004_0000, uart 0x3F20_1000,
        interrupts by bcm2836: MINI_UART = 29, GPIO0 = 49, GPIO1 = 50, GPIO2 = 51, GPIO3 = 52, I2C = 53, SPI0 = 54,
        UART0 = 57, SYSTEM_TIMER0 = 0, SYSTEM_TIMER1 = 1, SYSTEM_TIMER2 = 2, SYSTEM_TIMER3 = 3, LOCAL_TIMER = 64 + 11;
    "raspi3b" "aarch64" raspi3b: "Raspberry Pi 3B",
        ram 0..0x2000_0000, devices 0x3F00_0000..0x4004_0000, uart 0x3F20_1000,
        interrupts by bcm2836: MINI_UART = 29, GPIO0 = 49, GPIO1 = 50, GPIO2 = 51, GPIO3 = 52, I2C = 53, SPI0 = 54,
        UART0 = 57, SYSTEM_TIMER0 = 0, SYSTEM_TIMER1 = 1, SYSTEM_TIMER2 = 2, SYSTEM_TIMER3 = 3, LOCAL_TIMER = 64 + 11;
    "raspi4b" "aarch64" raspi4b: "Raspberry Pi 4B",
        ram 0..0x2000_0000, devices 0xFC00_0000..0x1_0000_0000, uart 0xFE20_1000,
        interrupts by gic_of_bcm2711: MINI_UART = 96 + 29, GPIO0 = 96 + 49, GPIO1 = 96 + 50, GPIO2 = 96 + 51, GPIO3 = 96 + 52, I2C = 96 + 53, SPI0 = 96 + 54,
        UART0 = 96 + 57, SYSTEM_TIMER0 = 96, SYSTEM_TIMER1 = 96 + 1, SYSTEM_TIMER2 = 96 + 2, SYSTEM_TIMER3 = 96 + 3;
    "virt-a7" "arm" virt_a7: "QEMU virt, Cortex-A7",
        ram 0x4000_0000..0x4800_0000, devices 0x0800_0000..0x0B00_0000, uart 0x0900_0000,
        interrupts by gic_of_virt: UART0 = 32 + 1, RTC = 32 + 2, GPIO = 32 + 7;
    "virt-a72" "aarch64" virt_a72: "QEMU virt, Cortex-A72",
        ram 0x4000_0000..0x4800_0000, devices 0x0800_0000..0x0B00_0000, uart 0x0900_0000,
        interrupts by gic_of_virt: UART0 = 32 + 1, RTC = 32 + 2, GPIO = 32 + 7;
}

/// A CPU that Linux gave up. The loader of the image chooses the address of its memory.
#[cfg(feature = "amp")]
mod amp {
    #[cfg(not(target_arch = "aarch64"))]
    compile_error!("the board `amp` has another instruction set: build for aarch64");

    /// The board's name.
    pub const NAME: &str = "a CPU beside Linux";

    pub(crate) mod interrupts {
        /// Rung by Linux: `Offline::ring` of `punctual-isolate`.
        pub const BELL: u32 = 8;
    }
}
#[cfg(feature = "amp")]
pub use amp::NAME;
#[cfg(feature = "amp")]
pub(crate) use {crate::amp::gic as controller, amp::interrupts};

/// Maximum number of cores of a board. A Raspberry Pi has four; `virt` has as many as QEMU is
/// configured for.
#[cfg(not(feature = "amp"))]
pub(crate) const CORES: usize = 4;

/// Returns the end of the program's memory.
pub(crate) fn memory_end() -> usize {
    #[cfg(feature = "amp")]
    return crate::layout::block() + crate::layout::BLOCK;
    #[cfg(not(feature = "amp"))]
    RAM.end
}

/// Returns the kind of a block of the address space of `size` bytes.
#[cfg(not(feature = "amp"))]
pub(crate) fn kind(address: usize, size: usize) -> Option<Kind> {
    let overlaps = |range: &Range<usize>| range.start < address + size && address < range.end;
    if overlaps(&RAM) { Some(Kind::Memory) } else { overlaps(&DEVICES).then_some(Kind::Device) }
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
