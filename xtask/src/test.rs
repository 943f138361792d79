//! `cargo xtask test`: all tests of the workspace, with their results counted.
//!
//! cargo-nextest runs the tests if it is installed: `.config/nextest.toml` groups them, limits
//! their time, and runs failed tests once more. Since most tests wait, two run per CPU. `cargo
//! test` then runs the documentation tests, which cargo-nextest does not support. Without
//! cargo-nextest, `cargo test` runs all tests, once. The last line is `N passed, N failed`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;
use xtask_support::counted;

use crate::loom::cpus;
use crate::process::{self, End};
use crate::{Result, cargo};

/// Names the file to which `test_skip::skip` appends.
const SKIPS: &str = "PUNCTUAL_TEST_SKIPS";

/// Attributes of the tests that are ignored for want of a tool. Other ignored tests are programs
/// that tests start.
const IGNORED: &str = "#[ignore = \"needs ";

/// More tests than this that pass only on a retry are not accidental: all of them count as failed.
const MAX_UNSTABLE: usize = 5;

/// A run that takes longer hangs. The output ends with the test that hangs.
const TIME_LIMIT: Duration = Duration::from_secs(1500);

/// Bounds the wait for output after the end of a run: a process that a killed test left behind may
/// hold the pipe open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which a silent run is checked for its end.
const POLL: Duration = Duration::from_millis(50);

pub(crate) fn run() -> Result {
    let skips = cargo::target_dir().join("test-skips.txt");
    fs::create_dir_all(cargo::target_dir())?;
    fs::write(&skips, "")?;
    let threads = (2 * cpus()).to_string();
    let nextest = ["nextest", "run", "--workspace", "--profile", "ci", "--test-threads", &threads];
    let runs: &[&[&str]] = if process::answers(cargo::command().args(["nextest", "--version"])) {
        &[&nextest, &["test", "--workspace", "--doc"]]
    } else {
        println!("cargo-nextest is not installed, so failed tests do not run once more");
        &[&["test", "--workspace", "--no-fail-fast"]]
    };
    let mut tally = Tally::default();
    for arguments in runs {
        let failed = tally.failed;
        let end = observe(cargo::command().args(*arguments).env(SKIPS, &skips), &mut tally)?;
        // The build has failed, a test executable has crashed, or the run has hung.
        if end != End::Exited(0) && tally.failed == failed {
            println!("*** {end} from cargo {}", arguments.join(" "));
            tally.failed += 1;
        }
    }
    let ignored =
        process::git(&["grep", "--no-index", "-hF", IGNORED, "crates", "demos"]).unwrap_or_default();
    for line in tally.remarks(&fs::read_to_string(&skips)?, &ignored) {
        println!("{line}");
    }
    let (passed, failed) = tally.result();
    println!("{passed} passed, {failed} failed");
    if failed > 0 { Err(counted(failed, "failed test").into()) } else { Ok(()) }
}

/// Runs the command, copies its output, and counts the results in it.
fn observe(command: &mut Command, tally: &mut Tally) -> Result<End> {
    let (output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut child = command.env("CARGO_TERM_COLOR", "never").spawn()?;
    // The command's ends of the pipe would keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let lines = process::lines(output);
    let deadline = Instant::now() + TIME_LIMIT;
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
        if ended.is_none() && child.try_wait()?.is_some() {
            ended = Some(Instant::now());
        }
        if ended.is_some_and(|at| at.elapsed() > OUTPUT_TIMEOUT) || Instant::now() > deadline {
            break;
        }
    }
    match child.wait_within(deadline.saturating_duration_since(Instant::now()))? {
        Some(status) => Ok(status.into()),
        None => {
            child.end_at_once()?;
            Ok(End::TimedOut(TIME_LIMIT))
        }
    }
}

/// The results that cargo-nextest and `cargo test` have printed.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Tests that passed only on a retry.
    unstable: BTreeSet<String>,
}

