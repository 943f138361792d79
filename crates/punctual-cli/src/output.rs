//! Standard output and standard error, written without ever panicking. Files are written by
//! `punctual_files`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::Args;
use punctual_report::escape::Printable;

/// Standard output, as a file.
pub(crate) const STANDARD_OUTPUT: &str = "-";

/// The flag `--json`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Json {
    /// Write JSON, to standard output instead of text if no file is given
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STANDARD_OUTPUT)]
    pub(crate) json: Option<PathBuf>,
}

impl Json {
    /// Returns whether JSON replaces the text on standard output.
    pub(crate) fn is_printed(&self) -> bool {
        self.json.as_deref() == Some(Path::new(STANDARD_OUTPUT))
    }

    /// Returns the file to write, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|_| !self.is_printed())
    }

    /// Checks that the file can be written.
    pub(crate) fn check(&self) -> Result<(), String> {
        check("--json", self.file())
    }

    /// Writes the document, or prints the text and writes the document to the file, if there is
    /// one. Returns whether everything that does not go to standard output was written.
    pub(crate) fn write(&self, text: impl FnOnce() -> String, document: impl FnOnce() -> String) -> bool {
        if self.is_printed() {
            print(&format!("{}\n", document()));
            return true;
        }
        print(&text());
        write("--json", self.file(), || document() + "\n")
    }

    /// Opens the destination of lines that are read while more are written.
    pub(crate) fn lines(&self) -> Result<Sink, String> {
        let Some(path) = self.file() else { return Ok(Sink(None)) };
        let file = punctual_files::stream(path);
        file.map(|file| Sink(Some(file))).map_err(|error| unwritable("--json", path, &error))
    }
}

/// Returns the number of columns of a terminal, if that is known.
pub(crate) fn columns(of: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Checks that the file of a flag can be written.
pub(crate) fn check(flag: &str, path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    punctual_files::check(path).map_err(|error| unwritable(flag, path, &error))
}

/// Describes why the file of a flag cannot be written, with the remedy.
pub(crate) fn unwritable(flag: &str, path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::IsADirectory => "; give a file",
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; give a file in an existing directory",
        io::ErrorKind::PermissionDenied => "; give a file in a directory that this user may write to",
        // Other errors contain their remedy, or another path does not help.
        _ => "",
    };
    format!("{flag} {}: {error}{remedy}", path.display())
}

/// Writes the file of a flag, if it was given. Returns `false` after a failure, which is printed.
pub(crate) fn write(flag: &str, path: Option<&Path>, content: impl FnOnce() -> String) -> bool {
    let Some(path) = path else { return true };
    let written = punctual_files::write(path, content().as_bytes());
    if let Err(error) = &written {
        message!("error: {}", unwritable(flag, path, error));
    }
    written.is_ok()
}

/// A destination of lines: a file, or else standard output.
#[derive(Debug, Default)]
pub(crate) struct Sink(Option<File>);

impl Sink {
    /// Writes without waiting for more.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => file.write_all(text.as_bytes()),
            None => try_print(text),
        }
    }
}

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
        message!("error: standard output: {error}; the output is not complete, redirect it elsewhere");
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
macro_rules! message {
    ($($argument:tt)*) => {
        $crate::output::write_message(&format!($($argument)*))
    };
}
pub(crate) use message;

/// Prints the line of [`message!`].
pub(crate) fn write_message(line: &str) {
    // It may quote a file or a message of the system.
    let line = line.split('\n').map(|line| Printable(line).to_string()).collect::<Vec<_>>().join("\n");
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Returns a path for standard output, on one line and without commands to the terminal.
pub(crate) fn printable(path: &Path) -> String {
    Printable(&path.to_string_lossy()).to_string()
}

/// Prints to standard output, for callers that handle errors themselves.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
