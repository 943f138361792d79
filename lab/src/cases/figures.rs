//! The cost of operations in counted instructions, compared with `lab/figures.txt`.
//!
//! One CPU, time counted: the least of a row's samples is the length of the path with nothing in between, the same in
//! every run of one executable. Another compiler makes another executable, so a figure may be off by a part of what
//! was written down; a path that became longer or shorter by more than that fails, and `--bless` accepts it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value};
use xtask_support::process::{End, Outcome};
use xtask_support::{Result, cargo};

use super::{Case, Setup, demand};
use crate::driver::stage::in_guest;
use crate::kernels::debs::RT_TESTS;

/// The steps of `punctual bench latency` that are about paths and not about load or waiting.
const STEPS: [&str; 6] = [
    "switching at one level",
    "between levels, one CPU",
    "lock and unlock",
    "release, ",
    "to handler, idle",
    "at an instant, idle",
];

/// Samples of each row: enough that the first ones, which find nothing in place, are not all.
const SAMPLES: u32 = 32;

/// Nanoseconds of the guest for each instruction.
const NS_PER_INSTRUCTION: f64 = 2.0;

/// The part of a figure by which another compiler may move it, and the instructions that it may in any case.
const WITHIN: f64 = 0.2;
const SLACK: f64 = 16.0;

/// Figures, as they stand in the file.
struct Figures {
    /// The kernel that they are of, up to the second number of its version: paths through another differ.
    kernel: String,
    rows: Vec<(String, f64)>,
}

/// The cases of this file; `bless` makes the figures that come out the expected ones.
pub(super) fn cases(bench: &Path, bless: bool) -> Vec<Case> {
    vec![counted(bench, file(), bless)]
}

fn file() -> PathBuf {
    cargo::root().join("lab/figures.txt")
}

fn counted(bench: &Path, file: PathBuf, bless: bool) -> Case {
    let only: String = STEPS.map(|step| format!(" --only '{step}'")).concat();
    let bench_in_guest = in_guest(bench);
    let script = format!(
        "bench='{bench_in_guest} bench --quick --samples {SAMPLES}'
        $bench rtos --json rtos.json >&2 && $bench latency{only} --json latency.json >&2 && cat rtos.json latency.json"
    );
    let judge = move |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the measurement failed")?;
        let found = Figures::measured(&outcome.stdout)?;
        if bless {
            return Ok(fs::write(&file, found.to_string())?);
        }
        let text = fs::read_to_string(&file).map_err(|error| {
            format!("{}: {error}; `cargo xtask lab test --only figures --bless` writes it", file.display())
        })?;
        let expected: Figures = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
        expected.compare(&found)
    };
    let figure = |outcome: &Outcome| {
        let found = Figures::measured(&outcome.stdout)?;
        let mean = |subject| mean(&outcome.stdout, &format!("latency/instant/{subject}/idle"));
        let (ours, thread, cyclictest) = (mean("punctual")?, mean("posix")?, mean("cyclictest")?);
        Ok(format!(
            "{} figures; an instant: {:.2} × clock_nanosleep, {:.2} × cyclictest, on average",
            found.rows.len(),
            ours / thread,
            ours / cyclictest
        ))
    };
    Case::new("figures in instructions", &[Setup::Counted], script, Some(bench), Box::new(judge))
        .with(&RT_TESTS.program("cyclictest"))
        .saying(figure)
        .lacking("time that is counted in instructions")
}

/// The rows of all runs in what the script prints, and the kernel that they are of.
fn rows(text: &str) -> Result<(String, Vec<Value>)> {
    let mut kernel = String::new();
    let mut rows = Vec::new();
    for run in Deserializer::from_str(text).into_iter::<Value>() {
        let mut run = run?;
        kernel = run["machine"]["kernel"].as_str().unwrap_or_default().to_owned();
        for suite in run["suites"].as_array_mut().into_iter().flatten() {
            rows.extend(suite["rows"].as_array_mut().into_iter().flatten().map(Value::take));
        }
    }
    Ok((kernel, rows))
}

/// The mean of the row `id`, in nanoseconds.
pub(super) fn mean(text: &str, id: &str) -> Result<f64> {
    let (_, rows) = rows(text)?;
    let row = rows.iter().find(|row| row["id"] == id).ok_or_else(|| format!("there is no row {id}"))?;
    row["figures"]["mean_ns"].as_f64().ok_or_else(|| format!("{id} was not measured: {}", row["why"]).into())
}

impl Figures {
    /// Those in what the script prints: of each row of ours, and of the kernel's own means beside it, the least.
    fn measured(text: &str) -> Result<Self> {
        let (kernel, rows) = rows(text)?;
        let mut found = Vec::new();
        for row in &rows {
            let id = row["id"].as_str().unwrap_or_default();
            let subject = |name: &str| id.split('/').any(|part| part == name);
            if let Some(least) = row["figures"]["min_ns"].as_f64()
                && ["punctual", "punctual-sync", "posix"].into_iter().any(subject)
            {
                if row["why"].as_array().is_none_or(|why| !why.is_empty()) {
                    return Err(format!("{id} means nothing: {}", row["why"]).into());
                }
                // A row in whole nanoseconds says more than it knows in what follows the point.
                found.push((id.to_owned(), (least / NS_PER_INSTRUCTION).round()));
            }
        }
        if found.is_empty() {
            return Err("nothing was measured".into());
        }
        let mut numbers = kernel.split('.');
        let series = [numbers.next(), numbers.next()].map(Option::unwrap_or_default).join(".");
        Ok(Self { kernel: series, rows: found })
    }

