//! The registration of a suite.

use crate::options::{Plan, SuiteName};
use crate::session::Step;

/// The properties of a suite: the rest of the crate reads them from here.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Registration {
    /// Name.
    pub name: SuiteName,
    /// Heading.
    pub title: &'static str,
    /// Subject of its measurements, for the help.
    pub summary: &'static str,
    /// True if it runs by default.
    pub is_usual: bool,
    /// True if it compares Punctual with other crates or with POSIX, so that the others are
    /// references for comparisons of runs.
    pub has_references: bool,
    pub(crate) steps: fn(&Plan) -> Vec<Step>,
}
