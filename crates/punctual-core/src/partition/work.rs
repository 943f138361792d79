//! Timed releases of a level, and the main loop of its worker: release, serve, sleep.

use super::dispatch::{Dispatch, VariantOf};
use super::{Partition, Preemption};
use crate::Instant;
use crate::atomic::{Ordering, fence};
use crate::current::CurrentWorker;
use crate::jobs::Popped;
use crate::level::{Level, Stamp};
use crate::port::Port;
use crate::timers::NEVER;
use crate::word::Word;

/// What a worker does after it has [kept the time](Partition::keep_time) of its level.
enum Next {
    /// Serves the ready levels, which can start at this time, and sleeps.
    Serve(Stamp),
    /// Sleeps: no level was ready at this time, at which no job was due.
    Sleep(Stamp),
}

impl<P: Port> Partition<P> {
    /// Releases the jobs that are due before the next job of a level whose occupant and timekeeper
    /// this thread is; returns the time, if known.
    #[inline]
    pub(super) fn release_between_jobs(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
        now: Stamp,
    ) -> Stamp {
        if me.polls() {
            return self.serve_higher(me, level, now);
        }
        if !level.is_timed() || self.is_stopping() {
            return now;
        }
        let about = now.unwrap_or_else(|| self.port.stamp());
        if !Self::may_be_due_by(level, about) {
            return Some(about);
        }
        // The clock decides which jobs are due, so that none is released early.
        let time = self.port.now();
        // SAFETY: this is the level's worker, and occupies the level.
        unsafe { level.release_due_in_place(time) };
        Some(time)
    }

    /// Returns `true` if a job of `level` may be due at `stamp`, within the error of a stamp.
    #[inline]
    fn may_be_due_by(level: &Level, stamp: Instant) -> bool {
        level.may_be_due(stamp.as_ticks().saturating_add(P::STAMP_ERROR.as_ticks()))
    }

    /// Wakes the worker of `level` if it sleeps until after `time`, for which a timer was armed.
    pub fn armed(&self, level: &'static Level, time: Instant) {
        if self.announce_timer(level, time) {
            self.port.wake(level.worker());
        }
    }

    /// As [`armed`](Self::armed), but returns `true` instead of waking the worker, which the caller
    /// then does by `armed`.
    #[inline(always)]
    pub fn announce_timer(&self, level: &'static Level, time: Instant) -> bool {
        VariantOf::<P>::announce_timer(self, level, time)
    }

    /// Releases all jobs of `level` that are due at `now`, and marks it ready. For the level's
    /// timekeeper: its worker, or the thread that runs every level.
    ///
    /// # Panics
    /// If `me` is not the timekeeper.
    pub fn release_due(&self, me: CurrentWorker, level: &'static Level, now: Instant) -> bool {
        assert!(me.is(level.worker()) || me.is_alone(), "another thread keeps the level's time");
        // SAFETY: `me` is the level's worker, or the one thread of the partition that runs jobs, so
        // it is the level's timekeeper.
        let any = unsafe { level.release_due(now) };
        if any {
            self.mark_ready(level);
        }
        any
    }

