//! The subjects of measurements, and the parts that their rows have in common.

use crate::model::Row;
use crate::options::SuiteName;

/// The subject of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Tasks and resources of an app.
    Punctual,
    /// The crate `punctual-sync`, used by threads.
    Sync,
    /// POSIX threads, SCHED_FIFO if granted, with priority-inheritance mutexes.
    Posix,
    /// The predecessor's mutex, from the registry.
    PcpMutex,
}

impl Subject {
    pub(crate) fn slug(self) -> &'static str {
        match self {
            Self::Punctual => "punctual",
            Self::Sync => "punctual-sync",
            Self::Posix => "posix",
            Self::PcpMutex => "pcp-mutex",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Punctual => "Punctual",
            Self::Sync => "punctual-sync",
            Self::Posix => PEER,
            Self::PcpMutex => "pcp-mutex 0.2.0",
        }
    }
}

/// The unit for numbers of locked instructions.
pub(crate) const L: &str = "L";

/// The name of the quantity that gives the horizontal position of a row on a curve.
pub(crate) const X: &str = "at";

/// Punctual with default settings: monitored.
pub(crate) const AS_BY_DEFAULT: &str = "Punctual, as by default";

/// The short form, for rows with further words.
pub(crate) const AS_BY_DEFAULT_IN_SHORT: &str = "as by default";

/// The subject that ratios refer to.
pub(crate) const PEER: &str = "POSIX";

impl Row {
    /// Returns a row of `suite` without figures.
    pub(crate) fn new(suite: SuiteName, slug: &str, operation: impl Into<String>, subject: Subject) -> Self {
        Self {
            id: format!("{suite}/{slug}/{}", subject.slug()),
            operation: operation.into(),
            subject: subject.name().into(),
            operations_per_sample: 1,
            ..Self::default()
        }
    }

    /// Sets the number of operations in each sample.
    pub(crate) fn per_sample(mut self, operations: u32) -> Self {
        self.operations_per_sample = operations;
        self
    }

    /// Adds published figures.
    pub(crate) fn published(mut self, published: Vec<crate::model::Published>) -> Self {
        self.published = published;
        self
    }

    /// Sets the condition, which becomes part of the identifier.
    pub(crate) fn under(mut self, condition: &str) -> Self {
        self.id = format!("{}/{condition}", self.id);
        self.condition = Some(condition.into());
        self
    }
}

/// Returns the settings that an app's threads were refused, or the reason why it did not start.
pub(crate) fn outcome(
    run: Result<punctual::Report, punctual::StartError>,
) -> Result<crate::rt::Lack, String> {
    run.map(|report| refused_settings(&report)).map_err(|error| error.to_string())
}

/// Returns the settings that the threads of an app were refused, without repetition.
pub(crate) fn refused_settings(report: &punctual::Report) -> crate::rt::Lack {
    let mut lack = crate::rt::Lack::new();
    for missing in report.settings.threads.iter().flat_map(|thread| &thread.missing) {
        if !lack.contains(missing) {
            lack.push(missing.clone());
        }
    }
    lack
}
