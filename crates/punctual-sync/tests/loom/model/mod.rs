//! The common parts of the models of `shared` and `asynch`.

#![allow(dead_code, unused_imports, reason = "every model uses its own part of this")]

#[path = "../../../../punctual-core/tests/loom/support/common.rs"]
mod common;
#[path = "../../support/polls.rs"]
mod polls;

pub(crate) use common::{Region, check};
pub(crate) use polls::polls;

/// Creates a value of this kind for each execution of a model, whose threads share it.
pub(crate) fn share<T: 'static, F: Fn() -> T + Sync + Send + 'static>(value: F) -> Shared<F> {
    Shared(value)
}

pub(crate) struct Shared<F>(F);

impl<T: 'static, F: Fn() -> T + Sync + Send + 'static> Shared<F> {
    /// As [`check`], for a model that borrows the value.
    pub(crate) fn check(self, preemptions: usize, model: impl Fn(&'static T) + Sync + Send + 'static) {
        check(preemptions, move || lend((self.0)(), &model));
    }
}

/// Lends `value` to the threads of a model, which `body` starts and joins.
pub(crate) fn lend<T: 'static>(value: T, body: impl FnOnce(&'static T)) {
    let raw = Box::into_raw(Box::new(value));
    // SAFETY: the box is freed below, after `body`, which joins every thread that it lends the
    // value to. If it panics instead, the box is leaked.
    body(unsafe { &*raw });
    // SAFETY: the pointer came from `into_raw`, and is no longer used.
    drop(unsafe { Box::from_raw(raw) });
}
