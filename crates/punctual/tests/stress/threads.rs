//! The app's threads, as the kernel shows them: moving them, and checking that they have ended.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::checks::{runners, violation};
use crate::load::OVER;
use crate::{ledger, random};

/// Returns the number and name of every thread of this process.
fn all() -> Vec<(i32, String)> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| {
        let number = task.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_to_string(task.path().join("comm")).ok()?.trim_end().to_owned()))
    });
    threads.collect()
}

fn is_workers(name: &str) -> bool {
    // The name of the partition comes first, if there are several.
    name.contains("level ") || name.contains("event ")
}

/// Moves workers off their CPU and back from outside until the round is over.
pub(crate) fn migrate() {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    while !OVER.load(Ordering::Relaxed) {
        let workers: Vec<_> = all().into_iter().filter(|(_, name)| is_workers(name)).collect();
        for _ in 0..20 {
            if let Some((worker, _)) = workers.get(random::below(workers.len() as u64 + 1) as usize) {
                let mut target = allowed;
                if !random::one_in(3) {
                    target = CpuSet::new();
                    target.set(cpus[random::below(cpus.len() as u64) as usize]);
                }
                // It may have ended.
                let _ = sched_setaffinity(Pid::from_raw(*worker), &target);
            }
            random::pause(50, 400);
        }
    }
}

/// Checks that all threads of the run have ended.
pub(crate) fn all_threads_ended() {
    // After a join, the kernel takes a moment to remove the thread.
    let deadline = Instant::now() + Duration::from_secs(60);
    let left = |(_, name): &(i32, String)| is_workers(name) || name == "punctual-watch";
    while let Some(thread) = all().into_iter().find(left) {
        if Instant::now() > deadline {
            return violation(&format!("thread {thread:?} is left behind"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the process with a diagnosis, unless it ends by itself within `limit`.
pub(crate) fn watch(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        give_up(&format!("no end after {limit:?}"));
    });
}

/// Ends the process with a diagnosis.
pub(crate) fn give_up(why: &str) -> ! {
    eprintln!("GIVING UP: {why}; violations so far: {}", crate::checks::violations());
    eprintln!("threads running jobs, by lane: {:?}", runners());
    eprintln!("jobs without a fate: {}, among them {:?}", ledger::open(), ledger::some_open());
    for (number, name) in all() {
        let read = |what| fs::read_to_string(format!("/proc/self/task/{number}/{what}")).unwrap_or_default();
        let state = read("stat").rsplit(')').next().unwrap_or_default().trim().chars().next();
        eprintln!("{number} {name:16} {} {} {}", state.unwrap_or('?'), read("wchan"), read("syscall").trim());
    }
    std::process::abort();
}
