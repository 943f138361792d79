//! Which job runs at a level, written by its thread and read by anybody, as by Boehm (2012), *Can seqlocks get along with
//! programming language memory models?*, section 4, with the time at which the job began as the number of the version.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The job that runs at a level. The thread that occupies the level writes it.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Beat {
    /// When the job began, in ns; 0 if none runs.
    since: AtomicU64,
    /// The partition's execution time when it began, in ns.
    before: AtomicU64,
    /// The same when the last one ended.
    after: AtomicU64,
    number: AtomicU64,
    task: AtomicU32,
    thread: AtomicU32,
    /// The partition.
    pub partition: AtomicU32,
    /// The level.
    pub level: AtomicU32,
}

/// A job that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Which of the tasks of the region.
    pub task: u32,
    /// The thread that runs it, as the kernel numbers them.
    pub thread: u32,
    /// When it began, in ns by `CLOCK_MONOTONIC`.
    pub since: u64,
    /// The execution time of all jobs of its partition that had ended by then, in ns.
    pub executed: u64,
    /// How many jobs of its level there have been, with this one.
    pub number: u64,
}

impl Beat {
    /// A job begins. `executed` is the execution time of all jobs of the partition that have ended.
    ///
    /// Real-time safety: stores, and a fence that costs nothing on x86.
    #[inline]
    pub fn begin(&self, task: u32, thread: u32, now: u64, executed: u64) {
        // Whoever sees one of the stores below sees that the job before has ended, too: see `running`.
        fence(Ordering::Release);
        let number = self.number.load(Ordering::Relaxed);
        self.number.store(number.wrapping_add(1), Ordering::Relaxed);
        self.before.store(executed, Ordering::Relaxed);
        self.task.store(task, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Relaxed);
        // Pairs with the load in `running`, which then sees all of this.
        self.since.store(now.max(1), Ordering::Release);
    }

    /// The job has ended.
    ///
    /// Real-time safety: as for [`begin`](Self::begin).
    #[inline]
    pub fn end(&self, executed: u64) {
        self.after.store(executed, Ordering::Relaxed);
        // Ordered by the fence in `begin` against what the next job writes.
        self.since.store(0, Ordering::Relaxed);
    }

    /// The job that runs, if any does. `None` also if one begins or ends meanwhile.
    pub fn running(&self) -> Option<Running> {
        let since = self.since.load(Ordering::Acquire);
        let running = Running {
            task: self.task.load(Ordering::Relaxed),
            thread: self.thread.load(Ordering::Relaxed),
            since,
            executed: self.before.load(Ordering::Relaxed),
            number: self.number.load(Ordering::Relaxed),
        };
        // If one of these was the next job's, this pairs with the fence in `begin`, and the job is not the same any more.
        fence(Ordering::Acquire);
        let is_same = self.since.load(Ordering::Relaxed) == since
            && self.number.load(Ordering::Relaxed) == running.number;
        (since != 0 && is_same).then_some(running)
    }

    /// The execution time of all jobs of the partition when the last of this level ended, in ns.
    pub fn executed(&self) -> u64 {
        self.after.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_begins_at_zero_is_seen_too() {
        let beat = Beat::default();
        beat.begin(3, 5, 0, 0);
        assert_eq!(beat.running().map(|job| (job.task, job.thread)), Some((3, 5)));
        beat.end(70);
        assert_eq!((beat.running(), beat.executed()), (None, 70));
    }

    #[test]
    fn a_job_is_seen_whole_or_not_at_all() {
        // Miri takes a thousand times as long.
        const JOBS: u32 = if cfg!(miri) { 100 } else { 20_000 };
        let beat = Beat::default();
        let over = core::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Every field says which job it is.
                for job in 1..JOBS {
                    beat.begin(job, job, job.into(), job.into());
                    beat.end(job.into());
                }
                beat.begin(7, 7, 7, 7);
                over.store(true, Ordering::Release);
            });
            loop {
                let ends = over.load(Ordering::Acquire);
                if let Some(seen) = beat.running() {
                    let same = [seen.task, seen.since as u32, seen.executed as u32];
                    assert_eq!(same, [seen.thread; 3]);
                    assert!(ends || seen.number == u64::from(seen.task) || seen.number == JOBS.into());
                }
                if ends {
                    break;
                }
            }
        });
        assert_eq!(beat.running().map(|job| (job.task, job.number)), Some((7, JOBS.into())));
    }
}
