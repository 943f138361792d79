//! What the suite of the lab runs, and what each case is held to.

use std::path::{Path, PathBuf};

use super::stage::in_guest;
use crate::cargo::{Artifact, Purpose};
use crate::golden::{Golden, Order};
use crate::header::Port;
use crate::process::{End, Outcome};
use crate::{Result, examples};

/// The examples that stand for the others: one of each executor and of each way to wait.
const EXAMPLES: [&str; 9] = [
    "prio_inversion",
    "priority_order",
    "periodic",
    "hardware",
    "async_task",
    "async_timeout",
    "global",
    "partitions",
    "polling",
];

/// A machine of the suite.
///
/// Where time is counted in instructions, a host that is busy delays nothing: what comes within a millisecond does so
/// every time, and a second run has to do the same to the byte. Where it is the host's time, CPUs run at once, and anything
/// may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// One CPU, counted.
    Counted,
    /// Two CPUs by turns, counted.
    CountedTwo,
    /// One CPU in the host's time.
    One,
    /// Two CPUs in the host's time.
    Two,
}

impl On {
    pub(crate) const ALL: [Self; 4] = [Self::Counted, Self::CountedTwo, Self::One, Self::Two];

    /// Whether its time is counted in instructions.
    pub(crate) fn counted(self) -> bool {
        matches!(self, Self::Counted | Self::CountedTwo)
    }

    pub(crate) fn cpus(self) -> u32 {
        match self {
            Self::Counted | Self::One => 1,
            Self::CountedTwo | Self::Two => 2,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counted => "1 CPU, counted",
            Self::CountedTwo => "2 CPUs, counted",
            Self::One => "1 CPU",
            Self::Two => "2 CPUs",
        }
    }
}

/// Finds out whether what a case did is right; `Err` says what is wrong.
type Judge = Box<dyn Fn(&Outcome) -> Result>;

/// A shell script to run in the guest, and what is expected of it.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The machines that it runs on.
    pub(crate) on: &'static [On],
    pub(crate) script: String,
    pub(crate) program: Option<PathBuf>,
    pub(crate) judge: Judge,
}

impl Case {
    fn new(name: &str, on: &'static [On], script: String, program: Option<&Path>, judge: Judge) -> Self {
        Self { name: name.to_owned(), on, script, program: program.map(Path::to_owned), judge }
    }
}

/// All cases, of the executables in `built`.
pub(crate) fn all(built: &[Artifact]) -> Result<Vec<Case>> {
    let example = |name: &str| find(built, Purpose::Example, examples::PACKAGE, name);
    let mut cases = vec![kernel()];
    for golden in examples::discover()? {
        if EXAMPLES.contains(&golden.name.as_str()) {
            let program = example(&golden.name)?;
            cases.push(expected_output(golden, program));
        }
    }
    cases.push(report(example("periodic")?));
    cases.push(inversion(find(built, Purpose::Test, "punctual-sync", "pcp_fifo")?));
    let stress = find(built, Purpose::Test, examples::PACKAGE, "stress")?;
    cases.push(stressed(&[On::One], "sole:: global::", 4, stress));
    cases.push(stressed(&[On::Two], "", 8, stress));
    cases.push(killed(stress));
    Ok(cases)
}

fn find<'a>(built: &'a [Artifact], purpose: Purpose, package: &str, target: &str) -> Result<&'a Path> {
    let wanted = |artifact: &&Artifact| {
        artifact.purpose == purpose && artifact.package == package && artifact.target == target
    };
    let found = built.iter().find(wanted).ok_or_else(|| format!("cargo built no {target} of {package}"))?;
    Ok(&found.path)
}

/// The lab itself: without this, no other case means what it says.
fn kernel() -> Case {
    let script = "grep -o PREEMPT_RT /proc/version; cat /sys/kernel/realtime".to_owned();
    let judge = |outcome: &Outcome| {
        // A plain mainline kernel has no such file.
        demand(
            outcome,
            outcome.stdout == "PREEMPT_RT\n1\n" || outcome.stdout == "PREEMPT_RT\n",
            "another kernel runs",
        )
    };
    Case::new("the kernel is PREEMPT_RT", &On::ALL, script, None, Box::new(judge))
}

/// An example prints what it does everywhere, and has the real-time scheduling that this takes.
fn expected_output(golden: Golden, program: &Path) -> Case {
    let on: &'static [On] =
        if golden.header.cpus > 1 { &[On::CountedTwo] } else { &[On::Counted, On::CountedTwo] };
    let name = format!("example {}", golden.name);
    let script = format!("{}={} exec {}", Port::VARIABLE, Port::Linux, in_guest(program));
    let judge = move |outcome: &Outcome| match golden.judge(outcome, Port::Linux)? {
        Order::Exact => Ok(()),
        Order::Any => Err("it ran without real-time scheduling".into()),
    };
    Case::new(&name, on, script, Some(program), Box::new(judge))
}

/// What an app reads back of its settings names the kernel, and lacks nothing.
fn report(program: &Path) -> Case {
    let script = format!("PUNCTUAL_REPORT=1 exec {}", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "it failed")?;
        demand(outcome, outcome.stderr.contains(", PREEMPT_RT;"), "the report does not say PREEMPT_RT")?;
        demand(outcome, outcome.stderr.contains("SCHED_FIFO"), "the report does not say SCHED_FIFO")?;
        demand(outcome, !outcome.stderr.contains("missing:"), "settings are missing")
    };
    Case::new("the report names the kernel", &[On::Counted, On::Two], script, Some(program), Box::new(judge))
}

