//! Stub of the reactor without the feature `async`: nothing waits for descriptors.

use std::os::fd::BorrowedFd;
use std::task::Waker;

use punctual_core::Worker;
use rustix::io::Result;

use crate::app::partition::PartitionState;

/// A reactor without waits.
#[derive(Debug)]
pub enum Reactor {}

impl Reactor {
    pub(crate) fn partition(&self) -> &'static PartitionState {
        match *self {}
    }

    pub(crate) fn worker(&self) -> &'static Worker {
        match *self {}
    }

    pub(crate) fn react(&self, _: bool, _: impl FnOnce(), _: impl Fn(Waker)) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn interrupt(&self) {
        match *self {}
    }

    pub(crate) fn open(&self, _: BorrowedFd<'_>, _: Option<BorrowedFd<'_>>) -> Result<()> {
        match *self {}
    }

    /// # Safety
    /// No requirements: it cannot be called.
    pub(crate) unsafe fn close(&self, _: impl Fn(Option<Waker>)) {
        match *self {}
    }
}
