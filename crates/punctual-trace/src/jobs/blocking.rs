//! One wait for a lock: on what, held by whom, and what the holder did meanwhile.

use super::cause::Actor;
use super::futexes::FutexRole;
use crate::event::Tid;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTarget {
    /// A futex, by the address of its word.
    Futex {
        /// The address in the waiter's memory.
        word: u64,
    },
    /// A lock of the kernel.
    Lock {
        /// Its address.
        address: u64,
        /// Its kind (`LCB_F_*`).
        flags: u32,
    },
    /// Something in the kernel: the thread slept uninterruptibly and no lock event says why.
    Kernel,
}

impl WaitTarget {
    /// Whether it may be a spinning lock. The scheduler takes no others.
    pub(crate) fn may_spin(self) -> bool {
        /// `LCB_F_SPIN`, and those of sleeping locks: `LCB_F_RT`, `LCB_F_PERCPU`, `LCB_F_MUTEX`.
        const SPIN: u32 = 1;
        const SLEEPING: u32 = 8 | 16 | 32;
        // Without any flag it is a spin lock or a semaphore; with those of readers and writers alone, one that sleeps.
        matches!(self, Self::Lock { flags, .. } if flags & SLEEPING == 0 && (flags == 0 || flags & SPIN != 0))
    }
}

/// What a holder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderState {
    /// It ran.
    Running,
    /// It was ready while somebody else ran on its CPU. Without a holder it was the waiter, which already had the lock.
    Preempted {
        /// Who.
        by: Actor,
    },
    /// It slept; the trace does not say why.
    Asleep,
    /// The lock had been handed over: the waiter was on its way back.
    Granted,
    /// The history does not reach back that far.
    Unseen,
}

/// A share of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// 0 for the holder, 1 for the holder of what that one waited for, and so on.
    pub depth: u8,
    /// Which holder; `None` once the lock was handed over, or if unknown.
    pub holder: Option<Tid>,
    /// What it did.
    pub state: HolderState,
    /// How long.
    pub ns: u64,
}

/// A wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocking {
    /// When it began: the attempt that met contention.
    pub start: u64,
    /// When it ended: the lock was acquired, or given up.
    pub end: u64,
    /// For what.
    pub target: WaitTarget,
    /// If on a futex, what that is taken for.
    pub role: Option<FutexRole>,
    /// Whether the waiter slept, rather than span.
    pub slept: bool,
    /// Who held it, and then who held what that one waited for, as priorities were inherited; or who woke the waiter.
    pub owners: Vec<Tid>,
    /// When the waiter was woken.
    pub woken: Option<u64>,
    /// Who woke it.
    pub waker: Option<Actor>,
    /// What the holders did; the shares add up to the wait if the waiter slept.
    pub shares: Vec<Share>,
}

impl Blocking {
    /// A wait of which nothing more is known yet.
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

    /// How long it took.
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
            // Without room to tell them apart, the name is lost but not the time.
            *last = Share { depth, holder: None, state: HolderState::Unseen, ns: last.ns + ns };
        }
    }
}
