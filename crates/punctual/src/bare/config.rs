//! The configuration of an app.

use punctual_core::Instant;
#[cfg(feature = "virtual-time")]
use punctual_core::{Duration, IntoDuration};

use super::runtime::Runtime;
use super::start_error::StartError;
#[cfg(feature = "virtual-time")]
use super::{clock, virtual_time};

/// Configuration of a run. On a bare board most of it is fixed by the features of the board's
/// crate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    #[cfg(feature = "virtual-time")]
    virtual_time: bool,
    #[cfg(feature = "virtual-time")]
    until: Option<Duration>,
}

impl Config {
    /// Uses the board's clock, until the app is shut down.
    pub fn new() -> Self {
        Self::default()
    }

    /// Equals [`new`](Self::new): a board has no environment.
    pub fn from_env() -> Self {
        Self::new()
    }

    /// Uses virtual time: the clock advances only when no work is left, and by
    /// [`spend`](crate::spend). For apps with one partition.
    ///
    /// As on Linux, an app ends when no further event is possible, unless a task is bound to an
    /// interrupt.
    #[cfg(feature = "virtual-time")]
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.virtual_time = true;
        self
    }

    /// Ends the app this long after its start. Jobs released by then are finished; the outcome is
    /// [`TimeUp`](crate::report::Outcome::TimeUp).
    #[cfg(feature = "virtual-time")]
    #[must_use]
    pub fn until(mut self, duration: impl IntoDuration) -> Self {
        self.until = Some(duration.into_duration());
        self
    }

    /// Returns whether time is virtual.
    pub(crate) fn is_virtual(&self) -> bool {
        #[cfg(feature = "virtual-time")]
        return self.virtual_time;
        #[cfg(not(feature = "virtual-time"))]
        false
    }

    /// # Errors
    /// Returns an error if `runtime` cannot run with this configuration.
    pub(crate) fn check(&self, runtime: &'static Runtime) -> Result<(), StartError> {
        #[cfg(feature = "virtual-time")]
        if self.virtual_time && runtime.partitions.len() > 1 {
            return Err(StartError::VirtualPartitions(runtime.name));
        }
        let _ = runtime;
        Ok(())
    }

    /// Begins a run, before `init`.
    pub(crate) fn begin(&self) {
        #[cfg(feature = "virtual-time")]
        if self.virtual_time {
            virtual_time::begin();
        }
    }

    /// Called when the app has started.
    pub(crate) fn started(&self, start: Instant) {
        #[cfg(feature = "virtual-time")]
        clock::set_limit(
            self.until.map_or(u64::MAX, |until| start.as_ticks().saturating_add(until.as_ticks())),
        );
        let _ = start;
    }

    /// Ends the run.
    pub(crate) fn end(&self) {
        #[cfg(feature = "virtual-time")]
        {
            clock::set_limit(u64::MAX);
            virtual_time::end();
        }
    }
}
