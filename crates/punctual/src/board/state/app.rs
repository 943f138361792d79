//! The part of an app's state that a board adds.

use core::sync::atomic::{AtomicBool, Ordering};

use punctual_core::{Instant, MAX_LEVEL};

use super::{Ceilings, Reactor, this_core};
use crate::model::Model;
use crate::report::{Rows, Tasks};
use crate::start_error::StartError;
use crate::state::runtime::{Registered, Runtime};
use crate::stop::StopReason;

/// The part of an app's state that a board adds.
pub(crate) struct HostApp {
    runs: AtomicBool,
    /// True once no further job can run.
    ending: AtomicBool,
    rows: Rows,
}

impl HostApp {
    pub(crate) const fn new(
        _: &'static Model,
        _: Option<&'static Reactor>,
        _: Option<&'static Ceilings>,
    ) -> Self {
        Self { runs: AtomicBool::new(false), ending: AtomicBool::new(false), rows: Rows::new() }
    }
}

impl Runtime {
    /// Claims the app for a run.
    pub(crate) fn take(&'static self) -> Result<(), StartError> {
        if this_core::partition().is_some() || self.host.runs.swap(true, Ordering::Acquire) {
            return Err(StartError::AlreadyRunning(self.name));
        }
        // SAFETY: the last run, if there was one, has ended with all of its jobs.
        unsafe { self.reset(false) };
        self.host.ending.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Releases the app after a run.
    pub(crate) fn give_back(&self) {
        self.host.runs.store(false, Ordering::Release);
    }

    /// Returns whether there is a run.
    pub(crate) fn runs(&self) -> bool {
        self.host.runs.load(Ordering::Relaxed)
    }

    /// Returns the origin of the periodic grids.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no tickers"))]
    pub(crate) fn grid(&self) -> Option<Instant> {
        Some(Instant::from_ticks(self.started()))
    }

    /// Records that no further job can run.
    pub(crate) fn set_ending(&self) {
        self.host.ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether no further job can run in this run.
    pub(crate) fn is_ending(&self) -> bool {
        self.host.ending.load(Ordering::Relaxed)
    }

    /// Begins to stop. Reports the first reason.
    pub(crate) fn stop(&self, reason: &'static StopReason) {
        self.stop_reason.record(reason);
        self.partitions.iter().for_each(|partition| partition.core.stop());
    }

    /// Returns the measurements of every task, highest level first.
    ///
    /// # Safety
    /// No job can run and none can be spawned.
    pub(crate) unsafe fn reports(&'static self) -> Tasks {
        let tasks = (1..=MAX_LEVEL).rev().flat_map(|level| {
            let is_here =
                move |task: &&&'static dyn Registered| task.info().is_some_and(|info| info.level == level);
            // SAFETY: by this function's contract.
            self.tasks.iter().filter(is_here).filter_map(|task| unsafe { task.report() })
        });
        self.host.rows.fill(self.tasks.len(), tasks)
    }
}
