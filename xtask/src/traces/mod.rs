//! `cargo xtask check recordings`: reads recordings published by others and compares the results
//! with those of other tools: the number of events of each kind with the output of `trace-cmd
//! report`, each event of LTTng traces with the output of `babeltrace2`, perf files with their
//! known content, and each job, table and figure with the results of a script that processes the
//! text of `trace-cmd`. A guest of the lab is recorded together with this machine, and the merged
//! recording is checked against the scheduling events.
//!
//! The recordings stay where they were published; each is fetched once, or is read from a directory
//! that the user names, and is checked against its hash. If one is unavailable, the others are
//! still read, and the command fails at the end and names it.

mod guest;
mod recompute;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use punctual_process::child::BoundedCommand;

use crate::process::{self, TOOL_LIMIT};
use crate::{Result, cargo};

/// One line for each file: tool, hash, repository, commit, path.
const RECORDINGS: &str = include_str!("recordings.txt");

/// Has a directory for each LTTng trace.
const CTF: &str = "ctf";

/// Passes the directory of the recordings to the test.
const PLACE: &str = "PUNCTUAL_TRACES";

#[derive(Args)]
pub(crate) struct Options {
    /// Read the recordings in this directory instead of fetching any;
    /// docs/book/src/internals/tracing.md lists the file names
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Only record a guest of the lab together with this machine, as root, and check the merged
    /// recording
    #[arg(long, conflicts_with = "directory")]
    guest: bool,
}

pub(crate) fn run(Options { directory, guest }: &Options) -> Result {
    for program in ["trace-cmd", "babeltrace2", "python3"] {
        if Command::new(program).arg("--version").output_within(TOOL_LIMIT).is_err() {
            return Err(format!("{program} is not installed; on Debian, `apt-get install {program}`").into());
        }
    }
    if *guest {
        return guest::run(&recompute::build()?);
    }
    let (place, missing) = match directory {
        Some(directory) => look_up_all(directory)?,
        None => fetch_all(&cargo::target_dir().join("traces"))?,
    };
    for what in &missing {
        eprintln!("MISSING: {what}");
    }
    let own = recompute::Own::record()?;
    let mut test = cargo::command();
    test.args([
        "test",
        "--package",
        "punctual-trace",
        "--test",
        "it",
        "--",
        "--include-ignored",
        "--nocapture",
        // Other tests change files of the repository.
        "corpus::",
        "ctf::",
        "perf::",
    ]);
    cargo::test(test.env(PLACE, &place))?;
    recompute::run(&place, &own)?;
    guest::run(own.punctual())?;
    match missing.len() {
        0 => Ok(()),
        // The completed checks passed, but they are not all that was requested.
        count => Err(format!("{count} files could not be had:\n{}", missing.join("\n")).into()),
    }
}

/// Fetches the missing files; returns the directory of all files, and the ones that are
/// unavailable.
fn fetch_all(place: &Path) -> Result<(PathBuf, Vec<String>)> {
    let (mut missing, mut incomplete) = (Vec::new(), Vec::new());
    for (recording, name) in listed()? {
        let file = place.join(&name);
        let directory = file.parent().unwrap_or(place);
        fs::create_dir_all(directory)?;
        if let Err(error) = recording.fetch(&file) {
            missing.push(error.to_string());
            // An LTTng trace is incomplete without any one of its files.
            incomplete.extend(name.starts_with(CTF).then(|| directory.to_owned()));
        }
    }
    for directory in incomplete {
        let _ = fs::remove_dir_all(directory);
    }
    Ok((place.to_owned(), missing))
}

/// Checks a directory of the user without changing it; returns the directory, and the missing
/// files.
fn look_up_all(place: &Path) -> Result<(PathBuf, Vec<String>)> {
    let place = place.canonicalize().map_err(|error| format!("{}: {error}", place.display()))?;
    let mut missing = Vec::new();
    for (Recording { hash, repository, commit, path }, file) in listed()? {
        let file = place.join(file);
        if !file.exists() {
            missing.push(format!("{}: {path} of {repository}, commit {commit}", file.display()));
        } else if sha256(&file)? != hash {
            return Err(format!(
                "{}: its SHA-256 is not {hash}; it is not {path} of {repository}, commit {commit}",
                file.display()
            )
            .into());
        }
    }
    Ok((place, missing))
}

/// Returns all files, and the path of each in the directory.
fn listed() -> Result<Vec<(Recording<'static>, PathBuf)>> {
    let lines = RECORDINGS.lines().filter(|line| !line.starts_with('#'));
    let listed = lines.map(|line| {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let [tool, hash, repository, commit, path] = words[..] else {
            return Err(format!("`{line}` is not tool, hash, repository, commit and path").into());
        };
        // The first digits of its hash.
        let short = &hash[..12.min(hash.len())];
        let file = match tool {
            "perf" => Path::new("perf").join(short).with_extension("data"),
            "lttng" => {
                let parts = Path::new(path);
                let directory = parts.parent().and_then(Path::file_name).unwrap_or_default();
                Path::new(CTF).join(directory).join(parts.file_name().unwrap_or_default())
            }
            _ => PathBuf::from(short).with_extension("dat"),
        };
        Ok((Recording { hash, repository, commit, path }, file))
    });
    listed.collect()
}

/// A published file.
struct Recording<'a> {
    hash: &'a str,
    repository: &'a str,
    commit: &'a str,
    path: &'a str,
}

impl Recording<'_> {
    /// Fetches the file unless it exists.
    fn fetch(&self, file: &Path) -> Result {
        let Self { hash, repository, commit, path } = self;
        if file.exists() && sha256(file)? == *hash {
            return Ok(());
        }
        let url = format!("https://raw.githubusercontent.com/{repository}/{commit}/{path}");
        println!("fetching {url}");
        let part = file.with_extension("part");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--location", "--max-time", "120", "--output"]);
        let output = curl.arg(&part).arg(&url).output_within(TOOL_LIMIT)?;
        if !output.status.success() {
            return Err(format!("{url}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        if sha256(&part)? != *hash {
            return Err(format!("{url}: its SHA-256 is not {hash}; the recording is another one").into());
        }
        Ok(fs::rename(part, file)?)
    }
}

fn sha256(file: &Path) -> Result<String> {
    let found = process::stdout(Command::new("sha256sum").arg(file), TOOL_LIMIT)?;
    // Preceded by a backslash if the file name contains one.
    Ok(found.trim_start_matches('\\').split(' ').next().unwrap_or_default().to_owned())
}
