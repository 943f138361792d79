//! One level of a partition: its job queue, its timers, its periodic tasks, and how to run a job.
//!
//! Any thread may push jobs and arm timers. Only the thread that occupies the level takes jobs out, and
//! only the level's worker (or the only thread of a partition that polls or runs in virtual time) *keeps its time*: releases
//! what is due.
//! That thread is also the only one to run the jobs of a *local* level, so those may share data that is not `Send`.
//!
//! What changes of a level is in its [`Queue`] and its nodes; the [`Level`] itself never changes. So code that names the
//! static of a level has all that it says as constants.

use crate::Instant;
use crate::atomic::const_new;
use crate::current::CurrentWorker;
use crate::fifo::Fifo;
use crate::jobs::Jobs;
use crate::periodic::{Due, Periodic};
use crate::timer::{First, Node};
use crate::timers::{NEVER, Timers};
use crate::word::MAX_LEVEL;
use crate::worker::{ALONE, MAY, Worker};

/// A recent clock reading, or [stamp](crate::Port::stamp), passed on to save another.
pub type Stamp = Option<Instant>;

/// What changes of a level: the order of its waiting jobs, and its timers.
#[derive(Debug)]
pub struct Queue {
    fifo: Fifo,
    timers: Timers,
}

impl Queue {
    const_new! {
        /// No job waits and no timer is armed.
        pub fn new() -> Self {
            Self { fifo: Fifo::new(), timers: Timers::new() }
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

/// A level of a partition.
pub struct Level {
    level: u8,
    worker: &'static Worker,
    queue: &'static Queue,
    nodes: &'static [Node],
    periodic: &'static [&'static Periodic],
    jobs: Jobs,
    /// The least value of a worker's `calls` with which a spawn on its thread runs a job of this level as a call.
    callers: u8,
}

impl core::fmt::Debug for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Level").field("level", &self.level).finish_non_exhaustive()
    }
}

/// What releases a job in time.
#[derive(Clone, Copy)]
enum Source {
    Grid(&'static Periodic),
    /// That of a node.
    Timer(u32),
}

/// The waiting jobs of a level, and what runs them.
pub(crate) struct Waiting {
    fifo: &'static Fifo,
    nodes: &'static [Node],
    jobs: Jobs,
}

impl Waiting {
    /// Takes the job at the front.
    ///
    /// # Safety
    /// The calling thread occupies the level.
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<u32> {
        // SAFETY: this thread occupies the level, by this function's contract; see `Level::push`.
        unsafe { self.fifo.pop(self.nodes) }
    }

    /// Runs the job of `node`.
    ///
    /// # Safety
    /// The calling thread occupies the level, and has [popped](Self::pop) the node.
    #[inline]
    pub(crate) unsafe fn run(&self, me: CurrentWorker, node: u32, now: Stamp) -> Stamp {
        // SAFETY: what was popped is one of the level's nodes, for which there are functions, as `Level::new` has checked.
        unsafe { self.jobs.run(me, node, now) }
    }
}

impl Level {
    /// A level whose jobs wait in `nodes`, in the order of `queue`, and are run by `jobs`, normally on `worker`.
    ///
    /// # Panics
    /// If `level` is not in 1..=[`MAX_LEVEL`], or if `jobs` are not of as many nodes.
    pub const fn new(
        level: u8,
        worker: &'static Worker,
        queue: &'static Queue,
        nodes: &'static [Node],
        periodic: &'static [&'static Periodic],
        jobs: Jobs,
    ) -> Self {
        assert!(level >= 1 && level <= MAX_LEVEL, "levels are numbered from 1 to 28");
        assert!(jobs.are_of(nodes.len()), "there is a function for the jobs of each node");
        Self { level, worker, queue, nodes, periodic, jobs, callers: MAY }
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

    /// Whether it has periodic tasks.
    pub const fn is_periodic(&self) -> bool {
        !self.periodic.is_empty()
    }

    /// The number of nodes.
    pub(crate) const fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// The thread that serves this level when no other thread does.
    pub const fn worker(&self) -> &'static Worker {
        self.worker
    }

