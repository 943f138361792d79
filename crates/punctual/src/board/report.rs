//! Parts of a report that only a Linux process has; a board reports nothing in their place.

use core::fmt;

use crate::report::{Report, TaskReport};

/// Writes nothing: a board has no guard.
pub(crate) fn explain_findings(_: &mut fmt::Formatter<'_>, _: &TaskReport) -> fmt::Result {
    Ok(())
}

/// Writes nothing: a board has no processes.
pub(crate) fn write_helpers(_: &mut fmt::Formatter<'_>, _: &Report) -> fmt::Result {
    Ok(())
}

/// Writes nothing: a board has no tools.
pub(crate) fn write_trace_commands(_: &mut fmt::Formatter<'_>) -> fmt::Result {
    Ok(())
}

/// Writes nothing: no settings are requested from a system.
pub(crate) fn write_settings(_: &mut fmt::Formatter<'_>, _: &Report) -> fmt::Result {
    Ok(())
}
