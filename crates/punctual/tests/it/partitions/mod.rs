//! Apps of several partitions and of the global executor, on real threads: spawns, locks, CPUs, and
//! every way to end.
//!
//! Tests with exact times are in `time`.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod cpus;
mod ends;
mod foreign;
mod locks;
mod overlap;
mod refusals;
mod spawns;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::process::Ended;
use crate::{privileges, process};
use punctual::Config;
use rustix::thread::sched_getaffinity;
use test_skip::{Need, skip};

/// Both kinds of time. A run that does not end by itself is ended by the clock, which its test
/// detects.
fn both() -> [Config; 2] {
    let limit = punctual::Duration::from_secs(30);
    [Config::new().until(limit), Config::new().virtual_time().until(limit)]
}

/// The CPUs that this process may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("a process may look at its CPUs");
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Returns two CPUs to choose from, if available.
fn two_cpus() -> Option<[usize; 2]> {
    let cpus = allowed();
    if cpus.len() < 2 {
        skip(Need::TwoCpus, "partitions on CPUs of their own");
        return None;
    }
    Some([cpus[0], cpus[cpus.len() - 1]])
}

/// Spins until `flag` is set; returns `false` after a time that is long on any machine, and shorter
/// than the limit of real-time threads.
fn spin_until(flag: &AtomicBool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(2);
    while !flag.load(Ordering::Acquire) {
        if Instant::now() > deadline {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Runs `command` to its end.
fn end(mut command: Command) -> Ended {
    privileges::no_runaways(&mut command);
    process::start(command).end()
}

/// Checks the exit code and that the output has these words.
#[track_caller]
fn ends_with(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, code, "{}", ended.output);
    for word in words {
        assert!(ended.output.contains(word), "no `{word}` in:\n{}", ended.output);
    }
}
