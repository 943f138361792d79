//! Reads the small files in which the kernel describes devices.

use std::fs;
use std::path::Path;

use crate::Error;

/// Remedy for a file of `/sys` that cannot be read.
const FIX: &str = "is /sys mounted, and is the device still there?";

/// Returns the text of a file, without its line end.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(Error::file(path, FIX))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Returns the number in a file, hexadecimal with the prefix `0x`, or decimal.
pub(crate) fn number(path: &Path) -> Result<u64, Error> {
    let text = text(path)?;
    parse(&text).ok_or_else(|| Error::Malformed { path: path.to_owned(), text, wanted: "a number" })
}

pub(crate) fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

/// Returns the names in a directory, sorted; empty if the directory does not exist.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(directory, FIX)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::file(directory, FIX))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Returns the number after a prefix, as in `map3`.
pub(crate) fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
