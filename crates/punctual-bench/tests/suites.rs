//! Runs suites with few samples, and validates their checks and the JSON against the schema.
//!
//! Sequentially: only one app runs at a time in a process, and all measure the same CPU.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use punctual_bench::compare::{Comparison, load};
use punctual_bench::model::{Run, Verdict};
use punctual_bench::{Options, Silent, Stop, SuiteName, html, suites};
use xtask_support::schema::Schema;

fn run(suite: SuiteName, stop: &Stop) -> Run {
    let _turn = test_skip::alone();
    let options = Options {
        suites: vec![suite],
        quick: true,
        samples: Some(8),
        hourglass: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    punctual_bench::run(&options, stop, &Silent).expect("the options make sense")
}

#[test]
fn selects_steps_by_their_names() {
    let _turn = test_skip::alone();
    let options = |only: &str| Options {
        suites: vec![suites::latency::NAME],
        only: vec![only.to_owned()],
        quick: true,
        samples: Some(8),
        ..Options::default()
    };
    let run = punctual_bench::run(&options("Eventfd to handler, idle"), &Stop::default(), &Silent).unwrap();
    assert!(run.rows().count() > 0);
    assert!(run.rows().all(|row| row.id.starts_with("latency/eventfd/")));
    let none = punctual_bench::run(&options("teapot"), &Stop::default(), &Silent).unwrap_err();
    let lines = none.to_string();
    let (first, steps) = lines.split_once('\n').unwrap();
    let expected =
        "no step of the selected suites contains `teapot` in its name; give a part of one of these:";
    assert_eq!(first, expected);
    assert!(steps.starts_with("  latency: ") && steps.contains("; eventfd to handler, idle; "), "{steps}");
}

/// Panics with every deviation of the JSON from the schema.
fn assert_as_documented(run: &Run) {
    let schema = Schema::new(include_str!("../../../docs/bench-schema.json"));
    schema.assert(&serde_json::to_value(run).unwrap());
}

#[test]
fn obeys_promised_rules() {
    let run = run(suites::behavior::NAME, &Stop::default());
    assert_as_documented(&run);
    for check in run.checks() {
        let context = format!("{}: {}", check.id, check.observed);
        match check.verdict {
            Verdict::Failed => panic!("{context}; expected: {}", check.expected),
            Verdict::NotMeaningful => assert!(run.machine.fifo_refused.is_some(), "{context}"),
            Verdict::Passed | Verdict::Observed => {}
        }
    }
    let of_punctual = |check: &&punctual_bench::model::Check| check.id.ends_with("/punctual");
    assert_eq!(run.checks().filter(of_punctual).count(), 7, "{:?}", run.suites[0].notes);
    // Also without privileges: mutual exclusion and freedom from deadlock do not depend on the
    // kernel.
    let deadlock = run.checks().find(|check| check.id == "behavior/deadlock/punctual").unwrap();
    assert_eq!(deadlock.verdict, Verdict::Passed, "{deadlock:?}");
}

#[test]
fn measures_operations_and_notes_missing_privileges() {
    let run = run(suites::rtos::NAME, &Stop::default());
    assert_as_documented(&run);
    let switch = run.rows().find(|row| row.id == "rtos/switch/punctual").expect("tasks were measured");
    assert!(switch.figures.as_ref().is_some_and(|figures| figures.samples == 8), "{switch:?}");
    assert_eq!(switch.why.is_empty(), run.machine.fifo_refused.is_none(), "{switch:?}");
    let comparison = Comparison::new(&run, &run);
    assert_eq!((comparison.regressions(), comparison.notes.len()), (0, 0));
    // In memory: without privileges there may be no writable directory.
    let memory = rustix::fs::memfd_create("run", rustix::fs::MemfdFlags::CLOEXEC)
        .expect("memory can be had as a file");
    let file = std::path::PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd()));
    std::fs::write(&file, run.to_json().unwrap()).unwrap();
    assert_eq!(load(&file).unwrap(), run);
}

