//! Writes to standard output and standard error without the panics of `println!` and `eprintln!`.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Prints to standard output.
///
/// # Errors
/// If it cannot be written to, as on a full disk. A reader that has gone away, as `| head` does, is no error.
pub fn print(text: &str) -> io::Result<()> {
    finish(io::stdout().write_all(text.as_bytes()))
}

/// Handles the result of writing to standard output by other means.
///
/// # Errors
/// As for [`print()`].
pub fn finish(written: io::Result<()>) -> io::Result<()> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a line to standard error, if somebody reads it.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