    /// Releases the jobs due at `level`, whose worker is `me`, as [`work`](Self::work) has checked.
    ///
    /// If the level can be occupied at once, and no level at or above it is ready, it is occupied
    /// before the release, and the first due job bypasses inbox, mark and queue. When this function
    /// returns, that job and all others that were due have run. Otherwise the release takes the
    /// normal path. The conditions (the level is above the partition's, and no such level is ready)
    /// are those under which rule 2 serves the level.
    ///
    /// Usually that job is the only one, and no level is ready when it has ended: then there is
    /// nothing to [serve](Self::serve), and no level waits for an ordinary thread to be boosted. A
    /// thread that marks a level later finds this level vacated, and is responsible for the mark.
    ///
    /// With a time that the clock has `reached`, for which the worker slept, the clock is not read,
    /// and jobs that have become due since wait for the next check. So do timers armed during the
    /// sleep, which are due no earlier: a thread that [arms](Self::armed) an earlier one wakes the
    /// worker. Inserting a thousand of them would delay the job.
    fn keep_time(&'static self, me: CurrentWorker, level: &'static Level, reached: Option<Instant>) -> Next {
        let now = match reached {
            Some(reached) => reached,
            None if level.is_timed() => self.port.now(),
            None => return Next::Serve(None),
        };
        let stamp = if reached.is_none() { Some(now) } else { None };
        // SAFETY: this is the level's worker.
        if reached.is_none() && unsafe { level.next() } > now.as_ticks() {
            return Next::Serve(None);
        }
        let number = level.number();
        if !self.snapshot().goes_first(number) || !self.start(me, number, true) {
            let any = self.release_due(me, level, now);
            return Next::Serve(stamp.filter(|_| any));
        }
        let preemption = Preemption::enter(self, me, level);
        // SAFETY: this is the level's worker, and occupies the level. The node it has taken is one
        // of the level's.
        let (end, has_more) = unsafe {
            let end: Stamp = match level.take_due() {
                (Some(node), _) => level.waiting().run(me, Popped::of(node), stamp.into()).into(),
                (None, _) => stamp,
            };
            (end, level.has_jobs() || end.is_none_or(|end| Self::may_be_due_by(level, end)))
        };
        if has_more {
            preemption.finish(end);
            return Next::Serve(None);
        }
        let word = preemption.running.leave();
        if !word.has_requests() {
            return Next::Sleep(end);
        }
        if word.may_have_work() {
            self.after_lowering(me, word, end);
        }
        Next::Serve(None)
    }

    /// The main loop of a level's worker: release, serve, sleep; returns once the partition is
    /// stopping.
    ///
    /// Implements rule 4: if the level is ready but cannot start, it stays marked, and the worker
    /// sleeps.
    ///
    /// # Panics
    /// If `level` is not one of this partition's, or `me` is not its worker.
    pub fn work(&'static self, me: CurrentWorker, level: &'static Level) {
        assert!(me.is(level.worker()), "a level is worked by its own worker");
        assert!(self.levels.iter().any(|l| core::ptr::eq(*l, level)), "the level is of another partition");
        let by_clock = level.is_released_by_clock();
        let mut reached = None;
        while !self.is_stopping() {
            let now = match self.keep_time(me, level, reached) {
                Next::Sleep(now) => now,
                Next::Serve(now) => {
                    self.serve(me, now);
                    if self.boost_ordinary_holder(me, level.number()) {
                        reached = None;
                        continue;
                    }
                    None
                }
            };
            reached = self.sleep(me, level, now, by_clock);
        }
        self.finish(me, level);
    }

    /// Runs the jobs still ready at `level`, or waits until another thread has run them.
    ///
    /// No wake will come: `stop` has woken every worker, and a thread that serves the level does
    /// not wake its worker. So this thread registers as a waiter. It does not `serve`, since a
    /// higher level may be ready whose worker has ended.
    pub(crate) fn finish(&'static self, me: CurrentWorker, level: &'static Level) {
        let number = level.number();
        while self.snapshot().is_ready(number) {
            if self.start(me, number, false) {
                Preemption::enter(self, me, level).finish(None);
            } else {
                self.wait_for_word(me, |word| !word.is_ready(number) || word.level() < number);
            }
        }
    }

    /// Runs `job` at `level` once no level at or above it is occupied, and then the jobs that have
    /// become ready there. For the thread that runs the level, after its last job: unlike
    /// [`call`](Self::call), this function waits.
    ///
    /// # Safety
    /// `level` is one of this partition's, and `me` may run its jobs.
    pub unsafe fn run_last(&'static self, me: CurrentWorker, level: &'static Level, job: impl FnOnce()) {
        let number = level.number();
        while !self.start(me, number, false) {
            self.wait_for_word(me, |word| word.level() < number);
        }
        let preemption = Preemption::enter(self, me, level);
        job();
        preemption.finish(None);
    }

