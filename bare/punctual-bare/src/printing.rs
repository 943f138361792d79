//! Printing to the console of the board, with the macros that `std` provides elsewhere.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch;
use crate::console::Console;

/// The printing core, plus 1; 0 if no core prints.
static PRINTS: AtomicU32 = AtomicU32::new(0);

/// For the macros.
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    let me = arch::core() + 1;
    // Output of an interrupt is interleaved with that of the code that it interrupts on the same
    // core; another core waits. Except when the program ends, because the printing core may have
    // stopped then.
    let nested = PRINTS.load(Ordering::Relaxed) == me || crate::fault::is_ending();
    while !nested && PRINTS.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        core::hint::spin_loop();
    }
    // The console does not fail. A value's own formatting may; the text up to there is printed.
    let _ = Console.write_fmt(arguments);
    if !nested {
        PRINTS.store(0, Ordering::Release);
    }
}

/// Prints to the [console](mod@crate::console). Waits until the UART has room, about 90 µs per
/// character, and until no other core prints.
#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => {
        $crate::printing::print(::core::format_args!($($arguments)*))
    };
}

/// Prints a line, as [`print!`] does.
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($arguments:tt)*) => {
        $crate::print!("{}\n", ::core::format_args!($($arguments)*))
    };
}
