//! What can go wrong while waiting.
//!
//! ```
//! use punctual_sync::shared::{Flag, TimedOut};
//!
//! assert_eq!(Flag::new().spin(10), Err(TimedOut));
//! ```

use core::fmt;

/// The bound of a wait was reached before what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

/// Why a [`TicketLock`](super::TicketLock) was not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockError {
    /// The turn did not come within the bound.
    TimedOut,
    /// As many threads as the lock has places hold it, wait for it, or have just given up waiting.
    Full,
}

/// Why no unit of a [`Semaphore`](crate::shared) was acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquireError {
    /// The deadline passed.
    TimedOut,
    /// As many threads as the semaphore has places wait already.
    Full,
}

/// A semaphore cannot count that far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the turn did not come within the bound",
            Self::Full => "every place of the lock is taken",
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
impl core::error::Error for LockError {}
impl core::error::Error for AcquireError {}
impl core::error::Error for SignalError {}
