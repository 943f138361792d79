//! One level of a partition: its job queue, its timers, its periodic tasks, and how to run a job.
//!
//! Any thread may push jobs and arm timers. Only the thread that occupies the level takes jobs out, and
//! only the level's worker (or the only thread of a partition that polls or runs in virtual time) releases what is due.
//! That thread is also the only one to run the jobs of a *local* level, so those may share data that is not `Send`.

use crate::Instant;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, const_new};
use crate::current::CurrentWorker;
use crate::fifo::Fifo;
use crate::periodic::{Due, NEVER, Periodic};
use crate::timer::{self, Node};
use crate::word::MAX_LEVEL;
use crate::worker::{ALONE, MAY, Worker};

/// A recent clock reading, or [stamp](crate::Port::stamp), passed on to save another.
pub type Stamp = Option<Instant>;

/// Runs the job of a node. Takes the job's start, if known, and returns its end, if it has read the clock.
///
/// The executor calls it on a thread that occupies the level, once each time a node was queued by a spawn, a timer or a
/// periodic task.
pub type RunJob = dyn Fn(CurrentWorker, u32, Stamp) -> Stamp + Sync;

/// A level of a partition.
pub struct Level {
    level: u8,
    worker: &'static Worker,
    nodes: &'static [Node],
    periodic: &'static [&'static Periodic],
    run: &'static RunJob,
    /// The least value of a worker's `calls` with which a spawn on its thread runs a job of this level as a call.
    callers: u8,
    fifo: Fifo,
    /// How many nodes are armed, so that a level without timers never looks for them.
    armed: AtomicU32,
    /// Order of insertion among timers of equal time.
    order: AtomicU64,
}

