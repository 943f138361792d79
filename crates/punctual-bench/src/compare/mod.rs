//! Compares two runs: ratios, and regressions.
//!
//! A row is reported as slower if its median has grown by more than the *margin* and the
//! interquartile ranges of the two runs do not overlap: 75 % of the new samples are above 75 % of
//! the old. It must have grown in time, in locked instructions if both runs have measured them, and
//! relative to its peer if that was measured in the same turns: a machine that is slower today is
//! not a regression. The margin is a tenth, or as much as the noise of the two runs requires: the
//! interquartile ranges of both, the steps of their clocks, and the largest change of third-party
//! rows under the same circumstances, whose code has not changed. Maxima are shown as ratios and
//! never judged: they are rare events, and differ between runs by chance. For rows with a requested
//! time that is never undercut, only the excess is compared.

mod capture;

use std::io;
use std::path::{Path, PathBuf};

use crate::model::{Check, FORMAT, Row, Run, Suite, VERSION, Verdict};
use crate::options::SuiteName;
use crate::published;
use crate::stats::Distribution;
use crate::subject::{AS_BY_DEFAULT_IN_SHORT, PEER};
use crate::suites;

/// The error of [`load`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}; give a file of `punctual bench --json`", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not a run.
    #[error("{} is not a result of `punctual bench --json`: {reason}; give one", .path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file is a run of another version.
    #[error("{} has version {found} of the schema, and this program reads version {VERSION}", .path.display())]
    WrongVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

// `#[inline]` leaves the deserializers to the program that reads files. This crate is optimized for
// measurements.

/// Reads a run from a JSON file, or from the captured output of a board.
///
/// # Errors
///
/// [`LoadError`]: the file cannot be read, is not a run, or has another version.
#[inline]
pub fn load(path: &Path) -> Result<Run, LoadError> {
    let text = punctual_files::read_text(path)
        .map_err(|error| LoadError::Unreadable { path: path.to_owned(), error })?;
    parse(&text, path)
}

#[inline]
fn parse(text: &str, path: &Path) -> Result<Run, LoadError> {
    let not_a_run = |reason: String| LoadError::NotARun { path: path.to_owned(), reason };
    let captured = capture::extract(text).map_err(not_a_run)?;
    let is_captured = captured.is_some();
    let mut run = parse_json(captured.as_deref().unwrap_or(text), path)?;
    if is_captured {
        for row in run.suites.iter_mut().flat_map(|suite| &mut suite.rows) {
            row.published = published::of_row(&row.id);
        }
    }
    Ok(run)
}

#[inline]
fn parse_json(text: &str, path: &Path) -> Result<Run, LoadError> {
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
    /// An improvement.
    Faster,
    /// Neither.
    Same,
    /// The row is invalid in one of the runs, or there is nothing to compare.
    NotComparable,
}

impl Change {
    /// Returns the verdict as a word.
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
    /// The new median divided by the old.
    pub p50_ratio: Option<f64>,
    /// The new maximum divided by the old.
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
    /// Returns `true` if the check passed and now fails.
    pub fn is_regression(&self) -> bool {
        self.verdicts == (Verdict::Passed, Verdict::Failed)
    }
}

/// A comparison of two runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// The start of the old run.
    pub old_started: String,
    /// The rows of both.
    pub rows: Vec<RowChange>,
    /// The checks of both whose verdict differs.
    pub checks: Vec<CheckChange>,
    /// Measurements and checks of both runs that the old one has for other subjects: suites with
    /// the results of both.
    pub beside: Vec<Suite>,
    /// Caveats for the ratios, and rows that only one run has.
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

    /// Returns the suites with slower rows.
    pub fn suites_with_slower_rows(&self) -> Vec<SuiteName> {
        let is_slower = |name: &SuiteName| {
            self.rows
                .iter()
                .any(|row| row.change == Change::Slower && suite_of(&row.id) == Some(name.as_str()))
        };
        suites::ALL.map(|suite| suite.name).into_iter().filter(is_slower).collect()
    }

    /// Withdraws regressions that `again`, a comparison of a later run with the same old run, does
    /// not confirm: another program may have used the CPU or its core.
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

    /// Returns the number of regressions among rows and checks.
    pub fn regressions(&self) -> usize {
        let rows = self.rows.iter().filter(|row| row.change == Change::Slower).count();
        rows + self.checks.iter().filter(|check| check.is_regression()).count()
    }
}

/// The minimum relative growth of a median.
const MARGIN: f64 = 0.1;

/// The criteria for a row of two runs other than time.
struct Scale {
    /// The ratio of a locked instruction in the new run to one in the old.
    locked: Option<f64>,
    /// The same ratio for the median of the row's peer.
    peer: Option<f64>,
    /// The largest relative change of a third-party row under the same circumstances.
    drift: f64,
    /// The sum of the steps of both clocks, in nanoseconds.
    steps: f64,
}

