//! Stress: an app on Linux threads that performs random operations, with all its guarantees
//! checked.
//!
//! The same load runs on every kind of executor: one partition, two partitions, and the global
//! executor, with real-time priorities and without them: the first tests preemption on each CPU,
//! the second threads in parallel. Each form plays one round of each plan, and further rounds for
//! half of `PUNCTUAL_STRESS_SECONDS`. Workers are moved off their CPU and back from outside; jobs
//! suspend themselves anywhere, also in critical sections. `PUNCTUAL_STRESS_SEED` repeats the
//! random numbers of a run, but not the kernel's scheduling.
//!
//! Each form runs in a separate process, which `RLIMIT_RTTIME` ends if a real-time thread runs
//! away.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod checks;
mod kinds;
mod ledger;
mod load;
#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;
mod round;
mod tasks;
mod threads;

use std::collections::HashSet;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use round::Plan;
use test_skip::{Need, skip};

const SECONDS: &str = "PUNCTUAL_STRESS_SECONDS";
const SEED: &str = "PUNCTUAL_STRESS_SEED";
const KIND: &str = "PUNCTUAL_STRESS_KIND";

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// Rounds that each form plays at least, one of each plan.
const PLANS: u32 = 4;

/// Returns the duration of each form; its first rounds may take longer.
fn length() -> Duration {
    Duration::from_secs(number(SECONDS).unwrap_or(0)) / 2
}

fn survives(form: &str, mut command: Command) {
    let _turn = test_skip::alone();
    // In µs of CPU time without a system call that blocks: the first sends SIGXCPU, the second
    // SIGKILL.
    privileges::limit(&mut command, privileges::Resource::Rttime, 5_000_000, 6_000_000);
    let ended =
        process::start_with(command, length() + Duration::from_secs(120), std::process::Stdio::piped()).end();
    println!("--- {form}\n{}", without_repetitions(&ended.output));
    assert_eq!(ended.code, 0, "{form}:\n{}", ended.output);
    assert!(ended.output.contains("rounds on"), "{form}: it ended without a word:\n{}", ended.output);
}

/// Every round prints the same notes about missing settings.
fn without_repetitions(output: &str) -> String {
    let mut seen = HashSet::new();
    let lines = output.lines().filter(|line| !line.starts_with("punctual:") || seen.insert(*line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Stresses one kind of executor, with or without real-time priorities.
fn stress(kind: &str, real_time: bool) {
    if !kinds::has_cpus(kind) {
        return skip(Need::TwoCpus, kind);
    }
    let mut command = process::program("program");
    command.env(KIND, kind);
    if !real_time {
        survives(&format!("{kind}, without real-time priorities"), privileges::unprivileged(&command));
    } else if privileges::real_time() {
        survives(&format!("{kind}, with real-time priorities"), command);
    } else {
        skip(Need::RealTime, kind);
    }
}

macro_rules! kinds {
    ($($kind:ident)*) => {$(
        mod $kind {
            #[test]
            fn with_real_time_priorities() {
                super::stress(stringify!($kind), true);
            }

            #[test]
            fn without_real_time_priorities() {
                super::stress(stringify!($kind), false);
            }
        }
    )*};
}

kinds!(sole two polling global);

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    let seed = number(SEED).unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_nanos().into())
    });
    println!("{SEED}={seed}");
    kinds::choose(&env::var(KIND).expect("the other tests set it"));
    random::seed(seed);
    threads::watch(length() + Duration::from_secs(100));

    let begin = Instant::now();
    let (mut total, mut rounds, mut suspended) = (ledger::Count::default(), 0_u32, 0);
    let mut policies = String::new();
    while (rounds < PLANS || begin.elapsed() < length()) && checks::violations() == 0 {
        let plan = Plan {
            length: Duration::from_millis(150),
            migrate: rounds % 2 == 0,
            abrupt: rounds / 2 % 2 == 0,
        };
        let (report, count) = round::play(plan);
        total.executed += count.executed;
        total.refused += count.refused;
        total.cancelled += count.cancelled;
        total.dropped += count.dropped;
        suspended += report.tasks.iter().map(|task| task.suspended).sum::<u64>();
        policies = report.settings.threads.first().map(|thread| thread.policy.clone()).unwrap_or_default();
        rounds += 1;
    }
    println!("{rounds} rounds on {policies}: {total:?}, {suspended} jobs suspended themselves");
    assert!(total.executed > 0, "nothing was run");
    assert_eq!(checks::violations(), 0, "repeat with {SEED}={seed}");
}

/// Reproducible random numbers: xorshift, one generator per thread, all from one printed seed.
mod random {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    static SEED: AtomicU64 = AtomicU64::new(0);
    static THREADS: AtomicU64 = AtomicU64::new(0);

    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }

    /// Sets the seed of every thread that has not requested a number yet.
    pub(crate) fn seed(seed: u64) {
        SEED.store(seed, Ordering::Relaxed);
    }

    fn next() -> u64 {
        let mut x = STATE.get();
        if x == 0 {
            let thread = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
            x = (SEED.load(Ordering::Relaxed) ^ thread.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
        }
        // G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003.
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        STATE.set(x);
        x
    }

    /// Returns a number from 0 to `end - 1`.
    pub(crate) fn below(end: u64) -> u64 {
        (next() >> 11) % end
    }

    /// Returns true once in `n` times on average.
    pub(crate) fn one_in(n: u64) -> bool {
        below(n) == 0
    }

    /// Returns a pause of `from` to `to` microseconds.
    pub(crate) fn pause(from: u64, to: u64) {
        std::thread::sleep(Duration::from_micros(from + below(to - from + 1)));
    }
}
