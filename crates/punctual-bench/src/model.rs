//! The result of a run: the source of the terminal's tables, the JSON, the page and the comparison.
//!
//! The JSON has exactly these fields; `docs/book/src/reference/bench-json.md` describes it. A changed meaning or a removed field gets a new
//! [`VERSION`].

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
    /// When it began, in UTC, as in RFC 3339.
    pub started: String,
    /// How long it took.
    pub took_s: f64,
    /// Whether it was ended early. Its rows were measured in full unless they say otherwise.
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
    /// The run as JSON, in lines.
    ///
    /// # Errors
    ///
    /// None known: everything in it can be expressed in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Every row of every suite.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.suites.iter().flat_map(|suite| &suite.rows)
    }

    /// Every check of every suite.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.suites.iter().flat_map(|suite| &suite.checks)
    }

    /// The number of failed checks.
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
    /// Whether `--quick` was given.
    pub quick: bool,
    /// The measured CPU.
    pub cpu: usize,
    /// The other CPU, for measurements with two, if there is one.
    pub other_cpu: Option<usize>,
    /// The requested length of each hourglass run.
    pub hourglass_s: f64,
    /// The load: `own`, `hackbench` or `stress-ng`.
    pub load: String,
}

/// The rows and checks of one suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    pub name: String,
    /// Its headline.
    pub title: String,
    /// How long it took.
    pub took_s: f64,
    /// How much time of the CPUs of this machine its host gave to others meanwhile (steal time), if the kernel says so.
    #[serde(default)]
    pub stolen_s: Option<f64>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// The checks.
    pub checks: Vec<Check>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Names it in every run: `suite/operation/subject`, and a condition where there are several.
    pub id: String,
    /// The operation. Rows of one operation are shown together.
    pub operation: String,
    /// The subject that performed it.
    pub subject: String,
    /// The condition, such as `idle` or `load`.
    pub condition: Option<String>,
    /// The number of operations in a sample; samples are divided by it.
    pub operations_per_sample: u32,
    /// The requested value, such as a delay, if there is one.
    pub nominal_ns: Option<f64>,
    /// The figures; none if it was not measured: then `why` says why.
    pub figures: Option<Distribution>,
    /// Why it was not measured, or why its figures are not valid.
    pub why: Vec<String>,
    /// Further numbers.
    pub quantities: Vec<Quantity>,
    /// The causes of the time, if known.
    pub causes: Vec<Cause>,
    /// Published figures, of other machines.
    pub published: Vec<Published>,
}

impl Row {
    /// Whether there are valid figures.
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
    /// Its unit: `ns`, `cycles`, `1/s`, `%`, `×` for ratios, `L` for locked instructions, `KiB`, or nothing for a number.
    pub unit: String,
}

/// A cause of a part of a row's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause.
    pub name: String,
    /// How many times.
    pub count: u64,
    /// The total time.
    pub total_ns: f64,
    /// The longest single time.
    pub max_ns: f64,
}

/// A figure from the literature: another machine, another kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The source.
    pub source: String,
    /// What was measured.
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

/// A rule, and whether it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Names it in every run.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// The subject it applies to.
    pub subject: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The expected observation.
    pub expected: String,
    /// The actual observation.
    pub observed: String,
    /// Why there is no verdict, where there is none.
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
    /// No promise was made: this shows what a peer does.
    Observed,
    /// It does not apply here, for a given reason.
    NotMeaningful,
}

impl Verdict {
    /// The verdict in the words of a report.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "FAIL",
            Self::Observed => "seen",
            Self::NotMeaningful => "n/a",
        }
    }
}
