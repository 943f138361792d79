//! The cost of operations in counted instructions, as recorded in `lab/figures.txt`, and the check
//! against it.
//!
//! With one CPU and counted time, the samples of a row are the same in every run of an executable.
//! Statistics that depend on the path of an operation rather than on the time of day are also the
//! same in every executable of the same source; `bounds` defines which ones. `command` is `cargo
//! xtask lab figures`.

pub(crate) mod bounds;
pub(crate) mod command;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Deserializer, Value};
use xtask_support::{Result, cargo};

use crate::arch::Arch;
use crate::driver::stage::in_guest;
use crate::kernels::debs::Debs;

/// Samples per row: enough that the 99th percentile is that of the path, since only few samples are
/// affected by a tick of the guest's clock or are the first of a window.
const SAMPLES: u32 = 2048;

/// The same under load, where the guest has other work between them.
const SAMPLES_BESIDE_LOAD: u32 = 1024;

/// Nanoseconds of guest time per instruction.
const NS_PER_INSTRUCTION: f64 = 2.0;

/// The measuring package and its program.
pub const PROGRAM: &str = "punctual-figures";

/// The subjects of the recorded rows: the third is an app with default settings, the fourth a
/// periodic task in place of a timed spawn.
const OURS: [&str; 4] = ["punctual", "punctual-sync", "monitored", "periodic"];
/// The peer of every row.
const PEER: &str = "posix";
/// All peers; the second waits as a bound task does, and then reads.
const PEERS: [&str; 2] = [PEER, "ppoll"];

/// The recorded statistics of a row: the name, and the field of the JSON.
const STATISTICS: [(&str, &str); 5] =
    [("min", "min_ns"), ("median", "p50_ns"), ("p99", "p99_ns"), ("mean", "mean_ns"), ("max", "max_ns")];

/// A row's statistics, in instructions, in the order of [`STATISTICS`].
type Spread = [f64; STATISTICS.len()];

/// Figures, as in the file.
#[derive(Debug, PartialEq)]
pub(crate) struct Figures {
    /// The release of the measured kernel, which accounts for half of most paths.
    kernel: String,
    rows: Vec<(String, Spread)>,
}

/// Returns the file with the expected figures of a processor.
pub(crate) fn file(arch: Arch) -> PathBuf {
    let name = match arch {
        Arch::Amd64 => "lab/figures.txt",
        Arch::Arm64 => "lab/figures-arm64.txt",
    };
    cargo::root().join(name)
}

/// Returns the script that prints the JSON of all runs; `program` is [`PROGRAM`].
///
/// With hackbench, cyclictest is excluded: its ordinary thread would rarely run in emulation.
pub(crate) fn script(program: &Path, rt_tests: Debs, parts: &[Part]) -> String {
    let (program, hackbench) = (in_guest(program), in_guest(&rt_tests.program("hackbench")));
    let script = |part: &Part| match part {
        Part::Idle => format!("{program} {SAMPLES} idle || exit\n"),
        Part::Load => format!(
            "mkdir -p /tmp/beside && ln -sf {hackbench} /tmp/beside/hackbench
            PATH=/bin:/tmp/beside {program} {SAMPLES_BESIDE_LOAD} load || exit\n"
        ),
    };
    parts.iter().map(script).collect()
}

/// A part of the measurement, by its name in [`PROGRAM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Paths without load.
    Idle,
    /// With hackbench.
    Load,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Idle, Self::Load];

    /// Returns the parts in which a row is measured.
    fn of(row: &str) -> &'static [Self] {
        if row.ends_with("/load") { &[Self::Load] } else { &[Self::Idle] }
    }
}

/// Returns the rows of all runs in the script's output, and the kernel.
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

/// Returns the mean of the row `id`, in nanoseconds.
pub(crate) fn mean(text: &str, id: &str) -> Result<f64> {
    let (_, rows) = rows(text)?;
    let row = rows.iter().find(|row| row["id"] == id).ok_or_else(|| format!("there is no row {id}"))?;
    row["figures"]["mean_ns"].as_f64().ok_or_else(|| format!("{id} was not measured: {}", row["why"]).into())
}

/// Returns `true` if a row has one of these subjects.
fn is_of(id: &str, subjects: &[&str]) -> bool {
    id.split('/').any(|part| subjects.contains(&part))
}

