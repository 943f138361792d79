//! Parameter files in TOML.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Refused;

/// The size limit of a parameter file.
const MAX_BYTES: u64 = 1 << 20;

/// The error of reading a parameter file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("{}: {error}; give a parameter file in TOML", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file is not TOML.
    #[error("{}: {reason}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The position and the error.
        reason: String,
    },
    /// Its content is refused.
    #[error("{}: {}", path.display(), refused.0.join("; "))]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        refused: Refused,
    },
}

/// Returns the assignments in a file: `pan.kp = 1.2`, or `kp = 1.2` in a table `[pan]`.
///
/// # Errors
/// [`FileError`] if the file cannot be read, is not TOML, or contains values other than numbers and
/// booleans.
pub fn assignments(path: impl AsRef<Path>) -> Result<Vec<(String, String)>, FileError> {
    let path = path.as_ref();
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        match text.len() as u64 > MAX_BYTES {
            true => Err(io::Error::other("the file is larger than 1 MiB")),
            false => Ok(text),
        }
    };
    let text = read().map_err(|error| FileError::Read { path: path.into(), error })?;
    let table = text.parse::<Table>().map_err(|error| FileError::Toml {
        path: path.into(),
        reason: error.to_string().trim_end().into(),
    })?;
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    flatten(&table, "", &mut found, &mut reasons);
    match reasons.is_empty() {
        true => Ok(found),
        false => Err(FileError::Refused { path: path.into(), refused: Refused(reasons) }),
    }
}

fn flatten(table: &Table, path: &str, found: &mut Vec<(String, String)>, reasons: &mut Vec<String>) {
    for (key, value) in table {
        let name = format!("{path}{key}");
        match value {
            Value::Integer(value) => found.push((name, value.to_string())),
            Value::Float(value) => found.push((name, format!("{value:?}"))),
            Value::Boolean(value) => found.push((name, value.to_string())),
            Value::Table(table) => flatten(table, &format!("{name}."), found, reasons),
            other => reasons
                .push(format!("{name} is of type {}: a number, true or false is needed", other.type_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn of(text: &str) -> Result<Vec<(String, String)>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, text).unwrap();
        assignments(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn finds_assignments_in_tables_and_dotted_names() {
        let found = of("on = true\npan.kp = 1.2\n[tilt]\nkp = 2 # whole\ngain = nan\n").unwrap();
        let expected = [("on", "true"), ("pan.kp", "1.2"), ("tilt.gain", "NaN"), ("tilt.kp", "2")];
        let mut found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "the parameter refuses values that are not numbers");
    }

    #[test]
    fn error_names_line_of_the_file() {
        let error = of("a = \"1\"\nb = [1, 2]\n").unwrap_err();
        assert!(error.ends_with("a is of type string: a number, true or false is needed; b is of type array: a number, true or false is needed"), "{error}");
        let error = of("on = true\nkp = \n").unwrap_err();
        assert!(error.contains("line 2"), "{error}");
        let error = of("kp = 1\nkp = 2\n").unwrap_err();
        assert!(error.contains("duplicate key"), "{error}");
        let error = of(&"# 34567\n".repeat((1 << 17) + 1)).unwrap_err();
        assert!(error.ends_with("the file is larger than 1 MiB; give a parameter file in TOML"), "{error}");
        assert_eq!(of(&"# 34567\n".repeat(1 << 17)), Ok(vec![]), "1 MiB is allowed");
        let error = assignments("/no/such/file").unwrap_err().to_string();
        assert!(error.starts_with("/no/such/file: No such file"), "{error}");
    }
}
