//! Items used by the code that `#[app]` generates. Not a public interface: it changes without
//! notice.

use core::cell::Cell;

pub use punctual_core::several;
pub use punctual_core::{
    Arguments, Armed, CurrentWorker, Duration, Instant, Jobs, Level, Locked, Node, PackedStamp, Periodic,
    Popped, Queue, Reaction, Resource, Run, Stamp, WaitSlot, Worker,
};

pub use crate::lock::{AsyncLocked, Group, GroupLocked};
pub use crate::model::OnIdle;
pub use crate::platform::export::*;
pub use crate::port::AppPort;
pub use crate::run::{App, Drops, leak, main, run};
pub use crate::state::partition::{PartitionConfig, PartitionState, ThreadModel};
pub use crate::state::runtime::{Options, Registered, Runtime};
#[cfg(feature = "async")]
pub use crate::task::async_task::{
    AsyncBody, AsyncTask, AwaitsTicker, NonSend, OfUnsent, Place, Timers, future_drop, future_place_local,
    future_poll, future_size,
};
pub use crate::task::body::{Body, take_last};
pub use crate::task::interval::Interval;
pub use crate::task::message::Task;
pub use crate::task::periodic::{PeriodicTask, stop_on_overrun};

/// The additions of the prelude of `std` to that of `core`, for the module of an app.
#[cfg(feature = "alloc")]
pub mod allocated {
    pub use alloc::borrow::ToOwned;
    pub use alloc::boxed::Box;
    pub use alloc::string::{String, ToString};
    pub use alloc::vec::Vec;
    pub use alloc::{format, vec};
}

/// Table entry of a node whose task is configured out, and so is never queued.
///
/// # Safety
/// As for the function in whose place it is.
pub unsafe fn without_task(_: CurrentWorker, _: Popped, _: PackedStamp) -> PackedStamp {
    unreachable!("every node that is queued belongs to a task")
}

/// Returns the table with `run` for the `count` nodes from `base`.
pub const fn fill<const N: usize>(mut table: [Run; N], base: usize, count: usize, run: Run) -> [Run; N] {
    let mut node = base;
    while node < base + count {
        table[node] = run;
        node += 1;
    }
    table
}

/// A lock right in an app: see [`Locked`].
pub type Lock<'a, T, const LEVEL: u8, const CEILING: u8> = Locked<'a, T, AppPort, LEVEL, CEILING>;

/// A task that can be spawned from anywhere; a local task cannot.
#[diagnostic::on_unimplemented(
    message = "a local task is started by tasks of its level only",
    label = "write `cx.local_spawner.<task>(..)`, in a task of its partition and `priority`"
)]
pub trait SpawnedAnywhere {}

/// A periodic task cannot be spawned.
#[diagnostic::on_unimplemented(
    message = "a periodic task is released by the clock and cannot be spawned",
    label = "remove `period` from the attribute of the task, or spawn another task"
)]
pub trait SpawnsPeriodicTask {}

/// A task that binds an event source cannot be spawned.
#[diagnostic::on_unimplemented(
    message = "a task that binds an event source is released by the source and cannot be spawned",
    label = "write `<task>::pend()` to release it without an event, or remove `binds` from its attribute"
)]
pub trait SpawnsBoundTask {}

/// An async task can only be spawned at once.
#[diagnostic::on_unimplemented(
    message = "an async task is spawned immediately, not at a time",
    label = "write `<task>::spawn(..)`, and wait in the task: `punctual::delay(..).await`"
)]
pub trait SpawnsAsyncTaskForTime {}

/// A task whose early releases are delayed or rejected can only be spawned at once.
#[diagnostic::on_unimplemented(
    message = "a task with `on_early = delay` or `on_early = reject` is spawned immediately, not at a time",
    label = "write `<task>::spawn(..)`, or `on_early = count` in the attribute of the task"
)]
pub trait SpawnsRestrictedTaskForTime {}

/// `init`, `idle` and `shutdown` cannot be spawned.
#[diagnostic::on_unimplemented(
    message = "`#[init]`, `#[idle]` and `#[shutdown]` are called by the framework and cannot be spawned",
    label = "spawn a `#[task]`"
)]
pub trait SpawnsHandler {}