    /// Returns the earliest time for which a thread of the partition sleeps, or `until` if that is
    /// earlier: a spin that ends by then delays no thread.
    fn first_time(&self, until: Option<Instant>) -> Option<Instant> {
        // Relaxed: a thread that goes to sleep later for an earlier time is delayed until the end
        // of the spin, which is bounded.
        let times = self.workers.iter().map(|worker| worker.sleeps_until.load(Ordering::Relaxed));
        let first = times.filter(|&time| time != 0 && time != NEVER).min().map(Instant::from_ticks);
        match (first, until) {
            (Some(first), Some(until)) => Some(first.min(until)),
            (first, until) => first.or(until),
        }
    }

    /// Sleeps until a job is due at `level` or another thread wakes this one; returns the time that
    /// the clock has reached, if known.
    ///
    /// If the level is [released by the clock](Level::is_released_by_clock) and not ready, the
    /// thread [sleeps for its job](Port::sleep_until) without attention to wakes. Another thread
    /// wakes this one only to stop it, to have it run a ready level, or because it has armed an
    /// earlier timer. Such a level has no timers, and is marked ready by this thread alone, except
    /// by a panic in one of its jobs, which stops the app.
    fn sleep(&self, me: CurrentWorker, level: &'static Level, now: Stamp, by_clock: bool) -> Option<Instant> {
        // SAFETY: `me` is the level's worker, as `work` has checked.
        let until = if self.is_stopping() { NEVER } else { unsafe { level.next() } };
        me.sleeps_until.store(until, Ordering::Relaxed);
        // Pairs with the load in `announce_timer`.
        fence(Ordering::SeqCst);
        let until = (until != NEVER).then(|| Instant::from_ticks(until));
        let reached = !level.has_changes() && {
            // Other threads already treat this one as sleeping: it has announced its wake-up time,
            // and the spin only reads. A thread with work for this one sends a wake as usual, and a
            // wake that precedes the wait ends the wait at once.
            self.port.spin(&me, || self.first_time(until), || self.snapshot() != Word::EMPTY);
            match until {
                Some(until) if by_clock && !self.snapshot().is_ready(level.number()) => {
                    self.port.sleep_until(&me, until, now)
                }
                _ => self.port.wait(&me, until, now),
            }
        };
        me.sleeps_until.store(0, Ordering::Relaxed);
        until.filter(|_| reached)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64};
    use std::sync::{Mutex, OnceLock};

    use super::*;
    use crate::{Duration, Jobs, Node, Periodic, Queue, Reaction, Slots, Worker};

    const TIMERS: usize = 1_000;

    /// Stops the worker in its second sleep; in the first, another thread arms all timers for
    /// later, and the clock reaches the end of the sleep.
    struct Clock(
        OnceLock<(&'static Partition<Clock>, &'static Slots<u64, TIMERS, { TIMERS.div_ceil(64) }>)>,
        AtomicU64,
    );

    impl Port for Clock {
        type Word = AtomicU64;

        fn now(&self) -> Instant {
            Instant::from_ticks(self.1.load(Ordering::Relaxed))
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, until: Option<Instant>, _: Stamp) -> bool {
            let &(partition, slots) = self.0.get().unwrap();
            if self.1.swap(100, Ordering::Relaxed) == 100 {
                partition.stop();
                return false;
            }
            assert_eq!(until, Some(Instant::from_ticks(100)), "the worker sleeps until the grid point");
            for time in 101..101 + TIMERS as u64 {
                slots.arm(time, Instant::from_ticks(time)).unwrap();
                partition.armed(partition.levels[0], Instant::from_ticks(time));
            }
            true
        }
        fn wait_while(&self, _: &AtomicU32, _: u32) {}
        fn wake_all(&self, _: &AtomicU32) {}
        fn boost(&self, _: &AtomicU32) -> bool {
            false
        }
        fn unboost(&self, _: &AtomicU32) {}
    }