/// Who waits for a lower priority waits no longer than it holds the lock, whatever is in between.
fn inversion(program: &Path) -> Case {
    let script = format!("exec {} --test-threads 1 --nocapture", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "a test failed")?;
        demand(outcome, !outcome.stderr.contains("SKIPPED"), "a test was skipped")?;
        demand(
            outcome,
            outcome.stdout.contains("priority_inversion_is_bounded ... ok"),
            "the test did not run",
        )
    };
    Case::new(
        "priority inversion is bounded",
        &[On::Counted, On::Two],
        script,
        Some(program),
        Box::new(judge),
    )
}

/// The stress test of those kinds of executor that the words select, which are so many tests.
fn stressed(on: &'static [On], kinds: &str, count: u32, program: &Path) -> Case {
    let script =
        format!("PUNCTUAL_STRESS_SECONDS=4 exec {} --test-threads 1 --nocapture {kinds}", in_guest(program));
    let judge = move |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "the stress test failed")?;
        demand(outcome, !outcome.stdout.contains("SKIPPED"), "a kind was skipped")?;
        demand(outcome, outcome.stdout.contains(&format!("{count} passed")), "kinds are missing")
    };
    Case::new("stress", on, script, Some(program), Box::new(judge))
}

/// An app under load is killed, and neither threads, nor memory, nor any setting of the system remain of it.
fn killed(program: &Path) -> Case {
    let run = format!(
        "PUNCTUAL_STRESS_KIND=sole PUNCTUAL_STRESS_SECONDS=40 {} --ignored --exact program",
        in_guest(program)
    );
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Dropping caches also empties the lists by which each CPU puts off counting locked pages.
    let script = format!(
        "state() {{
            echo 3 >/proc/sys/vm/drop_caches
            grep Mlocked /proc/meminfo
            ls -R /dev/shm
            grep -H '' /proc/sys/kernel/sched_* /proc/irq/*/smp_affinity /proc/irq/default_smp_affinity
            grep -h -F '{short}' /proc/[0-9]*/comm 2>/dev/null
        }}
        state >before
        ({run}) >/tmp/load 2>&1 &
        sleep 3
        pid=$(pidof {name}) || {{ cat /tmp/load; echo 'it did not run'; exit 1; }}
        echo threads $(ls /proc/$pid/task | wc -l)
        kill -9 $pid
        sleep 1
        state >after
        diff before after && echo clean",
        short = &name[..name.len().min(15)],
    );
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.stdout.ends_with("clean\n"), "something remains")?;
        let threads = outcome.stdout.lines().find_map(|line| line.strip_prefix("threads ")?.parse().ok());
        demand(
            outcome,
            threads.is_some_and(|threads: u32| threads > 3),
            "it was killed before it had threads",
        )
    };
    Case::new("kill -9 leaves nothing behind", &[On::Two], script, Some(program), Box::new(judge))
}

/// `Err` with what was printed, unless `holds`.
fn demand(outcome: &Outcome, holds: bool, otherwise: &str) -> Result {
    if holds {
        return Ok(());
    }
    Err(format!("{otherwise} ({})\n{}{}", outcome.end, outcome.stdout, outcome.stderr).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, stderr: &str) -> Outcome {
        Outcome { stdout: stdout.to_owned(), stderr: stderr.to_owned(), end: End::Exited(0) }
    }

    #[test]
    fn every_example_of_the_list_exists() {
        let found = examples::discover().unwrap();
        for name in EXAMPLES {
            assert!(found.iter().any(|golden| golden.name == name), "{name}");
        }
    }

    #[test]
    fn a_report_of_another_kernel_is_refused() {
        let judge = report(Path::new("/x")).judge;
        judge(&outcome("", "Linux 6.12, PREEMPT_RT; memory: locked\nlevel 1   SCHED_FIFO\n")).unwrap();
        assert!(judge(&outcome("", "Linux 6.12, not PREEMPT_RT; memory: locked\nSCHED_FIFO\n")).is_err());
        assert!(judge(&outcome("", "Linux 6.12, PREEMPT_RT; memory: locked\nSCHED_OTHER\n")).is_err());
    }

    #[test]
    fn what_was_skipped_is_no_success() {
        let passed = "test priority_inversion_is_bounded ... ok\n";
        let judge = inversion(Path::new("/x")).judge;
        judge(&outcome(passed, "")).unwrap();
        assert!(judge(&outcome(passed, "SKIPPED priority_inversion_is_bounded: no\n")).is_err());
        assert!(judge(&outcome("", "")).is_err());
    }

    #[test]
    fn remains_of_a_killed_app_are_refused() {
        let judge = killed(Path::new("/x")).judge;
        judge(&outcome("threads 12\nclean\n", "")).unwrap();
        assert!(judge(&outcome("threads 1\nclean\n", "")).is_err());
        assert!(judge(&outcome("threads 12\n+Mlocked: 9 kB\n", "")).is_err());
    }
}