/// A type of duration in an attribute. Its conversion is a constant expression, which
/// [`IntoDuration`](crate::IntoDuration) does not allow.
///
/// # Safety
/// If `STD`, the type is `std::time::Duration`, and otherwise [`Duration`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a length of time",
    label = "neither a `punctual::Duration` nor a `std::time::Duration`"
)]
pub unsafe trait ConstDuration: Copy {
    /// True for the standard library's type.
    const STD: bool;
}

// SAFETY: it is `Duration`.
unsafe impl ConstDuration for Duration {
    const STD: bool = false;
}

// SAFETY: it is the standard library's.
unsafe impl ConstDuration for core::time::Duration {
    const STD: bool = true;
}

/// Returns the duration that an attribute gives.
pub const fn duration<T: ConstDuration>(value: T) -> Duration {
    if T::STD {
        // SAFETY: `T` is this type, by the trait's contract.
        punctual_core::from_std(unsafe { core::mem::transmute_copy::<T, core::time::Duration>(&value) })
    } else {
        // SAFETY: `T` is this type, by the trait's contract.
        unsafe { core::mem::transmute_copy::<T, Duration>(&value) }
    }
}

/// Undoes an action when dropped, unless disarmed.
pub struct Undo<'a, F: FnMut()>(pub &'a Cell<bool>, pub F);

impl<F: FnMut()> Drop for Undo<'_, F> {
    fn drop(&mut self) {
        if !self.0.get() {
            (self.1)();
        }
    }
}

/// Checks at compile time that the macro and the compiler agree.
pub const fn assert_known(agrees: bool) {
    assert!(agrees, "the macro and the compiler compute different values; write a number");
}

/// Checks at compile time that `low` is at most `high`.
///
/// # Panics
/// With `message` if it is not.
pub const fn assert_in_order(low: Duration, high: Duration, message: &str) {
    assert!(low.as_ticks() <= high.as_ticks(), "{}", message);
}

/// Checks at compile time that a value may move to another thread.
pub const fn assert_send<T: Send>() {}

/// [`assert_send`] for a type that is syntactically known not to be `Send`.
pub const fn assert_movable<T: Movable>() {}

/// A value that may move to another thread: `Send`, with an error that names the alternatives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot move to another thread, as tasks do",
    label = "not `Send`",
    note = "use a type that is `Send`: `Arc` in place of `Rc`, an atomic or a plain value in place of `Cell` and `RefCell` \
            (a shared resource is locked already), or let `idle` alone use it"
)]
pub trait Movable: Send {}

#[diagnostic::do_not_recommend]
impl<T: Send> Movable for T {}

/// [`assert_sync`] for a type that is syntactically known not to be `Sync`.
pub const fn assert_shareable<T: Shareable>() {}

/// A value that several threads may refer to: `Sync`, with an error that names the alternatives.
#[diagnostic::on_unimplemented(
    message = "several tasks cannot refer to a `{Self}` without a lock",
    label = "not `Sync`",
    note = "list the resource without `&`, and lock it, or use a type that is `Sync`: an atomic in place of `Cell` and `RefCell`, \
            `Arc` in place of `Rc`"
)]
pub trait Shareable: Sync {}

#[diagnostic::do_not_recommend]
impl<T: Sync> Shareable for T {}

/// Checks at compile time that `main` is the generated one: every function has its own type.
pub const fn assert_only_main<F: OnlyMain<G>, G>(_: &F, _: &G) {}

/// A `main` of the type `G`, the one that is generated.
#[diagnostic::on_unimplemented(
    message = "there are two functions `main`: the one of the app, which the attribute generates, and another one",
    label = "generates `main`",
    note = "to keep your own `main`, write `#[punctual::app(main = false)]` and call `run` of the app in it; otherwise remove it"
)]
pub trait OnlyMain<G> {}

#[diagnostic::do_not_recommend]
impl<F> OnlyMain<F> for F {}

/// Keeps the compiler from inferring `G` from the other implementation, which would report
/// mismatched types.
#[diagnostic::do_not_recommend]
impl<F> OnlyMain<[F; 0]> for F {}

/// Checks at compile time that references to a value may be shared between threads.
pub const fn assert_sync<T: Sync>() {}
