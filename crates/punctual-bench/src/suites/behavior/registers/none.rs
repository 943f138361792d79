//! An architecture without an implementation of the loop.

use std::sync::atomic::AtomicU64;

use super::Damage;

pub(super) const IS_KNOWN: bool = false;
pub(super) const TEXT: &str = "Registers over a preemption are not checked on this architecture.";

pub(super) fn hold_until(_: &AtomicU64) -> Damage {
    Damage::default()
}

pub(super) fn overwrite() {}
