//! A partition: tasks that share one CPU, and the protocol that lets them share it.
//!
//! # Why at most one thread uses a resource
//!
//! A thread *occupies* a level from setting the level's bit in the word until clearing it. A thread
//! runs a job of level `l` while it occupies `l`, and enters a critical section of ceiling `c > l`
//! by occupying `c` as well. Let a thread's own level be the highest it occupies. Two rules, each
//! one atomic change of the word:
//!
//! * **Start**: a job of level `l` starts only if `l` is above every occupied level.
//! * **Raise**: a thread occupies a ceiling `c` above its own level only if its own level is the
//!   partition's, that is, if no level above it is occupied. (If `c` is not above its own level,
//!   nothing needs to be done.)
//!
//! So every occupied bit was above all others when it was set, and has exactly one owner.
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
//! *No lost job.* A job is queued before its level is marked ready in the word. A thread that
//! lowers the level observes every mark in the same atomic step and serves each ready level above
//! the remaining level; a thread that marks a level above the partition's observes this in the same
//! step and serves the level or wakes its worker.
//!
//! None of this depends on priorities, on CPUs, or on jobs not suspending themselves. Priorities
//! decide *when* things happen, and the bounds of response-time analysis hold for jobs that do not
//! suspend.
//!
//! The loom models in `tests/loom_*.rs` check these claims.

mod masked;
mod running;
mod work;

pub use self::running::Preemption;
use self::running::Running;
use crate::Worker;
use crate::alarm::Alarm;
use crate::atomic::{AtomicBool, AtomicU32, Ordering, const_new};
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::pi_wait::EventCount;
use crate::port::Port;
use crate::word::{Word, bit, highest};
use crate::word_cell::WordCell;
use crate::worker::POLLS;

/// The word, alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<C>(C);

