//! Writes to standard output and standard error without the panics of `println!` and `eprintln!`.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Prints to standard output.
///
/// # Errors
/// Returns an error if it cannot be written to, as on a full disk. A closed pipe, as by `| head`,
/// is not an error.
pub fn print(text: &str) -> io::Result<()> {
    finish(io::stdout().write_all(text.as_bytes()))
}

/// Handles the result of writing to standard output by other means.
///
/// # Errors
/// Returns the errors of [`print()`].
pub fn finish(written: io::Result<()>) -> io::Result<()> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a line to standard error and ignores errors.
pub fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
