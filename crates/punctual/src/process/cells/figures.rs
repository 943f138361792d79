//! Location of a task's figures: in its own memory, or in the memory that a run
//! [exports](crate::observe::metrics).

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use punctual_core::metrics::TaskFigures;

/// Figures, and the owner of their memory.
struct Figures {
    at: NonNull<TaskFigures>,
    _keeper: Arc<dyn Send + Sync>,
}

/// Location of a task's figures in a run, if its jobs are measured.
pub(crate) struct FiguresCell(UnsafeCell<Option<Figures>>);

// SAFETY: the cell is written while no job of the task can run and no code reads it, by the
// contracts of its methods. It refers to atomics.
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

    /// Allocates a run's figures.
    ///
    /// # Safety
    /// No job of the task can run, and no other code uses the cell.
    pub(crate) unsafe fn begin(&self) {
        // SAFETY: zero is valid for atomics.
        let memory: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let at = NonNull::from(&*memory);
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        unsafe { *self.0.get() = Some(Figures { at, _keeper: memory }) };
    }

    /// Moves figures without a job to `at`.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin); `keeper` keeps `at` valid, and all references to it are
    /// shared.
    pub(crate) unsafe fn place(&self, at: NonNull<TaskFigures>, keeper: Arc<dyn Send + Sync>) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        unsafe { *self.0.get() = Some(Figures { at, _keeper: keeper }) };
    }

    /// Returns the figures, if the task's jobs are measured.
    ///
    /// # Safety
    /// Neither [`begin`](Self::begin) nor [`place`](Self::place) is called during the call, nor
    /// while the reference is in use.
    #[inline]
    pub(crate) unsafe fn get(&self) -> Option<&TaskFigures> {
        // SAFETY: the cell does not change during the call, by this function's contract, and its
        // contents keep the figures alive.
        unsafe { (*self.0.get()).as_ref().map(|figures| figures.at.as_ref()) }
    }
}