    /// Requires that `found` is what these are, within the bounds.
    fn compare(&self, found: &Self) -> Result {
        if self.kernel != found.kernel {
            return Err(format!(
                "the figures are of Linux {}, and this is {}; `cargo xtask lab test --only figures --bless` writes new ones",
                self.kernel, found.kernel
            )
            .into());
        }
        let of = |rows: &[(String, f64)], id: &str| {
            rows.iter().find(|(other, _)| other == id).map(|&(_, instructions)| instructions)
        };
        let mut wrong = Vec::new();
        for (id, expected) in &self.rows {
            match of(&found.rows, id) {
                None => wrong.push(format!("{id}: {expected}, and now it is not measured")),
                Some(now) if (now - expected).abs() > expected * WITHIN + SLACK => {
                    let percent = (now / expected - 1.0) * 100.0;
                    wrong.push(format!("{id}: {expected}, now {now}, {percent:+.0} %"));
                }
                Some(_) => {}
            }
        }
        let added = found.rows.iter().filter(|(id, _)| of(&self.rows, id).is_none());
        wrong.extend(added.map(|(id, now)| format!("{id}: now {now}, and not in the file")));
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!(
            "paths have another length, in instructions; if that is meant, `cargo xtask lab test --only figures --bless`\n{}",
            wrong.join("\n")
        )
        .into())
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "# The least that operations take, in instructions, on one CPU; docs/lab.md says how it is measured."
        )?;
        writeln!(f, "# Written by `cargo xtask lab test --only figures --bless`.")?;
        writeln!(f, "kernel {}", self.kernel)?;
        for (id, instructions) in &self.rows {
            writeln!(f, "{id} {instructions}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Figures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let kernel =
            lines.next().and_then(|line| line.strip_prefix("kernel ")).ok_or("it names no kernel")?;
        let rows = lines.map(|line| {
            let row =
                line.split_once(' ').and_then(|(id, number)| Some((id.to_owned(), number.parse().ok()?)));
            row.ok_or_else(|| format!("`{line}` is no name and a number"))
        });
        Ok(Self { kernel: kernel.to_owned(), rows: rows.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;
    use xtask_support::scratch::Scratch;

    fn run(rows: &[(&str, f64)]) -> String {
        let rows = rows.iter().map(|(id, least)| {
            serde_json::json!({ "id": id, "figures": { "min_ns": least, "mean_ns": least + 1.0 }, "why": [] })
        });
        let rows: Vec<Value> = rows.collect();
        serde_json::json!({ "machine": { "kernel": "6.12.117-rt" }, "suites": [{ "rows": rows }] })
            .to_string()
    }

    #[test]
    fn refuses_longer_path_unless_blessed() {
        let scratch = Scratch::new("figures").unwrap();
        let file = scratch.path().join("figures.txt");
        let judge =
            |text: &str, bless| (counted(Path::new("/x"), file.clone(), bless).judge)(&outcome(text, ""));
        let base = run(&[("rtos/lock/punctual", 2000.0), ("rtos/lock/pcp-mutex", 1.0)])
            + &run(&[("a/b/posix", 40.0)]);
        assert!(judge(&base, false).unwrap_err().to_string().contains("--bless"));
        judge(&base, true).unwrap();
        judge(&base, false).unwrap();
        let expected = fs::read_to_string(&file).unwrap();
        assert!(expected.ends_with("kernel 6.12\nrtos/lock/punctual 1000\na/b/posix 20\n"), "{expected}");

        let said = |rows: &[(&str, f64)]| judge(&run(rows), false).map_err(|error| error.to_string());
        said(&[("rtos/lock/punctual", 2400.0), ("a/b/posix", 50.0)]).unwrap();
        let longer = said(&[("rtos/lock/punctual", 2600.0), ("a/b/posix", 40.0)]).unwrap_err();
        assert!(longer.contains("rtos/lock/punctual: 1000, now 1300, +30 %"), "{longer}");
        assert!(said(&[("rtos/lock/punctual", 1000.0), ("a/b/posix", 40.0)]).unwrap_err().contains("-50 %"));
        assert!(said(&[("rtos/lock/punctual", 2000.0)]).unwrap_err().contains("not measured"));
        let more = [("rtos/lock/punctual", 2000.0), ("a/b/posix", 40.0), ("new/punctual", 8.0)];
        assert!(said(&more).unwrap_err().contains("not in the file"));
    }

    #[test]
    fn compares_no_figures_of_another_kernel() {
        let scratch = Scratch::new("figures-kernel").unwrap();
        let file = scratch.path().join("figures.txt");
        fs::write(&file, "kernel 7.0\na/punctual 20\n").unwrap();
        let judge = counted(Path::new("/x"), file, false).judge;
        let error = judge(&outcome(&run(&[("a/punctual", 40.0)]), "")).unwrap_err().to_string();
        assert!(error.contains("of Linux 7.0, and this is 6.12"), "{error}");
    }

    #[test]
    fn finds_no_figure_in_other_rows() {
        let text = run(&[("a/punctual", 40.0)]).replace("\"why\":[]", "\"why\":[\"no SCHED_FIFO\"]");
        assert!(Figures::measured(&text).is_err_and(|error| error.to_string().contains("no SCHED_FIFO")));
        assert!(Figures::measured("").is_err());
    }
}
