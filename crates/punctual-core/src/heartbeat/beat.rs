//! The job that runs at a level, written by its thread and readable by any process. A seqlock as in
//! Boehm (2012), *Can seqlocks get along with programming language memory models?*, section 4, with
//! the job's start time as the version number.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The job that runs at a level. Written by the thread that occupies the level.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Beat {
    /// The job's start time, in ns; 0 if no job runs.
    since: AtomicU64,
    /// The partition's execution time at the start of the job, in ns.
    before: AtomicU64,
    /// The partition's execution time at the end of the last job, in ns.
    after: AtomicU64,
    number: AtomicU64,
    /// The CPU time of its thread at the start of the job, in ns, or [`UNKNOWN`].
    cpu: AtomicU64,
    /// The CPU time of completed jobs that this job called, in ns.
    called: AtomicU64,
    /// The CPU time of its thread, read for a supervisor; `clock_of` is the number of the job it
    /// belongs to.
    clock: AtomicU64,
    clock_of: AtomicU64,
    task: AtomicU32,
    thread: AtomicU32,
    /// The partition.
    pub partition: AtomicU32,
    /// The level.
    pub level: AtomicU32,
}

/// The job did not read the CPU time of its thread.
const UNKNOWN: u64 = u64::MAX;

/// A running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// The task's index in the region.
    pub task: u32,
    /// The TID of the thread that runs the job.
    pub thread: u32,
    /// The job's start time, in ns on `CLOCK_MONOTONIC`.
    pub since: u64,
    /// The execution time of all jobs of its partition that had ended by then, in ns.
    pub executed: u64,
    /// The number of jobs of its level so far, including this one.
    pub number: u64,
    /// The CPU time of its thread at the start of the job, in ns, if it was read.
    pub cpu: Option<u64>,
    /// The CPU time of completed jobs that this job called, in ns; known if `cpu` is.
    pub called: u64,
}

impl Beat {
    /// Records the start of a job. `executed` is the execution time of all jobs of the partition
    /// that have ended, `cpu` the CPU time of the thread, if it was read.
    ///
    /// Real-time safety: stores, and a fence that costs nothing on x86.
    #[inline]
    pub fn begin(&self, task: u32, thread: u32, now: u64, executed: u64, cpu: Option<u64>) {
        // A reader that sees one of the stores below also sees that the previous job has ended: see
        // `running`.
        fence(Ordering::Release);
        let number = self.number.load(Ordering::Relaxed);
        self.number.store(number.wrapping_add(1), Ordering::Relaxed);
        self.before.store(executed, Ordering::Relaxed);
        self.cpu.store(cpu.unwrap_or(UNKNOWN), Ordering::Relaxed);
        self.called.store(0, Ordering::Relaxed);
        self.task.store(task, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Relaxed);
        // Pairs with the load in `running`, which then sees all of this.
        self.since.store(now.max(1), Ordering::Release);
    }

    /// Records the end of the job.
    ///
    /// Real-time safety: as for [`begin`](Self::begin).
    #[inline]
    pub fn end(&self, executed: u64) {
        self.after.store(executed, Ordering::Relaxed);
        // The fence in `begin` orders this before the stores of the next job.
        self.since.store(0, Ordering::Relaxed);
    }

    /// Records that a job called by the running one has ended, after `cpu` ns of CPU time. For the
    /// thread of both.
    ///
    /// Real-time safety: a load and a store.
    #[inline]
    pub fn add_called(&self, cpu: u64) {
        let called = self.called.load(Ordering::Relaxed);
        self.called.store(called.wrapping_add(cpu), Ordering::Relaxed);
    }

    /// Records the CPU time of the thread of the job with this number, in ns. For one thread at a
    /// time.
    pub fn set_clock(&self, number: u64, cpu: u64) {
        self.clock_of.store(number, Ordering::Relaxed);
        self.clock.store(cpu, Ordering::Relaxed);
    }

    /// Returns the CPU time that [`set_clock`](Self::set_clock) stored, if it belongs to the job
    /// with this number. The caller must have synchronized with `set_clock`.
    pub fn clock(&self, number: u64) -> Option<u64> {
        (self.clock_of.load(Ordering::Relaxed) == number).then(|| self.clock.load(Ordering::Relaxed))
    }

    /// Returns the running job, if any. Also returns `None` if a job begins or ends during the
    /// call.
    pub fn running(&self) -> Option<Running> {
        let since = self.since.load(Ordering::Acquire);
        let cpu = self.cpu.load(Ordering::Relaxed);
        let running = Running {
            task: self.task.load(Ordering::Relaxed),
            thread: self.thread.load(Ordering::Relaxed),
            since,
            executed: self.before.load(Ordering::Relaxed),
            number: self.number.load(Ordering::Relaxed),
            cpu: (cpu != UNKNOWN).then_some(cpu),
            called: self.called.load(Ordering::Relaxed),
        };
        // If one of these values was the next job's, this pairs with the fence in `begin`, and the
        // job differs below.
        fence(Ordering::Acquire);
        let is_same = self.since.load(Ordering::Relaxed) == since
            && self.number.load(Ordering::Relaxed) == running.number;
        (since != 0 && is_same).then_some(running)
    }

    /// Returns the execution time of all jobs of the partition at the end of the last job of this
    /// level, in ns.
    pub fn executed(&self) -> u64 {
        self.after.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn shows_job_that_starts_at_zero() {
        let beat = Beat::default();
        beat.begin(3, 5, 0, 0, None);
        assert_eq!(beat.running().map(|job| (job.task, job.thread)), Some((3, 5)));
        beat.end(70);
        assert_eq!((beat.running(), beat.executed()), (None, 70));
    }

    #[test]
    fn excludes_called_jobs_from_cpu_time() {
        let beat = Beat::default();
        beat.begin(3, 5, 10, 0, Some(100));
        beat.add_called(7);
        beat.add_called(8);
        assert_eq!(beat.running().map(|job| (job.cpu, job.called)), Some((Some(100), 15)));
        beat.end(0);
        beat.begin(3, 5, 20, 0, None);
        assert_eq!(beat.running().map(|job| (job.cpu, job.called)), Some((None, 0)));
    }

    #[test]
    fn clock_belongs_to_one_job() {
        let beat = Beat::default();
        beat.begin(3, 5, 10, 0, Some(100));
        beat.set_clock(1, 130);
        assert_eq!((beat.clock(1), beat.clock(2)), (Some(130), None));
    }

    #[test]
    fn reads_job_consistently_or_not_at_all() {
        // Miri takes a thousand times as long.
        const JOBS: u32 = if cfg!(miri) { 100 } else { 20_000 };
        let beat = Beat::default();
        let over = core::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Every field identifies the job.
                for job in 1..JOBS {
                    beat.begin(job, job, job.into(), job.into(), Some(job.into()));
                    beat.end(job.into());
                }
                beat.begin(7, 7, 7, 7, Some(7));
                over.store(true, Ordering::Release);
            });
            loop {
                let ends = over.load(Ordering::Acquire);
                if let Some(seen) = beat.running() {
                    let cpu = seen.cpu.map_or(0, |cpu| cpu as u32);
                    let same = [seen.task, seen.since as u32, seen.executed as u32, cpu];
                    assert_eq!(same, [seen.thread; 4]);
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
