//! Values that live for one execution of a model, although the executor requires `'static`.

use std::cell::RefCell;

/// Owns the values of a model, and frees them when the execution has ended.
///
/// A model joins every thread it starts before it returns and retains no reference, so no use
/// outlives the arena.
pub(crate) struct Arena(RefCell<Vec<Box<dyn FnOnce()>>>);

impl Arena {
    pub(super) fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Stores `value` until the end of the execution.
    pub(crate) fn put<T: 'static>(&self, value: T) -> &'static T {
        let place = Box::into_raw(Box::new(value));
        self.0.borrow_mut().push(Box::new(move || {
            // SAFETY: `place` was made by `Box::into_raw` above and is freed once, after its last
            // use.
            drop(unsafe { Box::from_raw(place) });
        }));
        // SAFETY: `place` is valid until the arena is dropped, and a model uses none of its values
        // after that.
        unsafe { &*place }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // A model that failed may have left threads behind: then everything is leaked.
        if !std::thread::panicking() {
            // In reverse, since later values refer to earlier ones.
            self.0.get_mut().drain(..).rev().for_each(|free| free());
        }
    }
}
