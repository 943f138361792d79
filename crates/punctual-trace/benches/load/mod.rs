//! A load of wake-ups, and the CPU time of the recorder's threads.
#![allow(unreachable_pub)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

/// Number of bursts per second of a limited load.
pub const BURSTS: u64 = 200;

/// Starts two threads on one CPU that wake each other a given number of times per burst, and count
/// the turns.
pub fn pair(
    cpu: usize,
    burst: usize,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
) -> [std::thread::JoinHandle<()>; 2] {
    let (there, here) = channel();
    let (back, answers) = channel();
    let pin = move || {
        let mut set = CpuSet::new();
        set.set(cpu);
        // Unpinned, they measure the same with other figures.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    };
    let first = spawn(move || {
        pin();
        // Relaxed: nothing else depends on when it is seen.
        let (start, mut bursts) = (Instant::now(), 0);
        let mut turns = 0;
        while !stop.load(Ordering::Relaxed) && there.send(()).is_ok() && answers.recv().is_ok() {
            turns += 1;
            // Relaxed: it is a counter that is read occasionally.
            count.fetch_add(1, Ordering::Relaxed);
            if turns == burst {
                (turns, bursts) = (0, bursts + 1);
                let next = start + Duration::from_secs(1) * bursts / BURSTS as u32;
                sleep(next.saturating_duration_since(Instant::now()));
            }
        }
    });
    let second = spawn(move || {
        pin();
        while here.recv().is_ok() && back.send(()).is_ok() {}
    });
    [first, second]
}

/// Returns the CPU time of the recorder's threads, in s.
pub fn drain_time() -> f64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_one = |thread: fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        (name.trim() == "punctual-drain").then(|| times.split(' ').next()?.parse::<f64>().ok())?
    };
    threads.filter_map(of_one).sum::<f64>() / 1e9
}
