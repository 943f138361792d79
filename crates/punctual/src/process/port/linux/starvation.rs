//! Detects threads that are starved of CPU time.
//!
//! A time-out alone cannot show that a thread hangs: on a busy machine it may be ready to run and
//! not get a CPU for seconds.

use std::fs;

/// Checks one thread of this process periodically.
#[derive(Debug)]
pub(crate) struct StarvationCheck {
    thread: u32,
    /// Its CPU time in ns at the last check.
    seen: u64,
}

impl StarvationCheck {
    pub(crate) fn of(thread: u32) -> Self {
        Self { thread, seen: u64::MAX }
    }

    /// Returns whether the thread has run since the last check, or sleeps. `true` if the kernel
    /// does not report this.
    pub(crate) fn is_not_starved(&mut self) -> bool {
        let read = |what: &str| fs::read_to_string(format!("/proc/self/task/{}/{what}", self.thread)).ok();
        let Some(had) = read("schedstat").as_deref().and_then(cpu_time) else { return true };
        let ran = had != self.seen;
        self.seen = had;
        ran || !read("stat").as_deref().is_some_and(is_ready)
    }
}

/// The first field of `schedstat`, in ns.
fn cpu_time(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// Returns whether the state in `stat`, after the name in parentheses, is that of a runnable
/// thread.
fn is_ready(stat: &str) -> bool {
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_schedstat_and_stat() {
        assert_eq!(cpu_time("81234 5678 9\n"), Some(81234));
        assert_eq!(cpu_time(""), None);
        assert!(is_ready("17 (a) R) (name) R 1 2 3"));
        assert!(!is_ready("17 (R (name) S 1 2 3") && !is_ready(""));
    }

    #[test]
    fn calling_thread_is_not_starved() {
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(StarvationCheck::of(me).is_not_starved());
    }

    #[test]
    fn missing_thread_is_not_starved() {
        assert!(StarvationCheck::of(0).is_not_starved());
    }
}
