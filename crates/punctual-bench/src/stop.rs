//! How a run is ended early: a flag that a signal handler may set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end with what it has. Clones are the same request.
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
    /// Asks for the end. Safe in a signal handler.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the end was asked for. Real-time safety: one load.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// The flag itself, for crates that set one from a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}
