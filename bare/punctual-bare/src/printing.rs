//! Printing to the console of the board, by macros that the language has otherwise in `std`.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch;
use crate::console::Console;

/// The core that prints, plus 1; 0 if none does.
static PRINTS: AtomicU32 = AtomicU32::new(0);

/// For the macros.
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    let me = arch::core() + 1;
    // What interrupts the printing of its own core goes in between; that of another waits. But not when the program ends: then that
    // core may not go on.
    let nested = PRINTS.load(Ordering::Relaxed) == me || crate::fault::is_ending();
    while !nested && PRINTS.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        core::hint::spin_loop();
    }
    // The console does not fail; a value's own formatting may, and the text so far is what there is.
    let _ = Console.write_fmt(arguments);
    if !nested {
        PRINTS.store(0, Ordering::Release);
    }
}

/// Prints to the [console](mod@crate::console). Waits until the UART has room, about 90 µs a character, and until no other core
/// prints.
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
