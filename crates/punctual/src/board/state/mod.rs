//! A board: one core runs one partition, and a single thread runs every level of it.
//!
//! A panic ends the program, by the handler of the board's crate, so no fault has to be contained.

mod app;
pub(crate) mod source;
pub(crate) mod this_core;
pub(crate) mod virtual_time;

use core::ptr;
use core::sync::atomic::Ordering;

use punctual_core::{CurrentWorker, Duration};

pub(crate) use self::app::HostApp;
pub(crate) use self::source::Source;
use crate::board::port::clock;
use crate::port::Suspensions;
use crate::state::partition::{PartitionConfig, PartitionState};
use crate::state::platform::Platform;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// A board.
pub(crate) struct Host;

/// The right to release jobs in an app that is not stopping, or to access a run.
pub(crate) struct Permission;

impl Platform for Host {
    type Entry = Permission;

    const CHECKS_QUEUED_JOBS: bool = false;
    const MAX_UNSUSPENDED: u64 = u64::MAX / 2;
    const HAS_PRIORITIES: bool = false;

    #[inline]
    fn here() -> Option<(&'static PartitionState, CurrentWorker)> {
        this_core::get()
    }

    #[inline]
    fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker> {
        this_core::worker_of(partition)
    }

    #[inline(always)]
    fn is_in(partition: &'static PartitionState) -> bool {
        this_core::is_in(partition)
    }

    #[inline(always)]
    unsafe fn worker() -> CurrentWorker {
        // SAFETY: by this function's contract.
        unsafe { this_core::worker() }
    }

    #[inline(always)]
    fn visit(partition: &'static PartitionState) -> Option<Permission> {
        partition.runtime.runs().then_some(Permission)
    }

    #[inline]
    fn is_of(runtime: &'static Runtime) -> bool {
        this_core::is_of(runtime)
    }

    #[cold]
    fn is_last_of(runtime: &'static Runtime) -> bool {
        this_core::is_of(runtime) && runtime.is_ending()
    }

    #[inline]
    fn enter(runtime: &'static Runtime) -> Option<Permission> {
        (this_core::is_of(runtime) && !runtime.is_stopping()).then_some(Permission)
    }

    #[inline(always)]
    fn is_instrumented(_: &'static Runtime, partition: &'static PartitionState) -> bool {
        partition.core.starts_no_job()
    }

    fn drops_queued(_: &'static Runtime) -> bool {
        false
    }

    fn aborts(_: &'static Runtime) -> bool {
        false
    }

    #[inline(always)]
    fn call(_: &'static Runtime, _: &'static str, _: bool, f: impl FnOnce()) {
        f();
    }

    fn check_end(_: &'static Runtime, _: &'static str) {}

    fn contained<R>(_: &'static Runtime, _: Culprit, f: impl FnOnce() -> R) -> Option<R> {
        Some(f())
    }

    fn ended_by(_: &'static Runtime, _: Culprit, f: impl FnOnce()) {
        f();
    }

    #[inline(always)]
    fn spend(partition: &'static PartitionState, me: CurrentWorker, execution: Duration) {
        if execution.as_ticks() > 0 && clock::is_virtual() {
            virtual_time::spend(partition, me, execution);
        }
    }

    // Atomic, because a job may preempt the end of another.
    #[inline]
    fn add_executed(partition: &PartitionState, _: u64, gross: u64, preempted: u64) {
        partition.executed.fetch_add(gross.saturating_sub(preempted), Ordering::Relaxed);
    }

    #[inline(always)]
    fn suspensions(_: &PartitionState, _: u64, _: u64) -> Suspensions {
        Suspensions::NONE
    }
}

/// Waits for descriptors: none on boards.
#[derive(Debug)]
pub enum Reactor {}

/// The locks of the global executor: none on boards.
#[derive(Debug)]
pub enum Ceilings {}

/// System calls submitted by a partition: none on boards.
#[derive(Debug)]
pub enum Calls {}

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
