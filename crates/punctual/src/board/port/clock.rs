//! The clock of an app: the board's, or with the feature `virtual-time` optionally a virtual one
//! that its code advances; and the time limit of the app.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::Instant;
use punctual_core::atomic::Halves;

/// True if virtual time and time limits are available; otherwise reading the clock has no cost for
/// them.
const HAS_VIRTUAL_TIME: bool = cfg!(feature = "virtual-time");

/// No time.
pub(crate) const NEVER: u64 = u64::MAX;

/// End of the app, in ns.
static LIMIT: AtomicU64 = AtomicU64::new(NEVER);

/// True if the app runs in virtual time.
static IS_VIRTUAL: AtomicBool = AtomicBool::new(false);

/// The virtual time, in ns. The core's only thread changes it; handlers only read it.
static VIRTUAL_NOW: Halves = Halves::new(0);

/// Returns whether the app runs in virtual time.
#[inline(always)]
pub(crate) fn is_virtual() -> bool {
    HAS_VIRTUAL_TIME && IS_VIRTUAL.load(Ordering::Relaxed)
}

/// Selects the clock of a run. Virtual time begins at 0.
pub(crate) fn begin(is_virtual: bool) {
    if HAS_VIRTUAL_TIME {
        VIRTUAL_NOW.store(0);
        IS_VIRTUAL.store(is_virtual, Ordering::Relaxed);
    }
}

/// Ends the use of the clock by a run.
pub(crate) fn end() {
    begin(false);
    set_limit(None);
}

/// Returns the time, in ns.
#[inline(always)]
pub(crate) fn now() -> u64 {
    if is_virtual() { VIRTUAL_NOW.load() } else { super::now() }
}

/// Moves the virtual clock forward.
pub(crate) fn advance(now: u64) {
    VIRTUAL_NOW.store(now);
}

/// Sets the time of the timer's interrupt, in ns.
#[inline(always)]
pub(crate) fn alarm(time: u64) {
    // The code that moves the virtual clock checks for due releases.
    if !is_virtual() {
        super::alarm(if HAS_VIRTUAL_TIME { time.min(limit()) } else { time });
    }
}

/// Returns the end of the app, in ns.
#[inline(always)]
pub(crate) fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the end of the app, if it has one.
pub(crate) fn set_limit(limit: Option<Instant>) {
    if HAS_VIRTUAL_TIME {
        LIMIT.store(limit.map_or(NEVER, |limit| limit.as_ticks()), Ordering::Relaxed);
    }
}

/// Returns once whether the time limit has been reached. For the timer's handler.
#[inline(always)]
pub(crate) fn takes_limit() -> bool {
    let is_over = HAS_VIRTUAL_TIME && limit() <= now();
    if is_over {
        set_limit(None);
    }
    is_over
}
