//! Compares the bounds with all their terms with the bare bounds of `response-time-analysis`, by
//! the time of a task.
//!
//!     cargo bench -p punctual-analysis --bench peer [-- --json=FILE | SUBJECT PASSES]
//!
//! Both bound the same 32 random sets of 20 tasks with three resources. The windows of both take
//! turns, and the ratio is that of their medians; `cargo xtask bless benchmarks` collects 20 runs.
//! With a subject, `punctual` or `peer`, the program only repeats its passes over all sets, so that
//! `valgrind --tool=callgrind` counts their instructions: the difference of two counts.

#[path = "../tests/support/mod.rs"]
mod support;

use std::env;
use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use punctual_analysis::analyze;
use punctual_analysis::system::System;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::floating_nonpreemptive;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use support::{Random, random_system};

const SETS: u64 = 32;
const TASKS: usize = 20;
/// Number of windows of each subject.
const WINDOWS: usize = 101;
/// Number of passes over all sets in a window.
const PASSES: u64 = 4;

/// A task set, with the blocking of each task for the other crate.
struct Set {
    system: System,
    blocking: Vec<u64>,
}

impl Set {
    fn new(seed: u64) -> Self {
        let system = random_system(&mut Random::new(seed), TASKS, 0.8);
        let bounds = analyze(&system).tasks.into_iter().map(|bound| bound.expect("80 % is no overload"));
        let blocking = bounds.map(|bound| bound.blocking.map_or(0, |it| it.time)).collect();
        Self { system, blocking }
    }

    /// Computes our bounds, and keeps their terms alive.
    fn ours(&self) -> u64 {
        let analysis = black_box(analyze(black_box(&self.system)));
        analysis.tasks.iter().flatten().map(|bound| bound.response).sum()
    }

    /// Computes the bounds of the other crate.
    fn theirs(&self) -> u64 {
        let rbf = |at: usize| {
            let task = &self.system.tasks[at];
            let period = Duration::from(task.arrivals.as_ref().expect("it is periodic").window());
            RBF::new(Sporadic::new_zero_jitter(period), Scalar::new(Service::from(task.execution)))
        };
        let all: Vec<_> = (0..TASKS).map(rbf).collect();
        let bound = |at: usize| {
            // A section that starts just before the job has one time unit less to go.
            let blocking_bound = Service::from(self.blocking[at].saturating_sub(1));
            let tua = floating_nonpreemptive::TaskUnderAnalysis { rbf: &all[at], blocking_bound };
            let limit = Duration::from(1_u64 << 50);
            floating_nonpreemptive::dedicated_uniproc_rta(&tua, &all[at + 1..], limit).map_or(0, u64::from)
        };
        (0..TASKS).map(bound).sum()
    }
}

struct Subject {
    slug: &'static str,
    name: &'static str,
    bound: fn(&Set) -> u64,
}

const SUBJECTS: [Subject; 2] = [
    Subject { slug: "punctual", name: "Punctual, with all terms", bound: Set::ours },
    Subject { slug: "peer", name: "response-time-analysis 0.3.2", bound: Set::theirs },
];

impl Subject {
    fn pass(&self, sets: &[Set]) {
        black_box(sets.iter().map(self.bound).fold(0, u64::wrapping_add));
    }

    /// Returns the time per task of a window, in ns.
    fn window(&self, sets: &[Set]) -> f64 {
        let start = Instant::now();
        (0..PASSES).for_each(|_| self.pass(sets));
        start.elapsed().as_secs_f64() * 1e9 / (PASSES * SETS * TASKS as u64) as f64
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    // `cargo test --all-targets` runs benchmarks too, only to check that they work; then there is
    // no `--bench`.
    let windows = if words.iter().any(|word| word == "--bench") { WINDOWS } else { 1 };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|&word| word != "--bench").collect();
    let sets: Vec<Set> = (1..=SETS).map(Set::new).collect();
    for set in &sets {
        // The other crate computes in discrete time, in which a bound with blocking is attained.
        let blocked = set.blocking.iter().filter(|&&time| time > 0).count() as u64;
        assert_eq!(set.ours(), set.theirs() + blocked, "both bound the same sets");
    }
    match words[..] {
        [] => println!("{}", measure(&sets, windows)),
        [json] => {
            let Some(file) = json.strip_prefix("--json=") else { return usage() };
            fs::write(file, measure(&sets, windows)).expect("the file is written");
        }
        [slug, passes] => {
            let subject = SUBJECTS.iter().find(|subject| subject.slug == slug);
            let (Some(subject), Ok(passes)) = (subject, passes.parse::<u64>()) else { return usage() };
            (0..passes).for_each(|_| subject.pass(&sets));
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: peer [--json=FILE | punctual PASSES | peer PASSES]");
    ExitCode::from(2)
}

/// Measures all subjects, and returns a suite in the format of `punctual bench --json`.
fn measure(sets: &[Set], windows: usize) -> String {
    let mut times = SUBJECTS.map(|_| Vec::with_capacity(windows));
    for number in 0..=windows {
        for (subject, times) in SUBJECTS.iter().zip(&mut times) {
            let time = subject.window(sets);
            // The first window warms up.
            if number > 0 {
                times.push(time);
            }
        }
    }
    let rows = SUBJECTS.iter().zip(&mut times).map(|(subject, times)| {
        times.sort_by(f64::total_cmp);
        serde_json::json!({
            "operation": "Bound of a task, 20 tasks",
            "subject": subject.name,
            "operations_per_sample": PASSES * SETS * TASKS as u64,
            "figures": { "max_ns": times[windows - 1], "p50_ns": times[windows / 2] },
        })
    });
    let rows: Vec<_> = rows.collect();
    serde_json::json!({ "name": "analysis", "rows": rows }).to_string()
}
