//! One wait for a lock: the lock, its holders, and their activity during the wait.

use super::cause::Actor;
use super::futexes::FutexRole;
use crate::event::Tid;

/// Object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTarget {
    /// A futex.
    Futex {
        /// Address of the futex word in the waiter's memory.
        word: u64,
    },
    /// A kernel lock.
    Lock {
        /// Address of the lock.
        address: u64,
        /// Kind of lock (`LCB_F_*`).
        flags: u32,
    },
    /// Something in the kernel: the thread slept uninterruptibly, without a lock event.
    Kernel,
}

impl WaitTarget {
    /// Returns whether it may be a spinning lock. The scheduler takes no others.
    pub(crate) fn may_spin(self) -> bool {
        /// `LCB_F_SPIN`, and the flags of sleeping locks: `LCB_F_RT`, `LCB_F_PERCPU`,
        /// `LCB_F_MUTEX`.
        const SPIN: u32 = 1;
        const SLEEPING: u32 = 8 | 16 | 32;
        // Without flags it is a spin lock or a semaphore; with only those of readers and writers,
        // one that sleeps.
        matches!(self, Self::Lock { flags, .. } if flags & SLEEPING == 0 && (flags == 0 || flags & SPIN != 0))
    }
}

/// Activity of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderState {
    /// It ran.
    Running,
    /// The holder was ready while another actor ran on its CPU. Without a holder, this was the
    /// waiter, which already had the lock.
    Preempted {
        /// The actor that ran.
        by: Actor,
    },
    /// It slept; the trace does not show why.
    Asleep,
    /// The lock had been handed over: the waiter was on its way back.
    Granted,
    /// The history does not reach back that far.
    Unseen,
}

/// A share of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// 0 for the holder, 1 for the holder of the lock that that one waited for, and so on.
    pub depth: u8,
    /// The holder; `None` after the lock was handed over, or if unknown.
    pub holder: Option<Tid>,
    /// The holder's activity.
    pub state: HolderState,
    /// Duration, in ns.
    pub ns: u64,
}

/// A wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocking {
    /// Start: the attempt that met contention.
    pub start: u64,
    /// End: the lock was acquired, or the wait was abandoned.
    pub end: u64,
    /// The object waited for.
    pub target: WaitTarget,
    /// For a futex, its presumed role.
    pub role: Option<FutexRole>,
    /// True if the waiter slept rather than spun.
    pub slept: bool,
    /// The holder, followed by the holders of the locks that each of these waited for, as
    /// priorities were inherited; or the waker.
    pub owners: Vec<Tid>,
    /// Time of the waiter's wake-up. It precedes `start` if the job starts in the middle of the
    /// wait.
    pub woken: Option<u64>,
    /// The waker.
    pub waker: Option<Actor>,
    /// Activity of the holders; the shares add up to the wait if the waiter slept.
    pub shares: Vec<Share>,
}

impl Blocking {
    /// Creates a wait without holders.
    pub(crate) fn new(target: WaitTarget, start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            target,
            role: None,
            slept: false,
            owners: Vec::new(),
            woken: None,
            waker: None,
            shares: Vec::new(),
        }
    }

    /// Returns the duration, in ns.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    pub(crate) fn share(&mut self, depth: u8, holder: Option<Tid>, state: HolderState, ns: u64) {
        if ns == 0 {
            return;
        }
        let same = |s: &&mut Share| s.depth == depth && s.holder == holder && s.state == state;
        if let Some(share) = self.shares.iter_mut().find(same) {
            share.ns += ns;
        } else if self.shares.len() < super::MAX_SHARES {
            self.shares.push(Share { depth, holder, state, ns });
        } else if let Some(last) = self.shares.last_mut() {
            // Without room for another share, the name is lost but not the time.
            *last = Share { depth, holder: None, state: HolderState::Unseen, ns: last.ns + ns };
        }
    }
}
