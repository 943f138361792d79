//! Notifications to a supervisor in another process when the jobs of a task start and end.
//!
//! Such jobs take the slow path of [marked](crate::port::linux::trace_marker) jobs, so others have
//! no overhead.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use punctual_core::Instant;
use punctual_core::heartbeat;

use crate::port::linux::clock;

thread_local! {
    /// The heartbeat of the innermost job on this thread whose CPU time is measured.
    static MEASURED: Cell<Option<&'static heartbeat::Beat>> = const { Cell::new(None) };
}

/// The heartbeat of a task's level, while a supervisor watches.
#[derive(Debug)]
pub(crate) struct BeatSlot {
    /// Null, or a `&'static heartbeat::Beat`.
    beat: AtomicPtr<heartbeat::Beat>,
    /// The number of the task.
    task: AtomicU32,
    /// True if it has a budget.
    has_budget: AtomicBool,
}

/// A heartbeat, with its task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beat {
    beat: &'static heartbeat::Beat,
    task: u32,
    has_budget: bool,
}

/// A job that has started.
#[derive(Debug)]
pub(crate) struct Begun {
    beat: &'static heartbeat::Beat,
    /// The job that called it, if that one is measured.
    outer: Option<&'static heartbeat::Beat>,
    /// The CPU time of the thread at its start, in ns, if it is measured.
    cpu: Option<u64>,
}

impl BeatSlot {
    pub(crate) const fn empty() -> Self {
        Self {
            beat: AtomicPtr::new(std::ptr::null_mut()),
            task: AtomicU32::new(0),
            has_budget: AtomicBool::new(false),
        }
    }

    /// Makes the jobs of the task report to `beat`. While none can run.
    pub(crate) fn set(&self, beat: &'static heartbeat::Beat, task: u32, has_budget: bool) {
        self.task.store(task, Ordering::Relaxed);
        self.has_budget.store(has_budget, Ordering::Relaxed);
        self.beat.store(std::ptr::from_ref(beat).cast_mut(), Ordering::Relaxed);
    }

    /// Ends their reports. While none can run.
    pub(crate) fn clear(&self) {
        self.beat.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Returns the destination of the task's reports, if any.
    #[inline]
    pub(crate) fn get(&self) -> Option<Beat> {
        // Changes only while no job of the task can run; starting and joining the threads orders
        // that. SAFETY: it is null, or was made from a `'static` reference.
        let beat = unsafe { self.beat.load(Ordering::Relaxed).as_ref() }?;
        let has_budget = self.has_budget.load(Ordering::Relaxed);
        Some(Beat { beat, task: self.task.load(Ordering::Relaxed), has_budget })
    }
}

impl Beat {
    /// Reports the start of a job on this thread, which `may_sleep` or else must not enter the
    /// kernel. Its CPU time is measured if it has a budget, or was called by a job that has one.
    ///
    /// Real-time safety: stores, and a system call if the CPU time is measured.
    #[inline(never)]
    pub(crate) fn begin(self, thread: u32, start: Instant, executed: u64, may_sleep: bool) -> Begun {
        let Self { beat, task, has_budget } = self;
        let outer = MEASURED.get();
        let cpu = (may_sleep && (has_budget || outer.is_some())).then(clock::thread_cpu_time);
        beat.begin(task, thread, start.as_ticks(), executed, cpu);
        if cpu.is_some() {
            MEASURED.set(Some(beat));
        }
        Begun { beat, outer, cpu }
    }
}

impl Begun {
    /// Reports its end.
    ///
    /// Real-time safety: as for [`Beat::begin`].
    #[inline(never)]
    pub(crate) fn end(self, executed: u64) {
        let Self { beat, outer, cpu } = self;
        beat.end(executed);
        if let Some(before) = cpu {
            MEASURED.set(outer);
            if let Some(outer) = outer {
                outer.add_called(clock::thread_cpu_time().saturating_sub(before));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaked() -> &'static heartbeat::Beat {
        Box::leak(Box::default())
    }

    fn begin(beat: &'static heartbeat::Beat, has_budget: bool) -> Begun {
        Beat { beat, task: 0, has_budget }.begin(1, Instant::from_ticks(1), 0, true)
    }

    fn cpu(beat: &heartbeat::Beat) -> Option<(Option<u64>, u64)> {
        beat.running().map(|job| (job.cpu, job.called))
    }

    #[test]
    fn called_job_does_not_use_cpu_time_of_caller() {
        let (caller, called) = (leaked(), leaked());
        let outer = begin(caller, true);
        let before = clock::thread_cpu_time();
        let inner = begin(called, false);
        assert!(cpu(called).is_some_and(|(cpu, _)| cpu >= Some(before)), "its caller has a budget");
        inner.end(0);
        let used = clock::thread_cpu_time() - before;
        assert!(cpu(caller).is_some_and(|(_, called)| (1..=used).contains(&called)), "{used}");
        outer.end(0);
        assert!(MEASURED.get().is_none());
    }

    #[test]
    fn only_jobs_with_budget_read_cpu_clock() {
        let beat = leaked();
        let begun = begin(beat, false);
        assert_eq!(cpu(beat), Some((None, 0)));
        begun.end(0);
        let polls = Beat { beat, task: 0, has_budget: true }.begin(1, Instant::from_ticks(1), 0, false);
        assert_eq!(cpu(beat), Some((None, 0)), "a thread that polls does not enter the kernel");
        polls.end(0);
    }
}