    #[test]
    fn inserts_timers_armed_during_sleep_after_job_of_grid() {
        static GRID: Periodic =
            Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
        let pending: &AtomicU32 = Box::leak(Box::default());
        let linked: &'static OnceLock<&'static Level> = Box::leak(Box::default());
        let run = move |_: CurrentWorker, node: u32, _: Stamp| {
            assert_eq!(node, 0, "no timer is due");
            pending.fetch_add(u32::from(linked.get().unwrap().has_changes()), Ordering::Relaxed);
            GRID.completed(Instant::from_ticks(100));
            None
        };
        let worker = &*Box::leak(Box::new(Worker::new(1)));
        let nodes: &[Node] = (0..=TIMERS).map(|_| Node::new()).collect::<Vec<_>>().leak();
        let (queue, jobs) = (Box::leak(Box::new(Queue::new())), Jobs::of(Box::leak(Box::new(run))));
        let grids: &[&Periodic] = vec![&GRID].leak();
        let level = &*Box::leak(Box::new(Level::new(1, worker, queue, nodes, grids, jobs)));
        linked.set(level).unwrap();
        let port = Clock(OnceLock::new(), AtomicU64::new(0));
        // SAFETY: level and worker are new, and this is their only partition.
        let partition = unsafe { Partition::new(port, vec![level].leak(), vec![worker].leak()) };
        let partition = &*Box::leak(Box::new(partition));
        // SAFETY: nothing else uses the nodes from 1 on.
        let slots = &*Box::leak(Box::new(unsafe { Slots::new(level, 1) }));
        partition.port.0.set((partition, slots)).ok().unwrap();
        level.start(Instant::from_ticks(0));
        // SAFETY: there is one thread.
        let me = unsafe { CurrentWorker::new(worker) };
        me.enter(1, true);
        me.allow_calls(true);
        partition.work(me, level);
        assert_eq!(pending.load(Ordering::Relaxed), 1, "the job precedes all insertions");
        // SAFETY: as above.
        assert_eq!(unsafe { level.next() }, 101, "all timers have been inserted before the next sleep");
    }

    /// Records the last sleep of a worker.
    #[derive(Default)]
    struct Sleeps(Mutex<Option<&'static str>>);

    impl Sleeps {
        fn note(&self, sleep: &'static str) -> bool {
            *self.0.lock().unwrap() = Some(sleep);
            false
        }
    }

    impl Port for Sleeps {
        type Word = AtomicU64;

        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
            self.note("heeds wakes")
        }
        fn sleep_until(&self, _: &Worker, _: Instant, _: Stamp) -> bool {
            self.note("by the clock")
        }
        fn wait_while(&self, _: &AtomicU32, _: u32) {}
        fn wake_all(&self, _: &AtomicU32) {}
        fn boost(&self, _: &AtomicU32) -> bool {
            false
        }
        fn unboost(&self, _: &AtomicU32) {}
    }

    #[test]
    fn heeds_wakes_unless_only_the_clock_releases_jobs() {
        let sleep = |nodes: usize, is_started: bool, is_ready: bool| {
            let ticks = Duration::from_ticks;
            let grid = &*Box::leak(Box::new(Periodic::new(0, 1, ticks(100), ticks(0), Reaction::Skip)));
            let worker = &*Box::leak(Box::new(Worker::new(1)));
            let nodes: &[Node] = (0..nodes).map(|_| Node::new()).collect::<Vec<_>>().leak();
            let (queue, grids) = (Box::leak(Box::new(Queue::new())), vec![grid].leak());
            let level = Level::new(1, worker, queue, nodes, grids, Jobs::of(&|_, _, _| None));
            let level = &*Box::leak(Box::new(level));
            // SAFETY: level and worker are new, and this is their only partition.
            let partition =
                unsafe { Partition::new(Sleeps::default(), vec![level].leak(), vec![worker].leak()) };
            // SAFETY: there is one thread.
            let me = unsafe { CurrentWorker::new(worker) };
            if is_started {
                level.start(Instant::from_ticks(100));
            }
            // SAFETY: `me` is the level's worker.
            unsafe { level.next() };
            if is_ready {
                partition.mark_ready(level);
            }
            partition.sleep(me, level, None, level.is_released_by_clock());
            let slept = partition.port.0.lock().unwrap().take();
            slept.unwrap()
        };
        assert_eq!(sleep(1, true, false), "by the clock");
        assert_eq!(sleep(2, true, false), "heeds wakes", "the level has another task");
        assert_eq!(sleep(1, false, false), "heeds wakes", "the grid has not started");
        assert_eq!(sleep(1, true, true), "heeds wakes", "another thread may hand the level to this one");
    }
}
