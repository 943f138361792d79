//! Where and how to run an app.
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

use crate::Duration;

/// What an app runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Platform {
    /// Real-time threads on Linux, pinned to one CPU.
    #[default]
    Linux,
    /// One ordinary thread and a clock that moves only when nothing is left to do.
    Virtual,
}

/// Where and how to run an app. What is not set here is taken from the `#[app]` attribute.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(crate) platform: Platform,
    pub(crate) cpu: Option<usize>,
    pub(crate) priority_base: Option<u8>,
    pub(crate) strict: Option<bool>,
    pub(crate) until: Option<Duration>,
    pub(crate) bad_environment: Option<String>,
}

impl Config {
    /// Linux, and otherwise what the `#[app]` attribute says.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`new`](Self::new), as modified by the environment: what a generated `main` uses.
    ///
    /// * `PUNCTUAL_PORT`: `linux` or `virtual`.
    /// * `PUNCTUAL_CPU`: a CPU number; it overrides the program's choice in any case.
    /// * `PUNCTUAL_STRICT`: `1` or `0`.
    ///
    /// A value that makes no sense is reported when the app is run.
    pub fn from_env() -> Self {
        let mut config = Self::new();
        let mut read = |name: &str, expected: &str, set: &mut dyn FnMut(&str) -> bool| {
            if let Some(value) = std::env::var_os(name) {
                let value = value.to_string_lossy();
                if !set(&value) {
                    config.bad_environment =
                        Some(format!("{name}={value} makes no sense; set it to {expected}"));
                }
            }
        };
        let (mut platform, mut cpu, mut strict) = (Platform::Linux, None, None);
        read("PUNCTUAL_PORT", "linux or virtual", &mut |value| {
            platform = match value {
                "linux" => Platform::Linux,
                "virtual" => Platform::Virtual,
                _ => return false,
            };
            true
        });
        read("PUNCTUAL_CPU", "the number of a CPU", &mut |value| {
            cpu = value.parse().ok();
            cpu.is_some()
        });
        read("PUNCTUAL_STRICT", "1 or 0", &mut |value| {
            strict = match value {
                "1" => Some(true),
                "0" => Some(false),
                _ => return false,
            };
            true
        });
        Self { platform, cpu, strict, ..config }
    }

    /// Runs in virtual time: on the calling thread, with a clock that moves only when nothing is left to do at the
    /// time it shows, and by the execution times that tasks declare.
    ///
    /// The run ends when nothing can happen any more, at the latest after [`until`](Self::until). Event sources are
    /// looked at between jobs; one that stays readable, because its task does not read it, keeps time from passing.
    pub fn virtual_time(mut self) -> Self {
        self.platform = Platform::Virtual;
        self
    }

    /// Runs on this CPU. Without it: an isolated CPU if there is one, else the highest allowed.
    pub fn cpu(mut self, cpu: usize) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The kernel priority of level 0; level `l` runs at `base + l`. Default 50, above the kernel's
    /// interrupt threads on PREEMPT_RT.
    pub fn priority_base(mut self, base: u8) -> Self {
        self.priority_base = Some(base);
        self
    }

    /// Whether to refuse to start if any real-time setting does not apply.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    /// Shuts the app down this long after its start.
    pub fn until(mut self, duration: Duration) -> Self {
        self.until = Some(duration);
        self
    }
}
