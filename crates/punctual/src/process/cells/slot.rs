//! A pointer to the data of an observer.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

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
    /// It lives until it is cleared, which is when no job of the task can run anymore, and every
    /// use of the slot is with this type.
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
