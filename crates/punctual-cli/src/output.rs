//! Where results go: standard output and error, written to without ever panicking, and files, looked at before anything is
//! measured, so that minutes of it are not lost.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether `path` can be written to. Leaves it as it is: no file if there was none, and what is in it if there was one.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Nothing that was to be printed is missing.
const COMPLETE: u8 = 0;
/// Nobody reads standard output any more.
const UNREAD: u8 = 1;
/// Standard output could not be written to.
const FAILED: u8 = 2;

/// How standard output has fared. Never goes down.
static STATE: AtomicU8 = AtomicU8::new(COMPLETE);

/// Prints to standard output. A reader that has gone away, such as `head`, is no error. Anything else is said, once, and
/// makes the program [fail](settle).
pub(crate) fn print(text: &str) {
    note(try_print(text));
}

/// Notes what has come of writing to standard output.
pub(crate) fn note(written: io::Result<()>) {
    let Err(error) = written else { return };
    let state = if error.kind() == io::ErrorKind::BrokenPipe { UNREAD } else { FAILED };
    // Relaxed: nothing is read in consequence of it but by the thread that prints.
    if STATE.fetch_max(state, Ordering::Relaxed) < FAILED && state == FAILED {
        say!("error: standard output: {error}; what was printed is not complete, give it another place");
    }
}

/// Whether standard output takes nothing any more, as far as is known.
pub(crate) fn is_over() -> bool {
    STATE.load(Ordering::Relaxed) != COMPLETE
}

/// The status to end with: not that of success if standard output could not be written to.
pub(crate) fn settle(code: ExitCode) -> ExitCode {
    match STATE.load(Ordering::Relaxed) == FAILED && code == ExitCode::SUCCESS {
        true => ExitCode::FAILURE,
        false => code,
    }
}

/// Prints a line to standard error, formatted as by `format!`. That nobody reads it is no reason to end in a panic, as
/// `eprintln!` would.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::output::tell(&format!($($argument)*))
    };
}
pub(crate) use say;

/// What [`say!`] does with its line.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints to standard output, for callers who have more to do than to print.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_file_unchanged_when_checking() {
        let path = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        check(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "kept").unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
        assert!(check(Path::new("/no/such/directory/file")).is_err());
    }
}
