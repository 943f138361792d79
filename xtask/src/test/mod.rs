//! `cargo xtask test`: `cargo test --workspace`, with failures retried and results counted.
//!
//! A small number of failed tests run once more, one at a time, because a shared machine can stall
//! for longer than a test in real time allows. Tests that then pass are reported as unstable. The
//! last line is `N passed, N failed`.

mod tally;

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;
use xtask_support::counted;

use crate::process::{self, End};
use crate::{Result, cargo};
use tally::Tally;

/// More failures than this are not accidental; none of them runs again.
const MAX_RETRIES: usize = 5;

/// A run that takes longer hangs. The output ends with the test that hangs.
const TIME_LIMIT: Duration = Duration::from_secs(1500);

/// Bounds the wait for output after the end of a run: a process that a killed test left behind may
/// hold the pipe open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which a silent run is checked for its end.
const POLL: Duration = Duration::from_millis(50);

pub(crate) fn run() -> Result {
    let mut tally = Tally::default();
    let mut end = observe(cargo::command().args(["test", "--workspace", "--no-fail-fast"]), &mut tally)?;
    if end != End::Exited(0) {
        end = retry(&mut tally)?;
    }
    for line in tally.remarks() {
        println!("{line}");
    }
    // Without a failed test, the build has failed or a test executable has crashed.
    let failed = if end == End::Exited(0) { tally.failed } else { tally.failed.max(1) };
    println!("{} passed, {failed} failed", tally.passed);
    if failed > 0 { Err(counted(failed, "failed test").into()) } else { Ok(()) }
}

/// Runs the failed tests once more, unless there are too many or the build has failed.
fn retry(tally: &mut Tally) -> Result<End> {
    let failures = tally.failures();
    let count: usize = failures.iter().map(|failure| failure.tests.len().max(1)).sum();
    if count == 0 || count > MAX_RETRIES {
        return Ok(End::Exited(1));
    }
    let mut result = End::Exited(0);
    for failure in failures {
        println!("*** once more: {failure}");
        let mut command = cargo::command();
        // For the whole workspace: a single package unifies features differently, which would
        // rebuild everything.
        let target = failure.target.split_whitespace().skip_while(|word| *word == "-p").skip(1);
        command.args(["test", "--workspace"]).args(target).args(["--", "--test-threads=1"]);
        // Without names the executable has crashed, and all of its tests run.
        if !failure.tests.is_empty() {
            command.arg("--exact").args(&failure.tests);
        }
        let mut again = Tally::default();
        match observe(&mut command, &mut again)? {
            End::Exited(0) if again.has_run(&failure) => tally.note_second_pass(&failure),
            End::Exited(0) => result = End::Exited(1),
            end => result = end,
        }
    }
    Ok(result)
}

/// Runs the command, copies its output, and counts the results in it.
fn observe(command: &mut Command, tally: &mut Tally) -> Result<End> {
    let (output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = command.env("CARGO_TERM_COLOR", "never").spawn()?;
    // The command's ends of the pipe would keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let lines = process::lines(output);
    let started = Instant::now();
    let mut ended = None;
    loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => {
                tally.read(&line);
                // Counting must not depend on whether the output can be written.
                let _ = writeln!(io::stdout(), "{line}");
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match ended {
            Some(at) if Instant::now() > at + OUTPUT_TIMEOUT => break,
            Some(_) => {}
            None if child.try_wait()?.is_some() => ended = Some(Instant::now()),
            None if started.elapsed() > TIME_LIMIT => {
                child.end_at_once()?;
                return Ok(End::TimedOut(TIME_LIMIT));
            }
            None => {}
        }
    }
    match child.wait_within(TIME_LIMIT.saturating_sub(started.elapsed()))? {
        Some(status) => Ok(status.into()),
        None => {
            child.end_at_once()?;
            Ok(End::TimedOut(TIME_LIMIT))
        }
    }
}