impl Scale {
    fn new((old_run, old): (&Run, &Row), (new_run, new): (&Run, &Row)) -> Self {
        let moved = |row: &Row| grown(old_run.rows().find(|before| before.id == row.id)?, row);
        let is_peer = is_of_peers(new) || is_of_peers(old);
        let alike = |row: &&Row| row.operation == new.operation && row.condition == new.condition;
        let peer = new_run.rows().filter(|row| row.subject == PEER && suite(row) == suite(new)).find(alike);
        let peer = peer.filter(|_| !is_peer).and_then(moved);
        let others =
            new_run.rows().filter(|row| is_of_peers(row) && circumstances(row) == circumstances(new));
        let locked = old_run.machine.locked_ns.zip(new_run.machine.locked_ns).map(|(old, new)| new / old);
        let drift = others.filter_map(moved).map(|ratio| ratio.ln().abs().exp_m1()).fold(0.0, f64::max);
        let steps = old_run.machine.clock_step_ns + new_run.machine.clock_step_ns;
        Self { locked, peer, drift, steps }
    }

    /// Returns the relative growth that makes a median a regression, excluding the
    /// [requested](requested_ns) time.
    fn margin(&self, old: &Distribution, new: &Distribution, requested_ns: f64) -> f64 {
        let median = |row: &Distribution| (row.p50_ns - requested_ns).max(f64::MIN_POSITIVE);
        let width = |row: &Distribution| (row.p75_ns - row.p25_ns) / median(row);
        let step = self.steps / median(old).min(median(new));
        MARGIN.max(width(old) + width(new)).max(step).max(self.drift)
    }

    /// Returns a `ratio` relative to each criterion.
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
    let is_judged = !is_of_peers(new);
    let requested_ns = requested_ns(new, a, b);
    let p50_ratio = ratio(a.p50_ns, b.p50_ns, requested_ns);
    let margin = 1.0 + scale.margin(a, b, requested_ns);
    RowChange {
        p50_ratio,
        max_ratio: ratio(a.max_ns, b.max_ns, requested_ns),
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

/// Returns the suite of a row.
fn suite(row: &Row) -> Option<&str> {
    suite_of(&row.id)
}

fn suite_of(id: &str) -> Option<&str> {
    id.split('/').next()
}

/// Returns `true` if a row measures third-party code: if it changed, then because of the machine or
/// its load, which may also have changed our rows.
fn is_of_peers(row: &Row) -> bool {
    let ours = ["Punctual", AS_BY_DEFAULT_IN_SHORT, "punctual-sync", "TimedQueue"];
    let mut suites = suites::ALL.into_iter().filter(|of| of.has_references);
    let beside = suites.any(|of| suite(row) == Some(of.name.as_str()));
    row.subject == PEER || beside && !ours.iter().any(|ours| row.subject.starts_with(ours))
}

/// Returns the circumstances under which rows change together: `true` for two CPUs, between which
/// communication takes several times as long if the host has placed them apart; and `true` for a
/// background load.
fn circumstances(row: &Row) -> (bool, bool) {
    let of_two = ["/channel/", "/cache-line", "/switch-cpus"];
    let is_loaded = row.condition.as_ref().is_some_and(|condition| !condition.starts_with("idle"));
    (of_two.iter().any(|part| row.id.contains(part)), is_loaded)
}

/// Returns the growth of a row's median, if the row is valid in both runs.
fn grown(old: &Row, new: &Row) -> Option<f64> {
    let both = old.is_meaningful() && new.is_meaningful() && old.nominal_ns == new.nominal_ns;
    let (a, b) = old.figures.as_ref().zip(new.figures.as_ref()).filter(|_| both)?;
    ratio(a.p50_ns, b.p50_ns, requested_ns(new, a, b))
}

/// Returns the requested time, which all samples of both runs include; 0 if a sample was early.
fn requested_ns(row: &Row, a: &Distribution, b: &Distribution) -> f64 {
    row.nominal_ns.filter(|&nominal| a.min_ns.min(b.min_ns) >= nominal).unwrap_or(0.0)
}

/// Returns the ratio of two times, new to old, both without `requested_ns`.
fn ratio(old_ns: f64, new_ns: f64, requested_ns: f64) -> Option<f64> {
    (old_ns > requested_ns && new_ns > requested_ns)
        .then(|| (new_ns - requested_ns) / (old_ns - requested_ns))
}

/// Returns rows and checks of subjects that only the old run has, with the corresponding ones of
/// the new run.
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
            suites.push(Suite { name, title, rows, checks, ..Suite::default() });
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
    // Notes about the figures shown together with those of this run.
    for note in old.machine.notes.iter().filter(|note| !new.machine.notes.contains(note)) {
        notes.push(format!("Of the earlier run: {note}"));
    }
    // Only for suites in both runs: a row that was not requested is not missing.
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
