//! The record of one thread in its partition.
//!
//! A [`Worker`] belongs to one thread at a time. Only that thread writes most of its fields,
//! through its [`CurrentWorker`](crate::CurrentWorker); other threads read them: the levels it
//! occupies, and the level of the job it runs.
//!
//! ```
//! use punctual_core::Worker;
//!
//! static SAMPLER: Worker = Worker::new(4);
//! assert_eq!(SAMPLER.base(), 4);
//! assert_eq!(SAMPLER.level(), 0, "it occupies nothing yet");
//! ```

use crate::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU32, AtomicU64, Ordering, const_new};
use crate::level::Level;
use crate::word::{Word, bit, highest};
use crate::word_cell::{ConstLevel, Masks, Start, Token};

/// Spawns on the thread are queued.
pub(crate) const NEVER: u8 = 0;
/// A spawn on the thread, at a level above its own, is a direct call.
pub(crate) const MAY: u8 = 1;
/// As [`MAY`], for local levels as well: the thread is the only one of its partition.
pub(crate) const ALONE: u8 = 2;
/// As [`ALONE`], and the thread is the timekeeper of every level and checks the inboxes (see
/// `polling`).
pub(crate) const POLLS: u8 = 3;

/// A thread's record in its partition; on its own cache line, since other CPUs read it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Worker {
    /// The lowest level this thread may run; determines its kernel priority.
    base: u8,
    /// The levels this thread occupies. Written only by this thread: after it has occupied a level,
    /// and before it vacates the level, so a bit read here belongs to a level that is truly held
    /// (see `pi_wait`).
    pub(crate) held: AtomicU32,
    /// The level of the innermost job on this thread's stack, 0 if no job runs.
    pub(crate) running: AtomicU8,
    /// Selects the spawns on this thread that run as direct calls: [`NEVER`], [`MAY`], [`ALONE`] or
    /// [`POLLS`].
    pub(crate) calls: AtomicU8,
    /// The ordinary levels at which a spawn on this thread may be a call if the word permits it:
    /// those above `base`, or none if the thread polls or runs no calls.
    callable: AtomicU32,
    /// The thread's [token](crate::WordCell::token), if the cell needs one.
    token: AtomicIsize,
    /// Set if the kernel schedules this thread with its real-time policy.
    pub(crate) real_time: AtomicBool,
    /// The thread's TID, 0 before it has started.
    pub(crate) thread: AtomicU32,
    /// A priority-inheritance futex. Waiters make this thread its owner (see `pi_wait`).
    pub(crate) boost: AtomicU32,
    /// Reserved for the port: records whether this thread sleeps.
    pub signal: AtomicU32,
    /// The time until which this thread sleeps, in ns; 0 while it is awake and will check its
    /// timers again.
    pub(crate) sleeps_until: AtomicU64,
}

impl Worker {
    const_new! {
        /// Creates a worker for jobs of level `base` and above. The idle thread has base 0.
        pub fn new(base: u8) -> Self {
            Self {
                base,
                held: AtomicU32::new(0),
                running: AtomicU8::new(0),
                calls: AtomicU8::new(NEVER),
                callable: AtomicU32::new(0),
                token: AtomicIsize::new(0),
                real_time: AtomicBool::new(false),
                thread: AtomicU32::new(0),
                boost: AtomicU32::new(0),
                signal: AtomicU32::new(0),
                sleeps_until: AtomicU64::new(0),
            }
        }
    }

    /// Returns the lowest level this worker runs.
    pub const fn base(&self) -> u8 {
        self.base
    }

    /// Returns the highest level this thread occupies, 0 if none.
    #[inline]
    pub fn level(&self) -> u8 {
        highest(self.held.load(Ordering::Relaxed))
    }

    /// Returns `true` if every level that this thread occupies is below `level`.
    #[inline]
    pub(crate) fn is_below(&self, level: u8) -> bool {
        // See `Word::is_below`.
        self.held.load(Ordering::Relaxed) < bit(level)
    }

