//! Periodic releases on an absolute grid, and the handling of jobs that overrun.
//!
//! A periodic task is released at `start + offset + n * period`, regardless of earlier lateness:
//! the grid does not drift. A release that finds the previous job unfinished *at that grid point*
//! is an overrun; it is always counted, and the declared policy decides how it is handled, by
//! one of the [reactions](Reaction) of the executor.
//!
//! A grid that follows another clock moves by at most `1 / MAX_ADJUSTMENT` of the period from one
//! grid point to the next: see [`Periodic::set_distance`].
//!
//! Only one thread, the level's worker, uses these functions, except for [`Periodic::completed`],
//! [`Periodic::next_release`] and [`Periodic::set_distance`], which the thread that ran the job
//! calls.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, const_new};
use crate::timers::NEVER;
use crate::{Duration, Instant};

/// Reaction of the executor to an overrun.
#[derive(Debug, Clone, Copy)]
pub enum Reaction {
    /// The release is skipped.
    Skip,
    /// The release waits, up to the task's capacity of unfinished jobs; above that, it is skipped.
    Queue,
    /// The release is skipped, and this function called, which stops the app or spawns a task.
    Call(fn()),
}

/// The part of a period by which [`Periodic::set_distance`] moves a grid point at most: 0.1 %,
/// which is 1000 ppm.
pub const MAX_ADJUSTMENT: u64 = 1_000;

/// One task's grid of releases.
#[derive(Debug)]
pub struct Periodic {
    base: u32,
    capacity: u32,
    period: u64,
    offset: u64,
    /// The distance from one grid point to the next. Written by the thread that ran the job.
    distance: AtomicU64,
    reaction: Reaction,
    next: AtomicU64,
    /// The position of the next job's node.
    position: AtomicU32,
    /// The number of released jobs, modulo 2^32. Written by the releasing thread.
    released: AtomicU32,
    /// The number of these that have ended. Written by the thread that ran the job: one at a time,
    /// since jobs of one level exclude each other.
    ended: AtomicU32,
    last_end: AtomicU64,
    overruns: AtomicU64,
}

/// The result of a due release.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Queue this node, released at this time (ns).
    Release(u32, u64),
    /// The release is omitted.
    Skipped,
}

impl Periodic {
    const_new! {
        /// Creates a task whose `capacity` nodes start at `base` in its level.
        pub fn new(
            base: u32,
            capacity: u32,
            period: Duration,
            offset: Duration,
            reaction: Reaction,
        ) -> Self {
            assert!(period.as_ticks() > 0, "a period is longer than zero");
            assert!(capacity > 0, "a task has a capacity of at least one");
            assert!(base.checked_add(capacity).is_some(), "nodes are numbered in 32 bits");
            Self {
                base,
                capacity,
                period: period.as_ticks(),
                offset: offset.as_ticks(),
                distance: AtomicU64::new(period.as_ticks()),
                reaction,
                next: AtomicU64::new(NEVER),
                position: AtomicU32::new(0),
                released: AtomicU32::new(0),
                ended: AtomicU32::new(0),
                last_end: AtomicU64::new(0),
                overruns: AtomicU64::new(0),
            }
        }
    }

