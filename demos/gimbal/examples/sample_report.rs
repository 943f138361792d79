//! Writes a report of a made-up run, to show the report's layout without a run in real time.
//!
//! ```text
//! cargo run -p gimbal --example sample_report -- sample.html [sample.json]
//! ```
//!
//! The motion is real: the gimbal is simulated twice, once in ideal time and once with slightly
//! heavier loads, so that the two differ. The timing of the tasks is made up.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use gimbal::client::LinkCounters;
use gimbal::plant::{AxisParameters, GIMBAL};
use gimbal::program::print_line;
use gimbal::reference;
use gimbal::report::{
    Clock, Condition, Distribution, FORMAT_VERSION, Meta, Outcome, RunSummary, SettingRow, StepResponse,
    TaskRow, to_html, to_json,
};
use gimbal::setpoints::{BUILT_IN_SECONDS, Timeline};
use std::process::ExitCode;

const LENGTH_NS: u64 = 10_000_000_000;

fn main() -> ExitCode {
    let mut paths = std::env::args_os().skip(1);
    let Some(html) = paths.next() else {
        print_line(format_args!("usage: sample_report FILE.html [FILE.json]"));
        return ExitCode::from(2);
    };
    let summary = sample();
    let mut written = std::fs::write(html, to_html(&summary));
    if let Some(json) = paths.next() {
        written = written.and_then(|()| std::fs::write(json, to_json(&summary)?));
    }
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(format_args!("sample_report: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn sample() -> RunSummary {
    let timeline = Timeline::built_in(BUILT_IN_SECONDS);
    let ideal = reference::run(GIMBAL, |t_ns| timeline.at(t_ns), LENGTH_NS);
    let heavier =
        GIMBAL.map(|axis| AxisParameters { load_inertia_kg_m2: axis.load_inertia_kg_m2 * 1.001, ..axis });
    let run = reference::run(heavier, |t_ns| timeline.at(t_ns), LENGTH_NS);

    let condition = |name: &str, value: &str| Condition { name: name.to_owned(), value: value.to_owned() };
    RunSummary {
        version: FORMAT_VERSION,
        meta: Meta {
            title: "Gimbal: sample report with invented timing".to_owned(),
            started: "2026-01-01 12:00:00 UTC".to_owned(),
            clock: Clock::Real,
            length_ns: LENGTH_NS,
            conditions: vec![
                condition("Setpoints", "built-in step sequence"),
                condition("Machine", "invented, 4 processors"),
                condition("Kernel", "Linux 6.12.0-rt PREEMPT_RT"),
                condition("Load", "none"),
            ],
        },
        tasks: tasks(),
        settings: settings(),
        link: LinkCounters { exchanges: 100_000, ..LinkCounters::default() },
        step: StepResponse::from_records(&run, Some(&ideal)),
    }
}

fn tasks() -> Vec<TaskRow> {
    let task = |name: &str, level, jobs, typical_ns: u64| {
        let jitter_ns = durations(jobs, 2_400, u64::from(level) + typical_ns);
        let execution_ns = durations(jobs, typical_ns, 20 + u64::from(level));
        let response_ns = jitter_ns.iter().zip(&execution_ns).map(|(j, c)| j + c).collect();
        TaskRow {
            name: name.to_owned(),
            level,
            jobs,
            overruns: u64::from(level == 1),
            misses: 0,
            suspensions: 0,
            jitter: distribution(jitter_ns),
            response: distribution(response_ns),
            execution: distribution(execution_ns),
        }
    };
    vec![
        task("sample", 4, 100_000, 5_100),
        task("control_current", 3, 100_000, 1_300),
        task("control_position", 3, 10_000, 1_900),
        task("setpoint", 2, 1_000, 900),
        task("publish", 1, 100, 42_000),
    ]
}

/// Returns durations around `typical_ns` with a tail to the right.
fn durations(jobs: u64, typical_ns: u64, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut uniform = || {
        // xorshift64 is sufficient for values that resemble measurements.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let duration = |_| {
        let tail = if uniform() < 0.002 { uniform().recip().min(8.0) } else { 1.0 };
        (typical_ns as f64 * (0.7 + 0.3 * (uniform() + uniform()) + 0.1 / (uniform() + 0.05)) * tail) as u64
    };
    (0..jobs).map(duration).collect()
}

/// Returns the distribution of `durations_ns`, in buckets an eighth of an octave wide.
fn distribution(mut durations_ns: Vec<u64>) -> Distribution {
    durations_ns.sort_unstable();
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    for &duration_ns in &durations_ns {
        let eighths = ((duration_ns.max(1) as f64).log2() * 8.0).ceil();
        let upper_ns = (eighths / 8.0).exp2().ceil() as u64;
        match buckets.last_mut() {
            Some(last) if last.0 == upper_ns => last.1 += 1,
            _ => buckets.push((upper_ns, 1)),
        }
    }
    let jobs = durations_ns.len();
    let quantile = |part: f64| durations_ns[((jobs - 1) as f64 * part) as usize];
    Distribution {
        max_ns: quantile(1.0),
        p999_ns: quantile(0.999),
        p50_ns: quantile(0.5),
        mean_ns: durations_ns.iter().sum::<u64>() / jobs as u64,
        buckets,
    }
}

fn settings() -> Vec<SettingRow> {
    let setting = |name: &str, wanted: &str, effective: &str, outcome, note: &str| SettingRow {
        name: name.to_owned(),
        wanted: wanted.to_owned(),
        effective: effective.to_owned(),
        outcome,
        note: note.to_owned(),
    };
    vec![
        setting("Scheduling policy", "SCHED_FIFO", "SCHED_FIFO", Outcome::Applied, ""),
        setting("Memory locking", "current and future", "current and future", Outcome::Applied, ""),
        setting("Processor affinity", "3", "3", Outcome::Applied, ""),
        setting(
            "Processor isolation",
            "3",
            "none",
            Outcome::Partial,
            "the kernel was booted without isolcpus",
        ),
        setting(
            "Deepest idle state",
            "C1",
            "C6",
            Outcome::Refused,
            "/dev/cpu_dma_latency: permission denied",
        ),
        setting("Timer slack", "", "50 µs", Outcome::NotRequested, "not used by real-time threads"),
    ]
}
