//! The parts of the library for an app that is a program for a board without operating system.
//!
//! A submodule belongs to the module of the same name at the root of the crate, which re-exports
//! its items.

pub(crate) mod cells;
pub(crate) mod lock;
pub(crate) mod port;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod task;

/// A board has neither settings nor an environment.
pub(crate) mod config {
    use crate::config::Config;

    /// The settings that only a board has: none.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct PlatformConfig;

    impl Config {
        /// Leaves the configuration as it is: a board has no environment.
        pub(crate) fn read_environment(&mut self) {
            let PlatformConfig = self.platform;
        }
    }
}

/// Items that the generated code uses on a board in place of those of a process.
pub(crate) mod export {
    pub use crate::board::state::{Calls, Ceilings, Reactor};
    pub use crate::board::task::{Bound, BoundTask};
}

/// Parts of a report that only a Linux process has; a board reports nothing in their place.
pub(crate) mod report {
    use core::fmt;

    use crate::report::{Report, TaskReport};

    /// Writes nothing: a board has no guard.
    pub(crate) fn explain_findings(_: &mut fmt::Formatter<'_>, _: &TaskReport) -> fmt::Result {
        Ok(())
    }

    /// Writes nothing: a board has no external clock.
    pub(crate) fn explain_clock(_: &mut fmt::Formatter<'_>, _: &TaskReport) -> fmt::Result {
        Ok(())
    }

    /// Writes nothing: a board has no processes.
    pub(crate) fn write_helpers(_: &mut fmt::Formatter<'_>, _: &Report) -> fmt::Result {
        Ok(())
    }

    /// Writes nothing: a board has no tools.
    pub(crate) fn write_trace_command(_: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Writes nothing: no settings are requested from a system.
    pub(crate) fn write_settings(_: &mut fmt::Formatter<'_>, _: &Report) -> fmt::Result {
        Ok(())
    }
}
