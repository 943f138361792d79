//! Results of the parts, stored between runs.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use punctual_process::child::BoundedCommand;
use serde::{Deserialize, Serialize};

use super::parts::Part;
use crate::Result;
use crate::process::{TOOL_LIMIT, git};

const PAGE_INTRODUCTION: &str = "\
# Nightly checks

`cargo xtask nightly` runs the checks that take longer than a merge can wait. The last full run:

";

/// Result of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Passed,
    Failed,
    TimedOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::TimedOut => "TIMED OUT",
        })
    }
}

/// One run of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    part: String,
    outcome: Outcome,
    seconds: u64,
    /// Date of the end of the run, as in `2026-11-26`.
    date: String,
    /// Commit that was checked out, abbreviated.
    commit: String,
    /// Digest of the commit and of uncommitted changes.
    sources: u64,
}

impl Record {
    pub(super) fn new(part: &str, outcome: Outcome, seconds: u64) -> Result<Self> {
        let (date, commit) = (today()?, String::new());
        Ok(Self { part: part.to_owned(), outcome, seconds, date, commit, sources: 0 })
    }
}

/// The latest result of each part.
pub(super) struct Report {
    file: File,
    records: BTreeMap<String, Record>,
    commit: String,
    sources: u64,
}

impl Report {
    /// Reads the results of earlier runs. Ignores an incomplete line, which a killed run leaves
    /// behind.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("results.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
        let records = records.map(|record| (record.part.clone(), record)).collect();
        let mut file = File::options().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        let commit = git(&["rev-parse", "HEAD"])?;
        let mut hasher = fnv::FnvHasher::default();
        hasher.write(&commit);
        hasher.write(&git(&["diff", "HEAD"])?);
        let commit = String::from_utf8_lossy(&commit).chars().take(12).collect();
        Ok(Self { file, records, commit, sources: hasher.finish() })
    }

    /// Returns whether the part has passed on the current sources.
    pub(super) fn has_passed(&self, part: &str) -> bool {
        self.current(part).is_some_and(|record| record.outcome == Outcome::Passed)
    }

    fn current(&self, part: &str) -> Option<&Record> {
        self.records.get(part).filter(|record| record.sources == self.sources)
    }

    pub(super) fn add(&mut self, mut record: Record) -> Result {
        record.commit.clone_from(&self.commit);
        record.sources = self.sources;
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.records.insert(record.part.clone(), record);
        Ok(())
    }

    /// Returns the number of parts whose latest run on the current sources has not passed.
    pub(super) fn failures(&self, parts: &[Part]) -> usize {
        let current = parts.iter().filter_map(|part| self.current(part.name));
        current.filter(|record| record.outcome != Outcome::Passed).count()
    }

    /// Returns the page of the book with the results of all parts.
    pub(super) fn page(&self, parts: &[Part]) -> Result<String> {
        let missing: Vec<&str> =
            parts.iter().map(|part| part.name).filter(|name| self.current(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(
                format!("cannot record a partial run: no current result of {}", missing.join(", ")).into()
            );
        }
        Ok(format!("{PAGE_INTRODUCTION}{}", self.table(parts)))
    }

    /// Returns all parts in Markdown, with the latest result of each.
    pub(super) fn table(&self, parts: &[Part]) -> String {
        let mut table =
            String::from("| part | checks | result | time | date | commit |\n|---|---|---|--:|---|---|\n");
        for Part { name, purpose, .. } in parts {
            let result = match self.records.get(*name) {
                None => "not run | | |".to_owned(),
                Some(Record { outcome, seconds, date, commit, sources, .. }) => {
                    let stale = if *sources == self.sources { "" } else { " (stale)" };
                    let minutes = seconds.div_ceil(60);
                    format!("{outcome}{stale} | {minutes} min | {date} | {commit}")
                }
            };
            // Writing to a string cannot fail.
            let _ = writeln!(table, "| {name} | {purpose} | {result} |");
        }
        table
    }
}

/// Returns the current date.
fn today() -> Result<String> {
    let output = Command::new("date").args(["--utc", "+%F"]).stdout_within(TOOL_LIMIT)?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const PARTS: &[Part] = &[
        Part { name: "a", purpose: "one thing", limit_min: 1, commands: &[] },
        Part { name: "b", purpose: "another", limit_min: 1, commands: &[] },
    ];

    #[test]
    fn resumes_after_parts_passed_on_same_sources() {
        let scratch = Scratch::new("nightly-test").unwrap();
        let mut report = Report::open(scratch.path()).unwrap();
        report.add(Record::new("a", Outcome::Passed, 61).unwrap()).unwrap();
        report.add(Record::new("b", Outcome::Failed, 5).unwrap()).unwrap();

        let mut report = Report::open(scratch.path()).unwrap();
        assert!(report.has_passed("a") && !report.has_passed("b"));
        assert_eq!(report.failures(PARTS), 1);
        report.sources += 1;
        assert!(!report.has_passed("a"), "other sources");
        assert_eq!(report.failures(PARTS), 0);
    }

    #[test]
    fn reads_results_with_incomplete_last_line() {
        let scratch = Scratch::new("nightly-torn").unwrap();
        Report::open(scratch.path()).unwrap().add(Record::new("a", Outcome::Passed, 1).unwrap()).unwrap();
        let path = scratch.path().join("results.jsonl");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"part\":\"b\"").unwrap();
        let mut report = Report::open(scratch.path()).unwrap();
        report.add(Record::new("b", Outcome::Passed, 1).unwrap()).unwrap();
        let report = Report::open(scratch.path()).unwrap();
        assert!(report.has_passed("a") && report.has_passed("b"));
    }

    #[test]
    fn table_has_row_for_every_part() {
        let scratch = Scratch::new("nightly-table").unwrap();
        let mut report = Report::open(scratch.path()).unwrap();
        report
            .add(Record { date: "2026-11-26".to_owned(), ..Record::new("a", Outcome::TimedOut, 61).unwrap() })
            .unwrap();
        let table = report.table(PARTS);
        let expected = format!("| a | one thing | TIMED OUT | 2 min | 2026-11-26 | {} |", report.commit);
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            [expected.as_str(), "| b | another | not run | | | |"]
        );
        report.sources += 1;
        assert!(report.table(PARTS).contains("TIMED OUT (stale)"));
    }

    #[test]
    fn records_only_full_runs() {
        let scratch = Scratch::new("nightly-page").unwrap();
        let mut report = Report::open(scratch.path()).unwrap();
        report.add(Record::new("a", Outcome::Passed, 1).unwrap()).unwrap();
        let error = report.page(PARTS).unwrap_err().to_string();
        assert_eq!(error, "cannot record a partial run: no current result of b");
        report.add(Record::new("b", Outcome::Failed, 1).unwrap()).unwrap();
        assert!(report.page(PARTS).unwrap().contains("| b | another | FAILED |"));
    }
}