impl Figures {
    /// Returns the figures in the script's output: our rows, and the corresponding means of the
    /// kernel.
    pub(crate) fn measured(text: &str) -> Result<Self> {
        let (kernel, rows) = rows(text)?;
        let mut found = Vec::new();
        for row in &rows {
            let id = row["id"].as_str().unwrap_or_default();
            if !is_of(id, &OURS) && !is_of(id, &PEERS) || row["figures"].is_null() {
                continue;
            }
            if row["why"].as_array().is_none_or(|why| !why.is_empty()) {
                return Err(format!("{id} means nothing: {}", row["why"]).into());
            }
            let mut spread = Spread::default();
            for (instructions, (_, field)) in spread.iter_mut().zip(STATISTICS) {
                let ns = row["figures"][field].as_f64().ok_or_else(|| format!("{id} has no {field}"))?;
                // Digits after the decimal point exceed the precision of a row in whole
                // nanoseconds.
                *instructions = (ns / NS_PER_INSTRUCTION).round();
            }
            found.push((id.to_owned(), spread));
        }
        if found.is_empty() {
            return Err("nothing was measured".into());
        }
        Ok(Self { kernel, rows: found })
    }

    /// Returns the figures in a file.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).map_err(|error| {
            format!("{}: {error}; `cargo xtask lab figures --bless` writes it", file.display())
        })?;
        text.parse().map_err(|error| format!("{}: {error}", file.display()).into())
    }

    fn of(&self, id: &str) -> Option<&Spread> {
        self.rows.iter().find_map(|(other, spread)| (other == id).then_some(spread))
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# The cost of operations in instructions, on one CPU; docs/book/src/guides/lab.md explains the measurement."
        )?;
        writeln!(f, "# Written by `cargo xtask lab figures --bless`.")?;
        writeln!(f, "kernel {}", self.kernel)?;
        let width = self.rows.iter().map(|(id, _)| id.len()).max().unwrap_or_default();
        write!(f, "# {:width$}", "row", width = width.saturating_sub(2))?;
        for (name, _) in STATISTICS {
            write!(f, " {name:>8}")?;
        }
        writeln!(f)?;
        for (id, spread) in &self.rows {
            write!(f, "{id:width$}")?;
            for instructions in spread {
                write!(f, " {instructions:>8}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl FromStr for Figures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let kernel =
            lines.next().and_then(|line| line.strip_prefix("kernel ")).ok_or("it names no kernel")?;
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let id = words.next()?.to_owned();
            let numbers: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
            Some((id, numbers.try_into().ok()?))
        };
        let rows = lines.map(|line| {
            row(line).ok_or_else(|| format!("`{line}` is no name and {} numbers", STATISTICS.len()))
        });
        Ok(Self { kernel: kernel.to_owned(), rows: rows.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(why: &[&str]) -> String {
        let figures = serde_json::json!({
            "min_ns": 78.0, "p50_ns": 80.0, "p99_ns": 82.0, "mean_ns": 80.4, "max_ns": 9000.0
        });
        let row = |id: &str| serde_json::json!({ "id": id, "figures": figures, "why": why });
        let none = serde_json::json!({ "id": "rtos/mutex-create/punctual", "figures": null, "why": ["it has none"] });
        let rows = [row("rtos/lock/punctual"), row("rtos/lock/pcp-mutex"), row("a/b/posix/load"), none];
        serde_json::json!({ "machine": { "kernel": "6.12.117-rt" }, "suites": [{ "rows": rows }] })
            .to_string()
    }

    #[test]
    fn round_trips_figures() {
        let measured = Figures::measured(&(run(&[]) + &run(&[]))).unwrap();
        assert_eq!(measured.rows[0], ("rtos/lock/punctual".to_owned(), [39.0, 40.0, 41.0, 40.0, 4500.0]));
        assert_eq!(measured.rows[1].0, "a/b/posix/load");
        assert_eq!(measured.len(), 4);
        assert_eq!(measured.to_string().parse(), Ok(measured));
        assert!("kernel 6\na/b 1 2 3\n".parse::<Figures>().unwrap_err().contains("`a/b 1 2 3`"));
    }

    #[test]
    fn ignores_meaningless_rows() {
        let error = Figures::measured(&run(&["no SCHED_FIFO"])).unwrap_err().to_string();
        assert!(error.contains("no SCHED_FIFO"), "{error}");
        assert!(Figures::measured("").is_err());
        let missing = Figures::read(Path::new("/no/figures.txt")).unwrap_err().to_string();
        assert!(missing.contains("--bless"), "{missing}");
    }

    #[test]
    fn assigns_each_row_to_its_part() {
        assert_eq!(Part::of("latency/instant/punctual/load"), [Part::Load]);
        assert_eq!(Part::of("rtos/lock/punctual"), [Part::Idle]);
    }
}
