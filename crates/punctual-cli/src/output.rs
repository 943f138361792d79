//! Files that results go to: looked at before anything is measured, so that minutes of it are not lost.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Whether `path` can be written to. Leaves it as it is: no file if there was none, and what is in it if there was one.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Prints to standard output. A reader that has gone away, such as `head`, is no error.
pub(crate) fn print(text: &str) {
    let _ = try_print(text);
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
    fn looking_leaves_no_trace() {
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