    /// The next time at which something is due, if any. Looks at all nodes; for tests and for virtual time.
    pub fn next_due(&self) -> Option<Instant> {
        let grids = self.periodic.iter().map(|p| p.next()).filter(|&time| time != NEVER);
        let timers = self.nodes.iter().filter_map(Node::due);
        grids.chain(timers).min().map(Instant::from_ticks)
    }

    /// Whether the clock releases anything at this level at present.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.queue.timers.next() != NEVER || self.queue.timers.has_changes()
    }

    /// Whether something may be due at `now`, for all that is known without looking.
    #[inline]
    pub(crate) fn may_be_due(&self, now: u64) -> bool {
        now >= self.queue.timers.next() || self.queue.timers.has_changes()
    }

    /// Whether timers have been armed, cancelled or moved, or grids laid, since the last look at them.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.queue.timers.has_changes()
    }

    /// The next time at which something is due, in ns; [`NEVER`] if there is none.
    ///
    /// # Safety
    /// The calling thread keeps the level's time.
    #[inline]
    pub(crate) unsafe fn next(&self) -> u64 {
        if self.queue.timers.has_changes() {
            // SAFETY: this thread keeps the level's time, by this function's contract.
            unsafe { self.take_changes() };
        }
        self.queue.timers.next()
    }

    /// # Safety
    /// The calling thread keeps the level's time.
    #[cold]
    unsafe fn take_changes(&self) {
        // SAFETY: this thread keeps the level's time, by this function's contract.
        let timer = unsafe {
            self.queue.timers.take_changes(self.nodes);
            self.queue.timers.earliest(self.nodes)
        };
        let grid = self.periodic.iter().map(|p| p.next()).min().unwrap_or(NEVER);
        self.queue.timers.set_next(grid.min(timer.map_or(NEVER, |timer| timer.0)));
    }

    /// Starts the grids of the periodic tasks.
    pub fn start(&self, start: Instant) {
        if !self.periodic.is_empty() {
            self.periodic.iter().for_each(|p| p.start(start));
            self.queue.timers.note_grids();
        }
    }

    #[inline]
    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// The index of a node of this level. An index out of range for a node of another level.
    #[inline]
    pub(crate) fn position(&self, node: &Node) -> usize {
        let distance = core::ptr::from_ref(node).addr().wrapping_sub(self.nodes.as_ptr().addr());
        distance / size_of::<Node>()
    }

    /// # Safety
    /// `node` is one of the level's.
    #[inline]
    pub(crate) unsafe fn node_unchecked(&self, node: u32) -> &'static Node {
        // SAFETY: it is one of these, by this function's contract.
        unsafe { self.nodes.get_unchecked(node as usize) }
    }

    /// When the job of `node`, which is about to run, was released, in ns; 0 if that was not recorded.
    #[inline]
    pub fn released(&self, node: u32) -> u64 {
        self.node(node).time()
    }

    /// Queues a node. The caller, on any thread, marks the level ready afterwards.
    ///
    /// # Safety
    /// `node` is one of the level's.
    #[inline]
    pub(crate) unsafe fn push(&self, node: u32) {
        // SAFETY: the node is one of these, by this function's contract, and the queue is of no other level's nodes: the
        // levels of all partitions have queues of their own.
        unsafe { self.queue.fifo.push(self.nodes, node) }
    }

    /// Queues a node without an atomic instruction.
    ///
    /// # Safety
    /// `node` is one of the level's, and the calling thread occupies this level by running a job of it.
    #[inline]
    pub(crate) unsafe fn push_own(&self, node: u32) {
        // SAFETY: this thread occupies the level and the node is one of these, by this function's contract; see `push`.
        unsafe { self.queue.fifo.push_own(self.nodes, node) }
    }

    /// Queues a node as [`push_own`](Self::push_own) does, if the inbox has just been empty.
    ///
    /// # Safety
    /// As for [`push_own`](Self::push_own).
    #[inline]
    pub(crate) unsafe fn append(&self, node: u32) {
        // SAFETY: this thread occupies the level and the node is one of these, by this function's contract; see `push`.
        unsafe { self.queue.fifo.append(self.nodes, node) }
    }

    /// Whether the inbox has jobs. For the thread that occupies the level or may do so at any time.
    #[inline]
    pub fn has_inbox(&self) -> bool {
        self.queue.fifo.has_inbox()
    }

    /// Whether jobs wait.
    ///
    /// # Safety
    /// The calling thread occupies this level.
    #[inline]
    pub(crate) unsafe fn has_jobs(&self) -> bool {
        // SAFETY: this thread occupies the level, by this function's contract.
        unsafe { self.queue.fifo.has_jobs() }
    }

    /// The waiting jobs.
    #[inline]
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting { fifo: &self.queue.fifo, nodes: self.nodes, jobs: self.jobs }
    }

    /// Queues all jobs that are due at `now` in the inbox; returns whether there were any.
    ///
    /// # Safety
    /// The calling thread keeps the level's time.
    pub(crate) unsafe fn release_due(&self, now: Instant) -> bool {
        // SAFETY: this thread keeps the level's time, by this function's contract.
        // What is due are nodes of the level.
        unsafe {
            self.each_due(now, |node| {
                self.push(node);
                true
            })
        }
    }

    /// Takes the node whose job is due first at `now`, and tells when something is next, changes aside. What else is due is left to the
    /// next look, and so is everything if the first has been cancelled or moved meanwhile.
    ///
    /// # Safety
    /// The calling thread keeps the level's time, and occupies the level. [`next`](Self::next) has just said that something is due.
    #[inline]
    pub(crate) unsafe fn take_due(&self, now: Instant) -> (Option<u32>, u64) {
        if self.periodic.is_empty() {
            // SAFETY: this thread keeps the level's time, and then it is a timer that is due, by this function's contract.
            let (due, next) = unsafe { self.queue.timers.expire_first(self.nodes) };
            self.queue.timers.set_next(next);
            return (due, next);
        }
        // SAFETY: by this function's contract.
        unsafe { self.take_due_of_grids(now) }
    }

    /// [`take_due`](Self::take_due) of a level with periodic tasks.
    ///
    /// # Safety
    /// As for [`take_due`](Self::take_due).
    #[inline(never)]
    unsafe fn take_due_of_grids(&self, now: Instant) -> (Option<u32>, u64) {
        let mut due = None;
        // SAFETY: this thread keeps the level's time, by this function's contract.
        unsafe {
            self.each_due(now, |node| {
                due = Some(node);
                false
            });
        }
        (due, self.queue.timers.next())
    }

    /// Queues all jobs that are due at `now`, each before those released later.
    ///
    /// # Safety
    /// The calling thread keeps the level's time, and occupies the level.
    pub(crate) unsafe fn release_due_in_place(&self, now: Instant) {
        let mut last = None;
        // SAFETY: this thread keeps the level's time and occupies it, by this function's contract; so what was inserted stays.
        unsafe {
            self.each_due(now, |node| {
                self.queue.fifo.insert_by_time(self.nodes, node, last.replace(node));
                true
            });
        }
    }

    /// Hands out what is due at `now`, in order, until `queue` says that it wants no more; returns whether there was anything.
    ///
    /// # Safety
    /// The calling thread keeps the level's time.
    #[inline]
    unsafe fn each_due(&self, now: Instant, mut queue: impl FnMut(u32) -> bool) -> bool {
        let now = now.as_ticks();
        // What changes from here on is left to the next look.
        // SAFETY: this thread keeps the level's time, by this function's contract.
        if unsafe { self.next() } > now {
            return false;
        }
        let (mut any, mut more) = (false, true);
        // SAFETY: this thread keeps the level's time, by this function's contract.
        let mut first = unsafe { self.first() };
        while let Some((time, source)) = first
            && time <= now
            && more
        {
            // SAFETY: as above, and it is the first.
            if let Some(node) = unsafe { self.release(source) } {
                any = true;
                more = queue(node);
            }
            // SAFETY: as above.
            first = unsafe { self.first() };
        }
        self.queue.timers.set_next(first.map_or(NEVER, |first| first.0));
        any
    }

    /// What is due next, and when, changes aside. Grids go before timers of the same time.
    ///
    /// # Safety
    /// The calling thread keeps the level's time.
    #[inline]
    unsafe fn first(&self) -> Option<(u64, Source)> {
        let grids = self.periodic.iter().map(|&task| (task.next(), Source::Grid(task)));
        let grid = grids.filter(|grid| grid.0 != NEVER).min_by_key(|grid| grid.0);
        // SAFETY: this thread keeps the level's time, by this function's contract.
        let timer = unsafe { self.queue.timers.earliest(self.nodes) };
        match (grid, timer) {
            (Some(grid), Some(timer)) if timer.0 < grid.0 => Some((timer.0, Source::Timer(timer.1))),
            (None, Some(timer)) => Some((timer.0, Source::Timer(timer.1))),
            (grid, _) => grid,
        }
    }

    /// Takes the first of what is due; its node, if it comes to a job.
    ///
    /// # Safety
    /// The calling thread keeps the level's time, and this is the [`first`](Self::first).
    #[inline]
    unsafe fn release(&self, source: Source) -> Option<u32> {
        match source {
            Source::Grid(task) => match task.release() {
                Due::Release(node, time) => {
                    self.node(node).set_time(time);
                    Some(node)
                }
                Due::Skipped => None,
            },
            // If a concurrent cancel or move wins, the job is not released now.
            // SAFETY: this thread keeps the level's time, by this function's contract.
            Source::Timer(node) => unsafe { self.queue.timers.expire(self.nodes, node) }.then_some(node),
        }
    }

    /// Arms `node`, whose index is `index`; returns the key of the arming.
    pub(crate) fn arm(&self, node: &Node, index: u32, time: Instant) -> u32 {
        let (key, first) = node.arm(time.as_ticks(), self.queue.timers.order());
        self.note(node, index, Some(first));
        key
    }

    /// Disarms `node`, whose index is `index`, if it is still armed under `key`; returns whether it was.
    pub(crate) fn disarm(&self, node: &Node, index: u32, key: u32) -> bool {
        self.note(node, index, node.disarm(key))
    }

    /// Moves `node`, whose index is `index`, to `time` if it is still armed under `key`; returns whether it was.
    pub(crate) fn rearm(&self, node: &Node, index: u32, key: u32, time: Instant) -> bool {
        let first = node.rearm(key, time.as_ticks(), self.queue.timers.order());
        self.note(node, index, first)
    }

    /// Notes that `node` has changed, if it has and is not among the changed ones; returns whether it has.
    fn note(&self, node: &Node, index: u32, first: Option<First>) -> bool {
        if first == Some(true) {
            self.queue.timers.note(node, index);
        }
        first.is_some()
    }

    /// Removes all jobs and timers without running anything.
    ///
    /// # Safety
    /// No other thread uses the level.
    pub(crate) unsafe fn reset(&self) {
        // SAFETY: no other thread uses the level, by this function's contract.
        while unsafe { self.queue.fifo.pop(self.nodes) }.is_some() {}
        self.periodic.iter().for_each(|p| p.reset());
        // SAFETY: no other thread uses the level, by this function's contract.
        unsafe { self.queue.timers.reset(self.nodes) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
