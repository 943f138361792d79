//! Where results go: standard output and error, written without ever panicking, and files, checked before measuring so that
//! no results are lost.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

use punctual_report::escape::Printable;

/// Checks that `path` is writable, and leaves it as it is: absent, or with its content.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The same of a file that takes the place of one that is there: a device, a pipe or a socket must not be replaced.
pub(crate) fn check_replaced(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => {
            Err(io::Error::other("this is no file, and would be replaced by one; choose another name"))
        }
        _ => check(path),
    }
}

/// Everything has been printed.
const COMPLETE: u8 = 0;
/// Nobody reads standard output any more.
const UNREAD: u8 = 1;
/// Standard output could not be written to.
const FAILED: u8 = 2;

/// The state of standard output. Only ever grows.
static STATE: AtomicU8 = AtomicU8::new(COMPLETE);

/// Prints to standard output. A reader that has gone away, such as `head`, is no error. Any other error is printed once and
/// makes the program [fail](settle).
pub(crate) fn print(text: &str) {
    note(try_print(text));
}

/// Records the result of writing to standard output.
pub(crate) fn note(written: io::Result<()>) {
    let Err(error) = written else { return };
    let state = if error.kind() == io::ErrorKind::BrokenPipe { UNREAD } else { FAILED };
    // Relaxed: nothing is read in consequence of it but by the thread that prints.
    if STATE.fetch_max(state, Ordering::Relaxed) < FAILED && state == FAILED {
        say!("error: standard output: {error}; the output is not complete, redirect it elsewhere");
    }
}

/// Whether standard output is known to be closed or broken.
pub(crate) fn is_over() -> bool {
    STATE.load(Ordering::Relaxed) != COMPLETE
}

/// The exit status: never success if standard output could not be written to.
pub(crate) fn settle(code: ExitCode) -> ExitCode {
    match STATE.load(Ordering::Relaxed) == FAILED && code == ExitCode::SUCCESS {
        true => ExitCode::FAILURE,
        false => code,
    }
}

/// Prints a line to standard error, formatted as by `format!`. Unlike `eprintln!`, it does not panic if nobody reads it.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::output::tell(&format!($($argument)*))
    };
}
pub(crate) use say;

/// What [`say!`] does with its line.
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
        assert!(check(Path::new("/dev/null")).is_ok() && check_replaced(Path::new("/dev/null")).is_err());
    }
}
