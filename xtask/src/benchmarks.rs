//! `cargo xtask bless benchmarks`: measures, and generates `BENCHMARKS.md`.
//!
//! Timed rows come from repeated runs of `punctual bench` and of two benchmarks of packages, in
//! which Punctual and its peers take turns in interleaved windows. A ratio is formed within one
//! run; the page shows the median and the worst ratio of all runs. Counted rows come from the
//! recorded counts, which `cargo xtask check instructions` keeps exact.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use punctual_report::format::format_nanos;
use serde::Deserialize;

use crate::{Result, cargo, process};

const PAGE: &str = "BENCHMARKS.md";
const COUNTED: &str = "xtask/instructions/figures.txt";
const SUITES: [&str; 3] = ["executors", "rtos", "latency"];
/// The suites that `cargo bench` runs, with its arguments.
const BENCHES: [(&str, [&str; 5]); 2] = [
    ("cells", ["bench", "-p", "punctual-sync", "--bench", "cells"]),
    ("analysis", ["bench", "-p", "punctual-analysis", "--bench", "peer"]),
];

/// The fewest runs of a page.
const MIN_RUNS: usize = 20;

#[derive(Args)]
pub(crate) struct Options {
    /// The number of runs on the page, those of an interrupted command included
    #[arg(long, default_value_t = MIN_RUNS, value_name = "N")]
    runs: usize,
}

pub(crate) fn run(options: &Options) -> Result {
    if options.runs < MIN_RUNS {
        return Err(format!("--runs {}: a page needs at least {MIN_RUNS} runs", options.runs).into());
    }
    let commit = process::git(&["rev-parse", "--short=10", "HEAD"])?.trim().to_owned();
    let directory = cargo::target_dir().join("benchmarks").join(&commit);
    fs::create_dir_all(&directory)?;
    let mut build = cargo::command();
    build.args(["build", "--locked", "--release", "-p", "punctual-cli", "--features", "peers"]);
    process::succeed(&mut build)?;
    let program = cargo::target_dir().join("release/punctual");
    let mut runs = Vec::new();
    for number in 1..=options.runs {
        let file = directory.join(format!("{number}.json"));
        if !file.exists() {
            println!("run {number} of {}", options.runs);
            let mut bench = Command::new(&program);
            bench.args(["bench", "--quick"]).args(SUITES);
            measure(bench, &file)?;
        }
        let mut run: Run = serde_json::from_str(&fs::read_to_string(&file)?)?;
        for (suite, arguments) in BENCHES {
            let file = directory.join(format!("{number}-{suite}.json"));
            if !file.exists() {
                let mut bench = cargo::command();
                bench.args(arguments).args(["--locked", "--"]);
                measure(bench, &file)?;
            }
            run.suites.push(serde_json::from_str(&fs::read_to_string(&file)?)?);
        }
        runs.push(run);
    }
    let root = cargo::root();
    let page = page(&commit, &runs, &fs::read_to_string(root.join(COUNTED))?)?;
    fs::write(root.join(PAGE), page)?;
    println!("wrote {PAGE}");
    Ok(())
}

/// One run of `bench`. Its file appears only when it is complete.
fn measure(mut bench: Command, file: &Path) -> Result {
    let partial = file.with_extension("part");
    bench.arg(format!("--json={}", partial.display()));
    process::succeed(bench.stdin(Stdio::null()).stdout(Stdio::null()))?;
    Ok(fs::rename(partial, file)?)
}

#[derive(Deserialize)]
struct Run {
    started: String,
    machine: Machine,
    overhead: Figures,
    suites: Vec<Suite>,
}

#[derive(Deserialize)]
struct Machine {
    kernel: String,
    cpu_model: String,
    #[serde(default)]
    cpu_family: String,
    cpus: u32,
    hypervisor: String,
}

