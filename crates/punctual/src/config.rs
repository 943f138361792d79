//! Configuration of a run.
//!
//! ```
//! use punctual::{Config, Duration};
//!
//! // On real-time threads on CPU 3, refusing to start with less than full real-time settings.
//! let real = Config::new().cpu(3).strict(true);
//!
//! // One simulated hour in virtual time.
//! let simulated = Config::new().virtual_time().until(Duration::from_hours(1));
//! ```

use punctual_core::Duration;
#[cfg(feature = "virtual-time")]
use punctual_core::IntoDuration;

#[allow(unused_imports, unreachable_pub, reason = "a board adds no public item")]
pub use crate::platform::config::*;

/// Configuration of a run. Other settings come from the `#[app]` attribute, and on a board from the
/// features of the board's crate.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(crate) virtual_time: bool,
    pub(crate) until: Option<Duration>,
    /// True if `main` was generated, so that the report is the program's output.
    pub(crate) is_program: bool,
    pub(crate) platform: PlatformConfig,
}

impl Config {
    /// Creates a configuration for Linux threads or the board's clock, with the settings of the
    /// `#[app]` attribute.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`new`](Self::new), modified by the environment, which a board does not have. A generated
    /// `main` uses it.
    ///
    /// The variables are those of the settings: `PUNCTUAL_CPU`, `PUNCTUAL_STACK`, `PUNCTUAL_REPORT`
    /// and so on; `docs/book/src/reference/environment.md` lists them with their values. They
    /// override the attribute `#[app(..)]`; `PUNCTUAL_CPU`, `PUNCTUAL_STACK`, `PUNCTUAL_METRICS`
    /// and `PUNCTUAL_RSEQ` always override the program as well. With `PUNCTUAL_MODEL`, the app
    /// writes its [model](crate::model) as JSON instead of running, and ends the process with
    /// status 0.
    ///
    /// An invalid value is an error when the app is run.
    pub fn from_env() -> Self {
        let mut config = Self::new();
        config.read_environment();
        config
    }
}

#[cfg(feature = "virtual-time")]
impl Config {
    /// Runs in virtual time: on the calling thread, with a clock that advances only when no work is
    /// left at the current time, and by the execution times that tasks declare.
    ///
    /// The run ends when no further event is possible, at the latest after [`until`](Self::until)
    /// or at the end of virtual time, 2⁶⁴ − 2 ns (584 years) after the start: jobs due then or
    /// later are dropped, and the outcome is [`TimeUp`](crate::report::Outcome::TimeUp). Event
    /// sources are polled between jobs; one that stays readable, because its task does not read it,
    /// stops the clock. On a board, interrupts occur at any time, an app with a task that binds one
    /// does not end by itself, and apps with several partitions are rejected.
    ///
    /// Time does not pass in `idle` either, until it returns or calls
    /// [`wait_for_event`](crate::wait_for_event). After two seconds without either, a message on
    /// standard error warns about it.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.virtual_time = true;
        self
    }

    /// Shuts the app down this long after its start: jobs released by then are finished, and the
    /// outcome is [`TimeUp`](crate::report::Outcome::TimeUp).
    #[must_use]
    pub fn until(mut self, duration: impl IntoDuration) -> Self {
        self.until = Some(duration.into_duration());
        self
    }
}
