//! How an app runs.

use punctual_core::Instant;
#[cfg(feature = "virtual-time")]
use punctual_core::{Duration, IntoDuration};

use super::runtime::Runtime;
use super::start_error::StartError;
#[cfg(feature = "virtual-time")]
use super::{clock, virtual_time};

/// How an app runs. On a bare board there is little to choose: the board is, by the features of its crate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    #[cfg(feature = "virtual-time")]
    virtual_time: bool,
    #[cfg(feature = "virtual-time")]
    until: Option<Duration>,
}

impl Config {
    /// On the board's clock, until it is shut down.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new): a board has no environment.
    pub fn from_env() -> Self {
        Self::new()
    }

    /// In virtual time: the clock moves only when nothing is left to do, and by [`spend`](crate::spend). For apps with one partition.
    ///
    /// As on Linux, an app ends when nothing is left that could happen, unless a task is bound to an interrupt.
    #[cfg(feature = "virtual-time")]
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.virtual_time = true;
        self
    }

    /// Ends the app so long after its start. What has been released by then is finished; the outcome is
    /// [`TimeUp`](crate::report::Outcome::TimeUp).
    #[cfg(feature = "virtual-time")]
    #[must_use]
    pub fn until(mut self, duration: impl IntoDuration) -> Self {
        self.until = Some(duration.into_duration());
        self
    }

    /// Whether time is virtual.
    pub(crate) fn is_virtual(&self) -> bool {
        #[cfg(feature = "virtual-time")]
        return self.virtual_time;
        #[cfg(not(feature = "virtual-time"))]
        false
    }

    /// # Errors
    /// If `runtime` cannot run so.
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

    /// The app has started.
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
