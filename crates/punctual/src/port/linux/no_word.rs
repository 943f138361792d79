//! A partition's word where no restartable sequences are made: an atomic.

use std::sync::atomic::AtomicU64;

/// What holds the word of a partition on this target.
pub(crate) type PartitionWord = AtomicU64;

/// See the other module of this name.
///
/// # Safety
/// None is needed.
pub(crate) unsafe fn allow(_: &PartitionWord) {}

/// See the other module of this name.
pub(crate) fn begin(_: &PartitionWord, cpu: Option<usize>) -> Result<(), String> {
    match cpu {
        Some(_) => Err("there are no restartable sequences for this target".to_owned()),
        None => Ok(()),
    }
}

/// See the other module of this name.
///
/// # Safety
/// None is needed.
#[cfg(punctual_counted)]
pub(crate) unsafe fn bias_for_counting(_: &PartitionWord) {}

/// See the other module of this name.
pub(crate) fn bias(_: &PartitionWord) {}
