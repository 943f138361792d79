//! Observations of one thread: its jobs in order.
//!
//! A recording shows when a thread sleeps, but not why. Two interpretations are maintained, as LiME
//! does for each kind of sleep: every sleep ends a job ([`Reading::Sleeps`]), or a job lasts from
//! one timer release to the next and contains the other sleeps as self-suspension
//! ([`Reading::Timers`]). [`Thread::reading`] selects the one that explains the thread better.

use super::Window;
use super::curves::Curves;
use super::executions::Executions;
use super::periodic::{Grid, Periodic};
use crate::time::Nanos;

/// Number of releases whose distances are recorded.
pub const RELEASES: usize = 64;
/// Number of consecutive jobs whose execution times are summed.
pub const JOBS: usize = 32;

/// Interpretation of sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// A job lasts from one sleep to the next.
    Sleeps,
    /// A job lasts from one timer release to the next.
    Timers,
}

/// A recorded job that ended in a sleep. R is the sum of lateness, displacement, execution, waiting
/// and suspension. Times are in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Number of the job in the recording.
    pub number: u64,
    /// Release instant; `None` if it was not recorded.
    pub released: Option<Window>,
    /// True if a timer released the job.
    pub by_timer: bool,
    /// End instant.
    pub end: Nanos,
    /// Lateness of the first run without displacement: the timer's lateness, the kernel's work
    /// before the first instruction, and the rest of a lower thread's section.
    pub lateness: Nanos,
    /// C, with the switches to and from the thread.
    pub execution: Nanos,
    /// Time spent waiting for locks, or for lower threads that ran with an inherited priority or by
    /// being handed the CPU.
    pub waiting: Nanos,
    /// Number of waits.
    pub waits: u64,
    /// Time of voluntary sleeps.
    pub suspended: Nanos,
    /// Number of voluntary sleeps.
    pub suspensions: u64,
    /// Displacement by interrupts and threads that are not below, from the release on.
    pub displaced: Nanos,
}

impl Observation {
    /// Returns R, if the release was recorded.
    #[must_use]
    pub fn response(&self) -> Option<Nanos> {
        Some(self.end.saturating_sub(self.released?.0))
    }

    /// Appends what the same job did after a sleep.
    fn continue_with(&mut self, next: &Self) {
        // The sleep is voluntary until the next release; from then until it runs, other threads
        // delay the job.
        let from = next.released.map_or(self.end, |window| window.0.max(self.end));
        self.suspended = self.suspended.saturating_add(from - self.end).saturating_add(next.suspended);
        self.suspensions = self.suspensions.saturating_add(next.suspensions).saturating_add(1);
        self.waiting = self.waiting.saturating_add(next.waiting).saturating_add(next.lateness);
        self.waits = self.waits.saturating_add(next.waits);
        self.execution = self.execution.saturating_add(next.execution);
        self.displaced = self.displaced.saturating_add(next.displaced);
        self.end = next.end.max(self.end);
    }
}

/// Largest value of a term, and the job in which it occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Largest {
    /// Value in ns.
    pub ns: Nanos,
    /// Number of the job.
    pub job: u64,
    /// End of the job, in ns.
    pub end: Nanos,
}

impl Largest {
    fn see(&mut self, ns: Nanos, job: &Observation) {
        if ns > self.ns || self.end == 0 {
            *self = Self { ns, job: job.number, end: job.end };
        }
    }
}

/// Releases without a gap in the recording.
#[derive(Debug, Clone, Default)]
struct Stretch {
    grid: Grid,
    /// The same, for timers that may skip periods, until something else releases a job.
    timers: Grid,
    /// True if anything but timers released a job.
    has_others: bool,
}

impl Stretch {
    fn push(&mut self, window: Window, by_timer: bool) {
        self.grid.push(window);
        self.has_others |= !by_timer;
        if !self.has_others {
            self.timers.push_after_skips(window);
        }
    }

    /// Returns the model of all releases. A late thread may let its timer skip periods; then only
    /// the expiry times show T.
    fn periodic(&self) -> Option<Periodic> {
        let all = self.grid.certain();
        if self.has_others || all.is_some_and(|model| model.jitter < model.period / 2) {
            return all;
        }
        self.timers.certain().filter(|model| model.jitter < model.period / 16).or(all)
    }
}

