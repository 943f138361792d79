//! The result of a run: the source of the terminal's tables, the JSON, the page and the comparison.
//!
//! The JSON has exactly these fields; `docs/bench-schema.json` describes them.
//! Changing a meaning or removing a field requires a new [`VERSION`].

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::stats::Distribution;

/// The name of the format in the JSON.
pub const FORMAT: &str = "punctual-bench";

/// The version of the JSON that this crate writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The start in UTC, in RFC 3339 format.
    pub started: String,
    /// The duration.
    pub took_s: f64,
    /// `true` if the run was ended early. Its rows are complete unless marked otherwise.
    pub interrupted: bool,
    /// Its options.
    pub settings: RunSettings,
    /// The machine.
    pub machine: Machine,
    /// An empty measurement: two readings of the clock with nothing in between.
    pub overhead: Distribution,
    /// The suites, in order.
    pub suites: Vec<Suite>,
}

impl Run {
    /// Returns the run as JSON, in lines.
    ///
    /// # Errors
    ///
    /// None known: all values can be expressed in JSON.
    #[inline]
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Returns every row of every suite.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.suites.iter().flat_map(|suite| &suite.rows)
    }

    /// Returns every check of every suite.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.suites.iter().flat_map(|suite| &suite.checks)
    }

    /// Returns the number of failed checks.
    pub fn failures(&self) -> usize {
        self.checks().filter(|check| check.verdict == Verdict::Failed).count()
    }
}

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// The requested number of samples per row.
    pub samples: u32,
    /// `true` if `--quick` was given.
    pub quick: bool,
    /// The measured CPU.
    pub cpu: usize,
    /// The other CPU, for measurements with two, if any.
    pub other_cpu: Option<usize>,
    /// The requested length of each hourglass run.
    pub hourglass_s: f64,
    /// The load: `own`, `hackbench` or `stress-ng`.
    pub load: String,
}

/// The rows and checks of one suite.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its duration.
    pub took_s: f64,
    /// The time for which the host ran others while CPUs of this machine had work (steal time), if
    /// the kernel reports it.
    #[serde(default)]
    pub stolen_s: Option<f64>,
    /// The answers to the question whether this machine holds a period.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The activity of other processes and of the host around each step on an idle machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// The checks.
    pub checks: Vec<Check>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The answer to the question whether this machine holds a period.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The period, which is also the deadline for the start of the task.
    pub period_ns: u64,
    /// `idle` or `load`.
    pub condition: String,
    /// The number of releases.
    pub releases: u64,
    /// The number of starts after the next release.
    pub misses: u64,
    /// The largest lateness of a start; `None` without a release.
    pub worst_ns: Option<u64>,
    /// The miss rate that the releases exclude with 95 % confidence; `None` after a miss.
    pub miss_rate_bound: Option<f64>,
    /// The reasons why there is no answer.
    pub why: Vec<String>,
    /// The disturbance of the window, if it was to be idle.
    pub disturbed: Option<String>,
}

impl Answer {
    /// Returns whether the period was held; `None` if that is unknown.
    pub fn is_held(&self) -> Option<bool> {
        (self.why.is_empty() && self.releases > 0).then_some(self.misses == 0)
    }
}

/// The activity around a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The step.
    pub step: String,
    /// Shortly before it.
    pub before: Activity,
    /// While it ran.
    pub during: Activity,
    /// Shortly after it.
    pub after: Activity,
    /// The disturbances, if any.
    pub disturbed: Option<String>,
}

/// The activity of other processes and of the host. `None` if the kernel does not count it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// The length of the observation.
    pub length_s: f64,
    /// The number of other runnable threads at its end.
    pub runnable: Option<u32>,
    /// The CPU time of other processes, in percent of one CPU.
    pub others_percent: Option<f64>,
    /// The time that the host took from all CPUs.
    pub stolen_ns: Option<u64>,
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The identifier in every run: `suite/operation/subject`, and a condition if there are
    /// several.
    pub id: String,
    /// The operation. Rows of one operation are shown together.
    pub operation: String,
    /// The subject that performed it.
    pub subject: String,
    /// The condition, such as `idle` or `load`.
    pub condition: Option<String>,
    /// The number of operations in a sample; samples are divided by it.
    pub operations_per_sample: u32,
    /// The requested value, such as a delay, if any.
    pub nominal_ns: Option<f64>,
    /// The figures; if `None`, `why` contains the reason.
    pub figures: Option<Distribution>,
    /// The reasons why it was not measured, or why its figures are invalid.
    pub why: Vec<String>,
    /// Further numbers.
    pub quantities: Vec<Quantity>,
    /// The causes of the time, if known.
    pub causes: Vec<Cause>,
    /// The disturbance of the window in which it was measured, if it was to be idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// Published figures, of other machines.
    pub published: Vec<Published>,
}

impl Row {
    /// Returns `true` if there are valid figures.
    pub fn is_meaningful(&self) -> bool {
        self.figures.is_some() && self.why.is_empty()
    }
}

/// A number with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit: `ns`, `cycles`, `1/s`, `%`, `×` for ratios, `L` for locked instructions, `KiB`, or
    /// empty for a plain number.
    pub unit: String,
}

/// A cause of a part of a row's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause.
    pub name: String,
    /// The number of occurrences.
    pub count: u64,
    /// The total time.
    pub total_ns: f64,
    /// The longest single time.
    pub max_ns: f64,
}

/// A figure from the literature, for another machine and another kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The source.
    pub source: String,
    /// The measured system.
    pub system: String,
    /// The mean.
    pub mean_ns: f64,
    /// The standard deviation, if given.
    pub sigma_ns: Option<f64>,
    /// The smallest, if given.
    pub min_ns: Option<f64>,
    /// The largest, if given.
    pub max_ns: Option<f64>,
}

/// A rule and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The identifier in every run.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// The subject to which it applies.
    pub subject: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The expected observation.
    pub expected: String,
    /// The actual observation.
    pub observed: String,
    /// The reasons for a missing verdict.
    pub why: Vec<String>,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected.
    Failed,
    /// No promise was made: this shows the behavior of a peer.
    Observed,
    /// Not applicable here, for a stated reason.
    NotMeaningful,
}

impl Verdict {
    /// Returns the verdict as worded in reports.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "FAIL",
            Self::Observed => "seen",
            Self::NotMeaningful => "n/a",
        }
    }
}
