//! Standard output and standard error, written without ever panicking. Files are written by
//! `punctual_files`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

use punctual_report::escape::Printable;

/// Everything has been printed.
const COMPLETE: u8 = 0;
/// Standard output has no reader anymore.
const UNREAD: u8 = 1;
/// Standard output could not be written to.
const FAILED: u8 = 2;

/// The state of standard output. Only ever grows.
static STATE: AtomicU8 = AtomicU8::new(COMPLETE);

/// Prints to standard output. A reader that has gone away, such as `head`, is not an error. Any
/// other error is printed once and makes the program [fail](settle).
pub(crate) fn print(text: &str) {
    note(try_print(text));
}

/// Records the result of writing to standard output.
pub(crate) fn note(written: io::Result<()>) {
    let Err(error) = written else { return };
    let state = if error.kind() == io::ErrorKind::BrokenPipe { UNREAD } else { FAILED };
    // Relaxed: only the printing thread acts on it.
    if STATE.fetch_max(state, Ordering::Relaxed) < FAILED && state == FAILED {
        say!("error: standard output: {error}; the output is not complete, redirect it elsewhere");
    }
}

/// Returns whether standard output is known to be closed or broken.
pub(crate) fn is_over() -> bool {
    STATE.load(Ordering::Relaxed) != COMPLETE
}

/// Returns the exit status: never success if standard output could not be written to.
pub(crate) fn settle(code: ExitCode) -> ExitCode {
    match STATE.load(Ordering::Relaxed) == FAILED && code == ExitCode::SUCCESS {
        true => ExitCode::FAILURE,
        false => code,
    }
}

/// Prints a line to standard error, formatted as by `format!`. Unlike `eprintln!`, it does not
/// panic without a reader.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::output::tell(&format!($($argument)*))
    };
}
pub(crate) use say;

/// Prints the line of [`say!`].
pub(crate) fn tell(line: &str) {
    // It may quote a file or a message of the system.
    let line = line.split('\n').map(|line| Printable(line).to_string()).collect::<Vec<_>>().join("\n");
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints to standard output, for callers that handle errors themselves.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
