//! Recordings under PREEMPT_RT: the tracer's own tests, without omissions, and the command.
//!
//! All in counted time, where the CPUs of a guest take turns. A recording begins and ends with
//! patches of the kernel's code; in the host's time QEMU may let one CPU execute code that another
//! has just replaced, and the kernel occasionally panics.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};

use super::{Built, Case, PROGRAMS, Setup, demand, find, punctual};
use crate::driver::stage::in_guest;
use crate::kernels::debs::RT_TESTS;

/// The package of the tracer.
const PACKAGE: &str = "punctual-trace";

/// The cases of this file.
pub(super) fn cases(built: Built<'_>, bench: Option<&Path>) -> Result<Vec<Case>> {
    let test = |name: &str| find(built, Purpose::Test, PACKAGE, name);
    let punctual = punctual(built, bench)?;
    Ok(vec![
        recordings(test("kernel")?),
        every_group(test("kernel")?),
        workloads(test("kernel")?),
        marked(test("marked_app")?),
        command(find(built, Purpose::Test, "punctual-cli", "trace")?, punctual),
        latency(punctual, find(built, Purpose::Example, PROGRAMS, "rta_calls")?),
    ])
}

/// Runs the tests of a program whose paths contain `filter`, after the shell lines in `before`.
fn tests(name: &str, on: &'static [Setup], before: &str, program: &Path, filter: &str) -> Case {
    let script = format!("{before}exec {} --test-threads 1 --nocapture {filter}", in_guest(program));
    Case::new(name, on, script, Some(program), all_passed)
        .saying(|outcome| Ok(format!("{} tests", passed(outcome))))
}

/// Every test ran and passed without omissions.
fn all_passed(outcome: &Outcome) -> Result {
    demand(outcome.end == End::Exited(0), "a test failed")?;
    let printed = |text| outcome.stdout.contains(text) || outcome.stderr.contains(text);
    demand(!printed("SKIPPED"), "a test was skipped")?;
    demand(passed(outcome) > 0, "no test ran")
}

/// Returns the number of passed tests.
fn passed(outcome: &Outcome) -> u32 {
    let result = outcome.stdout.lines().find_map(|line| line.strip_prefix("test result: ok. "));
    result.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// Recordings are complete, survive a killed recorder, and leave nothing in the kernel.
fn recordings(program: &Path) -> Case {
    tests("tracing: recordings", &[Setup::COUNTED_TWO], "", program, "record::")
}

/// The same with the events that Debian's kernel lacks: none is missing.
fn every_group(program: &Path) -> Case {
    let mut case = tests(
        "tracing: recordings of every group",
        &[Setup::PROBE_COUNTED, Setup::PROBE_COUNTED_TWO],
        "",
        program,
        "record::",
    );
    case.judge = Box::new(|outcome| {
        all_passed(outcome)?;
        let mut absent = outcome.stderr.lines().filter(|line| line.starts_with("absent: "));
        // The tests are built without BPF programs.
        demand(absent.all(|line| line.contains("feature `bpf`")), "events are missing")
    });
    case
}

/// Threads whose terms are known by construction. In counted time the host takes no CPU time away,
/// so each time must agree in each round, at the first attempt; within the limit for one round,
/// since the kernel's activity between the thread's own clock reading and the switch is only in the
/// trace.
fn workloads(program: &Path) -> Case {
    let mut case =
        tests("tracing: workloads", &[Setup::COUNTED, Setup::PROBE_COUNTED], "", program, "workloads::");
    case.judge = Box::new(|outcome| {
        all_passed(outcome)?;
        demand(!outcome.stderr.contains(": attempt "), "a workload had to be repeated")?;
        let compared = compared(&outcome.stderr);
        demand(compared.len() >= WORKLOAD_TIMES, "times are missing")?;
        let off = compared.iter().find(|compared| !compared.agree());
        demand(off.is_none(), &format!("{} does not agree", off.map_or("", |off| off.what)))
    });
    case.saying(|outcome| {
        let compared = compared(&outcome.stderr);
        let worst = compared.iter().map(|compared| compared.percent_unless_small()).fold(0.0, f64::max);
        Ok(format!(
            "{} times of {} rounds, off by at most {worst} % or 20 us",
            compared.len(),
            WORKLOAD_ROUNDS
        ))
    })
}

/// The number of times that the workloads compare, and the number of rounds of each.
const WORKLOAD_TIMES: usize = 10;
const WORKLOAD_ROUNDS: u32 = 20;
/// The maximum deviation of the worst round, unless it is less than 20 µs.
const WORST_PERCENT: f64 = 8.0;

/// A time of all rounds of a workload, in the trace and as measured by the workload.
struct Compared<'a> {
    what: &'a str,
    /// The largest difference.
    off_ns: u64,
    off_percent: f64,
    rounds: u32,
}

