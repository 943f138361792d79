//! Why an app does not start.

use core::fmt;

/// Why an app does not start. Then nothing of it has run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// An app runs already on this core: this one, or the one that calls it.
    AlreadyRunning(&'static str),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRunning(app) => {
                write!(
                    f,
                    "punctual: the app `{app}` cannot start: an app is running on this core; wait for its end"
                )
            }
        }
    }
}

impl core::error::Error for StartError {}
