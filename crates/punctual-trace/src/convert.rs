//! Repairs a trace.dat: reads every part that can be read, and writes a complete file.

use std::path::Path;

use crate::read::dat;
use crate::write::WriteError;
use crate::write::dat::copy;

/// Writes `file` from another trace.dat, which may be incomplete. Returns notes on missing parts.
///
/// # Errors
/// Returns an error if no part of the trace can be read, if it was recorded on a machine with the
/// opposite byte order, or if the file cannot be written.
pub fn convert(trace: &Path, file: &Path) -> Result<Vec<String>, WriteError> {
    let (content, damage) = dat::content(trace).map_err(|error| WriteError::Unreadable(error.into()))?;
    copy(&content, None, file)?;
    Ok(damage)
}