impl Compared<'_> {
    fn agree(&self) -> bool {
        self.rounds == WORKLOAD_ROUNDS && self.percent_unless_small() <= WORST_PERCENT
    }

    fn percent_unless_small(&self) -> f64 {
        if self.off_ns <= 20_000 { 0.0 } else { self.off_percent }
    }
}

/// Parses `WHAT: off by at most NS ns (P %), in the median …, of N rounds`.
fn compared(text: &str) -> Vec<Compared<'_>> {
    text.lines().filter_map(compared_in).collect()
}

fn compared_in(line: &str) -> Option<Compared<'_>> {
    let (what, rest) = line.split_once(": off by at most ")?;
    let (off_ns, rest) = rest.split_once(" ns (")?;
    let (off_percent, rest) = rest.split_once(" %)")?;
    let rounds = rest.strip_suffix(" rounds")?.rsplit(' ').next()?;
    Some(Compared {
        what,
        off_ns: off_ns.parse().ok()?,
        off_percent: off_percent.parse().ok()?,
        rounds: rounds.parse().ok()?,
    })
}

/// The trace of an app that marks its jobs contains the jobs of the app's report, and shows their
/// nesting.
fn marked(program: &Path) -> Case {
    tests(
        "tracing: marks of an app",
        &[Setup::COUNTED, Setup::COUNTED_TWO, Setup::PROBE_COUNTED],
        "",
        program,
        "",
    )
}

/// `punctual trace record`, `report` and `watch`, from the user's perspective.
fn command(program: &Path, punctual: &Path) -> Case {
    let before = format!("export CARGO_BIN_EXE_punctual={}\n", in_guest(punctual));
    tests("tracing: the command", &[Setup::COUNTED], &before, program, "").with(punctual)
}

/// The bound on the kernel's latency is at least the latency seen by cyclictest and by an app in
/// the recording from which it is derived. Both have the highest priority at their time, so their
/// figures contain only their own first steps in addition to the terms of the bound. The app runs
/// once more with a profile: before it, a thread temporarily raises its priority, which no event
/// reports.
fn latency(punctual: &Path, app: &Path) -> Case {
    let cyclictest = RT_TESTS.program("cyclictest");
    let (punctual_in_guest, cyclictest_in_guest, app_in_guest) =
        (in_guest(punctual), in_guest(&cyclictest), in_guest(app));
    let script = format!(
        "export PUNCTUAL_REPORT=1
        {punctual_in_guest} trace record --events usual,preemptirq --buffer 16384 -o latency.dat -- \\
            sh -c '{cyclictest_in_guest} -m -q -p 90 -t 1 -a 0 -i 1000 -l 1000 && {app_in_guest} 1 2>&1 && PUNCTUAL_PROFILE=latency.json {app_in_guest} 1' || exit
        exec {punctual_in_guest} trace latency latency.dat"
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "there is no bound, or it was exceeded")?;
        let Latencies { bound, traced, cyclictest, app } = Latencies::of(&outcome.stdout)?;
        let seen = [traced, cyclictest, app];
        demand(seen.iter().all(|&seen| seen > 0.0), "no latency at all, which is impossible")?;
        demand(seen.iter().all(|&seen| seen <= bound), "a latency exceeds the bound")
    };
    let figure = |outcome: &Outcome| {
        let Latencies { bound, traced, cyclictest, app } = Latencies::of(&outcome.stdout)?;
        Ok(format!("bound {bound} us; trace {traced}, cyclictest {cyclictest}, app {app}"))
    };
    Case::new(
        "tracing: the kernel's latency compared with cyclictest",
        &[Setup::PROBE_COUNTED],
        script,
        Some(punctual),
        judge,
    )
    .with(&cyclictest)
    .with(app)
    .saying(figure)
}

/// Latencies in µs: the bound of CPU 0, and the longest in the trace, by cyclictest, and of the
/// app's highest periodic task.
struct Latencies {
    bound: f64,
    traced: f64,
    cyclictest: f64,
    app: f64,
}