#[test]
fn hourglass_accounts_for_all_time() {
    let run = run(suites::hourglass::NAME, &Stop::default());
    assert_as_documented(&run);
    for row in run.rows() {
        let figures = row.figures.as_ref().expect("a loop has passes");
        let together = figures.mean_ns * figures.samples as f64;
        // The passes fill the requested time, up to the last of them.
        assert!((together / 50e6 - 1.0).abs() < 0.01 || together - 50e6 < figures.max_ns * 1.01, "{row:?}");
    }
    assert!(html::page(&run, None).contains("data-row=\"hourglass/loop/fifo"));
}

#[test]
fn measures_executors_in_locked_instructions() {
    let run = run(suites::executors::NAME, &Stop::default());
    assert_as_documented(&run);
    let group = |slug: &str| {
        let prefix = format!("executors/{slug}/");
        run.rows().filter(|row| row.id.starts_with(&prefix)).collect::<Vec<_>>()
    };
    for slug in
        ["same-level", "higher-level", "wake", "lock", "timers-armed", "timers-due", "arm-cancel", "queue"]
    {
        let rows = group(slug);
        let locked = rows.iter().find(|row| row.id.ends_with("/locked")).expect("L is measured beside");
        assert!(locked.figures.as_ref().is_some_and(|figures| figures.min_ns > 0.0), "{locked:?}");
        for row in rows.iter().filter(|row| !row.id.ends_with("/locked")) {
            let in_locked = row.quantities.iter().find(|quantity| quantity.unit == "L");
            assert!(in_locked.is_some_and(|quantity| quantity.value > 0.0), "{row:?}");
        }
    }
    // Apps with default settings come first.
    assert_eq!(group("same-level")[0].id, "executors/same-level/monitored");
}

#[test]
fn labels_each_point_of_a_curve() {
    let run = run(suites::curves::NAME, &Stop::default());
    assert_as_documented(&run);
    assert!(run.rows().count() >= 12, "two of each of three curves, for two subjects");
    for row in run.rows() {
        assert!(row.quantities.iter().any(|quantity| quantity.name == "at"), "{row:?}");
    }
    let page = html::page(&run, None);
    assert_eq!(page.matches("data-curve=").count(), 3 * 2);
}

#[test]
fn endures_in_constant_memory() {
    let run = run(suites::endurance::NAME, &Stop::default());
    assert_as_documented(&run);
    assert_eq!(run.rows().count(), 2);
    for row in run.rows() {
        let samples = row.figures.as_ref().map_or(0, |figures| figures.samples);
        assert!(samples >= 8 && samples % 8 == 0, "whole turns of eight: {row:?}");
        assert!(row.quantities.iter().any(|quantity| quantity.unit == "KiB"), "{row:?}");
    }
}

#[test]
fn keeps_partial_results_when_stopped() {
    let stop = Stop::default();
    stop.request();
    let run = run(suites::latency::NAME, &stop);
    assert!(run.interrupted && run.suites.is_empty());
    assert_as_documented(&run);
}

/// `cargo xtask bare bench --board virt-a7` writes the file.
#[test]
fn compares_bare_kernel_with_linux() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel-virt-a7.json");
    let kernel = load(&path).unwrap();
    assert_as_documented(&kernel);
    assert_eq!(kernel.failures(), 0);
    for suite in [suites::rtos::NAME, suites::behavior::NAME] {
        let linux = run(suite, &Stop::default());
        let comparison = Comparison::new(&kernel, &linux);
        let beside = comparison.beside.iter().find(|beside| beside.name == suite.as_str()).unwrap();
        let of_kernel = kernel.suites.iter().find(|of_kernel| of_kernel.name == suite.as_str()).unwrap();
        for row in &of_kernel.rows {
            assert!(beside.rows.contains(row), "{} has no counterpart", row.id);
        }
        for check in &of_kernel.checks {
            assert!(beside.checks.contains(check), "{} has no counterpart", check.id);
        }
        let page = html::page(&linux, Some(&comparison));
        assert!(page.contains("punctual-kernel"));
        if suite == suites::rtos::NAME {
            assert!(page.contains("Jobbed"), "the published figures stand there, too");
        }
    }
}
