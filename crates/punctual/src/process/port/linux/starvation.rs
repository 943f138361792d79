//! Detects threads that are starved of CPU time.
//!
//! A time-out alone cannot show that a thread hangs: on a busy machine it may be ready to run and
//! not get a CPU for seconds.

use std::fs;

use super::clock::cpu_time_of;

/// Checks one thread of this process periodically.
#[derive(Debug)]
pub(crate) struct StarvationCheck {
    thread: u32,
    /// Its CPU time in ns at the last check.
    seen: Option<u64>,
}

impl StarvationCheck {
    pub(crate) fn of(thread: u32) -> Self {
        Self { thread, seen: None }
    }

    /// Returns whether the thread has run since the last check, or sleeps. `true` if the kernel
    /// does not report this.
    pub(crate) fn is_not_starved(&mut self) -> bool {
        // Not `schedstat`, which the kernel updates once per second on a CPU without a tick.
        let time = cpu_time_of(self.thread);
        let ran = time.is_none() || time != self.seen;
        self.seen = time;
        let stat = || fs::read_to_string(format!("/proc/self/task/{}/stat", self.thread));
        ran || !stat().is_ok_and(|stat| is_ready(&stat))
    }
}

/// Checks a changing set of threads of this process periodically.
#[derive(Debug, Default)]
pub(crate) struct StarvationChecks(Vec<StarvationCheck>);

impl StarvationChecks {
    /// Returns whether not all of `threads` are starved; `true` for none.
    pub(crate) fn are_not_all_starved(&mut self, threads: &[u32]) -> bool {
        self.0.retain(|check| threads.contains(&check.thread));
        for &thread in threads {
            if !self.0.iter().any(|check| check.thread == thread) {
                self.0.push(StarvationCheck::of(thread));
            }
        }
        // Every check, because each compares with its last call.
        let count = self.0.iter_mut().map(StarvationCheck::is_not_starved).filter(|&it| it).count();
        count > 0 || self.0.is_empty()
    }
}

/// Returns whether the state in `stat`, after the name in parentheses, is that of a runnable
/// thread.
fn is_ready(stat: &str) -> bool {
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use punctual_process::scheduling;

    use super::*;
    use crate::port::linux::cpu::{self, Allowed};
    use crate::port::linux::kernel_thread;

    #[test]
    fn parses_stat() {
        assert!(is_ready("17 (a) R) (name) R 1 2 3"));
        assert!(!is_ready("17 (R (name) S 1 2 3") && !is_ready(""));
    }

    #[test]
    fn calling_thread_is_not_starved() {
        assert!(StarvationCheck::of(kernel_thread()).is_not_starved());
        assert!(StarvationChecks::default().are_not_all_starved(&[]));
    }

    #[test]
    fn missing_thread_is_not_starved() {
        assert!(StarvationCheck::of(u32::MAX >> 4).is_not_starved());
    }

    /// Of two threads with one real-time priority on one CPU, the other waits until the first
    /// sleeps.
    #[test]
    fn ready_thread_without_cpu_is_starved() {
        let first = thread::spawn(|| {
            let cpu = Allowed::of_this_thread().unwrap().iter().next().unwrap();
            cpu::pin(cpu).unwrap();
            if scheduling::set_policy(libc::SCHED_FIFO, 1).is_err() {
                return test_skip::skip(test_skip::Need::RealTime, "a starved thread");
            }
            let (wake, woken) = channel::<()>();
            let (answer, answers) = channel();
            let other = thread::spawn(move || {
                answer.send(kernel_thread()).unwrap();
                woken.iter().for_each(drop);
            });
            let (other_id, mut checks) = (answers.recv().unwrap(), StarvationChecks::default());
            // This thread may sleep in the kernel, for example until it gets memory.
            let is_found = (0..1_000).any(|_| {
                wake.send(()).unwrap();
                checks.are_not_all_starved(&[other_id]);
                !checks.are_not_all_starved(&[other_id])
            });
            assert!(is_found);
            assert!(checks.are_not_all_starved(&[other_id, kernel_thread()]), "this thread runs");
            drop(wake);
            other.join().unwrap();
        });
        first.join().unwrap();
    }
}
