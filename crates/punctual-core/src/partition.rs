//! A partition: tasks that share one CPU, and the protocol that lets them share it.
//!
//! # Why at most one thread uses a resource
//!
//! A thread *occupies* a level from the step that adds it to the occupied levels until the step
//! that removes it. A thread runs a job of level `l` while it occupies `l`, and enters a critical
//! section of ceiling `c > l` by occupying `c` as well. Let a thread's own level be the highest it
//! occupies. Two rules, each of which takes effect at one instant:
//!
//! * **Start**: a job of level `l` starts only if `l` is above every occupied level.
//! * **Raise**: a thread occupies a ceiling `c` above its own level only if its own level is the
//!   partition's, that is, if no level above it is occupied. (If `c` is not above its own level,
//!   nothing needs to be done.)
//!
//! So every occupied level was above all others when it was occupied, and has exactly one owner.
//!
//! *Claim: while thread X uses a resource R with ceiling c, no other thread does.* X occupies some
//! `x >= c` throughout. Suppose Y uses R too, so Y's job has level `<= c` and Y occupies some `y >=
//! c`. Assume `y` was set after `x` (the other case is symmetric), so `y > x`. If setting `y` was
//! the start of Y's job, then `y <= c <= x`: a contradiction. If it was a raise, Y's own level was
//! the partition's just before, so it was above `x >= c`; call that level `y'` and repeat the
//! argument with `y'`, which Y set earlier. If `y'` was set after `x`, the recursion continues and
//! ends at the start of Y's job. If it was set before `x`, then `x` was set while `y' > x` was
//! occupied: a contradiction.
//!
//! *No deadlock.* A thread waits only to raise, and only for levels above its own to be vacated.
//! The owner of the top level never waits. The owner of any other level waits, if at all, only for
//! higher levels; so every chain of waiting threads climbs and ends at a thread that runs, or that
//! sleeps for a reason outside the protocol.
//!
//! *No lost job.* A job is queued before its level is marked ready. A thread that vacates a level
//! serves each ready level above the remaining level, and observes every mark that was set before.
//! A thread that marks a level later finds the lower level of the partition, and serves the level
//! or wakes a thread that does. A job that is queued by a job of its own level needs no mark: the
//! thread checks the queue before it vacates the level.
//!
//! None of this depends on priorities, on CPUs, or on jobs not suspending themselves. Priorities
//! decide *when* things happen, and the bounds of response-time analysis hold for jobs that do not
//! suspend.
//!
//! # Dispatch variants
//!
//! The module `dispatch` lists the properties that the proof above requires of the steps. The three
//! variants prove them, each on its own page: threads that [share a word](SharedWord), a thread
//! that [polls](Partition::poll), and [one thread](OneThread) with its interrupt handlers.
//!
//! The loom models in `tests/loom` check these claims for each variant.

mod dispatch;
mod one_thread;
mod polling;
mod running;
mod shared_word;
mod work;

pub(crate) use self::dispatch::{Dispatch, PortOf, VariantOf};
pub use self::one_thread::{OneThread, ReadyLevels};
pub use self::running::Preemption;
use self::running::Running;
pub use self::shared_word::SharedWord;
use crate::Worker;
use crate::atomic::{AtomicBool, Ordering, const_new};
use crate::current::CurrentWorker;
use crate::jobs::PackedStamp;
use crate::level::{Level, Stamp};
use crate::pi_wait::EventCount;
use crate::port::Port;
use crate::word::{Word, bit};
use crate::word_cell::{ConstLevel, WordCell};

/// The word, alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<C>(C);

/// Tasks that share one CPU.
#[derive(Debug)]
pub struct Partition<P: Port> {
    word: Padded<P::Word>,
    pub(crate) dispatch: VariantOf<P>,
    pub(crate) changes: EventCount,
    pub(crate) stopping: AtomicBool,
    levels: &'static [&'static Level],
    workers: &'static [&'static Worker],
    port: P,
}

