//! Results of the parts, stored between runs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::parts::Part;
use crate::Result;
use crate::process::{self, TOOL_LIMIT, git};

const PAGE_INTRODUCTION: &str = "\
# Nightly checks

`cargo xtask nightly` runs the checks that take longer than a merge can wait; `--list` shows their
commands. Each row is the last result that `cargo xtask nightly --record` wrote. A commit with `+`
had further changes.

";

const TABLE_HEAD: &str = "| part | checks | result | time | date | commit |\n|---|---|---|--:|---|---|\n";

/// Cells of a part without a result.
const NOT_RUN: &str = "not run | – | – | –";

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
    /// Commit that was checked out, abbreviated, with `+` if there were uncommitted changes.
    commit: String,
    /// Digest of the commit and of uncommitted changes.
    sources: u64,
}

impl Record {
    pub(super) fn new(part: &str, outcome: Outcome, seconds: u64) -> Result<Self> {
        let date = process::stdout(Command::new("date").args(["--utc", "+%F"]), TOOL_LIMIT)?;
        let (date, commit) = (date.trim().to_owned(), String::new());
        Ok(Self { part: part.to_owned(), outcome, seconds, date, commit, sources: 0 })
    }

    /// Returns the cells of a row, without those that the part determines.
    fn cells(&self) -> String {
        let Self { outcome, seconds, date, commit, .. } = self;
        format!("{outcome} | {} min | {date} | {commit}", seconds.div_ceil(60))
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
    /// behind. Changes of the file `page` do not count as changes of the sources.
    pub(super) fn open(directory: &Path, page: &str) -> Result<Self> {
        let path = directory.join("results.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
        let records = records.map(|record| (record.part.clone(), record)).collect();
        let mut file = File::options().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        let commit = git(&["rev-parse", "HEAD"])?;
        let changes = git(&["diff", "HEAD", "--", ".", &format!(":(exclude){page}")])?;
        let mut hasher = fnv::FnvHasher::default();
        hasher.write(commit.as_bytes());
        hasher.write(changes.as_bytes());
        let mut commit: String = commit.chars().take(12).collect();
        commit.extend((!changes.is_empty()).then_some('+'));
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

    /// Returns the page with the results on the current sources.
    pub(super) fn record(&self, page: &str, parts: &[Part]) -> Result<String> {
        if parts.iter().all(|part| self.current(part.name).is_none()) {
            return Err("cannot record a result: no part has run on the present sources".into());
        }
        Ok(page_with(parts, |name| match self.current(name) {
            Some(record) => record.cells(),
            None => recorded(page, name),
        }))
    }

    /// Returns all parts in Markdown, with the latest result of each.
    pub(super) fn table(&self, parts: &[Part]) -> String {
        rows(parts, |name| match self.records.get(name) {
            Some(record) if record.sources == self.sources => record.cells(),
            Some(record) => format!("{}, on other sources", record.cells()),
            None => NOT_RUN.to_owned(),
        })
    }
}

/// Returns the page for these parts, with the results that it has.
#[cfg(test)]
pub(super) fn page(page: &str, parts: &[Part]) -> String {
    page_with(parts, |name| recorded(page, name))
}

fn page_with(parts: &[Part], cells: impl Fn(&str) -> String) -> String {
    format!("{PAGE_INTRODUCTION}{}", rows(parts, cells))
}

fn rows(parts: &[Part], cells: impl Fn(&str) -> String) -> String {
    let row = |part: &Part| format!("| {} | {} | {} |\n", part.name, part.purpose, cells(part.name));
    TABLE_HEAD.to_owned() + &parts.iter().map(row).collect::<String>()
}

/// Returns the result of a part on the page.
fn recorded(page: &str, name: &str) -> String {
    let mut rows = page.lines().map(|line| line.split(" | ").collect::<Vec<_>>());
    let row = rows.find(|row| row.len() == 6 && row[0].strip_prefix("| ") == Some(name));
    row.map_or(NOT_RUN.to_owned(), |row| row[2..].join(" | ").trim_end_matches(" |").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const PARTS: &[Part] = &[
        Part { name: "a", purpose: "one thing", limit_min: 1, commands: &[] },
        Part { name: "b", purpose: "another", limit_min: 1, commands: &[] },
    ];

    /// Returns the report in a directory, after further results of parts.
    fn report(scratch: &Scratch, results: &[(&str, Outcome)]) -> Report {
        let mut report = Report::open(scratch.path(), "page").unwrap();
        for (part, outcome) in results {
            let record = Record::new(part, *outcome, 61).unwrap();
            report.add(Record { date: "2026-11-26".to_owned(), ..record }).unwrap();
        }
        report
    }

    #[test]
    fn resumes_after_parts_passed_on_same_sources() {
        let scratch = Scratch::new("nightly-test").unwrap();
        report(&scratch, &[("a", Outcome::Passed), ("b", Outcome::Failed)]);
        let mut report = report(&scratch, &[]);
        assert!(report.has_passed("a") && !report.has_passed("b"));
        assert_eq!(report.failures(PARTS), 1);
        report.sources += 1;
        assert!(!report.has_passed("a"), "other sources");
        assert_eq!(report.failures(PARTS), 0);
    }

    #[test]
    fn reads_results_with_incomplete_last_line() {
        let scratch = Scratch::new("nightly-torn").unwrap();
        report(&scratch, &[("a", Outcome::Passed)]);
        let path = scratch.path().join("results.jsonl");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"part\":\"b\"").unwrap();
        report(&scratch, &[("b", Outcome::Passed)]);
        let report = report(&scratch, &[]);
        assert!(report.has_passed("a") && report.has_passed("b"));
    }

    #[test]
    fn table_has_row_for_every_part() {
        let scratch = Scratch::new("nightly-table").unwrap();
        let mut report = report(&scratch, &[("a", Outcome::TimedOut)]);
        let table = report.table(PARTS);
        let expected = format!("| a | one thing | TIMED OUT | 2 min | 2026-11-26 | {} |", report.commit);
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            [expected.as_str(), "| b | another | not run | – | – | – |"]
        );
        report.sources += 1;
        assert!(report.table(PARTS).contains(&format!("{}, on other sources |", report.commit)));
    }

    #[test]
    fn records_results_on_present_sources_and_keeps_others() {
        let scratch = Scratch::new("nightly-page").unwrap();
        let empty = super::page("", PARTS);
        assert!(report(&scratch, &[]).record(&empty, PARTS).is_err(), "no part has run");
        let old = report(&scratch, &[("a", Outcome::Passed), ("b", Outcome::Failed)]);
        let (page, commit) = (old.record(&empty, PARTS).unwrap(), &old.commit);
        let rows = |page: &str| {
            page.lines()
                .skip_while(|line| !line.starts_with("|---"))
                .skip(1)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let row = |name: &str, purpose: &str, cells: &str| {
            format!("| {name} | {purpose} | {cells} | 2 min | 2026-11-26 | {commit} |")
        };
        assert_eq!(rows(&page), [row("a", "one thing", "passed"), row("b", "another", "FAILED")]);

        let later = Scratch::new("nightly-later").unwrap();
        let page = report(&later, &[("b", Outcome::Passed)]).record(&page, PARTS).unwrap();
        assert_eq!(rows(&page), [row("a", "one thing", "passed"), row("b", "another", "passed")]);
        assert_eq!(super::page(&page, PARTS), page, "the page reproduces itself");
    }
}