#[derive(Deserialize)]
struct Suite {
    name: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    operation: String,
    subject: String,
    condition: Option<String>,
    figures: Option<Figures>,
    operations_per_sample: f64,
    #[serde(default)]
    why: Vec<String>,
    nominal_ns: Option<f64>,
}

#[derive(Deserialize, Clone, Copy)]
struct Figures {
    max_ns: f64,
    p50_ns: f64,
}

/// The rows that are comparable: of one suite, operation and condition.
type Question = (String, String, String);

/// The figures of each subject of a question, one per run.
type Answers = BTreeMap<Question, Vec<(String, Vec<Figures>)>>;

/// A value below this many empty measurements is mostly the clock's own time, and gets no ratio.
const RESOLUTION: f64 = 3.0;

/// Collects the rows that every run has measured with sufficient resolution.
fn answers(runs: &[Run]) -> Answers {
    let mut answers = Answers::new();
    for run in runs {
        for suite in &run.suites {
            for row in &suite.rows {
                // The median of a delay or a pulse is mostly the requested time.
                let is_meaningful = row.why.is_empty() && row.nominal_ns.is_none();
                let Some(figures) = row.figures.filter(|_| is_meaningful) else { continue };
                // The samples of `executors` are whole windows.
                let is_short = row.operations_per_sample <= 1.0 && suite.name != "executors";
                if is_short && figures.p50_ns < RESOLUTION * run.overhead.p50_ns {
                    continue;
                }
                let condition = row.condition.clone().unwrap_or_default();
                let question = (suite.name.clone(), row.operation.clone(), condition);
                let subjects = answers.entry(question).or_default();
                match subjects.iter_mut().find(|(subject, _)| *subject == row.subject) {
                    Some((_, all)) => all.push(figures),
                    None => subjects.push((row.subject.clone(), vec![figures])),
                }
            }
        }
    }
    for subjects in answers.values_mut() {
        subjects.retain(|(_, all)| all.len() == runs.len());
    }
    answers
}

fn is_ours(subject: &str) -> bool {
    ["Punctual", "punctual", "TimedQueue", "as by default"].iter().any(|name| subject.starts_with(name))
}

/// True for subjects and counted rows that the page omits, because they hardly differ from another.
fn is_detail(name: &str) -> bool {
    ["100 tasks", "timers armed", "could be profiled"].iter().any(|detail| name.contains(detail))
}

/// True for peers that do the same: only one other queue orders its items by time.
fn is_comparable(ours: &str, peer: &str) -> bool {
    ours != "TimedQueue" || peer.starts_with("futex-queue")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One line of the table: the contender of ours next to one peer.
struct Comparison<'a> {
    ours: (&'a str, &'a [Figures]),
    peer: (&'a str, &'a [Figures]),
}

impl Comparison<'_> {
    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.ours.1.iter().zip(self.peer.1).map(|(ours, peer)| ours.p50_ns / peer.p50_ns)
    }

    fn worst(&self) -> f64 {
        self.ratios().fold(0.0, f64::max)
    }
}

/// Ours, each with the fastest peer of the question.
fn comparisons(subjects: &[(String, Vec<Figures>)]) -> Vec<Comparison<'_>> {
    let typical = |all: &[Figures]| median(all.iter().map(|figures| figures.p50_ns));
    let fastest = |ours: &str| {
        let peers = subjects.iter().filter(|(subject, _)| !is_ours(subject) && !subject.starts_with("L:"));
        let peers = peers.filter(|(peer, _)| is_comparable(ours, peer));
        peers.min_by(|(_, a), (_, b)| typical(a).total_cmp(&typical(b)))
    };
    let ours = subjects.iter().filter(|(subject, _)| is_ours(subject) && !is_detail(subject));
    ours.filter_map(|(subject, figures)| {
        let (peer, theirs) = fastest(subject)?;
        Some(Comparison { ours: (subject, figures), peer: (peer, theirs) })
    })
    .collect()
}