impl Tally {
    /// Processes one line of the output.
    fn read(&mut self, line: &str) {
        // `cargo test`, while nextest indents the output of a failed test:
        //     test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
        // nextest:
        //      Summary [   9.412s] 4 tests run: 2 passed (1 flaky), 1 failed, 1 timed out, 7 skipped
        let summary = || Some(line.trim_start().strip_prefix("Summary [")?.split_once(" run: ")?.1);
        if let Some(counts) = line.strip_prefix("test result: ").or_else(summary) {
            self.passed += count(counts, "passed");
            self.failed += count(counts, "failed") + count(counts, "timed") + count(counts, "exec");
        } else if let Some((_, test)) =
            line.trim_start().strip_prefix("FLAKY ").and_then(|rest| rest.split_once("] "))
        {
            // The line may appear when the test passes, with a counter, and again in the summary.
            let test = test
                .split_once("/")
                .and_then(|(_, rest)| rest.split_once(") "))
                .map_or(test, |(_, test)| test);
            self.unstable.insert(test.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// Returns how many tests have passed and failed.
    fn result(&self) -> (usize, usize) {
        let refused = if self.unstable.len() > MAX_UNSTABLE { self.unstable.len() } else { 0 };
        (self.passed.saturating_sub(refused), self.failed + refused)
    }

    /// Returns lines about unstable and skipped tests: `skips` has the lines of `test_skip::skip`,
    /// `ignored` the attributes that state a need.
    fn remarks(&self, skips: &str, ignored: &str) -> Vec<String> {
        let unstable = self.unstable.iter();
        let mut lines: Vec<String> =
            unstable.map(|test| format!("*** UNSTABLE, passed only on a retry: {test}")).collect();
        // A test may skip several parts of itself, and a retry repeats its skips.
        let mut skipped: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (test, reason) in skips.lines().filter_map(|skip| skip.split_once(": needs ")) {
            skipped.entry(reason.split(": ").next().unwrap_or(reason)).or_default().insert(test);
        }
        let mut counts: BTreeMap<&str, usize> =
            skipped.iter().map(|(need, tests)| (*need, tests.len())).collect();
        for reason in ignored.lines().filter_map(|line| line.split_once(IGNORED)).map(|(_, reason)| reason) {
            *counts.entry(reason.split([';', '"']).next().unwrap_or(reason)).or_default() += 1;
        }
        let reasons: Vec<_> = counts.iter().map(|(need, count)| format!("{count} without {need}")).collect();
        lines.extend((!reasons.is_empty()).then(|| format!("skipped: {}", reasons.join(", "))));
        lines
    }
}

/// Returns the number before a word.
fn count(counts: &str, word: &str) -> usize {
    let words: Vec<&str> = counts.split([' ', ';', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn tally(output: &str) -> Tally {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn tests_that_need_the_machine_alone_are_in_the_group() {
        let config = files::read(&cargo::root().join(".config/nextest.toml")).unwrap();
        let listed: Vec<&str> = config.split(['/', '(', ')', '|', '^']).collect();
        let tests = cargo::root().join("crates/punctual/tests/it");
        let mut alone = 0;
        for path in files::below(&tests, &["rs"]).unwrap() {
            if path.ends_with("main.rs") || !files::read(&path).unwrap().contains("alone()") {
                continue;
            }
            let path = path.strip_prefix(&tests).unwrap().with_extension("");
            let module = path.to_str().unwrap().trim_end_matches("/mod").replace('/', "::");
            let is_listed = module.match_indices("::").any(|(end, _)| listed.contains(&&module[..end]))
                || listed.contains(&module.as_str());
            assert!(is_listed, "add `{module}` to the group `real-time`");
            alone += 1;
        }
        assert!(alone > 0, "no test in {}", tests.display());
    }

    #[test]
    fn counts_results_of_cargo_test() {
        let tally = tally(
            "test result: ok. 2 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        assert_eq!(tally.result(), (3, 1));
    }

    #[test]
    fn counts_results_of_nextest_and_lists_unstable_tests_once() {
        let tally = tally(
            "        PASS [   0.005s] (1/4) a it b::c\n    test result: FAILED. 0 passed; 1 failed; 0 ignored\n   FLAKY 2/2 [   0.004s] (2/4) a it    d::e\n\
             ────────────\n     Summary [   9.412s] 7 tests run: 4 passed (1 slow, 1 flaky), 1 failed, 1 timed out, \
             1 exec failed, 3 skipped\n   FLAKY 2/2 [   0.004s] a it    d::e\n",
        );
        assert_eq!(tally.result(), (4, 3));
        assert_eq!(tally.remarks("", ""), ["*** UNSTABLE, passed only on a retry: a it d::e"]);
    }

    #[test]
    fn counts_many_unstable_tests_as_failed() {
        let line = |number| format!("   FLAKY 2/2 [   0.004s] (1/9) a it t{number}\n");
        let run = |count| (0..count).map(line).collect::<String>() + "Summary [ 1s] 9 tests run: 9 passed";
        assert_eq!(tally(&run(MAX_UNSTABLE)).result(), (9, 0));
        assert_eq!(tally(&run(MAX_UNSTABLE + 1)).result(), (3, 6));
    }

    #[test]
    fn counts_skipped_tests_by_need() {
        let skips = "b: needs real-time priorities: the order of threads: so\n\
                     b: needs real-time priorities: the rest\nc: needs root: it\n";
        let ignored = format!("{IGNORED}valgrind\"]\n    {IGNORED}recordings; fetch them\"]\n");
        let expected = [
            "skipped: 1 without real-time priorities, 1 without recordings, 1 without root, 1 without valgrind",
        ];
        assert_eq!(Tally::default().remarks(skips, &ignored), expected);
    }
}
