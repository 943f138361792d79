//! What a run found: the one thing that the terminal's tables, the JSON, the page and the comparison are made of.
//!
//! The JSON is this, field by field; `docs/bench-schema.md` describes it. A change of its meaning, or a field that goes
//! away, gets a new [`VERSION`].

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::stats::Distribution;

/// What the JSON says it is.
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
    /// Whether it was ended before it was through. What is there was measured in full length unless it says so.
    pub interrupted: bool,
    /// How it was asked for.
    pub settings: RunSettings,
    /// What it ran on.
    pub machine: Machine,
    /// An empty measurement: two readings of the clock with nothing in between.
    pub overhead: Distribution,
    /// What was measured, in this order.
    pub suites: Vec<Suite>,
}

impl Run {
    /// The run as JSON, in lines.
    ///
    /// # Errors
    ///
    /// None that is known: everything in it can be expressed in JSON.
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

    /// How many checks failed.
    pub fn failures(&self) -> usize {
        self.checks().filter(|check| check.verdict == Verdict::Failed).count()
    }
}

/// How a run was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// How many samples a row is to have.
    pub samples: u32,
    /// Whether the run was to be quick.
    pub quick: bool,
    /// The CPU that is measured.
    pub cpu: usize,
    /// The other CPU of what takes two, if there is one.
    pub other_cpu: Option<usize>,
    /// How long each turn of the hourglass was to last.
    pub hourglass_s: f64,
    /// What made the load: `own`, `hackbench` or `stress-ng`.
    pub load: String,
}

/// The rows and checks of one suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// How long it took.
    pub took_s: f64,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What one has to know to read it.
    pub notes: Vec<String>,
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Names it in every run: `suite/operation/subject`, and a condition where there are several.
    pub id: String,
    /// What was done. Rows of one operation stand beside each other.
    pub operation: String,
    /// Who did it.
    pub subject: String,
    /// Under which condition, such as `idle` or `load`.
    pub condition: Option<String>,
    /// How many operations one sample holds, which is divided by this.
    pub operations_per_sample: u32,
    /// What it should be, where something was asked for, such as a delay.
    pub nominal_ns: Option<f64>,
    /// The figures; none if it was not measured, and then `why` says why.
    pub figures: Option<Distribution>,
    /// Why it was not measured, or why its figures do not mean what the row says.
    pub why: Vec<String>,
    /// Single numbers that belong to it.
    pub quantities: Vec<Quantity>,
    /// What the time went to, where that was found out.
    pub causes: Vec<Cause>,
    /// What others found, on their machines.
    pub published: Vec<Published>,
}

impl Row {
    /// Whether there are figures that mean what the row says.
    pub fn is_meaningful(&self) -> bool {
        self.figures.is_some() && self.why.is_empty()
    }
}

/// A number with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Its unit: `ns`, `1/s`, `%`, or `×` for ratios.
    pub unit: String,
}

/// A part of the time that a row is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// What took it.
    pub name: String,
    /// How often.
    pub count: u64,
    /// How long together.
    pub total_ns: f64,
    /// How long at most at once.
    pub max_ns: f64,
}

/// A figure from the literature: another machine, another kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where it stands.
    pub source: String,
    /// What was measured there.
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

/// A rule, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Names it in every run.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// Who was to keep it.
    pub subject: String,
    /// Whether it did.
    pub verdict: Verdict,
    /// What had to be seen.
    pub expected: String,
    /// What was seen.
    pub observed: String,
    /// Why there is no verdict, where there is none.
    pub why: Vec<String>,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected.
    Failed,
    /// Nothing was promised: this is what a peer does.
    Observed,
    /// It means nothing here, for a reason that is given.
    NotMeaningful,
}

impl Verdict {
    /// In the words of a report.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "FAIL",
            Self::Observed => "seen",
            Self::NotMeaningful => "n/a",
        }
    }
}
