//! A Linux process, possibly in virtual time.

mod app;
mod claim;
pub(crate) mod fault;
pub(crate) mod foreign_spawns;
pub(crate) mod forked;
pub(crate) mod panic_hook;
mod partition;
#[cfg_attr(not(feature = "async"), allow(dead_code, reason = "no async task waits for descriptors"))]
pub(crate) mod reactor;
pub(crate) mod source;
pub(crate) mod thread;
pub(crate) mod virtual_time;

use punctual_core::{CurrentWorker, Duration};
use punctual_sync::PcpGroup;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) use self::app::{HostApp, Stage, notify};
pub(crate) use self::claim::{RunGuard, each_running};
pub(crate) use self::partition::HostPartition;
pub(crate) use self::reactor::Reactor;
pub(crate) use self::source::Source;
use self::thread::Entry;
pub(crate) use crate::background::calls::Calls;
use crate::port::Suspensions;
use crate::port::linux::suspension;
use crate::state::partition::PartitionState;
use crate::state::platform::Platform;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// The group of all mutexes of an app under the global executor.
pub(crate) type Ceilings = PcpGroup;

impl crate::port::Host for Runtime {
    fn about_to_sleep(&'static self) {
        forked::check(self);
    }

    fn unwinds(&'static self) {
        fault::section_unwinds(self);
    }
}

/// A Linux process.
pub(crate) struct Host;

impl Platform for Host {
    type Entry = Entry<'static>;

    const CHECKS_QUEUED_JOBS: bool = true;
    const MAX_UNSUSPENDED: u64 = suspension::MIN_SWITCH_TIME.as_ticks();
    const HAS_PRIORITIES: bool = true;

    #[inline]
    fn here() -> Option<(&'static PartitionState, CurrentWorker)> {
        thread::get()
    }

    #[inline]
    fn worker_of(partition: &'static PartitionState) -> Option<CurrentWorker> {
        thread::worker_of(partition)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    #[expect(clippy::pointers_in_nomem_asm_block, reason = "without memory, loops compute it once")]
    fn in_register(partition: &'static PartitionState) -> &'static PartitionState {
        let mut address = core::ptr::from_ref(partition);
        // SAFETY: there is no instruction, so the address is the same reference.
        unsafe {
            std::arch::asm!("/* {} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags));
            &*address
        }
    }

    #[inline(always)]
    fn is_in(partition: &'static PartitionState) -> bool {
        thread::is_in(partition)
    }

    #[inline(always)]
    unsafe fn worker() -> CurrentWorker {
        // SAFETY: by this function's contract.
        unsafe { thread::worker() }
    }

    #[inline(always)]
    fn visit(partition: &'static PartitionState) -> Option<Entry<'static>> {
        thread::visit(partition)
    }

    #[inline]
    fn is_of(runtime: &'static Runtime) -> bool {
        thread::is_of(runtime)
    }

    #[cold]
    fn is_last_of(runtime: &'static Runtime) -> bool {
        thread::is_last_of(runtime)
    }

    #[inline]
    fn enter(runtime: &'static Runtime) -> Option<Entry<'static>> {
        thread::enter(runtime)
    }

    #[inline(always)]
    fn is_instrumented(runtime: &'static Runtime, _: &'static PartitionState) -> bool {
        runtime.is_instrumented()
    }

    fn drops_queued(runtime: &'static Runtime) -> bool {
        if runtime.is_copy() {
            forked::check(runtime);
        }
        runtime.drops_jobs()
    }

    #[inline]
    fn aborts(runtime: &'static Runtime) -> bool {
        runtime.aborts()
    }

    #[inline(always)]
    fn call(runtime: &'static Runtime, name: &'static str, is_unchecked: bool, f: impl FnOnce()) {
        let result = catch_unwind(AssertUnwindSafe(f));
        if result.is_err() || !is_unchecked && runtime.is_instrumented() {
            fault::job_ended(runtime, name, result);
        }
    }

    fn check_end(runtime: &'static Runtime, name: &'static str) {
        if runtime.is_instrumented() {
            fault::job_ended(runtime, name, Ok(()));
        }
    }

    fn contained<R>(runtime: &'static Runtime, culprit: Culprit, f: impl FnOnce() -> R) -> Option<R> {
        fault::contained(runtime, culprit, f)
    }

    fn ended_by(runtime: &'static Runtime, culprit: Culprit, f: impl FnOnce()) {
        fault::ended(runtime, culprit, catch_unwind(AssertUnwindSafe(f)));
    }

    #[inline(always)]
    fn spend(partition: &'static PartitionState, me: CurrentWorker, execution: Duration) {
        if execution.as_ticks() > 0 && partition.core.port().is_virtual() {
            virtual_time::spend(partition, me, execution);
        }
    }

    #[inline(always)]
    fn add_executed(partition: &PartitionState, before: u64, gross: u64, _: u64) {
        partition.set_executed(before + gross);
    }

    #[inline(always)]
    fn suspensions(partition: &PartitionState, gross: u64, preempted: u64) -> Suspensions {
        if gross > Self::MAX_UNSUSPENDED && partition.core.port().may_sleep() {
            // A job that forked took longer than that.
            forked::check(partition.runtime);
            suspension::since(gross.saturating_sub(preempted))
        } else {
            Suspensions::NONE
        }
    }
}
