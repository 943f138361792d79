//! Printing to the console of the board, by macros that the language has otherwise in `std`.

use core::fmt::{self, Write};

use crate::console::Console;

/// For the macros.
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    // The console does not fail; a value's own formatting may, and the text so far is what there is.
    let _ = Console.write_fmt(arguments);
}

/// Prints to the [console](mod@crate::console). Waits until the UART has room, about 90 µs a character.
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
