//! Recent activity of a partition, so that a job can determine why it did not start at its release.
//!
//! From its release to its start a job waits for jobs that precede it, for a critical section of a
//! lower level, and for everything else: the timer, the kernel, other threads. An analysis has
//! terms for the first two. The rest is the lateness of the release. So each partition stores the
//! last jobs and critical sections that have ended. Also subtracted is the kernel's cost to switch
//! to a job on another thread, which is measured before the run. Entries that have been
//! overwritten, or are being written by a preempted thread, count as lateness, so that it is
//! slightly overestimated, and never underestimated.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Number of entries: more than usually run between the release of a job and its start.
const CAPACITY: usize = 32;

/// The last jobs and critical sections of a partition.
#[derive(Debug)]
pub(crate) struct Recent {
    next: AtomicU64,
    entries: [Entry; CAPACITY],
    /// Kernel's cost to switch to a job of a higher level and back, as in the analysis, in ns.
    switch: AtomicU64,
}

/// A sequence lock: `version` is odd while the rest is being written.
#[derive(Debug)]
struct Entry {
    version: AtomicU64,
    end: AtomicU64,
    time: AtomicU64,
    /// The level, the ceiling, and whether it is a job and whether it was called, one byte each.
    levels: AtomicU64,
}

/// An ended job or critical section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// Its end, in ns.
    pub(crate) end: u64,
    /// Its duration, without jobs that ran inside, in ns.
    pub(crate) time: u64,
    /// The level of the job.
    pub(crate) level: u8,
    /// The highest level that it delayed: for a critical section its ceiling, for a job that cannot
    /// be preempted all levels.
    pub(crate) ceiling: u8,
    /// True for a whole job, false for a critical section in one.
    pub(crate) is_job: bool,
    /// True if it ran on the stack of another job, without a switch to a thread.
    pub(crate) is_called: bool,
}

impl Done {
    /// Returns whether a job at `level` runs after it if it is ready before that job starts.
    fn runs_before(&self, level: u8) -> bool {
        // A section is part of the time of its job.
        self.is_job && self.level >= level
    }

    /// Returns whether a job at `level` has to wait for its end, once it has begun.
    fn blocks(&self, level: u8) -> bool {
        self.level < level && self.ceiling >= level
    }
}

