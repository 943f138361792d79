//! The parts that the loom models of `punctual-core` and `punctual-sync` share.

use std::sync::{Mutex, PoisonError};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};

/// Explores every execution of `model` with at most `preemptions` preemptions, or with the value of
/// `LOOM_MAX_PREEMPTIONS` if that is lower: two in the merge gate, and three in `cargo xtask loom`
/// and so in the nightly run.
///
/// Each model states its bound after `Bound:`, at the model or in the head of its file, with the
/// reason. The general argument: a preemption is a switch away from a thread that could continue. A
/// switch away from a thread that waits, yields or has ended is free, and so is a load that returns
/// an older value. An invariant of the protocols breaks if one or two steps of one thread fall
/// between two steps of another, for example a mark and a wake between a check and a sleep. Two
/// preemptions allow each order of these four steps that begins with the running thread, and three
/// allow all of them. Musuvathi and Qadeer (PLDI 2007) found that most concurrency bugs need at
/// most two.
///
/// `tests/seeds.toml` is the evidence: `cargo xtask loom` requires that each model detects its
/// seeded bugs within its bound, and with at most three preemptions.
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
