//! Task sets of apps: the declarations of the source, combined with the measurements of a run.
//!
//! An app writes its declared model to the file named by `PUNCTUAL_MODEL`, and the profile of a run
//! to that named by `PUNCTUAL_PROFILE`. The profile adds execution times, holds, jitter, spawns,
//! and the overheads of the executor. A value that is missing in both is never silently zero: it is
//! an error, or listed in [`System::assumptions`].

mod combine;
mod compare;
mod file;

pub use self::compare::{Comparison, compare};

use crate::schema::{self, InputError, Problem};
use crate::system::System;

/// Assumption if nothing else was recorded on the CPUs.
pub const NO_INTERRUPTS: &str =
    "Interrupts and other threads on these CPUs were not recorded: they are not counted.";

/// Assumption if only jobs observed the rest of the machine.
pub const SEEN_BY_JOBS: &str = "The times that interrupts, other threads and a host took of these CPUs were not recorded: the most that \
    a job lost to them is counted once in a busy window.";

/// Name of the source that took the CPU from a job where no other record names one.
pub const THE_REST: &str = "the rest of the machine";

/// Assumption for a profile without the cost of profiling.
pub const PROFILING_UNKNOWN: &str =
    "The cost of profiling this run was not measured; jobs may exceed their bounds by it.";

/// A file with its name.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name for error messages.
    pub file: &'a str,
    /// Content.
    pub text: &'a str,
}

/// Location of a problem.
enum Place {
    Model(Problem),
    Profile(Problem),
}

/// Returns whether a file is the model of an app rather than a task set.
#[must_use]
pub fn is_model(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains(file::MODEL)
}

/// Combines a declared model with a profile. `cpus` is the number of CPUs of the global executor,
/// if it is used. Tasks listed in `without` are removed, as if they had no jobs.
///
/// # Errors
/// Returns the defect of either file, or the value that both lack, with its line and the remedy.
#[inline]
pub fn read(
    model: Source<'_>,
    profile: Source<'_>,
    cpus: Option<u64>,
    without: &[String],
) -> Result<System, InputError> {
    let declared = schema::parse_json(model.file, model.text, &[file::MODEL])?;
    let measured = schema::parse_json(profile.file, profile.text, &file::PROFILES)?;
    combine::combine(declared, measured, cpus, without).map_err(|place| {
        let (source, problem) = match place {
            Place::Model(problem) => (model, problem),
            Place::Profile(problem) => (profile, problem),
        };
        let line = schema::line_in_json(source.text, &problem.path);
        problem.at(source.file, line)
    })
}