impl core::fmt::Debug for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Level").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Level {
    const_new! {
        /// A level whose jobs wait in `nodes` and are run by `run`, normally on `worker`.
        ///
        /// # Panics
        /// If `level` is not in 1..=[`MAX_LEVEL`].
        pub fn new(
            level: u8,
            worker: &'static Worker,
            nodes: &'static [Node],
            periodic: &'static [&'static Periodic],
            run: &'static RunJob,
        ) -> Self {
            assert!(level >= 1 && level <= MAX_LEVEL, "levels are numbered from 1 to 28");
            Self {
                level,
                worker,
                nodes,
                periodic,
                run,
                callers: MAY,
                fifo: Fifo::new(),
                armed: AtomicU32::new(0),
                order: AtomicU64::new(0),
            }
        }
    }

    /// Makes it a local level: a single thread runs its jobs, see [`keeps_to`](Self::keeps_to).
    pub const fn local(mut self) -> Self {
        self.callers = ALONE;
        self
    }

    /// Whether it is a local level.
    pub const fn is_local(&self) -> bool {
        self.callers == ALONE
    }

    /// Whether it is a local level and `me` the only worker that runs its jobs.
    ///
    /// That is the partition's thread if there is a single one for all levels, and the level's worker otherwise.
    #[inline]
    pub fn keeps_to(&self, me: CurrentWorker) -> bool {
        self.is_local() && (me.is(self.worker) || me.is_alone())
    }

    #[inline]
    pub(crate) fn callers(&self) -> u8 {
        self.callers
    }

    /// The level's number, from 1.
    #[inline]
    pub const fn number(&self) -> u8 {
        self.level
    }

    /// The number of nodes.
    pub(crate) const fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// The thread that serves this level when no other thread does.
    pub const fn worker(&self) -> &'static Worker {
        self.worker
    }

    /// The next time at which something is due, if any.
    pub fn next_due(&self) -> Option<Instant> {
        let periodic = self.periodic.iter().map(|p| p.next()).min().filter(|&t| t != NEVER);
        let timer = self.earliest().map(|(time, ..)| time);
        [periodic, timer].into_iter().flatten().min().map(Instant::from_ticks)
    }

    /// Whether the clock releases anything at this level at present.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        !self.periodic.is_empty() || self.armed.load(Ordering::Relaxed) != 0
    }

    /// Starts the grids of the periodic tasks.
    pub fn start(&self, start: Instant) {
        self.periodic.iter().for_each(|p| p.start(start));
    }

    #[inline]
    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// When the job of `node`, which is about to run, was released, in ns; 0 if that was not recorded.
    #[inline]
    pub fn released(&self, node: u32) -> u64 {
        self.node(node).time()
    }

    /// Queues a node. The caller, on any thread, marks the level ready afterwards.
    #[inline]
    pub(crate) fn push(&self, node: u32) {
        self.fifo.push(self.nodes, node);
    }

    /// Queues a node without an atomic instruction.
    ///
    /// # Safety
    /// The calling thread occupies this level by running a job of it.
    #[inline]
    pub(crate) unsafe fn push_own(&self, node: u32) {
        // SAFETY: this thread occupies the level, by this function's contract.
        unsafe { self.fifo.push_own(self.nodes, node) }
    }

    /// Whether the inbox has jobs. For the thread that occupies the level or may do so at any time.
    #[inline]
    pub(crate) fn has_inbox(&self) -> bool {
        self.fifo.has_inbox()
    }

    /// Runs the job at the front; `None` if there is none.
    ///
    /// # Safety
    /// The calling thread occupies this level.
    #[inline]
    pub(crate) unsafe fn run_next(&self, me: CurrentWorker, now: Stamp) -> Option<Stamp> {
        // SAFETY: this thread occupies the level, by this function's contract.
        let node = unsafe { self.fifo.pop(self.nodes) }?;
        Some((self.run)(me, node, now))
    }

    /// Queues all jobs that are due at `now` in the inbox; returns whether there were any.
    pub(crate) fn release_due(&self, now: Instant) -> bool {
        self.each_due(now, |node| self.push(node))
    }

    /// Queues all jobs that are due at `now`, each before those released later.
    ///
    /// # Safety
    /// The calling thread occupies this level.
    pub(crate) unsafe fn release_due_in_place(&self, now: Instant) {
        self.each_due(now, |node| {
            // SAFETY: this thread occupies the level, by this function's contract.
            unsafe { self.fifo.insert_by_time(self.nodes, node) }
        });
    }

    fn each_due(&self, now: Instant, mut queue: impl FnMut(u32)) -> bool {
        let mut any = false;
        loop {
            let periodic = self.periodic.iter().min_by_key(|p| p.next());
            let grid = periodic.map_or(NEVER, |p| p.next());
            let timer = self.earliest();
            match (periodic, timer) {
                (Some(task), _)
                    if grid != NEVER && grid <= timer.map_or(NEVER, |t| t.0) && grid <= now.as_ticks() =>
                {
                    if let Due::Release(node, time) = task.release() {
                        self.node(node).set_time(time);
                        queue(node);
                        any = true;
                    }
                }
                (_, Some((time, node, state))) if time <= now.as_ticks() => {
                    // If a concurrent cancel or move wins, the job is not released now.
                    if self.nodes[node as usize].expire(state) {
                        self.armed.fetch_sub(1, Ordering::Relaxed);
                        queue(node);
                        any = true;
                    }
                }
                _ => return any,
            }
        }
    }

    fn earliest(&self) -> Option<(u64, u32, u64)> {
        if self.armed.load(Ordering::Relaxed) == 0 {
            return None;
        }
        timer::earliest(self.nodes)
    }

    pub(crate) fn arm(&self, node: u32, time: Instant) -> u32 {
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        // Before the node: the worker may release it at once, and counting that must not hide another timer
        // until this thread, which may be preempted here, has counted its own.
        self.armed.fetch_add(1, Ordering::Relaxed);
        self.nodes[node as usize].arm(time.as_ticks(), order)
    }

    pub(crate) fn disarm(&self, node: u32, key: u32) -> bool {
        let mine = self.nodes[node as usize].disarm(key);
        if mine {
            self.armed.fetch_sub(1, Ordering::Relaxed);
        }
        mine
    }

    pub(crate) fn rearm(&self, node: u32, key: u32, time: Instant) -> bool {
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        self.nodes[node as usize].rearm(key, time.as_ticks(), order)
    }

    /// Removes all jobs and timers without running anything.
    ///
    /// # Safety
    /// No other thread uses the level.
    pub(crate) unsafe fn reset(&self) {
        // SAFETY: no other thread uses the level, by this function's contract.
        while unsafe { self.fifo.pop(self.nodes) }.is_some() {}
        self.nodes.iter().for_each(Node::reset);
        self.periodic.iter().for_each(|p| p.reset());
        self.armed.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Duration, OverrunPolicy};

    #[test]
    fn grids_and_timers_end_with_the_clock() {
        static WORKER: Worker = Worker::new(1);
        static NODES: [Node; 2] = [const { Node::new() }; 2];
        static RUN: &RunJob = &|_, _, _| None;
        // Where an endless grid ends.
        const OVERRUN: fn() = || panic!("released for ever");
        static GRID: Periodic = Periodic::new(
            0,
            1,
            Duration::from_ticks(100),
            Duration::from_ticks(0),
            OverrunPolicy::Hook,
            Some(OVERRUN),
        );
        static LEVEL: Level = Level::new(1, &WORKER, &NODES, &[&GRID], RUN);
        let end = Instant::from_ticks(u64::MAX);
        let released = || {
            let mut released = Vec::new();
            LEVEL.each_due(end, |node| released.push((node, LEVEL.released(node))));
            released
        };
        assert_eq!(released(), [], "no grid is laid");
        LEVEL.start(Instant::from_ticks(u64::MAX - 50));
        LEVEL.arm(1, end);
        assert_eq!(LEVEL.next_due(), Some(Instant::from_ticks(u64::MAX - 50)));
        assert_eq!(released(), [(0, u64::MAX - 50), (1, u64::MAX)], "the grid has no further point");
        assert_eq!((released(), LEVEL.next_due()), (vec![], None));
        LEVEL.start(end);
        assert_eq!((released(), LEVEL.next_due()), (vec![], None), "the offset lies beyond the end");
    }

    #[test]
    fn a_grid_goes_before_a_timer_of_the_same_time() {
        static WORKER: Worker = Worker::new(1);
        static NODES: [Node; 2] = [const { Node::new() }; 2];
        static RUN: &RunJob = &|_, _, _| None;
        static GRID: Periodic = Periodic::new(
            1,
            1,
            Duration::from_ticks(100),
            Duration::from_ticks(0),
            OverrunPolicy::Skip,
            None,
        );
        static LEVEL: Level = Level::new(1, &WORKER, &NODES, &[&GRID], RUN);
        let at = Instant::from_ticks;
        LEVEL.arm(0, at(50));
        LEVEL.start(at(50));
        let mut released = Vec::new();
        assert!(!LEVEL.each_due(at(49), |node| released.push(node)));
        assert!(LEVEL.each_due(at(50), |node| released.push(node)));
        assert_eq!(released, [1, 0]);
    }

    #[test]
    fn a_level_is_timed_while_something_is_armed() {
        static WORKER: Worker = Worker::new(1);
        static NODES: [Node; 2] = [const { Node::new() }; 2];
        static RUN: &RunJob = &|_, _, _| None;
        static LEVEL: Level = Level::new(1, &WORKER, &NODES, &[], RUN);
        let at = Instant::from_ticks;
        assert!(!LEVEL.is_timed());
        let keys = [0, 1].map(|node| LEVEL.arm(node, at(5)));
        assert!(LEVEL.disarm(0, keys[0]) && !LEVEL.disarm(0, keys[0]));
        assert!(LEVEL.is_timed(), "one is left, and it was not armed any more");
        assert!(LEVEL.disarm(1, keys[1]) && !LEVEL.is_timed());
        LEVEL.arm(0, at(5));
        assert!(LEVEL.each_due(at(5), |_| ()) && !LEVEL.is_timed());
        LEVEL.arm(0, at(5));
        // SAFETY: only this test uses the level.
        unsafe { LEVEL.reset() };
        assert!(!LEVEL.is_timed());
    }

    #[test]
    fn a_local_level_is_called_by_the_only_thread_of_its_partition_alone() {
        static WORKER: Worker = Worker::new(1);
        static OTHER: Worker = Worker::new(0);
        static NODES: [Node; 0] = [];
        static RUN: &RunJob = &|_, _, _| None;
        static LEVEL: Level = Level::new(1, &WORKER, &NODES, &[], RUN).local();
        static ORDINARY: Level = Level::new(2, &WORKER, &NODES, &[], RUN);
        // SAFETY: only this test uses the workers.
        let (worker, other) = unsafe { (CurrentWorker::new(&WORKER), CurrentWorker::new(&OTHER)) };
        assert!(LEVEL.keeps_to(worker) && !LEVEL.keeps_to(other) && !ORDINARY.keeps_to(worker));
        let may = || (OTHER.may_call(&LEVEL), OTHER.may_call(&ORDINARY));
        assert_eq!(may(), (false, false));
        OTHER.allow_calls(true);
        assert_eq!((may(), LEVEL.keeps_to(other)), ((false, true), false));
        // SAFETY: there are no jobs.
        unsafe { other.set_alone() };
        assert_eq!((may(), LEVEL.keeps_to(other)), ((true, true), true));
        // SAFETY: there are no jobs.
        unsafe { other.set_polling() };
        assert_eq!((may(), LEVEL.keeps_to(other)), ((true, true), true));
    }
}
