//! Errors of waiting.
//!
//! ```
//! use punctual_sync::shared::{Flag, TimedOut};
//!
//! assert_eq!(Flag::new().spin_while(|| false), Err(TimedOut));
//! ```

use core::fmt;

/// The bound of a wait was reached before its condition held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

/// The reason a [`Barrier`](super::Barrier) was not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BarrierError {
    /// The bound of the wait was reached before every member had arrived.
    TimedOut,
    /// A process that has used the barrier is dead, and the barrier has not been
    /// [repaired](super::Barrier::repair).
    PeerDied,
    /// The maximum number of processes, 32, have used the barrier, and all are alive.
    Full,
}

/// The reason a [`TicketLock`](super::TicketLock) was not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TicketLockError {
    /// The turn did not come within the bound.
    TimedOut,
    /// All slots are in use by threads that hold the lock, wait for it, or have just given up
    /// waiting; or the maximum number of processes, 32, use it.
    Full,
    /// A process died while it held the lock, so the value may be half changed, and the lock has
    /// not been [taken over](super::TicketLock::take_over).
    OwnerDied,
}

/// The reason no unit of a [`Semaphore`](crate::shared) was acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The deadline passed.
    TimedOut,
    /// All slots are in use by threads that wait or hold a [`Unit`](super::Unit).
    Full,
}

/// A semaphore's maximum count would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalError {
    /// Units that were to be added.
    pub added: u32,
    /// Units that were free.
    pub free: u32,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait timed out")
    }
}

impl fmt::Display for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the wait timed out before every member had arrived",
            Self::PeerDied => {
                "a process that has used the barrier is dead: replace it, and repair the barrier"
            }
            Self::Full => "the maximum number of processes use the barrier",
        })
    }
}

impl fmt::Display for TicketLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the wait for the lock timed out",
            Self::Full => "every slot of the lock is in use",
            Self::OwnerDied => {
                "a process died while it held the lock: take over the lock and repair the value"
            }
        })
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline passed before a unit was free",
            Self::Full => "every slot for a waiting thread is in use",
        })
    }
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a semaphore with {} free units cannot count {} more", self.free, self.added)
    }
}

impl core::error::Error for TimedOut {}
impl core::error::Error for BarrierError {}
impl core::error::Error for TicketLockError {}
impl core::error::Error for AcquireError {}
impl core::error::Error for SignalError {}