impl<P: Port> Partition<P> {
    const_new! {
        /// Creates a partition of these levels and all threads that take part in it.
        ///
        /// # Safety
        /// * These levels and workers belong to no other partition, and each is listed once. Each
        ///   node and queue belongs to one level.
        /// * The worker of each level is among the workers.
        /// * If the port's partitions are [of one thread](OneThread), the first of the
        ///   workers runs every level, having made itself [alone](CurrentWorker::set_alone). No
        ///   other worker is ever made a [`CurrentWorker`], and all other callers of the partition
        ///   are on another CPU or in an interrupt handler.
        ///
        /// # Panics
        /// If two levels have the same number, or if there are more than 254 workers; and if the
        /// port's partitions are of one thread, even if the levels are not in ascending order.
        pub unsafe fn new(
            port: P,
            levels: &'static [&'static Level],
            workers: &'static [&'static Worker],
        ) -> Self {
            assert!(distinct(levels), "each level of a partition has a unique number");
            assert!(!VariantOf::<P>::NEEDS_ORDER || ascend(levels), "levels are in ascending order");
            assert!(workers.len() < u8::MAX as usize, "a partition has at most 254 threads");
            Self {
                word: Padded(empty::<P>()),
                dispatch: initial::<P>(),
                changes: EventCount::new(0),
                stopping: AtomicBool::new(false),
                levels,
                workers,
                port,
            }
        }
    }

    /// Returns the platform.
    #[inline]
    pub fn port(&self) -> &P {
        &self.port
    }

    /// Returns the levels that have tasks.
    pub fn levels(&self) -> &'static [&'static Level] {
        self.levels
    }

    /// Returns all threads of the partition.
    pub fn workers(&self) -> &'static [&'static Worker] {
        self.workers
    }

    /// Returns the current word, which may change at any time. Synchronizes with no other thread.
    pub fn snapshot(&self) -> Word {
        VariantOf::<P>::snapshot(self)
    }

    /// Records the [token](WordCell::token) of the calling thread, which acts as `me` from now on.
    /// Required before [`preempt_at`](Self::preempt_at).
    pub fn join(&self, me: CurrentWorker) {
        me.set_token(self.word_cell().token());
    }

    /// Returns the cell of the word, for the port.
    #[inline]
    pub fn word_cell(&self) -> &P::Word {
        &self.word.0
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> Word {
        Word::from_raw(self.word.0.load(order))
    }

    #[inline]
    pub(crate) fn swap(&self, from: Word, to: Word, order: Ordering) -> Result<(), Word> {
        self.word.0.swap(from.raw(), to.raw(), order).map_err(Word::from_raw)
    }

    // ---- occupying and vacating -----------------------------------------------------------------

    /// [`raise`](Self::raise), unless this thread already occupies the ceiling or a level above it.
    /// Returns whether it raised the level.
    #[inline(always)]
    pub(crate) fn raise_if_below(&self, me: CurrentWorker, ceiling: u8) -> bool {
        let raises = me.is_below(ceiling);
        if raises {
            self.raise(me, ceiling);
        }
        raises
    }

    /// Occupies `ceiling` for a critical section, first waiting while a level above this thread's
    /// own is occupied.
    ///
    /// [`lower`](Self::lower) ends the section. Calls nest, each with a higher ceiling.
    #[inline]
    pub(crate) fn raise(&self, me: CurrentWorker, ceiling: u8) {
        VariantOf::<P>::raise(self, me, ceiling);
    }

    /// Vacates a level that this thread occupies, and serves the levels that may then start.
    #[inline]
    pub(crate) fn lower(&'static self, me: CurrentWorker, level: u8) {
        let word = self.vacate(me, level);
        if word.may_have_work() {
            self.after_lowering(me, word, None);
        }
    }

    /// Vacates a level; returns the resulting word.
    #[inline(always)]
    fn vacate(&self, me: CurrentWorker, level: u8) -> Word {
        VariantOf::<P>::vacate(self, me, level)
    }

    #[cold]
    fn after_lowering(&'static self, me: CurrentWorker, word: Word, mut now: Stamp) {
        if word.waiters() != 0 {
            self.release_waiters(me);
            now = None;
        }
        self.serve(me, now);
    }

    /// Vacates a level during unwinding. No job runs here on data that may be inconsistent: the
    /// port is notified before any job can start, and the worker of the highest ready level is
    /// woken.
    #[cold]
    pub(crate) fn unwind(&'static self, me: CurrentWorker, level: u8) {
        self.port.unwinds();
        let word = self.vacate(me, level);
        if word.waiters() != 0 {
            self.release_waiters(me);
        }
        let ready = word.highest_ready();
        if ready > word.level() {
            self.port.wake(self.level(ready).worker());
        }
    }

    /// [`unwind`](Self::unwind) from the job of a level; `outer` is the level of the job running
    /// below it.
    #[cold]
    fn unwind_job(&'static self, me: CurrentWorker, level: u8, outer: u8) {
        // The level may have jobs that were queued without a mark. Relaxed: no thread starts the
        // level before it is vacated.
        self.word.0.fetch_or(Word::ready_bit(level), Ordering::Relaxed);
        me.set_running(outer);
        self.unwind(me, level);
    }

    /// Occupies `level` to run its jobs, if it is above the partition's level.
    ///
    /// With `unless_ready`, also fails if jobs of the level are queued, so that none is overtaken.
    #[inline(always)]
    fn start(&self, me: CurrentWorker, level: u8, unless_ready: bool) -> bool {
        VariantOf::<P>::start(self, me, level, unless_ready)
    }

    // ---- the dispatch rules ---------------------------------------------------------------------

    /// Rule 1: occupies `level` for a job that the calling thread runs at once, on the spawner's
    /// stack.
    ///
    /// Returns `None`, and the job has to be queued, if `level` is not above the partition's level,
    /// if jobs of it are queued, or if this thread may not run it.
    ///
    /// # Safety
    /// * `level` is one of this partition's.
    /// * This thread finishes or drops its preemptions in reverse order.
    // Always: for a constant level little code remains, which size-based inlining does not
    // anticipate.
    #[inline(always)]
    pub unsafe fn preempt(&'static self, me: CurrentWorker, level: &'static Level) -> Option<Preemption<P>> {
        let number = level.number();
        if !VariantOf::<P>::may_call(me, level) || !self.start(me, number, true) {
            return None;
        }
        Some(Preemption { running: Running::enter(self, me, number), level })
    }

    /// [`preempt`](Self::preempt) at a constant level, in fewer instructions.
    ///
    /// May return `None` although `preempt` would not, so the caller tries that next: if this
    /// thread polls, if it is the level's worker, if the level is local, or if
    /// [`WordCell::set_unless`] refuses without need, for example because jobs require
    /// [further checks](WordCell::CHECKS_JOBS). [`finish_at`](Preemption::finish_at) ends the
    /// preemption.
    ///
    /// # Safety
    /// As for [`preempt`](Self::preempt), and `level` has the number of `L`. Unless the word needs
    /// no [token](WordCell::token), this thread has [joined](Self::join) the partition as `me`
    /// after the partition was last reset.
    #[inline(always)]
    pub unsafe fn preempt_at<L: ConstLevel>(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        // SAFETY: by this function's contract.
        unsafe { VariantOf::<P>::preempt_at::<P, L>(self, me, level) }
    }

    /// Returns the preemption that was [suspended](Preemption::suspend).
    ///
    /// # Safety
    /// The suspended preemption belonged to this thread and `level`, and `outer` is the value that
    /// `suspend` returned; it is resumed once.
    #[inline]
    pub unsafe fn resume(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
        outer: u8,
    ) -> Preemption<P> {
        Preemption { running: Running { partition: self, me, level: level.number(), outer }, level }
    }

    /// Returns the preemption that could not be [finished](Preemption::finish_at).
    ///
    /// # Safety
    /// The preemption belonged to this thread and `level`, and is taken back once.
    #[cold]
    pub unsafe fn reenter(&'static self, me: CurrentWorker, level: &'static Level) -> Preemption<P> {
        me.set_held(me.held() | bit(level.number()));
        Preemption::enter(self, me, level)
    }

    /// Runs `job`, which returns its end, as a [`preempt`](Self::preempt)ion.
    ///
    /// # Errors
    /// Returns `job`, to be queued, if it may not run now.
    ///
    /// # Safety
    /// `level` is one of this partition's.
    #[inline]
    pub unsafe fn call<J: FnOnce() -> Stamp>(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
        job: J,
    ) -> Result<(), J> {
        // SAFETY: the level is the partition's, by this function's contract, and this preemption is
        // finished after those that `job` creates.
        let Some(preemption) = (unsafe { self.preempt(me, level) }) else { return Err(job) };
        let end = job();
        preemption.finish(end);
        Ok(())
    }

    /// Queues `node`, whose slot is filled, from a thread of the partition.
    ///
    /// # Safety
    /// * `level` is one of this partition's.
    /// * `node` is one of the level's, in no queue, and the caller has the right to queue it,
    ///   granted by [`Slots::put`](crate::Slots::put) or the node's
    ///   [`Activation`](crate::Activation).
    #[inline]
    pub unsafe fn spawn(&'static self, me: CurrentWorker, level: &'static Level, node: u32) {
        if me.running() == level.number() {
            // SAFETY: this thread runs a job of the level; the rest is this function's contract.
            return unsafe { self.spawn_own(level, node) };
        }
        // SAFETY: the node is one of the level's, by this function's contract.
        unsafe { level.push(node) };
        self.mark_ready(level);
        self.serve(me, None);
    }

    /// [`spawn`](Self::spawn) from a job of the level itself.
    ///
    /// # Safety
    /// As for [`spawn`](Self::spawn), and the calling thread's innermost job is of `level`.
    #[inline]
    pub unsafe fn spawn_own(&'static self, level: &'static Level, node: u32) {
        // SAFETY: this thread runs a job of the level, so it occupies the level; and it checks the
        // queue once more before it vacates the level, so no ready mark is needed. The node is one
        // of the level's.
        unsafe { level.push_own(node) };
    }

    /// [`spawn_own`](Self::spawn_own) if the level's [inbox](Level::has_inbox) was empty when last
    /// checked. Otherwise `node` may overtake the jobs in the inbox.
    ///
    /// # Safety
    /// As for [`spawn_own`](Self::spawn_own).
    #[inline]
    pub unsafe fn append_own(&'static self, level: &'static Level, node: u32) {
        // SAFETY: as in `spawn_own`.
        unsafe { level.append(node) };
    }

    /// Queues `node`, whose slot is filled, from a foreign thread; wakes the level's worker if
    /// necessary.
    ///
    /// # Safety
    /// As for [`spawn`](Self::spawn).
    pub unsafe fn spawn_from_outside(&self, level: &'static Level, node: u32) {
        // SAFETY: the node is one of the level's, by this function's contract.
        unsafe { level.push(node) };
        VariantOf::<P>::announce(self, level);
    }

    #[inline]
    pub(crate) fn mark_ready(&self, level: &Level) -> Word {
        let mark = Word::ready_bit(level.number());
        // Release: the thread that starts the level sees the job.
        Word::from_raw(self.word.0.fetch_or(mark, Ordering::Release))
    }

    /// Returns `true` if a ready level is above the partition's, so that `me` has jobs to
    /// [serve](Self::serve).
    #[inline]
    pub fn must_serve(&self, me: CurrentWorker) -> bool {
        VariantOf::<P>::load_as(self, me, Ordering::Relaxed).must_serve()
    }

    /// Rule 2: runs every ready level above the partition's level, highest first.
    ///
    /// Rule 3: for a level below this thread's base it wakes the level's worker. One wake is
    /// enough, since that worker serves the others when it vacates its level.
    pub fn serve(&'static self, me: CurrentWorker, mut now: Stamp) {
        loop {
            let word = VariantOf::<P>::load_as(self, me, Ordering::Acquire);
            let ready = word.highest_ready();
            if ready <= word.level() {
                return;
            }
            let level = self.level(ready);
            if !VariantOf::<P>::may_serve(me, level) {
                return self.port.wake(level.worker());
            }
            if !self.start(me, ready, false) {
                continue;
            }
            let running = Running::enter(self, me, ready);
            // The end of the last job is the time at which the next level's first job can start.
            now = self.drain(me, level, now);
            // Vacates without serving: this loop serves instead of nesting.
            if running.leave().waiters() != 0 {
                self.release_waiters(me);
                now = None;
            }
        }
    }

    /// Runs all jobs of a level that this thread occupies; returns the end of the last one.
    // Never: within `serve`, its loop has fewer registers.
    #[inline(never)]
    fn drain(&'static self, me: CurrentWorker, level: &'static Level, now: Stamp) -> Stamp {
        let mut now = PackedStamp::from(now);
        let keeps_time = VariantOf::<P>::keeps_time(me, level);
        // Hoisted out of the loop, since the level does not change.
        let waiting = level.waiting();
        loop {
            if keeps_time {
                now = self.release_between_jobs(me, level, now.into()).into();
            }
            // SAFETY: this thread occupies the level.
            let Some(job) = (unsafe { waiting.pop() }) else { return now.into() };
            // SAFETY: this thread occupies the level, and has just popped the job.
            now = unsafe { waiting.run(me, job, now) };
        }
    }

    /// Ends a preemption of `level` that may have left queued jobs; `number` and `outer` are the
    /// parts of its [`Running`].
    // Takes the parts, so that the preemption stays out of memory.
    #[cold]
    fn drain_and_lower(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
        number: u8,
        outer: u8,
        end: Stamp,
    ) {
        let running = Running { partition: self, me, level: number, outer };
        let end = self.drain(me, level, end);
        let word = running.leave();
        if word.may_have_work() {
            self.after_lowering(me, word, end);
        }
    }

    pub(crate) fn level(&self, number: u8) -> &'static Level {
        let found = self.levels.iter().find(|l| l.number() == number);
        found.expect("only levels of this partition are ever marked ready")
    }
}

#[cfg(not(loom))]
const fn empty<P: Port>() -> P::Word {
    P::Word::EMPTY
}

#[cfg(loom)]
fn empty<P: Port>() -> P::Word {
    P::Word::empty()
}

#[cfg(not(loom))]
const fn initial<P: Port>() -> VariantOf<P> {
    VariantOf::<P>::NEW
}

#[cfg(loom)]
fn initial<P: Port>() -> VariantOf<P> {
    VariantOf::<P>::new()
}

/// Returns `true` if each of these levels is above the one before.
const fn ascend(levels: &[&Level]) -> bool {
    let mut at = 1;
    while at < levels.len() {
        if levels[at - 1].number() >= levels[at].number() {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns `true` if no two of these levels have the same number.
const fn distinct(levels: &[&Level]) -> bool {
    let (mut at, mut seen) = (0, 0);
    while at < levels.len() {
        let level = bit(levels[at].number());
        if seen & level != 0 {
            return false;
        }
        seen |= level;
        at += 1;
    }
    true
}
