//! The measurements of a task in a process, and the pointers of its observers.

pub(crate) mod figures;
pub(crate) mod heartbeat;
pub(crate) mod recent;

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use punctual_core::Instant;

pub(crate) use self::figures::FiguresCell;
pub(crate) use self::heartbeat::BeatSlot;
pub(crate) use self::recent::Recent;
use crate::cells::Job;
use crate::port::linux::trace_marker::Mark;
use crate::report::TaskReport;
use crate::stop::StopReason;

/// The CPU time that profiled jobs of a partition have used, in ns.
pub(crate) type Used = AtomicU64;

/// The measurements and observers of one task.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) figures: FiguresCell,
    pub(crate) mark: Mark,
    pub(crate) profile: Slot,
    pub(crate) beat: BeatSlot,
    pub(crate) guard: Slot,
    /// The reason with which the guard stops the app.
    pub(crate) guard_stop: &'static StopReason,
}

impl Cells {
    /// Creates the cells of a task; `guard_stop` is the reason with which the guard stops the app.
    pub(crate) const fn empty(guard_stop: &'static StopReason) -> Self {
        Self {
            figures: FiguresCell::empty(),
            mark: Mark::off(),
            profile: Slot::empty(),
            beat: BeatSlot::empty(),
            guard: Slot::empty(),
            guard_stop,
        }
    }

    /// Allocates memory for the measurements of a run.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract, so no thread uses the
        // cell.
        unsafe { self.figures.begin() };
    }

    /// Adds a job, which misses its deadline if it takes longer than `max_response`, in ns.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job, max_response: u64) {
        // SAFETY: the cell changes only while no job of the task can run, and a job calls this.
        if let Some(figures) = unsafe { self.figures.get() } {
            // SAFETY: by this function's contract.
            unsafe { job.record_in(figures, max_response) };
        }
    }

    /// [`record`](Self::record) of a job that began at its release, `start`, and ran for `gross` ns
    /// without preemption or suspension.
    ///
    /// # Safety
    /// As for [`record`](Self::record), and the task is measured.
    #[inline(always)]
    pub(crate) unsafe fn record_undisturbed(&self, _start: Instant, gross: u64, max_response: u64) {
        // SAFETY: as in `record`. A run begins the figures of a measured task before its first job.
        unsafe { self.figures.get().unwrap_unchecked().record_undisturbed(gross, max_response) };
    }

    /// Does nothing: other processes read the count elsewhere.
    ///
    /// # Safety
    /// No requirements.
    #[inline(always)]
    pub(crate) unsafe fn show_overruns(&self, _: impl FnOnce() -> u64) {}

    /// Does nothing: other processes read the count elsewhere.
    ///
    /// # Safety
    /// No requirements.
    #[inline(always)]
    pub(crate) unsafe fn show_early(&self, _: impl FnOnce() -> u64) {}

    /// Copies the measurements of the last run into `report`.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn fill(&self, report: &mut TaskReport) {
        // SAFETY: the cell changes only when a run begins, and this one has not ended.
        if let Some(figures) = unsafe { self.figures.get() } {
            report.fill(figures);
        }
    }
}

/// A pointer to the data that an observer has of a task in a run; the observer knows the type.
#[derive(Debug)]
pub(crate) struct Slot(AtomicPtr<()>);

impl Slot {
    pub(crate) const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Sets the data, while no job of the task can run.
    ///
    /// # Safety
    /// The data live until the slot is cleared, after the last job of the task, and every use of
    /// the slot is with this type.
    pub(crate) unsafe fn set<T>(&self, data: *const T) {
        self.0.store(data.cast_mut().cast(), Ordering::Relaxed);
    }

    /// Clears the slot, and returns its content.
    pub(crate) fn clear(&self) -> *mut () {
        self.0.swap(ptr::null_mut(), Ordering::Relaxed)
    }

    /// Returns the data, if the task is observed. For threads of the app; not valid after the run.
    ///
    /// # Safety
    /// The type is that of [`set`](Self::set).
    #[inline]
    pub(crate) unsafe fn get<T>(&self) -> Option<&'static T> {
        // Relaxed: it changes only while no job can run; starting and joining the threads orders
        // that. SAFETY: the data lives as long as threads of the app, by `set`'s contract, and has
        // this type, by this function's contract.
        unsafe { self.0.load(Ordering::Relaxed).cast::<T>().as_ref() }
    }
}