    /// Starts the grid: the first release is at `start + offset`.
    pub fn start(&self, start: Instant) {
        let first = start.as_ticks().saturating_add(self.offset);
        self.position.store(0, Ordering::Relaxed);
        self.released.store(0, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
        self.last_end.store(0, Ordering::Relaxed);
        self.overruns.store(0, Ordering::Relaxed);
        self.distance.store(self.period, Ordering::Relaxed);
        // Last, and Release: the worker is awake and may release the first job before this returns.
        self.next.store(first, Ordering::Release);
    }

    /// Removes the grid.
    pub(crate) fn reset(&self) {
        self.next.store(NEVER, Ordering::Relaxed);
    }

    /// Returns the next grid point in ns, or [`NEVER`] if the grid has not started or the clock
    /// ends first.
    pub(crate) fn next(&self) -> u64 {
        // Acquire: a thread that sees the grid point sees the started grid.
        self.next.load(Ordering::Acquire)
    }

    /// Returns the next grid point, or `None` if the grid has not started or the clock ends first.
    ///
    /// Real-time safety: a load.
    pub fn next_release(&self) -> Option<Instant> {
        Some(self.next()).filter(|&next| next != NEVER).map(Instant::from_ticks)
    }

    /// Sets the distance between the grid points after the [next](Self::next_release), within the
    /// limits of [`MAX_ADJUSTMENT`], and returns the applied one. It holds until the next call or
    /// [start](Self::start).
    ///
    /// Real-time safety: a store.
    pub fn set_distance(&self, distance: Duration) -> Duration {
        let shortest = Self::shortest(Duration::from_ticks(self.period)).as_ticks();
        let longest = self.period.saturating_add(self.period - shortest);
        let applied = distance.as_ticks().clamp(shortest, longest);
        // Relaxed: the number publishes nothing else, and a release may still apply the previous
        // one.
        self.distance.store(applied, Ordering::Relaxed);
        Duration::from_ticks(applied)
    }

    /// Returns the distance that applies after the [next](Self::next_release) grid point.
    pub fn distance(&self) -> Duration {
        Duration::from_ticks(self.distance.load(Ordering::Relaxed))
    }

    /// Returns the shortest distance that [`set_distance`](Self::set_distance) permits for a
    /// period.
    #[must_use]
    pub const fn shortest(period: Duration) -> Duration {
        Duration::from_ticks(period.as_ticks() - period.as_ticks() / MAX_ADJUSTMENT)
    }

    /// Returns the number of releases that found their predecessor unfinished.
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Relaxed)
    }

    /// Records that the job of the oldest unfinished release ended at `end`. For the thread that
    /// occupies the level.
    #[inline]
    pub fn completed(&self, end: Instant) {
        self.last_end.store(end.as_ticks(), Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Relaxed).wrapping_add(1);
        // Release: the releasing thread sees `last_end` once it sees the count.
        self.ended.store(ended, Ordering::Release);
    }

    /// Returns the number of this task's nodes.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns `true` if `node` is one of this task's.
    #[inline]
    pub fn owns(&self, node: u32) -> bool {
        (self.base..self.base + self.capacity).contains(&node)
    }

    /// Handles the current grid point and advances to the next.
    #[inline]
    pub(crate) fn release(&self) -> Due {
        let time = self.next.load(Ordering::Relaxed);
        let distance = self.distance.load(Ordering::Relaxed);
        self.next.store(time.saturating_add(distance), Ordering::Relaxed);
        let released = self.released.load(Ordering::Relaxed);
        let unfinished = released.wrapping_sub(self.ended.load(Ordering::Acquire));
        // A job that has ended since may still have been running at the grid point.
        let overruns = unfinished > 0 || self.last_end.load(Ordering::Relaxed) > time;
        if overruns && !self.queues_overrun(unfinished) {
            return Due::Skipped;
        }
        // Jobs of one task finish in the order of their release, so the nodes are free in rotation.
        self.released.store(released.wrapping_add(1), Ordering::Relaxed);
        let position = self.position.load(Ordering::Relaxed);
        let following = position + 1;
        self.position.store(if following == self.capacity { 0 } else { following }, Ordering::Relaxed);
        Due::Release(self.base + position, time)
    }

    /// Counts an overrun and reacts to it; returns `true` if a job is released nevertheless.
    #[cold]
    #[inline(never)]
    fn queues_overrun(&self, unfinished: u32) -> bool {
        self.overruns.fetch_add(1, Ordering::Relaxed);
        match self.reaction {
            Reaction::Queue => unfinished < self.capacity,
            Reaction::Skip => false,
            Reaction::Call(function) => {
                function();
                false
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const T: u64 = 100;

    fn task(reaction: Reaction, capacity: u32) -> Periodic {
        let task = Periodic::new(7, capacity, Duration::from_ticks(T), Duration::from_ticks(10), reaction);
        task.start(Instant::from_ticks(1_000));
        task
    }

    fn end(task: &Periodic, at: u64) {
        task.completed(Instant::from_ticks(at));
    }

    #[test]
    fn grid_is_absolute() {
        let task = task(Reaction::Skip, 1);
        for n in 0..5 {
            let time = 1_010 + n * T;
            assert_eq!(task.next(), time);
            assert_eq!(task.release(), Due::Release(7, time));
            end(&task, time + 33);
        }
        assert_eq!(task.overruns(), 0);
    }

    #[test]
    fn skip_omits_grid_points_during_job() {
        let task = task(Reaction::Skip, 1);
        assert_eq!(task.release(), Due::Release(7, 1_010));
        assert_eq!(task.release(), Due::Skipped, "1110, while running");
        end(&task, 1_250);
        assert_eq!(task.release(), Due::Skipped, "1210, seen only after the job ended");
        assert_eq!(task.release(), Due::Release(7, 1_310));
        assert_eq!(task.overruns(), 2);
    }

    #[test]
    fn job_that_ends_at_grid_point_is_on_time() {
        let task = task(Reaction::Skip, 1);
        assert_eq!(task.release(), Due::Release(7, 1_010));
        end(&task, 1_110);
        assert_eq!(task.release(), Due::Release(7, 1_110));
        assert_eq!(task.overruns(), 0);
    }

    #[test]
    fn overrun_calls_hook() {
        static CALLED: AtomicU32 = AtomicU32::new(0);
        let hook = || {
            CALLED.fetch_add(1, Ordering::Relaxed);
        };
        let (period, offset) = (Duration::from_ticks(T), Duration::from_ticks(0));
        let task = Periodic::new(0, 2, period, offset, Reaction::Call(hook));
        task.start(Instant::from_ticks(0));
        assert_eq!((task.release(), CALLED.load(Ordering::Relaxed)), (Due::Release(0, 0), 0));
        assert_eq!((task.release(), CALLED.load(Ordering::Relaxed)), (Due::Skipped, 1));
    }

    #[test]
    fn restarted_grid_begins_at_its_new_origin() {
        let task = task(Reaction::Queue, 3);
        assert_eq!(task.release(), Due::Release(7, 1_010));
        assert_eq!(task.release(), Due::Release(8, 1_110));
        end(&task, 5_000);
        task.reset();
        assert_eq!(task.next(), NEVER);
        task.start(Instant::from_ticks(2_000));
        assert_eq!(task.overruns(), 0);
        assert_eq!(task.release(), Due::Release(7, 2_010), "the first node, and no overrun");
        assert_eq!(task.overruns(), 0);
    }

    #[test]
    fn grid_ends_with_clock() {
        let task = task(Reaction::Skip, 1);
        task.start(Instant::from_ticks(u64::MAX - T));
        assert_eq!(task.release(), Due::Release(7, u64::MAX - T + 10));
        assert_eq!(task.next(), NEVER);
        task.start(Instant::from_ticks(u64::MAX - 5));
        assert_eq!(task.next(), NEVER, "the offset is after the end of the clock");
    }

    #[test]
    fn distance_is_limited_and_applies_after_next_release() {
        let ticks = Duration::from_ticks;
        let task = Periodic::new(7, 1, ticks(10_000), ticks(0), Reaction::Skip);
        assert_eq!(task.next_release(), None);
        task.start(Instant::from_ticks(0));
        assert_eq!(task.set_distance(ticks(10_003)), ticks(10_003));
        assert_eq!(
            (task.release(), task.next_release()),
            (Due::Release(7, 0), Some(Instant::from_ticks(10_003)))
        );
        end(&task, 5);
        assert_eq!(task.set_distance(ticks(0)), ticks(9_990));
        assert_eq!(Periodic::shortest(ticks(10_000)), ticks(9_990));
        task.release();
        end(&task, 10_004);
        assert_eq!(task.next(), 19_993);
        assert_eq!(task.set_distance(ticks(u64::MAX)), ticks(10_010));
        task.release();
        assert_eq!(task.next(), 30_003);
        task.start(Instant::from_ticks(50_000));
        task.release();
        assert_eq!(task.next(), 60_000, "a new grid has its period");
    }

    #[test]
    fn owns_only_its_nodes() {
        let task = task(Reaction::Skip, 2);
        assert_eq!([6, 7, 8, 9].map(|node| task.owns(node)), [false, true, true, false]);
    }

    #[test]
    fn shortest_period_is_one_tick() {
        let (tick, zero) = (Duration::from_ticks(1), Duration::from_ticks(0));
        let task = Periodic::new(0, 1, tick, zero, Reaction::Skip);
        task.start(Instant::from_ticks(5));
        assert_eq!((task.release(), task.next()), (Due::Release(0, 5), 6));
    }

    #[test]
    #[should_panic(expected = "longer than zero")]
    fn rejects_zero_period() {
        Periodic::new(0, 1, Duration::from_ticks(0), Duration::from_ticks(0), Reaction::Skip);
    }

    #[test]
    #[should_panic(expected = "at least one")]
    fn rejects_zero_capacity() {
        Periodic::new(0, 0, Duration::from_ticks(T), Duration::from_ticks(0), Reaction::Skip);
    }

    #[test]
    fn queue_policy_releases_up_to_capacity_at_nominal_times() {
        let task = task(Reaction::Queue, 2);
        assert_eq!(task.release(), Due::Release(7, 1_010));
        assert_eq!(task.release(), Due::Release(8, 1_110));
        assert_eq!(task.release(), Due::Skipped);
        end(&task, 1_215);
        assert_eq!(task.release(), Due::Release(7, 1_310));
        assert_eq!(task.overruns(), 3);
    }
}
