//! Where the figures of a task are: in memory of its own, or in that which a run [shows](crate::app::metrics).

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use punctual_core::metrics::TaskFigures;

/// Figures, and what keeps their memory.
struct Figures {
    at: NonNull<TaskFigures>,
    _keeper: Arc<dyn Send + Sync>,
}

/// The place of a task's figures in a run, if its jobs are measured.
pub(crate) struct FiguresCell(UnsafeCell<Option<Figures>>);

// SAFETY: the cell is written while no job of the task can run and nobody reads it, by the contracts of its methods.
// What it refers to are atomics.
unsafe impl Sync for FiguresCell {}

impl std::fmt::Debug for FiguresCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FiguresCell").finish_non_exhaustive()
    }
}

impl FiguresCell {
    pub(crate) const fn empty() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Makes room for a run's figures.
    ///
    /// # Safety
    /// No job of the task can run, and nobody else uses the cell.
    pub(crate) unsafe fn begin(&self) {
        // SAFETY: atomics may be zero.
        let memory: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let at = NonNull::from(&*memory);
        // SAFETY: by this function's contract nothing else refers to the cell's content.
        unsafe { *self.0.get() = Some(Figures { at, _keeper: memory }) };
    }

    /// Moves figures without a job to `at`.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin); `keeper` keeps `at` valid, to which nobody refers but through shared references.
    pub(crate) unsafe fn place(&self, at: NonNull<TaskFigures>, keeper: Arc<dyn Send + Sync>) {
        // SAFETY: by this function's contract nothing else refers to the cell's content.
        unsafe { *self.0.get() = Some(Figures { at, _keeper: keeper }) };
    }

    /// The figures, if the task's jobs are measured.
    ///
    /// # Safety
    /// Neither [`begin`](Self::begin) nor [`place`](Self::place) is called meanwhile, nor as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn get(&self) -> Option<&TaskFigures> {
        // SAFETY: the cell does not change meanwhile, by this function's contract, and its content keeps the figures.
        unsafe { (*self.0.get()).as_ref().map(|figures| figures.at.as_ref()) }
    }
}