/// Observations of a thread's jobs under one interpretation.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Number of jobs.
    pub jobs: u64,
    /// Distances between releases.
    pub curves: Curves,
    longest: Stretch,
    current: Stretch,
    /// Execution times.
    pub executions: Executions,
    /// Sums of waiting and suspension.
    pub aways: Executions,
    /// Job with the longest recorded response.
    pub slowest: Option<Observation>,
    /// Largest [`Observation::lateness`].
    pub lateness: Largest,
    /// Largest [`Observation::waiting`].
    pub waiting: Largest,
    /// Largest number of waits of a job.
    pub waits: u64,
    /// Largest [`Observation::suspended`].
    pub suspended: Largest,
    /// Largest number of voluntary sleeps of a job.
    pub suspensions: u64,
    /// Largest [`Observation::execution`].
    pub execution: Largest,
    /// Largest [`Observation::displaced`].
    pub displaced: Largest,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            jobs: 0,
            curves: Curves::new(RELEASES),
            longest: Stretch::default(),
            current: Stretch::default(),
            executions: Executions::new(JOBS),
            aways: Executions::new(JOBS),
            slowest: None,
            lateness: Largest::default(),
            waiting: Largest::default(),
            waits: 0,
            suspended: Largest::default(),
            suspensions: 0,
            execution: Largest::default(),
            displaced: Largest::default(),
        }
    }
}

impl Seen {
    fn push(&mut self, job: &Observation) {
        self.jobs += 1;
        self.executions.push(job.execution);
        self.aways.push(job.waiting.saturating_add(job.suspended));
        match job.released {
            Some(window) => self.release(window, job.by_timer),
            None => self.interrupt_releases(),
        }
        let slowest = self.slowest.and_then(|slowest| slowest.response());
        if job.response().is_some_and(|response| slowest.is_none_or(|slowest| response > slowest)) {
            self.slowest = Some(*job);
        }
        self.lateness.see(job.lateness, job);
        self.waiting.see(job.waiting, job);
        self.waits = self.waits.max(job.waits);
        self.suspended.see(job.suspended, job);
        self.suspensions = self.suspensions.max(job.suspensions);
        self.execution.see(job.execution, job);
        self.displaced.see(job.displaced, job);
    }

    fn release(&mut self, window: Window, by_timer: bool) {
        self.curves.push(window);
        self.current.push(window, by_timer);
    }

    fn interrupt_releases(&mut self) {
        self.curves.interrupt();
        let ended = std::mem::take(&mut self.current);
        if ended.grid.releases() > self.longest.grid.releases() {
            self.longest = ended;
        }
    }

    fn interrupt(&mut self) {
        self.interrupt_releases();
        self.executions.interrupt();
        self.aways.interrupt();
    }

    fn stretch(&self) -> &Stretch {
        let is_longest = self.current.grid.releases() > self.longest.grid.releases();
        if is_longest { &self.current } else { &self.longest }
    }

    /// Returns the periodic model that explains every release of the longest stretch without a gap,
    /// however uncertain. Timers may skip periods.
    #[must_use]
    pub fn periodic(&self) -> Option<Periodic> {
        self.stretch().periodic()
    }

    /// Returns a periodic model that explains possible releases with the least possible jitter.
    #[must_use]
    pub fn possibly_periodic(&self) -> Option<Periodic> {
        self.stretch().grid.possible()
    }
}

/// A thread, observed under both interpretations.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    sleeps: Seen,
    timers: Seen,
    /// Job released by a timer, until the next timer release.
    open: Option<Observation>,
    by_timer: u64,
    otherwise: u64,
}

impl Thread {
    /// Adds the next job.
    pub fn push(&mut self, job: &Observation) {
        self.sleeps.push(job);
        if job.by_timer {
            self.by_timer += 1;
            self.close();
            self.open = Some(*job);
        } else {
            self.otherwise += 1;
            if let Some(open) = &mut self.open {
                open.continue_with(job);
            }
        }
    }

    /// Adds the release of a job without further information; `by_timer` if a timer released it.
    pub fn release(&mut self, window: Window, by_timer: bool) {
        self.sleeps.release(window, by_timer);
        self.sleeps.executions.interrupt();
        self.sleeps.aways.interrupt();
        self.open = None;
        self.timers.interrupt();
    }

    /// Marks a gap in the recording.
    pub fn interrupt(&mut self) {
        self.sleeps.interrupt();
        // The rest of the open job was not recorded.
        self.open = None;
        self.timers.interrupt();
    }