fn page(commit: &str, runs: &[Run], counted: &str) -> Result<String> {
    let last = runs.last().ok_or("there is no run")?;
    let machine = &last.machine;
    let mut page = format!(
        "# Benchmarks\n\n<!-- Generated by `cargo xtask bless benchmarks`. -->\n\n\
         Each ratio compares Punctual with its fastest peer in interleaved windows of one run, under the\n\
         same policy on the same CPU; below 1 Punctual is faster. The table shows the median and the worst\n\
         of {} runs. Ratios carry over to other machines, nanoseconds do not. **Bold** marks rows where the\n\
         peer is faster. [How `punctual bench` measures](docs/book/src/internals/measurement.md) defines\n\
         its operations, [`peer.rs`](crates/punctual-analysis/benches/peer.rs) the *bound of a task*, and\n\
         [`cells.rs`](crates/punctual-sync/benches/cells.rs) the rest.\n\n",
        runs.len()
    );
    writeln!(
        page,
        "| | |\n|---|---|\n| machine | {} CPUs, {}{}, {} |\n| kernel | {} |\n| commit | `{commit}` |\n\
         | measured | {} |\n",
        machine.cpus,
        machine.cpu_model.trim(),
        if machine.cpu_family.is_empty() { String::new() } else { format!(" ({})", machine.cpu_family) },
        machine.hypervisor,
        machine.kernel,
        last.started.split('T').next().unwrap_or_default(),
    )?;
    timed(&mut page, &answers(runs))?;
    counted_rows(&mut page, counted)?;
    Ok(page)
}

fn timed(page: &mut String, answers: &Answers) -> Result {
    let commands = SUITES.map(|suite| (suite, format!("punctual bench {suite}")));
    let benches = BENCHES.map(|(suite, arguments)| (suite, format!("cargo {}", arguments.join(" "))));
    for (suite, command) in commands.into_iter().chain(benches) {
        writeln!(
            page,
            "## `{command}`\n\n| operation | Punctual | max, p50 | fastest peer | max, p50 | \
             ratio, median | worst |\n|---|---|--:|---|--:|--:|--:|"
        )?;
        for ((_, operation, condition), subjects) in answers.iter().filter(|((name, ..), _)| name == suite) {
            let separator = if condition.is_empty() { "" } else { ", " };
            // Only the first row of an operation names it.
            let mut named = format!("{operation}{separator}{condition} ");
            for comparison in comparisons(subjects) {
                let ratio = median(comparison.ratios());
                let emphasis = if ratio > 1.0 { "**" } else { "" };
                writeln!(
                    page,
                    "| {}| {} | {} | {} | {} | {emphasis}{}{emphasis} | {} |",
                    std::mem::take(&mut named),
                    comparison.ours.0,
                    duration(comparison.ours.1),
                    comparison.peer.0,
                    duration(comparison.peer.1),
                    factor(ratio),
                    factor(comparison.worst()),
                )?;
            }
        }
        page.push('\n');
    }
    Ok(())
}

/// The largest value of all runs, and the median of their medians.
fn duration(all: &[Figures]) -> String {
    let max = all.iter().map(|figures| figures.max_ns).fold(0.0, f64::max);
    format!("{}, {}", format_nanos(max), format_nanos(median(all.iter().map(|figures| figures.p50_ns))))
}

fn factor(ratio: f64) -> String {
    let decimals = match ratio {
        ..0.1 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$} ×")
}

