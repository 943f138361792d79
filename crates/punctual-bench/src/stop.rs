//! Ending a run early: a flag that a signal handler may set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end a run with the results so far. Clones share the request.
///
/// ```
/// let stop = punctual_bench::Stop::default();
/// let elsewhere = stop.clone();
/// elsewhere.request();
/// assert!(stop.is_requested());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end. Async-signal-safe.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns `true` if the end was requested. Real-time safety: one load.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the flag, for crates that set one from a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}
