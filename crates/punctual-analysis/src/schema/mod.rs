//! Task sets written by hand, in TOML or JSON.
//!
//! Every time is a string with a unit, such as `"100us"`. References must resolve, and unknown keys
//! are errors: a misspelled key is reported with its line and the remedy.
//!
//! ```
//! let system = punctual_analysis::schema::read("arm.toml", r#"
//! schema = "punctual-taskset/1"
//!
//! [[task]]
//! name = "sample"
//! level = 2
//! period = "100us"
//! execution = "30us"
//! "#)?;
//! assert_eq!(system.tasks[0].deadline, Some(100_000));
//! # Ok::<(), punctual_analysis::schema::InputError>(())
//! ```

mod build;
pub(crate) mod file;
mod locate;

use std::fmt::{self, Display, Formatter};

use punctual_report::escape::Printable;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::system::System;

/// Maximum number of entries of each kind, since some checks and the analysis take time that grows
/// with the square of their number.
pub(crate) const MAX_ENTRIES: usize = 4_096;
/// Maximum number of partitions: every resource has a ceiling in each of them.
pub(crate) const MAX_PARTITIONS: usize = 1_024;
/// Maximum number of sections of a job, each of which may lie inside any other one.
pub(crate) const MAX_SECTIONS: usize = 64;

/// File formats, distinguished by the first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Toml,
    Json,
}

/// Reads a task set. `file` is its name in error messages. Text that starts with a brace is JSON,
/// any other text TOML.
///
/// # Errors
/// Returns the first error, with its line and the remedy.
#[inline]
pub fn read(file: &str, text: &str) -> Result<System, InputError> {
    let format = if text.trim_start().starts_with('{') { Format::Json } else { Format::Toml };
    check_version(file, text, format, &[file::SCHEMA])?;
    let entries: file::File = match format {
        Format::Toml => from_toml(file, text)?,
        Format::Json => from_json(file, text)?,
    };
    build::build(entries).map_err(|problem| {
        let line = match format {
            Format::Toml => locate::in_toml(text, &problem.path),
            Format::Json => locate::in_json(text, &problem.path),
        };
        problem.at(file, line)
    })
}

/// Parses JSON of a schema; `schemas` lists the supported versions, newest first.
pub(crate) fn parse_json<T: DeserializeOwned>(
    file: &str,
    text: &str,
    schemas: &[&str],
) -> Result<T, InputError> {
    check_version(file, text, Format::Json, schemas)?;
    from_json(file, text)
}

/// Returns the line of a value in JSON.
pub(crate) fn line_in_json(text: &str, path: &[Step]) -> Option<usize> {
    locate::in_json(text, path)
}

/// Returns a task of a cycle of tasks that are released only by each other, and the names of the
/// cycle.
pub(crate) fn cycle(system: &System) -> Option<(usize, String)> {
    build::cycle(system)
}

/// Rejects more than `most` entries, whose plural is `kinds`.
pub(crate) fn check_length(path: &[Step], kinds: &str, length: usize, most: usize) -> Result<(), Problem> {
    if length <= most {
        return Ok(());
    }
    let what = format!("there are {length} {kinds}, and at most {most} are analyzed");
    Err(Problem::new(path, what, "analyze parts of it separately"))
}

/// Rejects a file of another schema than `schemas`, newest first.
#[inline]
fn check_version(file: &str, text: &str, format: Format, schemas: &[&str]) -> Result<(), InputError> {
    #[derive(Deserialize)]
    struct Version {
        schema: Option<String>,
    }
    let Version { schema: found } = match format {
        Format::Toml => from_toml(file, text)?,
        Format::Json => from_json(file, text)?,
    };
    if found.as_deref().is_some_and(|found| schemas.contains(&found)) {
        return Ok(());
    }
    let schema = schemas.first().copied().unwrap_or_default();
    let path = [Step::Key("schema")];
    let (line, name) = match format {
        Format::Toml => (locate::in_toml(text, &path), format!("`schema = \"{schema}\"`")),
        Format::Json => (locate::in_json(text, &path), format!("`\"schema\": \"{schema}\"`")),
    };
    let what = match found {
        Some(found) => format!("`{found}` is no schema that is read here"),
        None => "the file names no schema".to_owned(),
    };
    // A missing version belongs at the top.
    let problem = Problem::new(&path, what, format!("write {name}, and the keys of that version"));
    Err(problem.at(file, line.or(Some(1))))
}

// One function for each format, because deserializers take a third of the time of a build of this
// crate, and most types have one format only. Their callers are `#[inline]`, which leaves the
// deserializers to the program that reads files: it may optimize them less than an analysis.

fn from_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map(|span| &text.as_bytes()[..span.start.min(text.len())]);
        let line = before.map(|before| before.iter().filter(|&&byte| byte == b'\n').count() + 1);
        invalid(file, line, error.message().to_owned())
    })
}

fn from_json<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let end = what.rfind(" at line ").unwrap_or(what.len());
        invalid(file, Some(error.line().max(1)), what[..end].to_owned())
    })
}

/// Describes text that does not fit its type, with the remedy.
fn invalid(file: &str, line: Option<usize>, what: String) -> InputError {
    let fix = if what.starts_with("unknown field") {
        "correct the name or take it out; docs/book/src/reference/taskset.md lists all of them"
    } else if what.starts_with("missing field") {
        "add it; docs/book/src/reference/taskset.md describes it"
    } else {
        "docs/book/src/reference/taskset.md shows a task set, and how an app writes its model and profile"
    };
    InputError { file: file.to_owned(), line, what, fix: fix.to_owned() }
}

/// Returns the line of a task, by index, in a file that [`read`] accepts.
#[must_use]
pub fn line_of_task(text: &str, at: usize) -> Option<usize> {
    let path = [Step::Key("task"), Step::At(at)];
    match text.trim_start().starts_with('{') {
        true => locate::in_json(text, &path),
        false => locate::in_toml(text, &path),
    }
}

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
        // Both may quote the file.
        write!(f, ": {}", Printable(what))?;
        if fix.is_empty() { Ok(()) } else { write!(f, "\n  fix: {}", Printable(fix)) }
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
