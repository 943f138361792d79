//! Task sets written by hand, in TOML or JSON.
//!
//! Every time is a text with a unit, such as `"100us"`. Whatever a file names has to be in it, and whatever is in it has to be
//! known: a misspelt key is an error, with its line and how to put it right.
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
mod error;
mod file;
mod locate;

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use self::error::InputError;
pub(crate) use self::error::{Problem, Step};
use crate::system::System;

/// Formats that are told apart by how a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Toml,
    Json,
}

/// Reads a task set. `file` is what errors call it. What begins with a brace is JSON, anything else TOML.
///
/// # Errors
/// The first thing that is wrong, with its line and what to do.
pub fn read(file: &str, text: &str) -> Result<System, InputError> {
    let format = if text.trim_start().starts_with('{') { Format::Json } else { Format::Toml };
    let entries: file::File = parse(file, text, format, &[file::SCHEMA])?;
    build::build(entries).map_err(|problem| {
        let line = match format {
            Format::Toml => locate::in_toml(text, &problem.path),
            Format::Json => locate::in_json(text, &problem.path),
        };
        problem.at(file, line)
    })
}

/// Reads JSON of a schema.
pub(crate) fn parse_json<T: DeserializeOwned>(
    file: &str,
    text: &str,
    schemas: &[&str],
) -> Result<T, InputError> {
    parse(file, text, Format::Json, schemas)
}

/// The line of a value in JSON.
pub(crate) fn line_in_json(text: &str, path: &[Step]) -> Option<usize> {
    locate::in_json(text, path)
}

/// Tasks that are released by nothing but each other, if there are some: one of them, and their names.
pub(crate) fn cycle(system: &System) -> Option<(usize, String)> {
    build::cycle(system)
}

/// `schemas` are the versions that are read, the newest first.
fn parse<T: DeserializeOwned>(
    file: &str,
    text: &str,
    format: Format,
    schemas: &[&str],
) -> Result<T, InputError> {
    #[derive(Deserialize)]
    struct Version {
        schema: Option<String>,
    }
    let Version { schema: found } = decode(file, text, format)?;
    if !found.as_deref().is_some_and(|found| schemas.contains(&found)) {
        let schema = schemas.first().copied().unwrap_or_default();
        let path = [Step::Key("schema")];
        let (line, name) = match format {
            Format::Toml => (locate::in_toml(text, &path), format!("`schema = \"{schema}\"`")),
            Format::Json => (locate::in_json(text, &path), format!("`\"schema\": \"{schema}\"`")),
        };
        let what = match found {
            Some(found) => format!("`{found}` is no schema that is read here"),
            None => "the file does not say which schema it follows".to_owned(),
        };
        return Err(
            // What is missing belongs at the top.
            Problem::new(&path, what, format!("write {name}, and what that version has"))
                .at(file, line.or(Some(1))),
        );
    }
    decode(file, text, format)
}

fn decode<T: DeserializeOwned>(file: &str, text: &str, format: Format) -> Result<T, InputError> {
    let (line, what) = match format {
        Format::Toml => match toml::from_str(text) {
            Ok(value) => return Ok(value),
            Err(error) => {
                let before = error.span().map(|span| &text.as_bytes()[..span.start.min(text.len())]);
                let line = before.map(|before| before.iter().filter(|&&byte| byte == b'\n').count() + 1);
                (line, error.message().to_owned())
            }
        },
        Format::Json => match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(error) => {
                let what = error.to_string();
                let end = what.rfind(" at line ").unwrap_or(what.len());
                (Some(error.line().max(1)), what[..end].to_owned())
            }
        },
    };
    let fix = if what.starts_with("unknown field") {
        "correct the name or take it out; docs/book/src/internals/analysis.md lists all of them"
    } else if what.starts_with("missing field") {
        "add it; docs/book/src/internals/analysis.md says what it means"
    } else {
        "docs/book/src/internals/analysis.md shows a file with everything in it"
    };
    Err(InputError { file: file.to_owned(), line, what, fix: fix.to_owned() })
}

/// The line of a task in a file that [`read`] accepts, by its index.
#[must_use]
pub fn line_of_task(text: &str, at: usize) -> Option<usize> {
    let path = [Step::Key("task"), Step::At(at)];
    match text.trim_start().starts_with('{') {
        true => locate::in_json(text, &path),
        false => locate::in_toml(text, &path),
    }
}
