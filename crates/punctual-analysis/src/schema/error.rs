//! Errors in input files: location, problem and remedy.

use std::fmt::{self, Display, Formatter};

/// An error in a model or profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputError {
    /// The file as the caller named it.
    pub file: String,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// The problem.
    pub what: String,
    /// The remedy.
    pub fix: String,
}

impl Display for InputError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, line, what, fix } = self;
        f.write_str(file)?;
        if let Some(line) = line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {what}")?;
        if fix.is_empty() { Ok(()) } else { write!(f, "\n  fix: {fix}") }
    }
}

impl std::error::Error for InputError {}

/// A step on the path to a value: a key of a table, or an index of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Key(&'static str),
    At(usize),
}

/// A problem with the value at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: Vec<Step>,
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Problem {
    pub(crate) fn new(path: &[Step], what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.to_vec(), what: what.into(), fix: fix.into() }
    }

    pub(crate) fn at(self, file: &str, line: Option<usize>) -> InputError {
        InputError { file: file.to_owned(), line, what: self.what, fix: self.fix }
    }
}
