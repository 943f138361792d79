//! `cargo xtask traces`: reads recordings that other people made, and compares how many events there are of each kind with what
//! `trace-cmd report` prints.
//!
//! The recordings stay where they were published; each is fetched once, and is what its hash says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::process::succeed;
use crate::{Result, cargo};

/// A line for each: hash, repository, commit, path.
const RECORDINGS: &str = include_str!("recordings.txt");

/// Tells the test where the recordings are.
const PLACE: &str = "PUNCTUAL_TRACES";

#[derive(Args)]
pub(crate) struct Options {
    /// Read the recordings in this directory instead of fetching any
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(Options { directory }: &Options) -> Result {
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        return Err("trace-cmd is not installed; on Debian, `apt-get install trace-cmd`".into());
    }
    let place = match directory {
        Some(directory) => directory.canonicalize()?,
        None => fetch_all(&cargo::target_dir().join("traces"))?,
    };
    let mut test = cargo::command();
    test.args([
        "test",
        "--package",
        "punctual-trace",
        "--test",
        "corpus",
        "--",
        "--include-ignored",
        "--nocapture",
    ]);
    succeed(test.env(PLACE, place))
}

/// Fetches what is not there yet, and returns where all are.
fn fetch_all(place: &Path) -> Result<PathBuf> {
    fs::create_dir_all(place)?;
    for line in RECORDINGS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(4, ' ');
        let (Some(hash), Some(repository), Some(commit), Some(path)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(format!("recordings.txt: `{line}` is not hash, repository, commit and path").into());
        };
        let file = place.join(format!("{}.dat", &hash[..12.min(hash.len())]));
        if !file.exists() {
            let url = format!("https://raw.githubusercontent.com/{repository}/{commit}/{path}");
            fetch(&url, hash, &file)?;
        }
    }
    Ok(place.to_owned())
}

fn fetch(url: &str, hash: &str, file: &Path) -> Result {
    println!("fetching {url}");
    let part = file.with_extension("part");
    succeed(
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--location", "--output"])
            .arg(&part)
            .arg(url),
    )?;
    let output = Command::new("sha256sum").arg(&part).output()?;
    let found = String::from_utf8_lossy(&output.stdout);
    if found.split(' ').next() != Some(hash) {
        return Err(format!("{url}: its SHA-256 is not {hash}; the recording is another one").into());
    }
    fs::rename(part, file)?;
    Ok(())
}
