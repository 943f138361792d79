//! Destination of the report at the end of a run.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::port::linux::stderr;
use crate::report::Report;

/// Destination of a run's report at its end, in addition to being returned.
///
/// A failure to write is reported on standard error. It changes neither the result of `run` nor the
/// exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reporting {
    /// Standard error, if it is a terminal.
    Auto,
    /// Standard error.
    Always,
    /// None.
    Never,
    /// This file, which is replaced. A relative path is resolved at the end of the run.
    File(PathBuf),
}

impl Reporting {
    /// Parses the spelling of the attribute and the environment; `None` if it is invalid.
    pub(crate) fn parse(text: &OsStr) -> Option<Self> {
        Some(match text.to_str() {
            Some("auto") => Self::Auto,
            Some("always" | "1") => Self::Always,
            Some("never" | "0") => Self::Never,
            _ if text.as_encoded_bytes().contains(&b'/') => Self::File(text.into()),
            _ => return None,
        })
    }

    /// Writes the report to its destination.
    pub(crate) fn write(&self, report: &Report) {
        match self {
            Self::Auto if !std::io::stderr().is_terminal() => {}
            Self::Auto | Self::Always => stderr::text(format_args!("\n{report}\n")),
            Self::Never => {}
            Self::File(path) => write_file(path, report),
        }
    }
}

fn write_file(path: &Path, report: &Report) {
    match punctual_files::write(path, format!("{report}\n").as_bytes()) {
        Ok(()) => {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            stderr::line(format_args!("the report is in {}", path.display()));
        }
        Err(error) => {
            stderr::line(format_args!("the report could not be written to {}: {error}", path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn treats_text_with_slash_as_path() {
        let parse = |text: &str| Reporting::parse(OsStr::new(text));
        assert_eq!(parse("auto"), Some(Reporting::Auto));
        assert_eq!(["always", "1"].map(parse), [const { Some(Reporting::Always) }; 2]);
        assert_eq!(["never", "0"].map(parse), [const { Some(Reporting::Never) }; 2]);
        for path in ["./report.txt", "/tmp/report.txt"] {
            assert_eq!(parse(path), Some(Reporting::File(path.into())));
        }
        assert_eq!(["", "2", "yes", "report.txt"].map(parse), [const { None }; 4]);
        // A name that is not UTF-8 is preserved.
        let name = OsStr::from_bytes(b"./\xff");
        assert_eq!(Reporting::parse(name), Some(Reporting::File(name.into())));
    }
}