    /// Ends the sequence of jobs.
    pub fn finish(&mut self) {
        self.close();
    }

    fn close(&mut self) {
        if let Some(job) = self.open.take() {
            self.timers.push(&job);
        }
    }

    /// Selects an interpretation. Jobs last from timer to timer if the thread also sleeps for other
    /// reasons and its timers alone are periodic within a quarter of the period. Time-outs, which
    /// end other waits, are not.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let is_grid = |model: Periodic| model.jitter < model.period / 4;
        match self.by_timer >= 3 && self.otherwise > 0 && self.timers.periodic().is_some_and(is_grid) {
            true => Reading::Timers,
            false => Reading::Sleeps,
        }
    }

    /// Returns the observations under an interpretation.
    #[must_use]
    pub fn seen(&self, reading: Reading) -> &Seen {
        match reading {
            Reading::Sleeps => &self.sleeps,
            Reading::Timers => &self.timers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, released: Nanos, by_timer: bool, execution: Nanos) -> Observation {
        Observation {
            number,
            released: Some((released, released)),
            by_timer,
            end: released + 3 + execution,
            lateness: 3,
            execution,
            waiting: 0,
            waits: 0,
            suspended: 0,
            suspensions: 0,
            displaced: 0,
        }
    }

    /// Each job queries a device: it sleeps from 13 to 50 after its release.
    #[test]
    fn merges_wake_ups_between_two_timers() {
        let mut thread = Thread::default();
        for at in 0..10 {
            thread.push(&job(2 * at, at * 1000, true, 10));
            thread.push(&job(2 * at + 1, at * 1000 + 50, false, 20));
        }
        thread.finish();
        assert_eq!(thread.reading(), Reading::Timers);
        let seen = thread.seen(Reading::Timers);
        assert_eq!(seen.periodic(), Some(Periodic { period: 1000, offset: 0, jitter: 0 }));
        assert_eq!((seen.jobs, seen.execution.ns), (10, 30));
        assert_eq!((seen.suspended.ns, seen.suspensions), (37, 1));
        assert_eq!((seen.lateness.ns, seen.waiting.ns), (3, 3));
        let slowest = seen.slowest.unwrap();
        assert_eq!(slowest.response(), Some(73));
        let Observation { lateness, execution, waiting, suspended, displaced, .. } = slowest;
        assert_eq!(lateness + execution + waiting + suspended + displaced, 73);
        assert_eq!(thread.seen(Reading::Sleeps).curves.least()[0], 50);
    }

    #[test]
    fn counts_timeouts_as_jobs() {
        let mut thread = Thread::default();
        for (at, released) in [0, 700, 4_000, 5_100, 5_900, 11_000].into_iter().enumerate() {
            thread.push(&job(at as u64, released, at % 2 == 0, 10));
        }
        thread.finish();
        assert_eq!(thread.reading(), Reading::Sleeps);
        assert_eq!(thread.seen(thread.reading()).jobs, 6);
    }

    /// A late job lets its timer skip the releases at 3000, 5000 and 6000.
    #[test]
    fn timers_alone_show_period_if_they_skip() {
        let seen = |by_timer: bool| {
            let mut thread = Thread::default();
            for at in [0, 1_000, 2_000, 4_000, 7_000, 8_000, 9_000] {
                thread.push(&job(at, 500 + at, by_timer, 1));
            }
            thread.finish();
            thread.seen(Reading::Sleeps).periodic()
        };
        assert_eq!(seen(true), Some(Periodic { period: 1_000, offset: 500, jitter: 0 }));
        assert!(seen(false).is_none_or(|model| model.jitter >= model.period / 2));
    }

    #[test]
    fn fits_period_to_longest_gapless_stretch() {
        let mut thread = Thread::default();
        [0, 100, 200].into_iter().for_each(|at| thread.push(&job(0, at, true, 1)));
        thread.interrupt();
        (0..5).for_each(|at| thread.push(&job(0, 1_050 + at * 90, true, 1)));
        thread.finish();
        let seen = thread.seen(Reading::Sleeps);
        assert_eq!(seen.periodic().map(|model| (model.period, model.jitter)), Some((90, 0)));
        assert_eq!((seen.jobs, seen.curves.stretches()), (8, 2));
    }
}