impl Latencies {
    fn of(text: &str) -> Result<Self> {
        let cyclictest = text.lines().find(|line| line.starts_with("T: 0 "));
        let cyclictest = cyclictest.and_then(|line| line.rsplit_once("Max:")?.1.trim().parse().ok());
        let mut rows = text.lines().skip_while(|line| !line.starts_with("CPU  POID"));
        let row: Vec<String> = rows.nth(1).map_or_else(Vec::new, |row| {
            row.split("  ").filter(|cell| !cell.is_empty()).map(|cell| cell.replace(' ', "")).collect()
        });
        let cell = |from_end: usize| row.iter().rev().nth(from_end)?.parse().ok();
        let app = text.lines().find(|line| line.starts_with("sample  ")).and_then(|line| {
            let late = line.split("  ").filter(|cell| !cell.is_empty()).nth(3)?;
            late.trim().strip_suffix(" µs")?.parse().ok()
        });
        let known = (cell(1), cell(0), cyclictest, app);
        let (Some(bound), Some(traced), Some(cyclictest), Some(app)) = known else {
            return Err(format!("a latency is missing: {known:?}").into());
        };
        Ok(Self { bound, traced, cyclictest, app })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects};
    use super::*;

    #[test]
    fn rejects_latency_above_bound() {
        rejects(
            latency(Path::new("/x"), Path::new("/y")).judge,
            "T: 0 (   62) P:90 I:1000 C:   1000 Min:     32 Act:   36 Avg:   35 Max:      54\n\
             sample      2  1001  70.4 µs  69.6 µs  56.1 µs   315 µs   311 µs   301 µs   171 µs         0       0\n\
             CPU  POID    ST  PAIE   PSD   IRQ  L bound  L seen\n  0  25.3  14.3  11.4  26.9  35.4     99.0    41.2\n\
             Times in µs.\n",
            &[
                ("54\n", "100\n"),
                ("70.4 µs", " 101 µs"),
                ("   99.0", "   41.0"),
                ("   99.0", "   none"),
                ("54\n", "0\n"),
                ("T: 0", ""),
            ],
        );
    }

    #[test]
    fn reads_bound_with_separated_thousands() {
        let text = "T: 0 Max: 1054\nsample  2  1001  70.4 µs\nCPU  POID  L bound  L seen\n  0  25.3  1 099    41.2\n";
        let Latencies { bound, cyclictest, .. } = Latencies::of(text).unwrap();
        assert_eq!((bound, cyclictest), (1099.0, 1054.0));
    }

    const PASSED: &str = "test result: ok. 6 passed; 0 failed; 0 ignored\n";

    #[test]
    fn counts_skipped_and_missing_as_failed() {
        all_passed(&outcome(PASSED, "")).unwrap();
        assert!(
            all_passed(&outcome(PASSED, "SKIPPED: nothing is recorded in this test: no tracefs\n")).is_err()
        );
        assert!(all_passed(&outcome("test result: ok. 0 passed; 0 failed\n", "")).is_err());
        assert!(all_passed(&outcome("", "")).is_err());
        let failed = Outcome { end: End::Exited(101), ..outcome(PASSED, "") };
        assert!(all_passed(&failed).is_err());
    }

    #[test]
    fn rejects_recording_without_event_group() {
        let judge = every_group(Path::new("/x")).judge;
        judge(&outcome(PASSED, "absent: schedule: build with the cargo feature `bpf`\n")).unwrap();
        assert!(judge(&outcome(PASSED, "absent: the kernel has no events of the group osnoise\n")).is_err());
    }

    #[test]
    fn rejects_single_wrong_time() {
        let judge = workloads(Path::new("/x")).judge;
        let line = |ns: u64, percent: f64, rounds: u32| {
            format!(
                "load: B: off by at most {ns} ns ({percent:.2} %), in the median 1 ns (0.00 %), of {rounds} rounds\n"
            )
        };
        let printed =
            |last: &str| outcome(PASSED, &(line(24_000, 1.2, 20).repeat(WORKLOAD_TIMES - 1) + last));
        judge(&printed(&line(19_000, 17.0, 20))).unwrap();
        judge(&printed(&line(90_000, 8.0, 20))).unwrap();
        for bad in [line(21_000, 8.1, 20), line(1, 0.0, 19), String::new()] {
            assert!(judge(&printed(&bad)).is_err(), "{bad}");
        }
        let repeated =
            format!("{}load: attempt 1: of 20 complete rounds 3 of 20 times agree\n", line(1, 0.0, 20));
        assert!(judge(&printed(&repeated)).is_err());
    }
}
