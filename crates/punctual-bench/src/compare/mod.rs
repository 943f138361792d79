//! Compares two runs: ratios, and which of them are regressions.
//!
//! A row is called slower if its median has grown beyond the *margin* and the middle halves of the two runs do not
//! overlap: 75 % of the new samples are above 75 % of the old. It has to have grown by the clock, in locked instructions if both runs have
//! measured them, and by its peer if that was measured in the turns of the same row: a machine that is slower today makes
//! no regression. The margin is a tenth, or what the noise of the two runs asks for: the widths of the middle halves of both, the steps
//! of their clocks, and the most by which rows of others than ours have moved under the same circumstances, whose code nobody has changed.
//! Maxima are shown as ratios and never judged: they are rare events, and two runs differ in them by chance. Of what was asked to take some time and never takes less, the time beyond that is compared.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::{Check, FORMAT, Row, Run, Suite, VERSION, Verdict};
use crate::options::SuiteName;
use crate::stats::Distribution;
use crate::suites::{AS_BY_DEFAULT_IN_SHORT, PEER};

/// Why an earlier run cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is not a run.
    #[error("{} is not a result of `punctual bench --json`: {reason}", .path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It is a run of another version.
    #[error("{} has version {found} of the schema, and this program reads version {VERSION}", .path.display())]
    WrongVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

/// Reads a run that was written as JSON.
///
/// # Errors
///
/// [`LoadError`]: the file cannot be read, is something else, or has another version.
pub fn load(path: &Path) -> Result<Run, LoadError> {
    let text =
        fs::read_to_string(path).map_err(|error| LoadError::Unreadable { path: path.to_owned(), error })?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Run, LoadError> {
    let not_a_run = |reason: String| LoadError::NotARun { path: path.to_owned(), reason };
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| not_a_run(error.to_string()))?;
    if value.get("format").and_then(|format| format.as_str()) != Some(FORMAT) {
        return Err(not_a_run(format!("its `format` is not `{FORMAT}`")));
    }
    match value.get("version").and_then(|version| version.as_u64()) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(found) => return Err(LoadError::WrongVersion { path: path.to_owned(), found }),
        None => return Err(not_a_run("its `version` is not a number".into())),
    }
    serde_json::from_value(value).map_err(|error| not_a_run(error.to_string()))
}

/// The result of comparing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A regression.
    Slower,
    /// The opposite of a regression.
    Faster,
    /// Neither.
    Same,
    /// It is not valid in one of the runs, or there is nothing to compare.
    NotComparable,
}

impl Change {
    /// The verdict in a word.
    pub fn text(self) -> &'static str {
        match self {
            Self::Slower => "REGRESSION",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::NotComparable => "n/a",
        }
    }
}

/// A row of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// Its name.
    pub id: String,
    /// The medians, old and new.
    pub p50_ns: Option<(f64, f64)>,
    /// New median through old.
    pub p50_ratio: Option<f64>,
    /// New maximum through old.
    pub max_ratio: Option<f64>,
    /// The verdict.
    pub change: Change,
}

/// A check whose verdict has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckChange {
    /// Its name.
    pub id: String,
    /// The verdicts, old and new.
    pub verdicts: (Verdict, Verdict),
}

impl CheckChange {
    /// Whether it passed and fails now.
    pub fn is_regression(&self) -> bool {
        self.verdicts == (Verdict::Passed, Verdict::Failed)
    }
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// When the old one began.
    pub old_started: String,
    /// The rows of both.
    pub rows: Vec<RowChange>,
    /// The checks of both whose verdict differs.
    pub checks: Vec<CheckChange>,
    /// What both runs have measured or checked, and the old one of others than this: a suite with what both say of it.
    pub beside: Vec<Suite>,
    /// Reasons to distrust the ratios, and what is in one run only.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Compares `new` with `old`.
    pub fn new(old: &Run, new: &Run) -> Self {
        let rows = new.rows().filter_map(|row| {
            let before = old.rows().find(|before| before.id == row.id)?;
            Some(of_rows(before, row, &Scale::new((old, before), (new, row))))
        });
        let checks = new.checks().filter_map(|check| {
            let before = old.checks().find(|before| before.id == check.id)?;
            let verdicts = (before.verdict, check.verdict);
            (before.verdict != check.verdict).then(|| CheckChange { id: check.id.clone(), verdicts })
        });
        Self {
            old_started: old.started.clone(),
            rows: rows.collect(),
            checks: checks.collect(),
            beside: beside(old, new),
            notes: notes(old, new),
        }
    }

    /// The suites with rows that are slower.
    pub fn suites_with_slower_rows(&self) -> Vec<SuiteName> {
        let is_slower = |name: &SuiteName| {
            self.rows
                .iter()
                .any(|row| row.change == Change::Slower && suite_of(&row.id) == Some(name.as_str()))
        };
        SuiteName::ALL.into_iter().filter(is_slower).collect()
    }

