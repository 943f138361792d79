//! Recomputes every job, table and sentence of a recording from the text of `trace-cmd report -t`
//! with an independent script, and decodes the Perfetto export with Perfetto's own schema.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_process::child::{BoundedChild, BoundedCommand};

use crate::process::{INSTALL_LIMIT, RUN_LIMIT, TOOL_LIMIT, succeed};
use crate::{Result, cargo};

/// Messages of `punctual` for a recording without jobs, which is not a failure here.
const NO_JOBS: [&str; 2] = ["has no job", "there are no scheduler events"];

/// The recorded load: threads with priorities that lock, preempt and wake each other.
const LOAD: [&str; 3] = ["bench", "--quick", "behavior"];

/// The recordings made here. The first omits calls of `sched_yield`; threads of the load make
/// millions of these if they wait for a CPU that is busy. The second contains all events, with
/// exact ends of the scheduler's turns, and loses most of them.
const OWN: [(&str, [&str; 2]); 2] =
    [("own", ["--events", "sched,irq,irq_vectors,softirq,timer,lock,futex"]), ("losses", ["--buffer", "64"])];

/// Limit for a recording of this load, which takes seconds.
const RECORD_LIMIT: Duration = Duration::from_secs(600);

/// The number of jobs of each task that are explained in sentences.
const WORST: [&str; 2] = ["--worst", "2"];

/// Imports Perfetto's schema and the library that reads it.
const SCHEMA: &str = "from perfetto.protos.perfetto.trace import perfetto_trace_pb2";

/// The `punctual` executable, and the recordings made here, if that is possible.
pub(super) struct Own {
    punctual: PathBuf,
    recordings: Vec<PathBuf>,
    /// The recordings that could not be made.
    missing: Vec<&'static str>,
}

impl Own {
    /// Records. The tests also read the first recording from this directory.
    pub(super) fn record() -> Result<Self> {
        let punctual = build()?;
        let scratch = scratch()?;
        let (mut recordings, mut missing) = (Vec::new(), Vec::new());
        for (name, options) in OWN {
            let own = scratch.join(name).with_extension("dat");
            // An older recording would be mistaken for that of this run.
            if own.exists() {
                fs::remove_file(&own)?;
            }
            let mut record = Command::new(&punctual);
            record.args(["trace", "record"]).args(options).arg("-o").arg(&own);
            record.arg("--").arg(&punctual).args(LOAD);
            let status = record.stdin(Stdio::null()).stdout(Stdio::null()).status_within(RECORD_LIMIT)?;
            if status.success() { recordings.push(own) } else { missing.push(name) }
        }
        Ok(Self { punctual, recordings, missing })
    }

    pub(super) fn punctual(&self) -> &Path {
        &self.punctual
    }
}

fn scratch() -> Result<PathBuf> {
    let scratch = cargo::target_dir().join("traces/recompute");
    fs::create_dir_all(&scratch)?;
    Ok(scratch)
}

/// Recomputes the jobs of all recordings in the directory, and those of the recordings made here.
pub(super) fn run(place: &Path, own: &Own) -> Result {
    let scratch = scratch()?;
    let mut recordings: Vec<PathBuf> =
        fs::read_dir(place)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    recordings.retain(|path| path.extension() == Some(OsStr::new("dat")));
    recordings.sort();
    recordings.extend(own.recordings.iter().cloned());
    let python = python();
    let mut wrong = Vec::new();
    for recording in &recordings {
        if !agrees(&own.punctual, recording, &scratch, python.as_deref())? {
            wrong.push(recording.display().to_string());
        }
    }
    if !wrong.is_empty() {
        return Err(format!("jobs of {} are computed otherwise", wrong.join(", ")).into());
    }
    // The completed checks passed, but they are not all that was requested.
    if !own.missing.is_empty() {
        return Err(format!(
            "the recordings of others are right, but {} could not be recorded here: see above for the reason; \
             as root, `mount -t tracefs tracefs /sys/kernel/tracing` may be what is missing",
            own.missing.join(", ")
        )
        .into());
    }
    Ok(())
}