/// Tasks that share one CPU.
#[derive(Debug)]
pub struct Partition<P: Port> {
    word: Padded<P::Word>,
    /// The time until which the clock of a partition of [one thread](crate::OneThread) is not
    /// checked, in ns.
    pub(crate) alarm: Alarm,
    /// For a partition of one thread: bit set, by index, of the levels that may have armed timers.
    /// A thread that arms a timer sets its level's bit.
    pub(crate) timed: AtomicU32,
    pub(crate) changes: EventCount,
    pub(crate) stopping: AtomicBool,
    /// Set while a thread polls every inbox (see `poll`).
    pub(crate) polled: AtomicBool,
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
        /// * If the port's word is [of one thread](WordCell::OF_ONE_THREAD), the first of the
        ///   workers runs every level, having made itself [alone](CurrentWorker::set_alone). No
        ///   other worker is ever made a [`CurrentWorker`], and all other callers of the partition
        ///   are on another CPU or in an interrupt handler.
        ///
        /// # Panics
        /// If two levels have the same number, or if there are more than 254 workers; and if the
        /// port's word is of one thread, also if the levels are not in ascending order.
        pub unsafe fn new(
            port: P,
            levels: &'static [&'static Level],
            workers: &'static [&'static Worker],
        ) -> Self {
            assert!(distinct(levels), "each level of a partition has a unique number");
            assert!(!Self::ONE_THREAD || ascend(levels), "levels are in ascending order");
            assert!(workers.len() < u8::MAX as usize, "a partition has at most 254 threads");
            Self {
                word: Padded(empty::<P>()),
                alarm: Alarm::new(),
                timed: AtomicU32::new(0),
                changes: EventCount::new(0),
                stopping: AtomicBool::new(false),
                polled: AtomicBool::new(false),
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

    /// `true` if one thread runs every level: see [`OneThread`](crate::OneThread).
    pub(crate) const ONE_THREAD: bool = P::Word::OF_ONE_THREAD;

    /// Returns the current word, which may change at any time. Synchronizes with no other thread.
    pub fn snapshot(&self) -> Word {
        let word = self.load(Ordering::Relaxed);
        if Self::ONE_THREAD { word.with_occupied(self.workers[0].held.load(Ordering::Relaxed)) } else { word }
    }

    /// Returns the current word, as one of the partition's threads sees it.
    #[inline(always)]
    pub(crate) fn load_as(&self, me: CurrentWorker, order: Ordering) -> Word {
        let word = self.load(order);
        if Self::ONE_THREAD { word.with_occupied(me.held()) } else { word }
    }

    /// Records `held` as the levels that the one thread occupies.
    #[inline(always)]
    pub(crate) fn occupy_as(&self, me: CurrentWorker, held: u32) {
        self.word.0.occupy(&me.worker().held, held);
    }

    /// Returns `true` if `me` releases due jobs of `level` between jobs. The one thread of a
    /// partition leaves that to a handler.
    #[inline(always)]
    fn serves_timers_of(me: CurrentWorker, level: &Level) -> bool {
        !Self::ONE_THREAD && (me.polls() || me.is(level.worker()))
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

    // ---- occupying and vacating ---------------------------------------------------------------------

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
        let held = me.held();
        debug_assert!(ceiling > highest(held));
        if Self::ONE_THREAD {
            // The running job is always at the top.
            return self.occupy_as(me, held | bit(ceiling));
        }
        let mut word = self.load(Ordering::Relaxed);
        loop {
            if !word.is_at_highest_of(held) {
                self.wait_for_word(me, |word| word.level() == highest(held));
                word = self.load(Ordering::Relaxed);
                continue;
            }
            // Acquire: this thread sees the effects of the resource's previous users.
            match self.swap(word, word.occupy(ceiling), Ordering::Acquire) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        me.set_held(held | bit(ceiling));
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
        if Self::ONE_THREAD {
            let held = me.held() & !bit(level);
            self.occupy_as(me, held);
            return self.load(Ordering::Relaxed).with_occupied(held);
        }
        // Before the word: a bit in `held` means that the level has yet to be vacated (see
        // `pi_wait`).
        me.set_held(me.held() & !bit(level));
        // Release: the next thread to occupy a level sees what this thread did.
        let before = self.word.0.fetch_and(!u64::from(bit(level)), Ordering::Release);
        Word::from_raw(before).vacate(level)
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
        if Self::ONE_THREAD {
            let word = self.load_as(me, Ordering::Relaxed);
            if !word.is_below(level) || unless_ready && word.is_ready(level) {
                return false;
            }
            self.occupy_as(me, me.held() | bit(level));
            if !unless_ready {
                // Must follow the store, see `OneThread`. Acquire: as below.
                self.word.0.fetch_and(!Word::ready_bit(level), Ordering::Acquire);
            }
            return true;
        }
        let mut word = self.load(Ordering::Relaxed);
        loop {
            let overtakes = unless_ready && word.is_ready(level);
            if !word.is_below(level) || overtakes {
                return false;
            }
            // Acquire: this thread sees the jobs that were pushed before the level was marked
            // ready.
            match self.swap(word, word.start(level), Ordering::Acquire) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        me.set_held(me.held() | bit(level));
        true
    }

    // ---- the dispatch rules -------------------------------------------------------------------------

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
        // A direct call is allowed only under rules 1, 3, 6 and 7.
        if !Self::ONE_THREAD {
            let calls = me.calls();
            if number < me.base() || !me.is_below(number) {
                return None;
            }
            // One comparison separates the most frequent case from the others.
            if calls.wrapping_sub(level.callers()) >= POLLS - level.callers() {
                if calls < level.callers() {
                    return None;
                }
                // Jobs in the inbox of a polled level are queued, although the level is not marked
                // ready.
                if level.has_inbox() {
                    return None;
                }
            }
        }
        if !self.start(me, number, true) {
            return None;
        }
        Some(Preemption { running: Running::enter(self, me, number), level })
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
        if self.polled.load(Ordering::Relaxed) {
            // The polling thread finds the job in the inbox; the word stays in the cache of its
            // CPU.
            return self.port.pushed();
        }
        let before = self.mark_ready(level);
        // If the level was marked already, another thread is responsible for it and has not served
        // it yet. For a partition of one thread the level is not compared: see `OneThread`.
        if !before.is_ready(level.number()) && (Self::ONE_THREAD || level.number() > before.level()) {
            self.port.wake(level.worker());
        }
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
        self.load_as(me, Ordering::Relaxed).must_serve()
    }

    /// Rule 2: runs every ready level above the partition's level, highest first.
    ///
    /// Rule 3: for a level below this thread's base it wakes the level's worker. One wake is
    /// enough, since that worker serves the others when it vacates its level.
    pub fn serve(&'static self, me: CurrentWorker, mut now: Stamp) {
        loop {
            let word = self.load_as(me, Ordering::Acquire);
            let ready = word.highest_ready();
            if ready <= word.level() {
                return;
            }
            let level = self.level(ready);
            // Not only `may_call`, which decides on preemption: a level that this thread may not
            // run has to be handed to its worker.
            let mine = Self::ONE_THREAD || ready >= me.base() && me.may_call(level);
            if !mine && !me.is(level.worker()) {
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
    fn drain(&'static self, me: CurrentWorker, level: &'static Level, mut now: Stamp) -> Stamp {
        let keeps_time = Self::serves_timers_of(me, level);
        // Hoisted out of the loop, since the level does not change.
        let waiting = level.waiting();
        loop {
            if keeps_time {
                now = self.release_between_jobs(me, level, now);
            }
            // SAFETY: this thread occupies the level.
            let Some(node) = (unsafe { waiting.pop() }) else { return now };
            // SAFETY: this thread occupies the level, and has just popped the node.
            now = unsafe { waiting.run(me, node, now) };
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
