//! A constructed run, for tests of reports and comparisons.

use crate::machine::Machine;
use crate::model::{
    Cause, Check, FORMAT, Published, Quantity, Row, Run, RunSettings, Suite, VERSION, Verdict,
};
use crate::stats::{Distribution, Statistics};

/// Returns a distribution around this many nanoseconds.
pub(crate) fn around(ns: u64) -> Distribution {
    let mut statistics = Statistics::new();
    for offset in 0..=100 {
        statistics.record_ps(ns * 1000 + offset * ns);
    }
    statistics.distribution().expect("there are samples")
}

/// Returns a row with all fields set.
pub(crate) fn row(id: &str, subject: &str, ns: u64) -> Row {
    Row {
        id: id.into(),
        operation: "Switch".into(),
        subject: subject.into(),
        condition: Some("idle".into()),
        operations_per_sample: 1,
        figures: Some(around(ns)),
        quantities: vec![Quantity { name: "lost".into(), value: 1.5, unit: "%".into() }],
        causes: vec![Cause { name: "timer tick".into(), count: 7, total_ns: 9e4, max_ns: 2e4 }],
        published: vec![Published {
            source: "Somebody 2020, table 1".into(),
            system: "Another".into(),
            mean_ns: 5e3,
            sigma_ns: None,
            min_ns: None,
            max_ns: Some(9e5),
        }],
        ..Row::default()
    }
}

/// Returns a run of one suite with these rows, and one check.
pub(crate) fn run(rows: Vec<Row>) -> Run {
    let check = Check {
        id: "behavior/yield/punctual".into(),
        rule: "a yield lets the equal one run".into(),
        subject: "Punctual".into(),
        verdict: Verdict::Passed,
        expected: "a, b".into(),
        observed: "a, b".into(),
        why: Vec::new(),
    };
    Run {
        format: FORMAT.into(),
        version: VERSION,
        started: "2026-01-01T00:00:00Z".into(),
        took_s: 1.5,
        interrupted: false,
        settings: RunSettings {
            samples: 101,
            quick: false,
            cpu: 1,
            other_cpu: None,
            hourglass_s: 10.0,
            load: "own".into(),
        },
        machine: Machine {
            kernel: "6.18".into(),
            preempt_rt: true,
            architecture: "x86_64".into(),
            cpu_model: "a CPU".into(),
            cpu_family: "25-1-1".into(),
            cpu_mhz: Some(2000.0),
            locked_ns: Some(2.5),
            cpus: 2,
            hypervisor: "none".into(),
            clock_source: "tsc".into(),
            clock: "TSC".into(),
            clock_step_ns: 1.0,
            isolated_cpus: String::new(),
            tickless_cpus: String::new(),
            governor: String::new(),
            rt_throttling: "off".into(),
            fifo_refused: None,
            notes: vec!["a remark".into()],
        },
        overhead: around(20),
        suites: vec![Suite {
            name: "rtos".into(),
            title: "operations".into(),
            took_s: 1.0,
            rows,
            checks: vec![check],
            notes: vec!["a note".into()],
            ..Suite::default()
        }],
    }
}
