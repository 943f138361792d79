//! Start-up of a board, from power-on to `main`.
//!
//! A program depends on this crate with the feature of its board and names its entry point:
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! use punctual_bare::println;
//!
//! punctual_bare::entry!(main);
//!
//! fn main() -> ! {
//!     println!("Hello from {}", punctual_bare::board::NAME);
//!     punctual_bare::exit(0)
//! }
//! ```
//!
//! | feature | board | target |
//! |---|---|---|
//! | `raspi2b` | Raspberry Pi 2B with a BCM2836, Cortex-A7 | `armv7a-none-eabihf` |
//! | `raspi3b` | Raspberry Pi 3B with a BCM2837, Cortex-A53 | `aarch64-unknown-none` |
//! | `raspi4b` | Raspberry Pi 4B with a BCM2711, Cortex-A72 | `aarch64-unknown-none` |
//! | `virt-a7` | QEMU's `virt` with a Cortex-A7 | `armv7a-none-eabihf` |
//! | `virt-a72` | QEMU's `virt` with a Cortex-A72 | `aarch64-unknown-none` |
//! | `amp` | a CPU that Linux gave up, see `docs/book/src/guides/amp.md` | `aarch64-unknown-none` |
//!
//! The program's `.cargo/config.toml` has two flags: `-Clink-arg=-Tpunctual-bare.ld`, a script that
//! this crate generates for the board, and `-Cforce-frame-pointers=yes`, which backtraces require.
//! The feature `alloc` adds a global allocator with constant time.
//!
//! # State at the start of `main`
//!
//! * Core 0 runs `main`, in SVC mode or at EL1, with interrupts masked. The other cores sleep until
//!   they are [started](cores).
//! * Statics are initialized. Addresses are physical ones. Code cannot be written, only code can be
//!   executed, and the first page cannot be accessed at all. Memory is cached, devices are not.
//! * Each core has a stack with a guard page below it: an overflow ends the program with a message.
//! * The FPU can be used, and interrupts preserve its registers.
//! * [`time::now`] returns the time since power-on; every interrupt is disabled at its
//!   [controller](interrupt).
//! * [`print!`] writes to the first UART, at 115200 baud.
//! * On a Raspberry Pi, the ARM cores run at full speed. [`board::Conditions`] shows the clocks
//!   that the firmware reports.
//! * System errors (asynchronous aborts on ARMv7) are not masked, except by an interrupt until its
//!   handler unmasks interrupts.
//!
//! A panic prints its message and the return addresses on the stack; a fault also prints the
//! registers. Then the program [ends](exit).
#![no_std]

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/mod.rs"]
mod arch;
#[cfg(target_arch = "arm")]
#[path = "armv7/mod.rs"]
mod arch;

/// The linker's placement of sections that all boards share. The layouts of the boards build on it.
#[macro_use]
mod linked {
    macro_rules! symbols {
        ($($symbol:ident as $name:ident;)*) => {
            unsafe extern "C" {
                $(static $symbol: u8;)*
            }
            $(
                #[doc = concat!("`", stringify!($symbol), "` of the linker's script.")]
                pub(crate) fn $name() -> usize {
                    // Not a reference: only the address matters, and an absolute symbol refers to
                    // no object.
                    (&raw const $symbol).addr()
                }
            )*
        };
    }

    /// The size of a page.
    pub(crate) const PAGE: usize = 0x1000;

    symbols! {
        __image_start as image_start;
        __text_end as text_end;
        __bss_end as program_end;
    }

    /// Returns whether an address is one of the program's instructions.
    pub(crate) fn is_code(address: usize) -> bool {
        (image_start()..text_end()).contains(&address)
    }

    /// A stack of a core.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Stack {
        /// The stack of `main`, interrupts and jobs.
        Main,
        /// The stack of the code that reports faults.
        Fault,
    }
}

#[cfg(feature = "amp")]
pub mod amp;
mod app;
pub mod board;
#[cfg(not(feature = "amp"))]
pub mod console;
#[cfg(not(feature = "amp"))]
pub mod cores;
#[cfg(feature = "critical-section")]
mod critical_section;
mod end;
mod fault;
pub mod interrupt;
#[cfg(not(feature = "amp"))]
mod layout;
pub mod memory;
#[doc(hidden)]
pub mod printing;
#[cfg(feature = "raspberry-pi")]
pub mod raspberry_pi;
pub mod time;

#[cfg(feature = "amp")]
use amp::layout;
#[cfg(feature = "amp")]
pub use amp::{console, cores};
pub use end::exit;
#[cfg(not(feature = "amp"))]
pub use end::replacement::enter;
#[cfg(feature = "alloc")]
pub use memory::heap;

/// Names the program's entry point, a `fn() -> !`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        const _: () = {
            #[unsafe(export_name = "__punctual_bare_main")]
            extern "C" fn __punctual_bare_main() -> ! {
                let main: fn() -> ! = $main;
                main()
            }
        };
    };
}

unsafe extern "C" {
    /// The program's entry point, see [`entry!`].
    safe fn __punctual_bare_main() -> !;
}

/// Entry point after the first instructions, on core 0, with a stack, zeroed statics and interrupts
/// masked.
///
/// # Safety
/// Called once, only by these instructions.
#[unsafe(no_mangle)]
unsafe extern "C" fn __punctual_bare_start() -> ! {
    // SAFETY: the MMU is off, and no other core runs.
    #[cfg(not(feature = "amp"))]
    unsafe {
        arch::mmu::enable();
    }
    // SAFETY: called once, and nothing has used a device before.
    #[cfg(not(feature = "amp"))]
    unsafe {
        board::prepare();
        console::init();
    }
    arch::unmask_errors();
    arch::set_own(core::ptr::null());
    // SAFETY: called once, and interrupts are masked.
    unsafe {
        time::init();
        interrupt::init();
    }
    #[cfg(not(feature = "amp"))]
    {
        <board::This as board::Standalone>::check();
        cores::settle();
    }
    // SAFETY: called once, with interrupts masked.
    #[cfg(feature = "amp")]
    unsafe {
        amp::init();
    }
    // SAFETY: called once, and nothing has allocated before.
    #[cfg(feature = "alloc")]
    unsafe {
        heap::init();
    }
    __punctual_bare_main()
}
