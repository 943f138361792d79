//! Errors of waiting.
//!
//! ```
//! use punctual_sync::shared::{Flag, TimedOut};
//!
//! assert_eq!(Flag::new().spin_while(|| false), Err(TimedOut));
//! ```

use core::fmt;

/// The bound of a wait was reached before what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

/// Why a [`Barrier`](super::Barrier) was not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BarrierError {
    /// The bound of the wait was reached before everybody had arrived.
    TimedOut,
    /// A process that has used the barrier is dead, and nobody has [repaired](super::Barrier::repair) the barrier.
    PeerDied,
    /// As many processes as the barrier can tell apart, 32, have used it, and all live.
    Full,
}

/// Why a [`TicketLock`](super::TicketLock) was not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TicketLockError {
    /// The turn did not come within the bound.
    TimedOut,
    /// As many threads as the lock has places hold it, wait for it, or have just given up waiting; or as many processes
    /// as it can tell apart, 32, use it.
    Full,
    /// A process died while it had the lock, so the value may be half changed, and nobody has
    /// [taken it over](super::TicketLock::take_over).
    OwnerDied,
}

/// Why no unit of a [`Semaphore`](crate::shared) was acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The deadline passed.
    TimedOut,
    /// As many threads as the semaphore has places wait already, or hold a [`Unit`](super::Unit).
    Full,
}

/// A semaphore cannot count that far.
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
        f.write_str("the bound of the wait was reached")
    }
}

impl fmt::Display for BarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the bound of the wait was reached before everybody had arrived",
            Self::PeerDied => {
                "a process that has used the barrier is dead: replace it, and repair the barrier"
            }
            Self::Full => "as many processes as the barrier can tell apart use it",
        })
    }
}

impl fmt::Display for TicketLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the turn did not come within the bound",
            Self::Full => "every place of the lock is taken",
            Self::OwnerDied => {
                "a process died while it had the lock: take the lock over, and see to the value"
            }
        })
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline passed before a unit was free",
            Self::Full => "every place for a waiting thread is taken",
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