/// Returns a Python with Perfetto's schema. Prints a warning and returns `None` if none exists.
fn python() -> Option<PathBuf> {
    let own = cargo::target_dir().join("traces/python/bin/python3");
    let works = |python: &Path| {
        let import =
            Command::new(python).args(["-c", SCHEMA]).stderr(Stdio::null()).status_within(TOOL_LIMIT);
        import.is_ok_and(|status| status.success())
    };
    if let Some(python) = [PathBuf::from("python3"), own.clone()].into_iter().find(|python| works(python)) {
        return Some(python);
    }
    let place = own.parent().and_then(Path::parent)?;
    let run =
        |command: &mut Command| command.status_within(INSTALL_LIMIT).is_ok_and(|status| status.success());
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(place))
        && run(Command::new(&own).args(["-m", "pip", "install", "--quiet", "perfetto"]));
    if made && works(&own) {
        return Some(own);
    }
    eprintln!(
        "SKIPPED: nothing is checked against Perfetto's schema, for there is no Python package `perfetto`; \
         `python3 -m venv` and `pip install perfetto` would make it"
    );
    None
}

pub(super) fn build() -> Result<PathBuf> {
    let mut command = cargo::command();
    command.args(["build", "--release", "--package", "punctual-cli", "--features", "bpf"]);
    cargo::program(&mut command, "punctual")
}

/// Returns whether the figures of `punctual` equal those of the script and Perfetto's schema
/// matches; also true if there are no jobs.
fn agrees(punctual: &Path, recording: &Path, scratch: &Path, python: Option<&Path>) -> Result<bool> {
    println!("{}", recording.display());
    let file = |name: &str| scratch.join(name);
    let (jobs, json, perfetto) = (file("jobs.csv"), file("jobs.json"), file("jobs.pftrace"));
    let (tables, text, options) = (file("tables.txt"), file("report.txt"), file("options.txt"));
    let page = file("page.html");
    let mut command = Command::new(punctual);
    command.args(["trace", "report", "--task", "*"]).args(WORST).arg("--csv").arg(&jobs);
    command
        .arg(format!("--json={}", json.display()))
        .arg("--perfetto")
        .arg(&perfetto)
        .arg("--html")
        .arg(&page)
        .arg(recording);
    command.stdin(Stdio::null()).stdout(File::create(&tables)?).stderr(Stdio::piped());
    let output = command.spawn()?.output_within(RUN_LIMIT)?;
    let printed = String::from_utf8_lossy(&output.stderr);
    if NO_JOBS.iter().any(|none| printed.contains(none)) {
        println!("no jobs");
        return Ok(true);
    }
    if !output.status.success() {
        return Err(format!("{}: {printed}", recording.display()).into());
    }
    for (arguments, into) in [(["report", "-t", "-N"].as_slice(), &text), (&["dump", "--options"], &options)]
    {
        let mut command = Command::new("trace-cmd");
        command.args(arguments).arg("-i").arg(recording);
        succeed(command.stdout(File::create(into)?).stderr(Stdio::null()))?;
    }
    let scripts = cargo::root().join("xtask/src/traces");
    let mut script = Command::new("python3");
    script.arg(scripts.join("recompute")).args([&jobs, &json, &tables, &page, &text, &options]);
    // Prints the tables of tasks that do not fit into the first report.
    script.arg(punctual).args(["trace", "report"]).args(WORST).arg(recording);
    let mut agrees = script.status_within(RUN_LIMIT)?.success();
    if let Some(python) = python {
        let mut script = Command::new(python);
        agrees &= script
            .arg(scripts.join("schema.py"))
            .args([&perfetto, &text])
            .status_within(RUN_LIMIT)?
            .success();
    }
    Ok(agrees)
}
