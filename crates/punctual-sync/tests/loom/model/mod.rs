//! The common parts of the models of `shared` and `asynch`.

#![allow(dead_code, unused_imports, reason = "every model uses its own part of this")]

#[path = "../../support/polls.rs"]
mod polls;

use std::sync::{Mutex, PoisonError};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
pub(crate) use polls::polls;

/// Explores every execution of `model` with at most `preemptions` preemptions, or with the value of
/// `LOOM_MAX_PREEMPTIONS` if that is lower: two in the merge gate, and three in `cargo xtask loom`
/// and so in the nightly run.
///
/// Each model states its bound after `Bound:`, at the model or in the head of its file, with the
/// reason. The general argument is at `check` in `tests/loom/support` of `punctual-core`.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    // One at a time: loom maps and unmaps a stack for each thread of each execution, and in two
    // threads of one process that takes ten times as long.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(preemptions, |b| b.min(preemptions)));
    builder.max_branches = 5_000;
    builder.check(model);
}

/// Lends `value` to the threads of a model, which `body` starts and joins.
pub(crate) fn lend<T: 'static>(value: T, body: impl FnOnce(&'static T)) {
    let raw = Box::into_raw(Box::new(value));
    // SAFETY: the box is freed below, after `body`, which joins every thread that it lends the
    // value to. If it panics instead, the box is leaked.
    body(unsafe { &*raw });
    // SAFETY: the pointer came from `into_raw`, and is no longer used.
    drop(unsafe { Box::from_raw(raw) });
}

/// A region that at most one thread may be in at a time; counts the entries.
///
/// Entering takes more than one step: another thread can be scheduled in the middle. loom panics if
/// that thread then enters too, or if it enters later without seeing its predecessor's effects.
pub(crate) struct Region {
    entered: UnsafeCell<u32>,
    inside: AtomicU32,
}

// SAFETY: loom checks every access to `entered`; this is the purpose of the type.
unsafe impl Sync for Region {}
// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn new() -> Self {
        Self { entered: UnsafeCell::new(0), inside: AtomicU32::new(0) }
    }

    /// Enters the region and leaves it.
    pub(crate) fn enter(&self) {
        self.entered.with_mut(|entered| {
            // Only lets loom switch threads.
            self.inside.load(Ordering::Relaxed);
            // SAFETY: `with_mut` panics if any other access is in progress.
            unsafe { *entered += 1 };
        });
    }

    /// Returns the number of entries.
    pub(crate) fn count(&self) -> u32 {
        // SAFETY: `with` panics if a writing access is in progress.
        self.entered.with(|entered| unsafe { *entered })
    }
}