    /// Takes back what is not slower in `again`, a comparison of a later run with the same earlier one: something else took the CPU
    /// for a while, or shared its core.
    pub fn confirm(&mut self, again: &Self) {
        let mut taken_back = 0;
        for row in self.rows.iter_mut().filter(|row| row.change == Change::Slower) {
            let later = again.rows.iter().find(|later| later.id == row.id);
            if later.is_some_and(|later| later.change != Change::Slower) {
                row.change = Change::Same;
                taken_back += 1;
            }
        }
        if taken_back > 0 {
            self.notes
                .push(format!("{taken_back} rows were slower and were not when they were measured again."));
        }
    }

    /// Rows and checks that are worse.
    pub fn regressions(&self) -> usize {
        let rows = self.rows.iter().filter(|row| row.change == Change::Slower).count();
        rows + self.checks.iter().filter(|check| check.is_regression()).count()
    }
}

/// How much larger a median has to be at least.
const MARGIN: f64 = 0.1;

/// By what a row of two runs is judged besides the clock.
struct Scale {
    /// A locked instruction of the new run by one of the old.
    locked: Option<f64>,
    /// The median of the row's peer, likewise.
    peer: Option<f64>,
    /// The most by which a row of others under the same circumstances has moved, as a part.
    drift: f64,
    /// The steps of both clocks together, in nanoseconds.
    steps: f64,
}

impl Scale {
    fn new((old_run, old): (&Run, &Row), (new_run, new): (&Run, &Row)) -> Self {
        let moved = |row: &Row| grown(old_run.rows().find(|before| before.id == row.id)?, row);
        let is_peer = is_of_others(new) || is_of_others(old);
        let alike = |row: &&Row| row.operation == new.operation && row.condition == new.condition;
        let peer = new_run.rows().filter(|row| row.subject == PEER && suite(row) == suite(new)).find(alike);
        let peer = peer.filter(|_| !is_peer).and_then(moved);
        let others =
            new_run.rows().filter(|row| is_of_others(row) && circumstances(row) == circumstances(new));
        let locked = old_run.machine.locked_ns.zip(new_run.machine.locked_ns).map(|(old, new)| new / old);
        let drift = others.filter_map(moved).map(|ratio| ratio.ln().abs().exp_m1()).fold(0.0, f64::max);
        let steps = old_run.machine.clock_step_ns + new_run.machine.clock_step_ns;
        Self { locked, peer, drift, steps }
    }

    /// By how much, as a part, a median has to have grown, of what is beyond what was [asked](asked_ns) for.
    fn margin(&self, old: &Distribution, new: &Distribution, asked_ns: f64) -> f64 {
        let median = |row: &Distribution| (row.p50_ns - asked_ns).max(f64::MIN_POSITIVE);
        let width = |row: &Distribution| (row.p75_ns - row.p25_ns) / median(row);
        let step = self.steps / median(old).min(median(new));
        MARGIN.max(width(old) + width(new)).max(step).max(self.drift)
    }

    /// What has become of a `ratio` by each of the measures.
    fn ratios(&self, ratio: f64) -> impl Iterator<Item = f64> {
        [Some(ratio), self.locked.map(|locked| ratio / locked), self.peer.map(|peer| ratio / peer)]
            .into_iter()
            .flatten()
    }
}

fn of_rows(old: &Row, new: &Row, scale: &Scale) -> RowChange {
    let nothing = RowChange {
        id: new.id.clone(),
        p50_ns: None,
        p50_ratio: None,
        max_ratio: None,
        change: Change::NotComparable,
    };
    let (Some(a), Some(b)) = (&old.figures, &new.figures) else { return nothing };
    let change = RowChange { p50_ns: Some((a.p50_ns, b.p50_ns)), ..nothing };
    if !old.is_meaningful() || !new.is_meaningful() || old.nominal_ns != new.nominal_ns {
        return change;
    }
    let is_judged = !is_of_others(new);
    let asked_ns = asked_ns(new, a, b);
    let p50_ratio = ratio(a.p50_ns, b.p50_ns, asked_ns);
    let margin = 1.0 + scale.margin(a, b, asked_ns);
    RowChange {
        p50_ratio,
        max_ratio: ratio(a.max_ns, b.max_ns, asked_ns),
        change: match p50_ratio {
            Some(ratio)
                if is_judged && b.p25_ns > a.p75_ns && scale.ratios(ratio).all(|ratio| ratio > margin) =>
            {
                Change::Slower
            }
            Some(ratio)
                if is_judged
                    && b.p75_ns < a.p25_ns
                    && scale.ratios(ratio).all(|ratio| ratio < 1.0 / margin) =>
            {
                Change::Faster
            }
            Some(_) => Change::Same,
            None => Change::NotComparable,
        },
        ..change
    }
}

/// The suite of a row.
fn suite(row: &Row) -> Option<&str> {
    suite_of(&row.id)
}

fn suite_of(id: &str) -> Option<&str> {
    id.split('/').next()
}

/// Suites of what is ours beside what others have for the same. In those of the machine itself every row is judged.
const WITH_OTHERS: [SuiteName; 5] =
    [SuiteName::Rtos, SuiteName::Latency, SuiteName::Executors, SuiteName::Curves, SuiteName::Endurance];