/// Instructions in user space, with the state word as an atomic and biased.
fn counted_rows(page: &mut String, counted: &str) -> Result {
    let rows: Vec<(&str, &str)> = counted
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .filter(|(count, name)| count.parse::<u64>().is_ok() && !name.starts_with("bytes of code"))
        .collect();
    writeln!(
        page,
        "## Counted instructions\n\nUser-space instructions of one operation with its loop, counted by valgrind on \
         x86-64 (`cargo xtask\ncheck instructions`), with the state word as an atomic and biased, as in an app \
         with one partition.\n`xtask/instructions/figures.txt` lists more rows, `lab/figures.txt` those of \
         user space and kernel.\n\n\
         | operation | atomic | biased |\n|---|--:|--:|"
    )?;
    for (count, name) in rows.iter().filter(|(_, name)| !name.ends_with(", biased") && !is_detail(name)) {
        let biased = rows.iter().find(|(_, other)| other.strip_suffix(", biased") == Some(name));
        writeln!(page, "| {name} | {count} | {} |", biased.map_or("–", |(count, _)| count))?;
    }
    page.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ours: f64, peers: &[(&str, f64)]) -> Run {
        let row = |subject: &str, p50_ns: f64| Row {
            operation: "Lock".into(),
            subject: subject.into(),
            condition: None,
            figures: Some(Figures { max_ns: 2.0 * p50_ns, p50_ns }),
            operations_per_sample: 1.0,
            why: Vec::new(),
            nominal_ns: None,
        };
        let rows = [row("Punctual", ours)]
            .into_iter()
            .chain(peers.iter().map(|(name, ns)| row(name, *ns)))
            .collect();
        Run {
            started: "2026-01-02T03:04:05Z".into(),
            machine: Machine {
                kernel: "6.12".into(),
                cpu_model: "CPU".into(),
                cpu_family: String::new(),
                cpus: 2,
                hypervisor: "none".into(),
            },
            overhead: Figures { max_ns: 1.0, p50_ns: 1.0 },
            suites: vec![Suite { name: "rtos".into(), rows }],
        }
    }

    #[test]
    fn compares_with_fastest_peer_within_each_run() {
        let runs = [
            run(10.0, &[("slow", 50.0), ("fast", 20.0)]),
            run(30.0, &[("slow", 50.0), ("fast", 20.0)]),
            run(12.0, &[("slow", 50.0), ("fast", 24.0)]),
        ];
        let mut page = String::new();
        timed(&mut page, &answers(&runs)).unwrap();
        let line = "| Lock | Punctual | 60.0 ns, 12.0 ns | fast | 48.0 ns, 20.0 ns | 0.50 × | 1.50 × |";
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn marks_rows_with_faster_peer() {
        let mut page = String::new();
        timed(&mut page, &answers(&[run(30.0, &[("peer", 20.0)])])).unwrap();
        assert!(page.contains("| **1.50 ×** | 1.50 × |"), "{page}");
    }

    #[test]
    fn names_an_operation_once_and_omits_details() {
        let run = run(10.0, &[("punctual-sync", 15.0), ("Punctual, 100 tasks", 10.0), ("peer", 20.0)]);
        let mut page = String::new();
        timed(&mut page, &answers(&[run])).unwrap();
        assert!(page.contains("\n| Lock | Punctual |") && page.contains("\n| | punctual-sync |"), "{page}");
        assert!(!page.contains("100 tasks"), "{page}");
    }

    #[test]
    fn compares_bounds_of_the_analysis() {
        let mut run = run(10.0, &[("peer", 20.0)]);
        run.suites[0].name = "analysis".into();
        let mut page = String::new();
        timed(&mut page, &answers(&[run])).unwrap();
        let (_, section) = page.split_once("## `cargo bench -p punctual-analysis --bench peer`").unwrap();
        assert!(section.contains("| Lock | Punctual |"), "{page}");
    }

    #[test]
    fn omits_rows_missing_from_a_run() {
        let complete = run(30.0, &[("peer", 20.0)]);
        let lacking = run(30.0, &[]);
        assert!(answers(&[complete, lacking]).values().all(|subjects| comparisons(subjects).is_empty()));
    }

    #[test]
    fn pairs_counted_rows_with_their_biased_counts() {
        let mut page = String::new();
        counted_rows(&mut page, "# head\n    50  lock + unlock\n    28  lock + unlock, biased\n").unwrap();
        assert!(page.contains("| lock + unlock | 50 | 28 |"), "{page}");
    }
}