impl Entry {
    const fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            end: AtomicU64::new(0),
            time: AtomicU64::new(0),
            levels: AtomicU64::new(0),
        }
    }

    fn write(&self, done: Done) {
        let version = self.version.load(Ordering::Relaxed);
        let next = version + 1;
        // A writer that is overtaken by all the other entries while it writes drops its entry.
        // Acquire: the stores below follow those of the previous writer.
        if !version.is_multiple_of(2)
            || self.version.compare_exchange(version, next, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        // With the reader's fence: a reader of one of the values below also reads the odd version,
        // or a later one.
        fence(Ordering::Release);
        self.end.store(done.end, Ordering::Relaxed);
        self.time.store(done.time, Ordering::Relaxed);
        let kind = u64::from(done.is_called) << 24 | u64::from(done.is_job) << 16;
        let levels = kind | u64::from(done.ceiling) << 8 | u64::from(done.level);
        self.levels.store(levels, Ordering::Relaxed);
        self.version.store(next + 1, Ordering::Release);
    }

    /// Returns `None` if it is being written.
    fn read(&self) -> Option<Done> {
        let version = self.version.load(Ordering::Acquire);
        let [end, time, levels] = [&self.end, &self.time, &self.levels].map(|it| it.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        let (level, ceiling) = (levels as u8, (levels >> 8) as u8);
        let (is_job, is_called) = ((levels >> 16) as u8 != 0, levels >> 24 != 0);
        is_whole.then_some(Done { end, time, level, ceiling, is_job, is_called })
    }
}

impl Recent {
    pub(crate) const fn new() -> Self {
        let entries = [const { Entry::new() }; CAPACITY];
        Self { next: AtomicU64::new(0), entries, switch: AtomicU64::new(0) }
    }

    /// Clears everything, while no job can run. `switch` is the kernel's cost to switch to a job
    /// and back.
    pub(crate) fn clear(&self, switch: u64) {
        self.switch.store(switch, Ordering::Relaxed);
        self.entries.iter().for_each(|entry| entry.end.store(0, Ordering::Relaxed));
    }

    pub(crate) fn add(&self, done: Done) {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % CAPACITY as u64;
        self.entries[place as usize].write(done);
    }

    /// Returns the part of the time from the release of a job at `level` to its start taken by
    /// preceding jobs and one critical section, and by switching to these jobs, in ns.
    pub(crate) fn waited_for(&self, release: u64, start: u64, level: u8) -> u64 {
        let mut done = [None; CAPACITY];
        let mut count = 0;
        // Latest first. An entry added before one that ended before the release also ended before
        // it, unless its thread was preempted before adding it: then it counts as lateness.
        let next = self.next.load(Ordering::Relaxed);
        let slots = (1..=CAPACITY as u64).map(|back| next.wrapping_sub(back) % CAPACITY as u64);
        let found = slots.filter_map(|place| self.entries[place as usize].read());
        let matters = |it: &Done| it.end <= start && (it.runs_before(level) || it.blocks(level));
        for found in found.take_while(|it| it.end > release).filter(matters) {
            done[count] = Some(found);
            count += 1;
        }
        let done = &mut done[..count];
        done.sort_unstable_by_key(|it| it.map_or(0, |it| it.end));
        // Once it is ready, a job waits for at most one section: the one that ended last, the
        // outermost.
        let last = done.iter().rposition(|it| it.is_some_and(|it| it.blocks(level)));
        let counts = |&(at, it): &(usize, &Done)| it.runs_before(level) || Some(at) == last;
        let counted = || done.iter().flatten().enumerate().filter(counts).map(|(_, it)| it);
        // An entry that began before the release took no more than the time since then.
        let jobs = counted().fold(0, |sum: u64, it| (sum + it.time).min(it.end - release));
        // Jobs of its own level run on its thread, and called ones on their caller's.
        let switched = counted().filter(|it| it.is_job && it.level > level && !it.is_called);
        jobs + switched.count() as u64 * self.switch.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(level: u8, end: u64, time: u64) -> Done {
        Done { end, time, level, ceiling: 0, is_job: true, is_called: false }
    }

    fn waited_for(done: &[Done], release: u64, start: u64, level: u8) -> u64 {
        let recent = Recent::new();
        done.iter().for_each(|&done| recent.add(done));
        recent.waited_for(release, start, level)
    }

    #[test]
    fn waits_for_higher_but_not_lower_jobs() {
        let done = [job(3, 90, 20), job(3, 130, 30), job(2, 150, 20), job(1, 155, 5)];
        assert_eq!(waited_for(&done, 100, 160, 2), 50);
        assert_eq!(waited_for(&done, 100, 160, 3), 30);
        assert_eq!(waited_for(&done, 100, 140, 2), 30, "what ended after the start ran inside");
    }

    #[test]
    fn interference_counts_from_release() {
        // The first ran from 50 to 110, and the second inside a third, from 20 to 180.
        assert_eq!(waited_for(&[job(2, 110, 60)], 100, 200, 2), 10);
        assert_eq!(waited_for(&[job(3, 150, 30), job(2, 180, 130)], 100, 200, 2), 80);
        assert_eq!(waited_for(&[job(3, 150, 30), job(2, 180, 20)], 100, 200, 2), 50);
    }

    #[test]
    fn one_lower_critical_section_blocks() {
        let section =
            |level, ceiling, end, time| Done { end, time, level, ceiling, is_job: false, is_called: false };
        assert_eq!(waited_for(&[section(1, 2, 120, 50)], 100, 130, 2), 20);
        assert_eq!(waited_for(&[section(1, 1, 120, 50)], 100, 130, 2), 0, "its ceiling is below");
        assert_eq!(waited_for(&[section(2, 3, 120, 50), job(2, 140, 60)], 100, 150, 2), 40, "twice");
        let nested = [section(1, 2, 115, 10), section(1, 2, 120, 15)];
        assert_eq!(waited_for(&nested, 100, 130, 2), 15);
    }

    #[test]
    fn nonpreemptible_job_blocks_higher_and_precedes_lower() {
        let polled = |level, end, time| Done { ceiling: u8::MAX, ..job(level, end, time) };
        assert_eq!(waited_for(&[polled(1, 120, 50), polled(3, 150, 30)], 100, 160, 2), 50);
    }

    #[test]
    fn switch_to_job_of_other_thread_is_not_lateness() {
        let recent = Recent::new();
        recent.clear(10);
        let called = Done { is_called: true, ..job(4, 130, 20) };
        [called, job(3, 150, 25), job(2, 170, 5), job(1, 180, 7)].iter().for_each(|&it| recent.add(it));
        assert_eq!(recent.waited_for(50, 190, 2), 20 + 25 + 10 + 5);
        // The switch from a job follows its end.
        assert_eq!(recent.waited_for(148, 160, 2), 2 + 10);
    }

    #[test]
    fn does_not_wait_for_forgotten_call() {
        let recent = Recent::new();
        (1..=100).for_each(|end| recent.add(job(1, end, 1)));
        assert_eq!(recent.waited_for(0, 100, 1), CAPACITY as u64);
    }

    #[test]
    fn reads_entries_consistently_during_writes() {
        let recent = Recent::new();
        std::thread::scope(|scope| {
            for level in [1, 2] {
                let recent = &recent;
                scope.spawn(move || {
                    (1..20_000).for_each(|end| recent.add(job(level, end, end * u64::from(level))))
                });
            }
            for _ in 0..2_000 {
                for done in recent.entries.iter().filter_map(Entry::read) {
                    assert_eq!(done.time, done.end * u64::from(done.level), "{done:?}");
                }
            }
        });
    }
}
