//! Stub for targets without restartable sequences: the word of a partition is an atomic.

use std::sync::atomic::AtomicU64;

/// Cell of a partition's word on this target.
pub(crate) type PartitionWord = AtomicU64;

/// See the function in the other implementation of this module.
///
/// # Safety
/// No requirements.
pub(crate) unsafe fn allow(_: &PartitionWord) {}

/// See the function in the other implementation of this module.
pub(crate) fn begin(_: &PartitionWord, cpu: Option<usize>) -> Result<(), String> {
    match cpu {
        Some(_) => Err("there are no restartable sequences for this target".to_owned()),
        None => Ok(()),
    }
}

/// See the function in the other implementation of this module.
///
/// # Safety
/// No requirements.
#[cfg(punctual_counted)]
pub(crate) unsafe fn bias_for_counting(_: &PartitionWord) {}

/// See the function in the other implementation of this module.
pub(crate) fn forget_sequence(_: &PartitionWord) {}

/// See the function in the other implementation of this module.
pub(crate) fn bias(_: &PartitionWord) {}
