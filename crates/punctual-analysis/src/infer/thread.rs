//! What was seen of one thread: its jobs, one after the other.
//!
//! A recording shows when a thread sleeps, not why. Two readings are kept, as LiME does for each kind of sleep: that every sleep
//! ends a job ([`Reading::Sleeps`]), and that a job lasts from one release by a timer to the next, other sleeps being part of it
//! ([`Reading::Timers`]): self-suspension. [`Thread::reading`] says which explains the thread better.

use super::Window;
use super::curves::Curves;
use super::executions::Executions;
use super::periodic::{Grid, Periodic};
use crate::time::Nanos;

/// For so many releases distances are kept.
pub const RELEASES: usize = 64;
/// For so many consecutive jobs executions are added up.
pub const JOBS: usize = 32;

/// What a job may be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// What lies between two sleeps.
    Sleeps,
    /// What lies between two releases by a timer.
    Timers,
}

/// A job as a recording shows it, ended by a sleep. R is the sum of lateness, displacement, execution, waiting and suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Its number in the recording.
    pub number: u64,
    /// When it was released. None if that was not seen.
    pub released: Option<Window>,
    /// Whether a timer released it.
    pub by_timer: bool,
    /// When it ended.
    pub end: Nanos,
    /// How late it first ran, apart from what displaced it: the timer's lateness, the kernel's part before its first instruction,
    /// and what a thread below went on with.
    pub lateness: Nanos,
    /// C, with the switches to and from it.
    pub execution: Nanos,
    /// How long it waited for locks, or for threads below it that displaced it with an inherited priority or were given the CPU.
    pub waiting: Nanos,
    /// How often.
    pub waits: u64,
    /// How long it was asleep of its own accord.
    pub suspended: Nanos,
    /// How often.
    pub suspensions: u64,
    /// How long threads that are not below it and interrupts displaced it, from its release on.
    pub displaced: Nanos,
}

impl Observation {
    /// R, if the release was seen.
    #[must_use]
    pub fn response(&self) -> Option<Nanos> {
        Some(self.end.saturating_sub(self.released?.0))
    }

    /// Takes in what the same job did after a sleep.
    fn continue_with(&mut self, next: &Self) {
        // Until it is released again it is its own affair; from then until it runs, somebody else's.
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

/// The largest value of a term, and the job that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Largest {
    /// How much.
    pub ns: Nanos,
    /// The number of the job.
    pub job: u64,
    /// When it ended.
    pub end: Nanos,
}

impl Largest {
    fn see(&mut self, ns: Nanos, job: &Observation) {
        if ns > self.ns || self.end == 0 {
            *self = Self { ns, job: job.number, end: job.end };
        }
    }
}

/// What was seen of a thread's jobs, as one reading has them.
#[derive(Debug, Clone)]
pub struct Seen {
    /// How many jobs.
    pub jobs: u64,
    /// How far releases are apart.
    pub curves: Curves,
    /// The longest stretch of releases without a gap.
    grid: Grid,
    current: Grid,
    /// Their executions.
    pub executions: Executions,
    /// The job that took longest, as far as its release was seen.
    pub slowest: Option<Observation>,
    /// Of each term the largest.
    pub lateness: Largest,
    /// See [`Observation::waiting`].
    pub waiting: Largest,
    /// How often a job waited.
    pub waits: u64,
    /// See [`Observation::suspended`].
    pub suspended: Largest,
    /// How often a job was asleep.
    pub suspensions: u64,
    /// Waiting and suspension together.
    pub away: Largest,
    /// C of the job with the longest.
    pub execution: Largest,
    /// See [`Observation::displaced`].
    pub displaced: Largest,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            jobs: 0,
            curves: Curves::new(RELEASES),
            grid: Grid::default(),
            current: Grid::default(),
            executions: Executions::new(JOBS),
            slowest: None,
            lateness: Largest::default(),
            waiting: Largest::default(),
            waits: 0,
            suspended: Largest::default(),
            suspensions: 0,
            away: Largest::default(),
            execution: Largest::default(),
            displaced: Largest::default(),
        }
    }
}

impl Seen {
    fn push(&mut self, job: &Observation) {
        self.jobs += 1;
        self.executions.push(job.execution);
        match job.released {
            Some(window) => self.release(window),
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
        self.away.see(job.waiting.saturating_add(job.suspended), job);
        self.execution.see(job.execution, job);
        self.displaced.see(job.displaced, job);
    }

    fn release(&mut self, window: Window) {
        self.curves.push(window);
        self.current.push(window);
    }

    fn interrupt_releases(&mut self) {
        self.curves.interrupt();
        let ended = std::mem::take(&mut self.current);
        if ended.releases() > self.grid.releases() {
            self.grid = ended;
        }
    }

    fn interrupt(&mut self) {
        self.interrupt_releases();
        self.executions.interrupt();
    }

    fn grid(&self) -> &Grid {
        if self.current.releases() > self.grid.releases() { &self.current } else { &self.grid }
    }

    /// The periodic model that explains every release of the longest stretch without a gap, however uncertain.
    #[must_use]
    pub fn periodic(&self) -> Option<Periodic> {
        self.grid().certain()
    }

    /// A periodic model that explains releases that are possible, with the least jitter there can have been.
    #[must_use]
    pub fn possibly_periodic(&self) -> Option<Periodic> {
        self.grid().possible()
    }
}

/// A thread.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    sleeps: Seen,
    timers: Seen,
    /// The job from a timer's release on, as long as the next is not released.
    open: Option<Observation>,
    by_timer: u64,
    otherwise: u64,
}

impl Thread {
    /// Takes in the next job.
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

    /// Takes in the release of a job of which no more is known.
    pub fn release(&mut self, window: Window) {
        self.sleeps.release(window);
        self.sleeps.executions.interrupt();
        self.open = None;
        self.timers.interrupt();
    }

    /// Jobs may be missing here.
    pub fn interrupt(&mut self) {
        self.sleeps.interrupt();
        // How the job went on was not seen.
        self.open = None;
        self.timers.interrupt();
    }

    /// No jobs follow.
    pub fn finish(&mut self) {
        self.close();
    }

    fn close(&mut self) {
        if let Some(job) = self.open.take() {
            self.timers.push(&job);
        }
    }

    /// That jobs last from timer to timer explains the thread if it sleeps for other reasons, too, and its timers alone are
    /// periodic within a quarter of the period. Timers that end waits for something else, such as time-outs, are not.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let is_grid = |model: Periodic| model.jitter < model.period / 4;
        match self.by_timer >= 3 && self.otherwise > 0 && self.timers.periodic().is_some_and(is_grid) {
            true => Reading::Timers,
            false => Reading::Sleeps,
        }
    }

    /// What was seen, in this reading.
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

    /// Each job asks a device for something: it sleeps from 13 to 50 after its release.
    #[test]
    fn merges_what_lies_between_two_timers() {
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
    fn takes_time_outs_for_jobs_of_their_own() {
        let mut thread = Thread::default();
        for (at, released) in [0, 700, 4_000, 5_100, 5_900, 11_000].into_iter().enumerate() {
            thread.push(&job(at as u64, released, at % 2 == 0, 10));
        }
        thread.finish();
        assert_eq!(thread.reading(), Reading::Sleeps);
        assert_eq!(thread.seen(thread.reading()).jobs, 6);
    }

    #[test]
    fn fits_period_to_longest_stretch_without_gap() {
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
