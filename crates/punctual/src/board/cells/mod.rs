//! The measurements of a task on a board.
//!
//! A task counts in memory of the board, taken before the first run, or on a CPU whose others run
//! Linux in a [row](shared) that Linux reads.

mod shared;

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::Instant;
use punctual_core::metrics::TaskFigures;
use punctual_core::remote::Distribution;

use crate::board::port as board;
use crate::cells::{Job, Observe};
use crate::port::Suspensions;
use crate::report::{Summary, TaskReport};
use crate::stop::StopReason;

pub(crate) use self::shared::{Shared, area, make_ring};

/// Place of a task's figures in a run.
#[derive(Debug)]
enum Place {
    /// Nowhere: the task is not measured, or there has been no run.
    None,
    /// Not chosen yet.
    Unknown,
    /// In memory of the board.
    Own(&'static TaskFigures),
    /// In memory that Linux reads.
    Shared(Shared),
}

/// The measurements of one task.
#[derive(Debug)]
pub(crate) struct Cells {
    place: UnsafeCell<Place>,
    /// The memory for [`Place::Own`], once a run has needed it.
    own: UnsafeCell<Option<NonNull<TaskFigures>>>,
}

// SAFETY: the thread that occupies the task's level calls `record`, and the other methods are
// called while no job of the task can run.
unsafe impl Sync for Cells {}

impl Observe for Cells {}

impl Cells {
    pub(crate) const fn empty(_: &'static StopReason) -> Self {
        Self { place: UnsafeCell::new(Place::None), own: UnsafeCell::new(None) }
    }

    /// Begins a run, in which jobs are measured. Must be followed by [`count`](Self::count) or
    /// [`count_in`](Self::count_in).
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        unsafe { *self.place.get() = Place::Unknown };
    }

    /// Counts the jobs of this run in memory of the board, if they are measured.
    ///
    /// # Panics
    /// Panics if the board has no memory left.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn count(&self) {
        // SAFETY: by this function's contract no other reference to the cells' contents exists.
        let (place, own) = unsafe { (&mut *self.place.get(), &mut *self.own.get()) };
        if matches!(place, Place::Unknown) {
            let memory = || board::memory(Layout::new::<TaskFigures>()).map(NonNull::cast);
            let memory = own.or_else(memory).expect("the board has memory for the figures of a task");
            // SAFETY: the memory is for this task's figures alone, and `place`, which was the only
            // reference to them, has been overwritten. Zero is a valid value of their atomics.
            *place = Place::Own(unsafe {
                memory.write_bytes(0, 1);
                memory.as_ref()
            });
            *own = Some(memory);
        }
    }

    /// Counts the jobs of this run in a row, if they are measured.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn count_in(&self, shared: Shared) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        let place = unsafe { &mut *self.place.get() };
        if matches!(place, Place::Unknown) {
            *place = Place::Shared(shared);
        }
    }

    /// Adds a job, which misses its deadline if it takes longer than `max_response`, in ns.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job, max_response: u64) {
        // SAFETY: the place changes only while no job of the task can run, and a job calls this;
        // the rest is this function's contract.
        unsafe {
            match &*self.place.get() {
                Place::None | Place::Unknown => {}
                Place::Own(figures) => job.record_in(figures, max_response),
                Place::Shared(shared) => {
                    let [release, start] = [job.release, job.start].map(|time| time.as_ticks());
                    shared.record(release, start, start.saturating_add(job.gross), job.preempted);
                }
            }
        }
    }

    /// [`record`](Self::record) of a job that began at its release, `start`, and ran for `gross` ns
    /// without preemption.
    ///
    /// # Safety
    /// As for [`record`](Self::record), and the task is measured.
    #[inline(always)]
    pub(crate) unsafe fn record_undisturbed(&self, start: Instant, gross: u64, max_response: u64) {
        let job = Job { release: start, start, gross, preempted: 0, suspensions: Suspensions::NONE };
        // SAFETY: by this function's contract.
        unsafe { self.record(job, max_response) };
    }

    /// Shows how many releases found the previous job unfinished, where Linux reads that.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn show_overruns(&self, overruns: impl FnOnce() -> u64) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        if let Place::Shared(shared) = unsafe { &*self.place.get() } {
            shared.row.figures.overruns.store(overruns(), Relaxed);
        }
    }

    /// Shows how many releases came too early, where Linux reads that.
    ///
    /// # Safety
    /// As for [`show_overruns`](Self::show_overruns).
    #[inline]
    pub(crate) unsafe fn show_early(&self, early: impl FnOnce() -> u64) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        if let Place::Shared(shared) = unsafe { &*self.place.get() } {
            shared.row.figures.early.store(early(), Relaxed);
        }
    }

    /// Copies the measurements of the last run into `report`.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn fill(&self, report: &mut TaskReport) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        match unsafe { &*self.place.get() } {
            Place::None => {}
            Place::Unknown => report.measured = true,
            Place::Own(figures) => report.fill(figures),
            Place::Shared(shared) => {
                let figures = &shared.row.figures;
                let summary = |of: &Distribution| Summary::new(of.quantity().into(), of.counts());
                report.measured = true;
                (report.jobs, report.misses) = (figures.jobs.load(Relaxed), figures.misses.load(Relaxed));
                report.jitter = summary(&figures.jitter);
                report.response = summary(&figures.response);
                report.execution = summary(&figures.execution);
            }
        }
    }
}
