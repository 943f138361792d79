//! `cargo xtask nightly`: the checks that take too long for a merge.
//!
//! Each part of the table in [`parts`] is a list of commands. Its output goes to a log in
//! `target/nightly`. An interrupted run resumes: parts that have passed on the same sources do not
//! run again. The final table shows the result of every part; `--record` writes it into the book,
//! where a part that has not run keeps its last result.

mod parts;
mod report;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use punctual_process::child::BoundedCommand;
use xtask_support::counted;

use crate::{Result, cargo};
use parts::{PARTS, Part};
use report::{Outcome, Record, Report};

/// The number of lines printed from the end of a failed part's log.
const SHOWN_LINES: usize = 40;

/// The time between the signal that requests a part to end and the signal that kills it.
const KILL_AFTER: &str = "--kill-after=30";

/// Time that `timeout` has to end a part that exceeds its limit.
const END_LIMIT: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Options {
    /// Parts to run [default: all]
    #[arg(value_name = "PART", value_parser = part)]
    parts: Vec<&'static Part>,

    /// List the parts with their commands instead of running them
    #[arg(long)]
    list: bool,

    /// Also run the parts that have passed on the same sources
    #[arg(long)]
    afresh: bool,

    /// Write the results on the present sources into the book, without running anything
    #[arg(long, conflicts_with_all = ["parts", "list", "afresh"])]
    record: bool,
}

/// The page of the book with the last result of each part.
const PAGE: &str = "docs/book/src/internals/nightly.md";

fn part(name: &str) -> Result<&'static Part, String> {
    let known = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
    PARTS.iter().find(|part| part.name == name).ok_or_else(|| format!("the parts are {}", known()))
}

pub(crate) fn run(options: &Options) -> Result {
    let chosen: Vec<&Part> =
        if options.parts.is_empty() { PARTS.iter().collect() } else { options.parts.clone() };
    if options.list {
        for part in chosen {
            println!("{:12} {} (at most {} min)", part.name, part.purpose, part.limit_min);
            part.commands.iter().for_each(|command| println!("{:12}     {command}", ""));
        }
        return Ok(());
    }
    let directory = cargo::target_dir().join("nightly");
    fs::create_dir_all(&directory)?;
    let mut report = Report::open(&directory, PAGE)?;
    if options.record {
        let path = cargo::root().join(PAGE);
        fs::write(&path, report.record(&fs::read_to_string(&path)?, PARTS)?)?;
        println!("{PAGE} has the results");
        return Ok(());
    }
    for part in chosen {
        if !options.afresh && report.has_passed(part.name) {
            println!("{:12} passed before, on the same sources", part.name);
            continue;
        }
        let log = directory.join(part.name).with_extension("log");
        println!("{:12} running; log: {}", part.name, log.display());
        let started = Instant::now();
        let outcome = run_part(part, &log)?;
        let seconds = started.elapsed().as_secs();
        println!("{:12} {outcome} after {seconds} s", part.name);
        if outcome != Outcome::Passed {
            show_end(&log)?;
        }
        report.add(Record::new(part.name, outcome, seconds)?)?;
    }
    print!("\n{}", report.table(PARTS));
    match report.failures(PARTS) {
        0 => Ok(()),
        failures => Err(format!("{} of the nightly run failed", counted(failures, "part")).into()),
    }
}

/// Runs the commands of a part until one fails.
fn run_part(part: &Part, log: &Path) -> Result<Outcome> {
    let file = File::create(log)?;
    let limit = Duration::from_secs(60) * part.limit_min;
    for words in part.commands {
        if words.starts_with("cargo test ") {
            let mut tests = cargo::command();
            tests.args(words.split_whitespace().skip(1));
            if !cargo::has_tests(&tests).is_ok_and(|has| has) {
                writeln!(&file, "{words}: the build fails, or no test matches the filter")?;
                return Ok(Outcome::Failed);
            }
        }
        // A command must not outlive this run, nor may the processes that it starts.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=TERM", "timeout", KILL_AFTER, &format!("{}m", part.limit_min)]);
        command.args(words.split_whitespace()).current_dir(cargo::root());
        command
            .envs(parts::ENVIRONMENT)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file.try_clone()?);
        // Set by the toolchain that started this run; a command may name another one.
        for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(variable);
        }
        let status = match command.status_within(limit + END_LIMIT) {
            Ok(status) => status,
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(Outcome::TimedOut),
            Err(error) => return Err(format!("cannot run {words}: {error}").into()),
        };
        match status.code() {
            Some(0) => {}
            Some(124 | 137) => return Ok(Outcome::TimedOut),
            _ => return Ok(Outcome::Failed),
        }
    }
    Ok(Outcome::Passed)
}

fn show_end(log: &PathBuf) -> Result {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        println!("    {line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_fails_at_first_failing_command() {
        let log = std::env::temp_dir().join(format!("punctual-nightly-{}.log", std::process::id()));
        let part = |commands| Part { name: "x", purpose: "", limit_min: 1, commands };
        assert_eq!(run_part(&part(&["echo one", "false", "echo two"]), &log).unwrap(), Outcome::Failed);
        assert_eq!(fs::read_to_string(&log).unwrap(), "one\n");
        assert_eq!(run_part(&part(&["echo one", "echo two"]), &log).unwrap(), Outcome::Passed);
        assert_eq!(fs::read_to_string(&log).unwrap(), "one\ntwo\n");
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn page_of_the_book_lists_every_part() {
        let path = cargo::root().join(PAGE);
        let page = fs::read_to_string(&path).unwrap();
        let difference = crate::golden::difference(&path, &report::page(&page, PARTS));
        assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    }
}
