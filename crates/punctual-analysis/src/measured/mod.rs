//! Task sets of apps: what the source declares, with what a run has measured.
//!
//! An app writes its declared model if `PUNCTUAL_MODEL` names a file, and the profile of a run if `PUNCTUAL_PROFILE` does. The
//! profile adds executions, holds, jitter, spawns, and what the executor costs. What neither says is never taken for nothing
//! in silence: it is an error, or stands in [`System::assumptions`].

mod combine;
mod compare;
mod file;

pub use self::compare::{Comparison, compare};

use crate::schema::{self, InputError, Problem};
use crate::system::System;

/// What is assumed where nothing says what else ran on the CPUs.
pub const NO_INTERRUPTS: &str =
    "Interrupts and other threads on these CPUs were not recorded: they are not counted.";

/// What is assumed where only the jobs know of it.
pub const SEEN_BY_JOBS: &str = "What interrupts, other threads and a host took of these CPUs is known only from jobs that took longer \
    than their threads' CPU time: the most of any job is counted, once in a busy window. A recording knows more of it.";

/// What is called so: whatever took the CPU from a job, where nothing else tells.
pub const THE_REST: &str = "the rest of the machine";

/// What is assumed of a profile that does not say what it took itself.
pub const PROFILING_UNKNOWN: &str =
    "What profiling took of this run was not measured: jobs may exceed their bounds by it.";

/// A file with its name.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What errors call it.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

/// Where a problem is.
enum Place {
    Model(Problem),
    Profile(Problem),
}

/// Combines a declared model with a profile. `cpus` is how many the global executor has, where there is one. Tasks `without` are
/// left out, as if they had no jobs.
///
/// # Errors
/// What is wrong with either file, or missing in both, with its line and what to do.
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
