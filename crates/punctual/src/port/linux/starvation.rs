//! Whether a thread has had a chance to run.
//!
//! Patience with a thread that ought to do something is not a matter of time alone: on a busy machine it may be ready
//! to run and not get a CPU for seconds.

use std::fs;

/// A look at one thread of this process now and then.
#[derive(Debug)]
pub(crate) struct Chances {
    thread: u32,
    /// The CPU time it has had, in ns, when it was last looked at.
    seen: u64,
}

impl Chances {
    pub(crate) fn of(thread: u32) -> Self {
        Self { thread, seen: u64::MAX }
    }

    /// Whether the thread has run since the last look, or sleeps. Where the kernel does not tell: `true`.
    pub(crate) fn had_one(&mut self) -> bool {
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

/// Whether the state in `stat`, behind the name in brackets, is that of a thread that could run.
fn is_ready(stat: &str) -> bool {
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(cpu_time("81234 5678 9\n"), Some(81234));
        assert_eq!(cpu_time(""), None);
        assert!(is_ready("17 (a) R) (name) R 1 2 3"));
        assert!(!is_ready("17 (R (name) S 1 2 3") && !is_ready(""));
    }

    #[test]
    fn a_thread_that_looks_at_itself_runs() {
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(Chances::of(me).had_one());
    }

    #[test]
    fn a_thread_that_is_not_there_is_not_waited_for() {
        assert!(Chances::of(0).had_one());
    }
}
