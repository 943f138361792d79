//! Results that `cargo test --no-fail-fast` reports in its output.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;

/// Prefix of the reason of an ignored test that needs a tool. Other ignored tests are programs that tests start.
const NEEDS: &str = "needs ";

/// Start of the line that a test prints when it skips itself or a part of itself.
const SKIPPED: &str = "*** SKIPPED ";

/// Counts, and the tests that failed.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// The skipped tests by what they need.
    skipped: BTreeMap<String, BTreeSet<String>>,
    /// Tests that passed when they ran again.
    unstable: Vec<String>,
    /// The failed tests of each executable that failed, in the order in which they ran.
    failed_tests: Vec<Vec<String>>,
    /// The targets that cargo lists as failed, as arguments of `cargo test`, in the same order.
    failed_targets: Vec<String>,
    state: State,
}

/// Position in the output.
#[derive(Default)]
struct State {
    /// An executable has started and has not reported a result yet.
    is_running: bool,
    /// In a list of failed tests.
    in_failures: bool,
    /// In cargo's list of failed targets.
    in_targets: bool,
    /// The failed tests that the current executable has listed.
    listed: Vec<String>,
}

/// Failed tests of one target; without names the executable has crashed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) target: String,
    pub(super) tests: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.target, self.tests.join(" "))
    }
}

impl Tally {
    /// Processes one line of the output.
    pub(super) fn read(&mut self, line: &str) {
        if let Some((_, skip)) = line.split_once(SKIPPED)
            && let Some((test, reason)) = skip.split_once(": needs ")
        {
            // With one thread the harness has printed the name of the test in the same line.
            self.note_skip(test, reason.split(": ").next().unwrap_or(reason));
        } else if line.starts_with("     Running ") || line.starts_with("   Doc-tests ") {
            self.end_executable();
            self.state.is_running = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.read_result(result);
        } else if line == "failures:" {
            // Twice: before the messages and before the names. The second list is the complete one.
            self.state.in_failures = true;
            self.state.listed.clear();
        } else if line.starts_with("error: ") && line.contains(" failed:") {
            self.end_executable();
            self.state.in_targets = true;
        } else if let Some(target) = line.strip_prefix("    `").and_then(|rest| rest.strip_suffix('`')) {
            if self.state.in_targets {
                self.failed_targets.push(target.to_owned());
            }
        } else if let Some(test) = line.strip_prefix("    ") {
            if self.state.in_failures && !test.starts_with(' ') {
                self.state.listed.push(test.to_owned());
            }
        } else if let Some((test, reason)) = line.split_once(" ... ignored, ")
            && let Some(need) = reason.strip_prefix(NEEDS)
        {
            self.note_skip(test, need);
        }
    }

    fn note_skip(&mut self, test: &str, need: &str) {
        self.skipped.entry(need.to_owned()).or_default().insert(test.to_owned());
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn read_result(&mut self, result: &str) {
        let count = |what: &str| {
            let words: Vec<&str> = result.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
        };
        self.passed += count("passed");
        self.failed += count("failed");
        let state = mem::take(&mut self.state);
        if result.starts_with("FAILED") {
            self.failed_tests.push(state.listed);
        }
    }

    /// Counts an executable that has ended without a result as one failure.
    fn end_executable(&mut self) {
        if mem::take(&mut self.state).is_running {
            self.failed += 1;
            self.failed_tests.push(Vec::new());
        }
    }

    /// Returns the failed tests by target; nothing if cargo has not listed the targets.
    pub(super) fn failures(&self) -> Vec<Failure> {
        if self.failed_targets.len() != self.failed_tests.len() {
            return Vec::new();
        }
        let pairs = self.failed_targets.iter().zip(&self.failed_tests);
        pairs.map(|(target, tests)| Failure { target: target.clone(), tests: tests.clone() }).collect()
    }

    /// Returns whether a successful run included the tests of `failure`: a name that is no filter,
    /// such as that of a documentation test, selects none.
    pub(super) fn has_run(&self, failure: &Failure) -> bool {
        self.passed >= failure.tests.len()
    }

    /// Counts a failure as passed, because its tests have passed when they ran again.
    pub(super) fn note_second_pass(&mut self, failure: &Failure) {
        let count = failure.tests.len().max(1);
        self.failed = self.failed.saturating_sub(count);
        self.passed += count;
        self.unstable.push(failure.to_string());
    }

    /// Returns lines about skipped and unstable tests.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .unstable
            .iter()
            .map(|test| format!("*** UNSTABLE, passed only when run again: {test}"))
            .collect();
        if !self.skipped.is_empty() {
            let reasons: Vec<String> =
                self.skipped.iter().map(|(need, tests)| format!("{} without {need}", tests.len())).collect();
            lines.push(format!("skipped: {}", reasons.join(", ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 3 tests
*** SKIPPED b: needs real-time priorities: the order of threads: so ***
*** SKIPPED b: needs real-time priorities: the rest ***
test b ... ok
test c ... ignored, needs QEMU
test d ... ignored, a program of the other tests
test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/it/main.rs (target/debug/deps/it-2)

running 2 tests
test e::f ... FAILED
test e::g ... ok

failures:

---- e::f stdout ----
    indented message of the test
thread 'e::f' panicked

failures:
    e::f

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p a --test it`
     Running tests/killed.rs (target/debug/deps/killed-3)

running 1 test
error: test failed, to rerun pass `-p a --test killed`

Caused by:
  process didn't exit successfully: `killed-3` (signal: 11, SIGSEGV: invalid memory reference)
   Doc-tests a

running 1 test
test src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: 2 targets failed:
    `-p a --test it`
    `-p a --test killed`
";

    fn tally(output: &str) -> Tally {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn counts_tests_and_names_failures_by_target() {
        let tally = tally(OUTPUT);
        assert_eq!((tally.passed, tally.failed), (3, 2));
        let failed = |target: &str, tests: &[&str]| Failure {
            target: target.to_owned(),
            tests: tests.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            tally.failures(),
            [failed("-p a --test it", &["e::f"]), failed("-p a --test killed", &[])]
        );
    }

    #[test]
    fn counts_skips_by_reason_without_programs_of_tests() {
        assert_eq!(tally(OUTPUT).remarks(), ["skipped: 1 without QEMU, 1 without real-time priorities"]);
    }

    #[test]
    fn retry_without_a_test_confirms_nothing() {
        let failure =
            Failure { target: "-p a --doc".to_owned(), tests: vec!["README.md (line 1)".to_owned()] };
        let mut again = Tally::default();
        again.read(
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.00s",
        );
        assert!(!again.has_run(&failure));
        again.read(
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s",
        );
        assert!(again.has_run(&failure));
    }

    #[test]
    fn reports_tests_that_pass_on_retry_as_unstable() {
        let mut tally = tally(OUTPUT);
        for failure in tally.failures() {
            tally.note_second_pass(&failure);
        }
        assert_eq!((tally.passed, tally.failed), (5, 0));
        assert_eq!(tally.remarks()[0], "*** UNSTABLE, passed only when run again: -p a --test it e::f");
    }

    #[test]
    fn counts_executable_without_result_as_failed() {
        let crashed = tally(
            "     Running tests/a.rs (target/debug/deps/a-1)\nerror: 1 target failed:\n    `-p a --test a`",
        );
        assert_eq!((crashed.passed, crashed.failed, crashed.failures().len()), (0, 1, 1));
    }

    #[test]
    fn names_no_test_failures_after_failed_build() {
        let built = tally("error: could not compile `a` (lib) due to 1 previous error");
        assert_eq!((built.passed, built.failed, built.failures().len()), (0, 0, 0));
    }
}
