//! Examples of the workspace behave under PREEMPT_RT as everywhere, and the report of an app names
//! that kernel.

use std::path::Path;

use xtask_support::cargo::Purpose;
use xtask_support::golden::Port;
use xtask_support::golden::{Golden, Order};
use xtask_support::process::{End, Outcome};
use xtask_support::{Result, golden};

use super::{Built, Case, Setup, demand, find};
use crate::driver::stage::in_guest;

/// A selection of examples: one for each executor and for each kind of waiting.
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

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let example = |name: &str| find(built, Purpose::Example, golden::PACKAGE, name);
    let mut cases = Vec::new();
    for golden in golden::examples()? {
        if EXAMPLES.contains(&golden.name.as_str()) {
            let program = example(&golden.name)?;
            if golden.header.cpus <= 1 {
                cases.push(expected_lines(golden.clone(), program));
            }
            cases.push(expected_output(golden, program));
        }
    }
    cases.push(report(example("periodic")?));
    Ok(cases)
}

/// An example prints the expected output, and has the required real-time scheduling.
fn expected_output(golden: Golden, program: &Path) -> Case {
    let on: &'static [Setup] = match golden.header.cpus {
        0 | 1 => &[Setup::COUNTED],
        _ => &[Setup::COUNTED_TWO, Setup::COUNTED_FOUR],
    };
    let name = format!("example {}", golden.name);
    let script = run(program);
    let judge = move |outcome: &Outcome| match golden.judge(outcome, Port::Linux)? {
        Order::Exact => Ok(()),
        Order::Any => Err("it ran without real-time scheduling".into()),
    };
    Case::new(&name, on, script, Some(program), judge)
}

/// An example for one CPU prints the same lines on machines with more. Counted CPUs take turns of
/// milliseconds, during which several events of the example arrive together, and are handled in the
/// order of their instants.
fn expected_lines(golden: Golden, program: &Path) -> Case {
    let name = format!("example {}, in any order", golden.name);
    let judge = move |outcome: &Outcome| golden.judge_lines(outcome);
    let on = &[Setup::COUNTED_TWO, Setup::COUNTED_FOUR];
    Case::new(&name, on, run(program), Some(program), judge)
        .lacking("CPUs that take turns, and it is run in its order")
}

fn run(program: &Path) -> String {
    format!("{}={} exec {}", Port::VARIABLE, Port::Linux, in_guest(program))
}

/// The settings that an app reads back name the kernel, and are complete.
fn report(program: &Path) -> Case {
    let script = format!("PUNCTUAL_REPORT=1 exec {}", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        demand(outcome.stderr.contains(", PREEMPT_RT;"), "the report lacks PREEMPT_RT")?;
        demand(outcome.stderr.contains("SCHED_FIFO"), "the report lacks SCHED_FIFO")?;
        demand(!outcome.stderr.contains("missing:"), "settings are missing")
    };
    let on = &[Setup::COUNTED, Setup::TWO, Setup::FOUR];
    Case::new("the report names the kernel", on, script, Some(program), judge)
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn lists_only_existing_examples() {
        let found = golden::examples().unwrap();
        for name in EXAMPLES {
            assert!(found.iter().any(|golden| golden.name == name), "{name}");
        }
    }

    #[test]
    fn rejects_report_of_another_kernel() {
        let judge = report(Path::new("/x")).judge;
        let good = "Linux 6.12, PREEMPT_RT; memory: locked\nlevel 1   SCHED_FIFO\n";
        judge(&outcome("", good)).unwrap();
        for (text, other) in [(", PREEMPT_RT", ", not PREEMPT_RT"), ("SCHED_FIFO", "SCHED_OTHER")] {
            assert!(judge(&outcome("", &good.replace(text, other))).is_err(), "{other}");
        }
    }
}
