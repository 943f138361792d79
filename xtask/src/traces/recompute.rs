//! Every job of a recording is computed once more, from the text of `trace-cmd report -t`, by a script that shares no code with the
//! project.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::succeed;
use crate::{Result, cargo};

/// How our command says that a recording has no jobs, which is no failure here.
const NO_JOBS: [&str; 2] = ["has no job", "there are no scheduler events"];

/// What is recorded here: threads with priorities that lock, preempt and wake each other.
const LOAD: [&str; 3] = ["bench", "--quick", "behaviour"];

/// Computes the jobs of all recordings in the directory once more, and those of one that is made now, where that can be done.
pub(super) fn run(place: &Path) -> Result {
    let punctual = build()?;
    let scratch = cargo::target_dir().join("traces/recompute");
    fs::create_dir_all(&scratch)?;
    let mut recordings: Vec<PathBuf> =
        fs::read_dir(place)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    recordings.retain(|path| path.extension() == Some(OsStr::new("dat")));
    recordings.sort();
    let own = scratch.join("own.dat");
    let mut record = Command::new(&punctual);
    record.args(["trace", "record", "-o"]).arg(&own).arg("--").arg(&punctual).args(LOAD);
    match record.stdin(Stdio::null()).stdout(Stdio::null()).status()?.success() {
        true => recordings.push(own),
        false => eprintln!(
            "SKIPPED: nothing is recorded here, so only recordings of others are computed once more"
        ),
    }
    let mut wrong = Vec::new();
    for recording in &recordings {
        if !agrees(&punctual, recording, &scratch)? {
            wrong.push(recording.display().to_string());
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("jobs of {} are computed otherwise", wrong.join(", ")).into()),
    }
}

fn build() -> Result<PathBuf> {
    let mut command = cargo::command();
    let built = cargo::build(command.args(["build", "--release", "--package", "punctual-cli"]))?;
    let punctual = built.into_iter().find(|artifact| artifact.target == "punctual");
    Ok(punctual.ok_or("cargo has built no `punctual`")?.path)
}

/// Whether our jobs are those of the script; true as well if there are none.
fn agrees(punctual: &Path, recording: &Path, scratch: &Path) -> Result<bool> {
    println!("{}", recording.display());
    let (jobs, text) = (scratch.join("jobs.csv"), scratch.join("report.txt"));
    let output = Command::new(punctual)
        .args(["trace", "report", "--all", "--worst", "0", "--csv"])
        .args([&jobs, recording])
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if NO_JOBS.iter().any(|none| said.contains(none)) {
        println!("no jobs");
        return Ok(true);
    }
    if !output.status.success() {
        return Err(format!("{}: {said}", recording.display()).into());
    }
    let mut report = Command::new("trace-cmd");
    report.args(["report", "-t", "-i"]).arg(recording);
    succeed(report.stdout(File::create(&text)?).stderr(Stdio::null()))?;
    let mut script = Command::new("python3");
    script.arg(cargo::root().join("xtask/src/traces/recompute.py")).arg(&jobs);
    Ok(script.stdin(File::open(&text)?).status()?.success())
}
