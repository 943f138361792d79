//! Reasons why an app does not start.

use core::fmt;

/// Reason why an app does not start. No code of it has run then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// An app is already running on this core: this one, or the one that calls it.
    AlreadyRunning(&'static str),
    /// There is no core for a partition, or it does not start.
    NoCore {
        /// The app.
        app: &'static str,
        /// The partition.
        partition: &'static str,
        /// The number of the core.
        core: u32,
    },
    /// The app has several partitions, for which virtual time is not available here.
    #[cfg(feature = "virtual-time")]
    VirtualPartitions(&'static str),
    /// The interrupt of a task cannot be routed to the core of the task's partition.
    NotRouted {
        /// The app.
        app: &'static str,
        /// The partition.
        partition: &'static str,
        /// The number of the interrupt.
        interrupt: u32,
    },
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
            Self::NoCore { app, partition, core } => write!(
                f,
                "punctual: the app `{app}` cannot start: its partition `{partition}` needs core {core}, which the board does not \
                 have or which does not start; use fewer partitions, or give QEMU more cores with -smp"
            ),
            #[cfg(feature = "virtual-time")]
            Self::VirtualPartitions(app) => write!(
                f,
                "punctual: the app `{app}` cannot start: it has several partitions, and on a board virtual time is for apps with one;                  run it on the board's clock, or in virtual time on Linux"
            ),
            Self::NotRouted { app, partition, interrupt } => write!(
                f,
                "punctual: the app `{app}` cannot start: a task of its partition `{partition}` \
                 binds interrupt {interrupt}, which this board delivers only to the first core; \
                 move the task to the first partition"
            ),
        }
    }
}

impl core::error::Error for StartError {}
