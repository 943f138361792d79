//! One level of a partition: its job queue, its timers, its periodic tasks, and how to run a job.
//!
//! Any thread may push jobs and arm timers. Only the thread that occupies the level removes jobs,
//! and only the level's *timekeeper* releases jobs that are due: the level's worker, or the only
//! thread of a partition that polls or runs in virtual time. The timekeeper is also the only thread
//! that runs the jobs of a *local* level, so these may share data that is not `Send`.
//!
//! All mutable state of a level is in its [`Queue`] and its nodes; the [`Level`] itself is
//! immutable. So code that names a level's static sees all its fields as constants.

use crate::Instant;
use crate::atomic::const_new;
use crate::current::CurrentWorker;
use crate::fifo::Fifo;
use crate::jobs::{Jobs, PackedStamp, Popped};
use crate::periodic::{Due, Periodic};
use crate::timer::{First, Node};
use crate::timers::{NEVER, Timers};
use crate::word::MAX_LEVEL;
use crate::worker::{ALONE, MAY, Worker};

/// A recent clock reading, or [stamp](crate::Port::stamp), passed on to save another reading.
pub type Stamp = Option<Instant>;

/// The mutable state of a level: the order of its queued jobs, and its timers.
#[derive(Debug)]
pub struct Queue {
    fifo: Fifo,
    timers: Timers,
}

impl Queue {
    const_new! {
        /// Creates a queue without jobs and without armed timers.
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
    /// The least value of a worker's `calls` at which a spawn on its thread runs a job of this
    /// level as a direct call.
    callers: u8,
    /// The worker's base.
    base: u8,
}

impl core::fmt::Debug for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Level").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Origin of a timed release.
#[derive(Clone, Copy)]
enum Source {
    Grid(&'static Periodic),
    /// The timer of a node.
    Timer(u32),
}

/// The queued jobs of a level, and the functions that run them.
pub(crate) struct Waiting {
    fifo: &'static Fifo,
    nodes: &'static [Node],
    jobs: Jobs,
}

impl Waiting {
    /// Removes the job at the front.
    ///
    /// # Safety
    /// The calling thread occupies the level.
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<Popped> {
        // SAFETY: this thread occupies the level, by this function's contract; see `Level::push`.
        unsafe { self.fifo.pop(self.nodes) }
    }

    /// Runs `job`.
    ///
    /// # Safety
    /// The calling thread occupies the level, and has [popped](Self::pop) the job.
    #[inline]
    pub(crate) unsafe fn run(&self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        // SAFETY: a popped job is that of one of the level's nodes, and `Level::new` has checked
        // that each has a function.
        unsafe { self.jobs.run(me, job, now) }
    }
}

impl Level {
    /// Creates a level whose jobs wait in `nodes`, in the order of `queue`, and are run by `jobs`,
    /// normally on `worker`.
    ///
    /// # Panics
    /// If `level` is not in 1..=[`MAX_LEVEL`], or if the number of `jobs` does not match that of
    /// `nodes`.
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
        assert!(nodes.len() < i32::MAX as usize, "links and values of a spare are positive");
        Self { level, worker, queue, nodes, periodic, jobs, callers: MAY, base: worker.base() }
    }

    /// Makes this a local level: a single thread runs its jobs, see [`keeps_to`](Self::keeps_to).
    pub const fn local(mut self) -> Self {
        self.callers = ALONE;
        self
    }

    /// Returns `true` if this is a local level.
    pub const fn is_local(&self) -> bool {
        self.callers == ALONE
    }

    /// Returns `true` if the level is not local, and every worker with a lower base may run its
    /// jobs without being its timekeeper, unless the worker polls.
    #[inline(always)]
    pub(crate) const fn is_ordinary(&self) -> bool {
        self.callers == MAY && self.base == self.level
    }

    /// Returns `true` if this is a local level and `me` is the only worker that runs its jobs.
    ///
    /// That worker is the partition's thread if a single thread runs all levels, and the level's
    /// worker otherwise.
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

