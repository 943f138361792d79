//! In place of what async tasks wait for descriptors with, without the feature `async`: there is none.

use std::os::fd::BorrowedFd;
use std::task::Waker;

use punctual_core::Worker;
use rustix::io::Result;

use crate::app::partition::PartitionState;

/// The descriptors that the async tasks of an app wait for, and the thread that does.
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
    /// None: nobody can call it.
    pub(crate) unsafe fn close(&self, _: impl Fn(Option<Waker>)) {
        match *self {}
    }
}
