//! Measures the cost of spawning and locking, in comparison with alternatives.
//!
//! `cargo bench -p punctual --bench executor [-- PART OF A NAME ..]`. Every row, of Punctual or of
//! a peer, is a loop in a job of an app, so all of them run on one CPU with one SCHED_FIFO
//! priority. The windows of all rows take turns, so that other load of the machine affects all
//! equally. The output has the minimum, median and maximum of the windows; the ratio of the medians
//! to that of the peer, which is the row below with that mark; and the median in units of L, one
//! locked instruction, measured in the same way.
//!
//! The peers are the predecessor's queue and mutex from the registry, a hand-over by futex between
//! two real-time threads on one CPU, and a priority-inheritance pthread mutex.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[macro_use]
#[path = "support/apps.rs"]
mod apps;
#[path = "support/peers.rs"]
mod peers;
#[path = "../../punctual-sync/benches/support/pi_mutex.rs"]
mod pi_mutex;

use apps::Operation;
use punctual::Config;

app!(plain, false, false, false);
app!(monitored, true, false, false);
app!(marked, false, true, false);
app!(profiled, false, false, true);

const WINDOWS: usize = 15;
/// Intended length of a window.
const WINDOW: Duration = Duration::from_millis(3);
/// Maximum number of operations in a window.
const MAX_OPERATIONS: u64 = 2_000_000;

type App = fn(Config, Operation, u64) -> Duration;

struct Row {
    name: &'static str,
    app: App,
    operation: Operation,
    /// True if a profile is written.
    profile: bool,
    /// The peer that it is compared with.
    peer: Option<&'static str>,
    /// Fixed number of operations, if independent of the window.
    iterations: Option<u64>,
}

fn row(name: &'static str, app: App, operation: Operation) -> Row {
    Row { name, app, operation, profile: false, peer: None, iterations: None }
}

fn other(name: &'static str, other: fn(u64) -> Duration) -> Row {
    row(name, plain::measure, Operation::Other(other))
}

impl Row {
    fn beside(self, peer: &'static str) -> Self {
        Self { peer: Some(peer), ..self }
    }

    fn with_profile(self) -> Self {
        Self { profile: true, ..self }
    }

    fn always(self, iterations: u64) -> Self {
        Self { iterations: Some(iterations), ..self }
    }

    fn measure(&self, iterations: u64) -> Duration {
        // The file is never read.
        let profile = || Config::new().profile(std::env::temp_dir().join("punctual-bench-profile.json"));
        let config = if self.profile { profile() } else { Config::new() };
        (self.app)(config, self.operation, iterations)
    }

    /// Returns the number of operations in a window.
    fn calibrate(&self) -> u64 {
        self.iterations.unwrap_or_else(|| {
            let few = 1_000;
            let took = self.measure(few).as_nanos().max(1);
            (u128::from(few) * WINDOW.as_nanos() / took).clamp(100, MAX_OPERATIONS.into()) as u64
        })
    }
}

const LOCKED: &str = "L: one locked instruction";
const QUEUE: &str = "peer: futex-queue, send + recv";
const HAND_OVER: &str = "peer: hand-over by futex";
const PCP: &str = "peer: pcp-mutex";
const PI: &str = "peer: PI pthread mutex";

fn rows() -> Vec<Row> {
    use Operation::{ArmAndCancel, DueAtOnce, HigherLevel, Lock, LockAlone, SameLevel, SameLevelTimed, Wake};
    vec![
        row("spawn to run, same level, monitored", monitored::measure, SameLevel).beside(QUEUE),
        row("spawn to run, higher level, monitored", monitored::measure, HigherLevel).beside(HAND_OVER),
        row("spawn to run, same level", plain::measure, SameLevel).beside(QUEUE),
        other(QUEUE, peers::futex_queue),
        row("spawn to run, higher level", plain::measure, HigherLevel).beside(HAND_OVER),
        other(HAND_OVER, peers::futex_hand_over),
        row("spawn to run, higher level, marked in the kernel's trace", marked::measure, HigherLevel),
        row("spawn to run, same level, profiled", profiled::measure, SameLevel).with_profile(),
        row("spawn to run, higher level, profiled", profiled::measure, HigherLevel).with_profile(),
        row("spawn to run, higher level, could be profiled", profiled::measure, HigherLevel),
        row("wake of an async task of a higher level", plain::measure, Wake),
        row("arm + cancel", plain::measure, ArmAndCancel),
        row("spawn to run, same level, 1 timer armed", plain::measure, SameLevelTimed(1)),
        row("spawn to run, same level, 1000 timers armed", plain::measure, SameLevelTimed(1000)),
        row(
            "spawn to run, same level, 1000 timers armed, monitored",
            monitored::measure,
            SameLevelTimed(1000),
        ),
        row("due at once, each of 100 timers", plain::measure, DueAtOnce).always(100),
        row("due at once, each of 1000 timers", plain::measure, DueAtOnce).always(1000),
        row("lock + unlock, shared with a higher task", plain::measure, Lock).beside(PCP),
        row("lock + unlock, shared with a higher task, profiled", profiled::measure, Lock).with_profile(),
        row("lock + unlock, shared with a higher task, could be profiled", profiled::measure, Lock),
        row("lock + unlock, shared with nobody", plain::measure, LockAlone),
        other(PCP, peers::pcp_mutex),
        other(PI, peers::pi_mutex),
        other("one clock reading", |n| timed(n, punctual::now)),
        other(LOCKED, |n| {
            let word = AtomicU64::new(0);
            timed(n, || black_box(&word).fetch_add(1, Ordering::AcqRel))
        }),
    ]
}

/// Returns the time to run `what` a number of times.
fn timed<T>(times: u64, mut what: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        black_box(what());
    }
    start.elapsed()
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let named = |row: &Row| wanted.iter().any(|part| row.name.contains(part.as_str()));
    let mut rows = rows();
    if !wanted.is_empty() {
        let peers: Vec<_> = rows.iter().filter(|row| named(row)).filter_map(|row| row.peer).collect();
        rows.retain(|row| named(row) || row.name == LOCKED || peers.contains(&row.name));
    }
    let iterations: Vec<u64> = rows.iter().map(Row::calibrate).collect();
    let mut windows = vec![Vec::with_capacity(WINDOWS); rows.len()];
    for _ in 0..WINDOWS {
        for ((row, &iterations), windows) in rows.iter().zip(&iterations).zip(&mut windows) {
            windows.push(row.measure(iterations).as_nanos() as f64 / iterations as f64);
        }
    }
    for windows in &mut windows {
        windows.sort_by(f64::total_cmp);
    }
    let median = |name: &str| {
        let at = rows.iter().position(|row| row.name == name).expect("it is among the rows");
        windows[at][WINDOWS / 2]
    };
    let locked = median(LOCKED);
    println!(
        "{:>9} {:>9} {:>9} {:>7}  {:>9}  {WINDOWS} windows each",
        "min", "median", "max", "L", "of peer"
    );
    for (row, windows) in rows.iter().zip(&windows) {
        let [least, middle, most] = [windows[0], windows[WINDOWS / 2], windows[WINDOWS - 1]];
        let ratio = row.peer.map_or(String::new(), |peer| format!("{:.3} ×", middle / median(peer)));
        println!(
            "{least:>6.1} ns {middle:>6.1} ns {most:>6.1} ns {:>7.2}  {ratio:>9}  {}",
            middle / locked,
            row.name
        );
    }
}
