//! The effect of peers on a controller that publishes eight topics of 64 bytes at 10 kHz: peers
//! that read, block, are killed, or flood.
//!
//! `cargo bench --bench peers` in `extras/punctual-zenoh`, two minutes: windows of 5 s with a peer,
//! each of them after one of the same task without a bridge, which publishes nothing. The peer is
//! another process of this program, connected to `punctual-zenoh` on loopback. Then it reports J, R
//! and C for each kind, whether every message is accounted for, the memory usage, and the kernel's
//! data about the threads.

mod app;
mod peer;
#[path = "../../../../crates/punctual-bridge/tests/support/threads.rs"]
mod threads;
#[path = "../../../support/transport.rs"]
mod transport;

use std::env;
use std::process::ExitCode;
use std::sync::mpsc::channel;

use punctual::report::{Summary, TaskReport};
use punctual::{Config, Duration, Report};
use punctual_bridge::Message;

use self::app::Ended;

/// The number of topics.
const TOPICS: usize = 8;
/// The length of a window.
const WINDOW_S: u64 = 5;
/// The number of publishing jobs in a window; the rest is for messages in flight.
const PUBLISHING: u64 = 45_000;
/// The number of windows per kind of peer.
const ROUNDS: usize = 3;

/// 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Message)]
#[message(name = "bench_msgs/msg/State")]
pub(crate) struct State {
    values: [f64; 8],
}

/// The behavior of the peer in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No peer, and no bridge.
    Without,
    Reads,
    /// Stopped for two seconds of the five.
    Stalls,
    /// Killed after two seconds, and replaced a second later.
    Killed,
    /// Publishes setpoints at the maximum rate, three out of four of which are invalid.
    Floods,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Without, Self::Reads, Self::Stalls, Self::Killed, Self::Floods];

    const fn name(self) -> &'static str {
        match self {
            Self::Without => "without a bridge",
            Self::Reads => "the peer reads",
            Self::Stalls => "it stands still",
            Self::Killed => "it is killed",
            Self::Floods => "it floods",
        }
    }
}

/// A window, and its result.
struct Window {
    kind: Kind,
    report: Report,
    ended: Option<Ended>,
    memory_kib: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().collect();
    if let [_, role, endpoint, floods] = &*words
        && role == "peer"
    {
        peer::run(endpoint, floods == "floods");
        return ExitCode::SUCCESS;
    }
    let mut windows = Vec::new();
    for round in 0..ROUNDS {
        for kind in &Kind::ALL[1..] {
            windows.push(window(Kind::Without));
            windows.push(window(*kind));
        }
        eprintln!(
            "round {} of {ROUNDS}, {} KiB",
            round + 1,
            windows.last().map_or(0, |last| last.memory_kib)
        );
    }
    times(&windows);
    let mut went_well = true;
    for Window { kind, report, ended, memory_kib } in &windows {
        if let Some(ended) = ended {
            went_well &= ended.tell(kind.name(), report, *memory_kib);
        }
    }
    if went_well {
        println!(
            "every message is accounted for, and every other thread is an ordinary one off the app's CPU"
        );
    }
    if went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn window(kind: Kind) -> Window {
    let (tell, receiver) = channel();
    let config = Config::from_env().until(Duration::from_secs(WINDOW_S));
    let report = app::run(config, kind, tell).unwrap_or_else(|error| panic!("{error}"));
    for missing in report.settings.all_missing() {
        eprintln!("*** NOT GRANTED: {missing} ***");
    }
    Window { kind, report, ended: receiver.try_recv().ok(), memory_kib: memory_kib() }
}

/// Prints J, R and C of each kind of window.
fn times(windows: &[Window]) {
    println!("in µs, of all windows of a kind; in parentheses the least and the greatest of single windows");
    println!("{:<18}{:>9} {:>3} {:>26} {:>26} {:>9}", "", "jobs", "", "median", "99.9 %", "max");
    for kind in Kind::ALL {
        let reports: Vec<&TaskReport> = windows
            .iter()
            .filter(|window| window.kind == kind)
            .map(|window| window.report.task("control").expect("the task exists"))
            .collect();
        let jobs: u64 = reports.iter().map(|report| report.jobs).sum();
        let overruns: u64 = reports.iter().map(|report| report.overruns).sum();
        for (index, quantity) in ["J", "R", "C"].into_iter().enumerate() {
            let of =
                |report: &TaskReport| [&report.jitter, &report.response, &report.execution][index].clone();
            let all: Vec<_> = reports.iter().map(|report| of(report)).collect();
            let mut buckets: Vec<(u64, u64)> = all.iter().flat_map(|one| one.buckets.clone()).collect();
            buckets.sort_unstable();
            let max = all.iter().map(|one| one.max).max().unwrap_or(0);
            let spread = |one: &dyn Fn(&Summary) -> u64| {
                let least = all.iter().map(one).min().unwrap_or(0);
                format!("({:.2} – {:.2})", us(least), us(all.iter().map(one).max().unwrap_or(0)))
            };
            let median =
                format!("{:.2} {}", us(quantile(&buckets, 0.5)), spread(&|one| one.p50.unwrap_or(0)));
            let high =
                format!("{:.2} {}", us(quantile(&buckets, 0.999)), spread(&|one| one.p999.unwrap_or(0)));
            let (name, number) =
                if index == 0 { (kind.name(), jobs.to_string()) } else { ("", String::new()) };
            println!("{name:<18}{number:>9} {quantity:>3} {median:>26} {high:>26} {:>9.2}", us(max));
        }
        println!("{:>27} overruns: {overruns}", "");
    }
}

/// Returns the upper bound of the bucket in which this share of all values is reached.
fn quantile(buckets: &[(u64, u64)], share: f64) -> u64 {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let wanted = (all as f64 * share).ceil() as u64;
    let mut seen = 0;
    let found = buckets.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map_or(0, |(end, _)| *end)
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Returns the resident memory.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("the kernel tells")
}