    /// Returns `true` if this thread occupies `level`.
    #[inline]
    pub fn holds(&self, level: u8) -> bool {
        level != 0 && self.held.load(Ordering::Relaxed) & bit(level) != 0
    }

    /// Returns the level of the innermost job on this thread's stack, 0 if no job runs.
    #[inline]
    pub fn running(&self) -> u8 {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the TID, as recorded by [`enter`](crate::CurrentWorker::enter).
    pub fn thread(&self) -> u32 {
        self.thread.load(Ordering::Relaxed)
    }

    /// Returns `true` if the thread has its real-time policy, as recorded by
    /// [`enter`](crate::CurrentWorker::enter).
    pub fn is_real_time(&self) -> bool {
        self.real_time.load(Ordering::Relaxed)
    }

    /// Returns `true` if a spawn on this thread may run a job of `level` as a call on its stack
    /// (rules 6 and 7).
    #[inline]
    pub fn may_call(&self, level: &Level) -> bool {
        self.calls() >= level.callers()
    }

    /// Returns [`NEVER`], [`MAY`], [`ALONE`] or [`POLLS`].
    #[inline]
    pub(crate) fn calls(&self) -> u8 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Allows or forbids spawns on this thread to run jobs as direct calls, except those of local
    /// levels. May be called on any thread, once the granted settings are known: the choice affects
    /// which thread runs a job, never whether one may run.
    pub fn allow_calls(&self, allow: bool) {
        self.set_calls(if allow { MAY } else { NEVER });
    }

    /// Sets [`NEVER`], [`MAY`], [`ALONE`] or [`POLLS`].
    pub(crate) fn set_calls(&self, calls: u8) {
        self.calls.store(calls, Ordering::Relaxed);
        // Rule 3 also permits calls of the level `base`, whose time the thread may keep.
        let above = Word::occupied_above(self.base) as u32;
        let callable = if matches!(calls, MAY | ALONE) { above } else { 0 };
        self.callable.store(callable, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn token<T: Token>(&self) -> T {
        T::load(&self.token)
    }

    pub(crate) fn set_token(&self, token: impl Token) {
        token.store(&self.token);
    }

    /// Returns `true` if a spawn on this thread may be a call at an [ordinary](Level::is_ordinary)
    /// level, provided that the word permits it. Then this thread does not keep the level's time:
    /// it does not poll, and its base is below that of the level's worker.
    #[inline(always)]
    pub(crate) fn may_call_at<L: ConstLevel>(&self) -> bool {
        // In memory, as in `atomic::is_zero`.
        // SAFETY: an atomic is loaded as a whole. The stack is not used.
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        unsafe {
            core::arch::asm!(
                "test dword ptr [{worker} + {callable}], {bit}",
                "jz {other}",
                worker = in(reg) self,
                callable = const core::mem::offset_of!(Self, callable),
                bit = const Start::<L>::BIT,
                other = label { return false },
                options(nostack, readonly),
            );
            true
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
        {
            self.callable.load(Ordering::Relaxed) & Start::<L>::BIT != 0
        }
    }

    /// Returns `true` if this thread is the only one of its partition that runs jobs.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= ALONE
    }

    #[inline]
    pub(crate) fn polls(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == POLLS
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Number<const NUMBER: u8>;

    impl<const NUMBER: u8> ConstLevel for Number<NUMBER> {
        const NUMBER: u8 = NUMBER;
    }

    #[test]
    fn may_call_constant_levels_above_its_base() {
        let worker = Worker::new(1);
        let may = || (worker.may_call_at::<Number<1>>(), worker.may_call_at::<Number<2>>());
        assert_eq!(may(), (false, false));
        worker.allow_calls(true);
        assert_eq!(may(), (false, true), "the thread may be the timekeeper of its own level");
        worker.set_calls(POLLS);
        assert_eq!(may(), (false, false), "it checks inboxes");
    }

    #[test]
    fn holds_occupied_levels_only() {
        let worker = Worker::new(1);
        worker.held.store(bit(1), Ordering::Relaxed);
        assert_eq!([0, 1, 2].map(|level| worker.holds(level)), [false, true, false]);
    }
}