/// Whether what a row measures is not ours: then it has moved because the machine or its load has, and so may ours have.
fn is_of_others(row: &Row) -> bool {
    let ours = ["Punctual", AS_BY_DEFAULT_IN_SHORT, "punctual-sync", "TimedQueue"];
    let beside = WITH_OTHERS.iter().any(|name| suite(row) == Some(name.as_str()));
    row.subject == PEER || beside && !ours.iter().any(|ours| row.subject.starts_with(ours))
}

/// What a row shares with those that move together: whether it is of two CPUs, from one of which to the other it takes several times as
/// long where the host has placed them apart, and whether there is a load beside it.
fn circumstances(row: &Row) -> (bool, bool) {
    let of_two = ["/channel/", "/cache-line", "/switch-cpus"];
    let is_loaded = row.condition.as_ref().is_some_and(|condition| !condition.starts_with("idle"));
    (of_two.iter().any(|part| row.id.contains(part)), is_loaded)
}

/// By how much the median of a row has grown, if it says something in both runs.
fn grown(old: &Row, new: &Row) -> Option<f64> {
    let both = old.is_meaningful() && new.is_meaningful() && old.nominal_ns == new.nominal_ns;
    let (a, b) = old.figures.as_ref().zip(new.figures.as_ref()).filter(|_| both)?;
    ratio(a.p50_ns, b.p50_ns, asked_ns(new, a, b))
}

/// What the samples of both runs take in any case, because so much was asked for; 0 if one of them came early.
fn asked_ns(row: &Row, a: &Distribution, b: &Distribution) -> f64 {
    row.nominal_ns.filter(|&nominal| a.min_ns.min(b.min_ns) >= nominal).unwrap_or(0.0)
}

/// Of two times, what is beyond `asked_ns`, the new through the old.
fn ratio(old_ns: f64, new_ns: f64, asked_ns: f64) -> Option<f64> {
    (old_ns > asked_ns && new_ns > asked_ns).then(|| (new_ns - asked_ns) / (old_ns - asked_ns))
}

/// Rows and checks of subjects that only the old run has, together with those of the new one that are about the same.
fn beside(old: &Run, new: &Run) -> Vec<Suite> {
    let mut suites = Vec::new();
    for suite in &new.suites {
        let Some(other) = old.suites.iter().find(|other| other.name == suite.name) else { continue };
        let are_alike = |a: &Row, b: &Row| a.operation == b.operation && a.condition == b.condition;
        let is_measured_here = |subject: &str| suite.rows.iter().any(|row| row.subject == subject);
        let others = other.rows.iter().filter(|row| !is_measured_here(&row.subject));
        let others: Vec<&Row> =
            others.filter(|row| suite.rows.iter().any(|own| are_alike(own, row))).collect();
        let own = suite.rows.iter().filter(|row| others.iter().any(|other| are_alike(row, other)));
        let is_checked_here = |subject: &str| suite.checks.iter().any(|check| check.subject == subject);
        let other_checks = other.checks.iter().filter(|check| !is_checked_here(&check.subject));
        let mut checks: Vec<Check> = Vec::new();
        for check in other_checks {
            let own: Vec<&Check> = suite.checks.iter().filter(|own| own.rule == check.rule).collect();
            if !own.is_empty() {
                checks.extend(own.into_iter().chain([check]).cloned());
            }
        }
        let rows: Vec<Row> = own.chain(others.iter().copied()).cloned().collect();
        if !rows.is_empty() || !checks.is_empty() {
            let (name, title) = (suite.name.clone(), suite.title.clone());
            suites.push(Suite { name, title, took_s: 0.0, stolen_s: None, rows, checks, notes: Vec::new() });
        }
    }
    suites
}

fn notes(old: &Run, new: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differs = |what: &str, old: String, new: String| {
        if old != new {
            notes.push(format!("The runs differ in {what}: {old} before, {new} now."));
        }
    };
    differs("the machine", old.machine.hardware_line(), new.machine.hardware_line());
    differs("the kernel", old.machine.kernel_line(), new.machine.kernel_line());
    differs("the measured CPU", old.settings.cpu.to_string(), new.settings.cpu.to_string());
    differs("the load", old.settings.load.clone(), new.settings.load.clone());
    differs("samples", old.settings.samples.to_string(), new.settings.samples.to_string());
    // What has to be known of its figures, which stand beside those of this run.
    for note in old.machine.notes.iter().filter(|note| !new.machine.notes.contains(note)) {
        notes.push(format!("Of the earlier run: {note}"));
    }
    // Only for suites that both have run: a row that was not requested is not missing.
    let missing = |of: &Run, from: &Run| {
        let both = of.suites.iter().filter(|suite| from.suites.iter().any(|other| other.name == suite.name));
        let has = |id: &str| from.rows().any(|row| row.id == id);
        both.flat_map(|suite| &suite.rows).filter(|row| !has(&row.id)).count()
    };
    for (count, which) in [(missing(new, old), "this run"), (missing(old, new), "the old one")] {
        if count > 0 {
            notes.push(format!("{count} rows are in {which} only."));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
