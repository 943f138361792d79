//! The options of a run, and their validation.

use std::fmt;
use std::time::Duration;

use crate::gpio::GpioLines;
use crate::load::LoadKind;
use crate::machine::isolated;
use crate::rt;

/// Name of one of the [suites](crate::suites).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteName(pub(crate) &'static str);

impl SuiteName {
    /// Returns the name on the command line and in the JSON.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for SuiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Options of a run. `None` means an automatic choice.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The suites to run; empty means all that run by default.
    pub suites: Vec<SuiteName>,
    /// Only steps whose names, as shown in the progress display, contain one of these; empty means
    /// all.
    pub only: Vec<String>,
    /// Takes fewer samples, so that all suites finish within a minute.
    pub quick: bool,
    /// Samples per row; by default 4096, or 256 if quick.
    pub samples: Option<u32>,
    /// The duration of each mode of the hourglass, by default 10 s, or 2 s if quick; twice that of
    /// each window of the suite `periods`; and of the endurance suite, by default an hour, or 2 s
    /// if quick.
    pub hourglass: Option<Duration>,
    /// A period to hold, in addition to those of the suite `periods`.
    pub period: Option<Duration>,
    /// The load for steps that need one.
    pub load: LoadKind,
    /// Two connected GPIO lines; by default a pair simulated by the kernel, if supported.
    pub gpio: Option<GpioLines>,
    /// The CPU to measure; by default an isolated one if any, otherwise the highest allowed.
    pub cpu: Option<usize>,
}

/// The reason why [`Options`] are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadOptions {
    /// Zero samples.
    #[error("at least one sample is needed; give 1 or more")]
    NoSamples,
    /// More samples than fit in memory.
    #[error("{0} samples are too many; the maximum is {MAX_SAMPLES}")]
    TooManySamples(u32),
    /// A zero duration of the hourglass or the endurance suite, or more than a week.
    #[error("the length must be between 10 ms and one week")]
    HourglassLength,
    /// A load whose program is not installed.
    #[error("{} is not installed; install it (package rt-tests or stress-ng), or give --load own", .0.as_str())]
    NoSuchLoad(LoadKind),
    /// No step with such a name.
    #[error(
        "no step of the selected suites contains {} in its name; give a part of one of these:\n{steps}",
        quoted(only)
    )]
    NoSuchStep {
        /// The requested parts of names.
        only: Vec<String>,
        /// The suites, a line each, with the names of their steps.
        steps: String,
    },
    /// A CPU that does not exist or is not allowed.
    #[error("this process may not run on CPU {cpu}; allowed: {}", list(allowed))]
    UnknownCpu {
        /// The CPU.
        cpu: usize,
        /// The allowed CPUs.
        allowed: Vec<usize>,
    },
}

/// The maximum number of samples of one row; they take 80 MB.
pub const MAX_SAMPLES: u32 = 10_000_000;

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    texts.join(" or ")
}

fn list(cpus: &[usize]) -> String {
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    cpus.join(",")
}

/// [`Options`] with all choices made.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) only: Vec<String>,
    pub(crate) quick: bool,
    pub(crate) samples: u32,
    /// `true` if the number of samples was requested.
    pub(crate) samples_given: bool,
    pub(crate) hourglass: Duration,
    pub(crate) endurance: Duration,
    pub(crate) period: Option<Duration>,
    pub(crate) load: LoadKind,
    pub(crate) gpio: Option<GpioLines>,
    pub(crate) cpu: usize,
    /// A CPU other than `cpu`.
    pub(crate) other_cpu: Option<usize>,
}

impl Plan {
    pub(crate) fn new(options: &Options) -> Result<Self, BadOptions> {
        let allowed = rt::allowed_cpus();
        let samples = options.samples.unwrap_or(if options.quick { 256 } else { 4096 });
        match samples {
            0 => return Err(BadOptions::NoSamples),
            1..=MAX_SAMPLES => {}
            _ => return Err(BadOptions::TooManySamples(samples)),
        }
        let hourglass = options.hourglass.unwrap_or(Duration::from_secs(if options.quick { 2 } else { 10 }));
        if !(Duration::from_millis(10)..=Duration::from_secs(7 * 86_400)).contains(&hourglass) {
            return Err(BadOptions::HourglassLength);
        }
        if !options.load.is_installed() {
            return Err(BadOptions::NoSuchLoad(options.load));
        }
        let isolated = isolated();
        let default = || allowed.iter().rev().find(|&&cpu| isolated.has(cpu)).or(allowed.last()).copied();
        let cpu = options.cpu.or_else(default).unwrap_or(0);
        if !allowed.contains(&cpu) {
            return Err(BadOptions::UnknownCpu { cpu, allowed });
        }
        let other_cpu = allowed.iter().rev().find(|&&other| other != cpu).copied();
        let endurance =
            options.hourglass.unwrap_or(Duration::from_secs(if options.quick { 2 } else { 3600 }));
        Ok(Self {
            only: options.only.clone(),
            quick: options.quick,
            samples,
            samples_given: options.samples.is_some(),
            hourglass,
            endurance,
            period: options.period,
            load: options.load,
            gpio: options.gpio.clone(),
            cpu,
            other_cpu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_invalid_options() {
        let bad = |options: Options| Plan::new(&options).map(|plan| plan.samples).unwrap_err();
        assert_eq!(bad(Options { samples: Some(0), ..Options::default() }), BadOptions::NoSamples);
        assert_eq!(
            bad(Options { samples: Some(u32::MAX), ..Options::default() }),
            BadOptions::TooManySamples(u32::MAX)
        );
        assert_eq!(
            bad(Options { hourglass: Some(Duration::ZERO), ..Options::default() }),
            BadOptions::HourglassLength
        );
        let unknown = bad(Options { cpu: Some(100_000), ..Options::default() });
        assert!(
            unknown.to_string().starts_with("this process may not run on CPU 100000; allowed: "),
            "{unknown}"
        );
    }

    #[test]
    fn fills_in_defaults() {
        let plan = Plan::new(&Options::default()).unwrap();
        assert_eq!(plan.samples, 4096);
        assert_ne!(Some(plan.cpu), plan.other_cpu);
        let plan = Plan::new(&Options { quick: true, ..Options::default() }).unwrap();
        assert_eq!(plan.samples, 256);
    }
}
