//! The part of a partition's state that a board adds.

use core::ptr;

use super::Calls;
use crate::state::partition::{PartitionConfig, PartitionState};

/// The part of a partition's state that a board adds: none.
pub(crate) struct HostPartition;

impl HostPartition {
    pub(crate) const fn new(_: PartitionConfig, _: Option<&'static Calls>) -> Self {
        Self
    }
}

impl PartitionState {
    /// Returns the number of its core.
    pub(crate) fn number(&self) -> u32 {
        self.index() as u32
    }

    /// Returns the level of the innermost job on the core, 0 if none runs.
    pub(crate) fn running(&self) -> u8 {
        self.idle.running()
    }

    /// Prepares the port for a run, whose clock is the board's.
    ///
    /// # Safety
    /// As for [`reset`](Self::reset).
    pub(crate) unsafe fn prepare_port(&'static self, _: bool) {
        self.core.port().set_core(self.number(), ptr::from_ref(self).cast());
    }
}
