//! What is wrong with a file, where, and how to put it right.

use std::fmt::{self, Display, Formatter};

/// An error in a model or profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputError {
    /// The file as it was named, where there is one.
    pub file: String,
    /// The line, from 1 on, where it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to change.
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

/// A step on the way to a value: a key of a table, or a place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Key(&'static str),
    At(usize),
}

/// What is wrong with the value at this place.
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
