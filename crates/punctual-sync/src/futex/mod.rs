//! Sleeping and waking by futex: the only module of this crate that enters the kernel.
//!
//! Plain futexes wait with absolute timeouts on `CLOCK_MONOTONIC`, so a thread that is preempted
//! before it enters the kernel does not oversleep. Priority-inheritance futexes hold the owner's
//! TID; the kernel lends the owner the priorities of its waiters, along a chain of owners. Both are
//! private to the process. Under `--cfg loom` a model of the kernel (`model`) replaces it.
//!
//! Calls are counted per thread, so that a program can verify that its path stays out of the
//! kernel:
//!
//! ```
//! use punctual_sync::{PcpGroup, PcpMutex, futex};
//!
//! static GROUP: PcpGroup = PcpGroup::new();
//! static LEVEL: PcpMutex<u32> = PcpMutex::new(&GROUP, 3, 0);
//!
//! let member = GROUP.join(3)?;
//! let before = futex::calls();
//! LEVEL.lock(&member, |level| *level += 1)?;
//! assert_eq!(futex::calls() - before, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::atomic::{AtomicU32, Ordering};

#[cfg(not(loom))]
mod kernel;
#[cfg(loom)]
#[doc(hidden)]
pub mod model;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod selector;

pub use kernel_or_model::calls;
pub(crate) use kernel_or_model::{lock_pi, thread_id, unlock_pi, wait, wake};

#[cfg(not(loom))]
use kernel as kernel_or_model;
#[cfg(loom)]
use model as kernel_or_model;

/// `FUTEX_TID_MASK`: the bits of a priority-inheritance futex that identify its owner; the others
/// are the kernel's flags.
const THREAD: u32 = 0x3fff_ffff;

/// Returns `true` if the calling thread owns a priority-inheritance futex.
///
/// No ordering is needed: a thread sees its own lock and unlock, and any other value means `false`.
#[inline]
pub(crate) fn is_owned(word: &AtomicU32, me: u32) -> bool {
    word.load(Ordering::Relaxed) & THREAD == me
}

/// Locks a priority-inheritance futex that is free, or waits for it in the kernel.
///
/// `me` is the caller's TID. Fails only if the kernel refuses, because of a cycle of waiting
/// threads or a nonexistent owner.
#[inline]
pub(crate) fn lock_owned(word: &AtomicU32, me: u32, acquire: Ordering) -> rustix::io::Result<()> {
    match word.compare_exchange(0, me, acquire, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => lock_pi(word),
    }
}

/// Unlocks a priority-inheritance futex that the calling thread owns, in the kernel if there are
/// waiters.
///
/// Fails if the kernel does not accept the calling thread as the owner, which happens in the child
/// of a fork.
#[inline]
pub(crate) fn unlock_owned(word: &AtomicU32, me: u32, release: Ordering) -> rustix::io::Result<()> {
    match word.compare_exchange(me, 0, release, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => unlock_pi(word),
    }
}