    /// Returns `true` if the level has periodic tasks.
    pub const fn is_periodic(&self) -> bool {
        !self.periodic.is_empty()
    }

    /// Returns `true` if all tasks of the level are periodic, so that only its timekeeper releases
    /// jobs.
    pub(crate) fn is_released_by_clock(&self) -> bool {
        let of_grids: u32 = self.periodic.iter().map(|p| p.capacity()).sum();
        self.is_periodic() && of_grids as usize == self.nodes.len()
    }

    /// Returns the number of nodes.
    pub(crate) const fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the thread that serves this level when no other thread does.
    pub const fn worker(&self) -> &'static Worker {
        self.worker
    }

    /// Returns the earliest time at which a job of this level is due, if any. Scans all nodes; for
    /// tests and virtual time.
    pub fn next_due(&self) -> Option<Instant> {
        let grids = self.periodic.iter().map(|p| p.next()).filter(|&time| time != NEVER);
        let timers = self.nodes.iter().filter_map(Node::due);
        grids.chain(timers).min().map(Instant::from_ticks)
    }

    /// Returns `true` if a timer is armed or a grid is running at this level.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.queue.timers.next() != NEVER || self.queue.timers.has_changes()
    }

    /// Returns `true` if a job may be due at `now`, judged without scanning the timers.
    #[inline]
    pub(crate) fn may_be_due(&self, now: u64) -> bool {
        now >= self.queue.timers.next() || self.queue.timers.has_changes()
    }

    /// Returns `true` if timers were armed, canceled or moved, or grids started, since the last
    /// scan.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.queue.timers.has_changes()
    }

    /// Returns the earliest time at which a job is due, in ns; [`NEVER`] if no timer is armed.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    #[inline]
    pub(crate) unsafe fn next(&self) -> u64 {
        if self.queue.timers.has_changes() {
            // SAFETY: this thread is the level's timekeeper, by this function's contract.
            unsafe { self.take_changes() };
        }
        self.queue.timers.next()
    }

    /// # Safety
    /// The calling thread is the level's timekeeper.
    #[cold]
    unsafe fn take_changes(&self) {
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
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

    /// Returns the index of a node of this level, or an index out of range for a node of another
    /// level.
    #[inline]
    pub(crate) fn position(&self, node: &Node) -> usize {
        let distance = core::ptr::from_ref(node).addr().wrapping_sub(self.nodes.as_ptr().addr());
        distance / size_of::<Node>()
    }

    /// Returns the node with a [link](Popped::link).
    ///
    /// # Safety
    /// The node is one of the level's.
    #[inline(always)]
    pub(crate) unsafe fn linked(&self, link: usize) -> &'static Node {
        // The address of the node behind it, less its size: the compiler adds the size to the
        // offset of the field, instead of subtracting 1 from the link.
        // SAFETY: the link is the node's index plus 1, and so at most the number of nodes.
        unsafe { &*self.nodes.as_ptr().add(link).sub(1) }
    }

    /// Returns the release time of `job`, which is about to run, in ns; 0 if it was not recorded.
    #[inline]
    pub fn released(&self, job: Popped) -> u64 {
        self.node(job.node()).time()
    }

    /// Queues a node. The caller, on any thread, marks the level ready afterwards.
    ///
    /// # Safety
    /// `node` is one of the level's.
    #[inline]
    pub(crate) unsafe fn push(&self, node: u32) {
        // SAFETY: the node is one of the level's, by this function's contract, and no other level
        // shares the queue: each level of each partition has its own.
        unsafe { self.queue.fifo.push(self.nodes, node) }
    }

    /// Queues a node without an atomic instruction.
    ///
    /// # Safety
    /// `node` is one of the level's, and the calling thread occupies this level by running a job of
    /// it.
    #[inline]
    pub(crate) unsafe fn push_own(&self, node: u32) {
        // SAFETY: this thread occupies the level and the node is one of the level's, by this
        // function's contract; see `push`.
        unsafe { self.queue.fifo.push_own(self.nodes, node) }
    }

    /// Queues a node as [`push_own`](Self::push_own) does, if the inbox was empty when last
    /// checked.
    ///
    /// # Safety
    /// As for [`push_own`](Self::push_own).
    #[inline]
    pub(crate) unsafe fn append(&self, node: u32) {
        // SAFETY: this thread occupies the level and the node is one of the level's, by this
        // function's contract; see `push`.
        unsafe { self.queue.fifo.append(self.nodes, node) }
    }

    /// Returns `true` if the inbox has jobs. For the thread that occupies the level or may occupy
    /// it at any time.
    #[inline]
    pub fn has_inbox(&self) -> bool {
        self.queue.fifo.has_inbox()
    }

    /// Returns `true` if jobs are queued.
    ///
    /// # Safety
    /// The calling thread occupies this level.
    #[inline]
    pub(crate) unsafe fn has_jobs(&self) -> bool {
        // SAFETY: this thread occupies the level, by this function's contract.
        unsafe { self.queue.fifo.has_jobs() }
    }

    /// Returns the queued jobs.
    #[inline]
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting { fifo: &self.queue.fifo, nodes: self.nodes, jobs: self.jobs }
    }

    /// Pushes all jobs that are due at `now` to the inbox; returns whether any were due.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    pub(crate) unsafe fn release_due(&self, now: Instant) -> bool {
        // SAFETY: this thread is the level's timekeeper, by this function's contract. Only nodes of
        // the level become due.
        unsafe { self.each_due(now, |node| self.push(node)) }
    }

    /// Takes the node whose job is due first, and returns the next due time, not counting pending
    /// changes. Other due jobs are left to the next scan, and so are all of them if the first is
    /// skipped, or was canceled or moved concurrently.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper and occupies the level. The preceding call of
    /// [`next`](Self::next) returned a time that has been reached.
    #[inline]
    pub(crate) unsafe fn take_due(&self) -> (Option<u32>, u64) {
        if self.periodic.is_empty() {
            // SAFETY: this thread is the level's timekeeper, and without periodic tasks the due job
            // is that of a timer, by this function's contract.
            let (due, next) = unsafe { self.queue.timers.expire_first(self.nodes) };
            self.queue.timers.set_next(next);
            return (due, next);
        }
        // SAFETY: by this function's contract.
        unsafe { self.take_due_of_grids() }
    }

    /// [`take_due`](Self::take_due) for a level with periodic tasks.
    ///
    /// # Safety
    /// As for [`take_due`](Self::take_due).
    #[inline(never)]
    unsafe fn take_due_of_grids(&self) -> (Option<u32>, u64) {
        let [first, rest @ ..] = self.periodic else { unreachable!("the level has periodic tasks") };
        // Finds the earliest grid point, and the earliest of the other tasks, in one pass.
        let (mut task, mut time, mut others) = (*first, first.next(), NEVER);
        for &other in rest {
            let next = other.next();
            if next < time {
                others = time;
                (task, time) = (other, next);
            } else {
                others = others.min(next);
            }
        }
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
        let timer = unsafe { self.queue.timers.earliest(self.nodes) }.map_or(NEVER, |timer| timer.0);
        let (due, next) = if timer < time {
            // SAFETY: as above, and a timer is armed.
            let (due, timer) = unsafe { self.queue.timers.expire_first(self.nodes) };
            (due, timer.min(time))
        } else {
            (self.release_from_grid(task), task.next().min(others).min(timer))
        };
        self.queue.timers.set_next(next);
        (due, next)
    }

    /// Queues all jobs that are due at `now`, each ahead of those released later.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper and occupies the level.
    pub(crate) unsafe fn release_due_in_place(&self, now: Instant) {
        let mut last = None;
        // SAFETY: this thread is the level's timekeeper and occupies the level, by this function's
        // contract; so the node inserted last stays in the queue.
        unsafe {
            self.each_due(now, |node| {
                self.queue.fifo.insert_by_time(self.nodes, node, last.replace(node));
            });
        }
    }

    /// Passes each job due at `now` to `queue`, in order; returns whether any were due.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    #[inline]
    unsafe fn each_due(&self, now: Instant, mut queue: impl FnMut(u32)) -> bool {
        let now = now.as_ticks();
        // Changes made from here on are left to the next scan.
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
        if unsafe { self.next() } > now {
            return false;
        }
        let mut any = false;
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
        let mut first = unsafe { self.first() };
        while let Some((time, source)) = first
            && time <= now
        {
            // SAFETY: as above, and this is the first source.
            if let Some(node) = unsafe { self.release(source) } {
                any = true;
                queue(node);
            }
            // SAFETY: as above.
            first = unsafe { self.first() };
        }
        self.queue.timers.set_next(first.map_or(NEVER, |first| first.0));
        any
    }

    /// Returns the earliest due time and its source, not counting pending changes. At equal times
    /// grids precede timers.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    #[inline]
    unsafe fn first(&self) -> Option<(u64, Source)> {
        let grids = self.periodic.iter().map(|&task| (task.next(), Source::Grid(task)));
        let grid = grids.filter(|grid| grid.0 != NEVER).min_by_key(|grid| grid.0);
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
        let timer = unsafe { self.queue.timers.earliest(self.nodes) };
        match (grid, timer) {
            (Some(grid), Some(timer)) if timer.0 < grid.0 => Some((timer.0, Source::Timer(timer.1))),
            (None, Some(timer)) => Some((timer.0, Source::Timer(timer.1))),
            (grid, _) => grid,
        }
    }

    /// Consumes the earliest release; returns its node if this releases a job.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper, and `source` comes from
    /// [`first`](Self::first).
    #[inline]
    unsafe fn release(&self, source: Source) -> Option<u32> {
        match source {
            Source::Grid(task) => self.release_from_grid(task),
            // If a concurrent cancel or move wins, the job is not released.
            // SAFETY: this thread is the level's timekeeper, by this function's contract.
            Source::Timer(node) => unsafe { self.queue.timers.expire(self.nodes, node) }.then_some(node),
        }
    }

    /// Consumes the grid point of `task`; returns its node if this releases a job.
    #[inline]
    fn release_from_grid(&self, task: &Periodic) -> Option<u32> {
        match task.release() {
            Due::Release(node, time) => {
                self.node(node).set_time(time);
                Some(node)
            }
            Due::Skipped => None,
        }
    }

    /// Arms `node`; returns the key of this arming, and whether the caller has to
    /// [note](Self::note) the node.
    #[inline(always)]
    pub(crate) fn arm(&self, node: &Node, time: Instant) -> (u32, First) {
        node.arm(time.as_ticks(), self.queue.timers.order())
    }

    /// Disarms `node`, if it is still armed under `key`; returns whether it was.
    #[inline]
    pub(crate) fn disarm(&self, node: &Node, key: u32) -> bool {
        self.note_first(node, node.disarm(key))
    }

    /// Moves `node` to `time` if it is still armed under `key`, and then returns `true`.
    pub(crate) fn rearm(&self, node: &Node, key: u32, time: Instant) -> bool {
        let first = node.rearm(key, time.as_ticks(), self.queue.timers.order());
        self.note_first(node, first)
    }

    /// Records that `node` has changed, for the thread that was the first to change it.
    pub(crate) fn note(&self, node: &Node) {
        self.queue.timers.note(node, self.position(node) as u32);
    }

    /// Records that `node` has changed, if it has and is not recorded yet; returns whether it has
    /// changed.
    #[inline(always)]
    fn note_first(&self, node: &Node, first: Option<First>) -> bool {
        if first == Some(true) {
            self.note(node);
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
