//! Starting, running and stopping an app.

pub(crate) mod services;

use punctual_core::CurrentWorker;

pub use crate::platform::run::{leak, main, run};
use crate::state::runtime::Runtime;
use crate::state::{Host, Platform};
use crate::stop::Culprit;

/// User functions, provided by the generated code. A value of this type holds `init`'s arguments.
pub trait App: Sized {
    /// The part of `init`'s results that no static stores: `idle`'s own locals, and unused ones.
    type Owned;
    /// True if there is an `#[idle]` function.
    const HAS_IDLE: bool;
    /// True if there is a `#[shutdown]` function.
    const HAS_SHUTDOWN: bool;
    /// Names of the resources that both `#[idle]` and `#[shutdown]` use, unless both only read
    /// them.
    const IDLE_AND_SHUTDOWN: &'static [&'static str];

    /// Runs `#[init]` and fills every resource.
    ///
    /// # Safety
    /// No task runs, and the resources are not filled.
    unsafe fn init(self, worker: CurrentWorker) -> Self::Owned;

    /// Runs `#[idle]`.
    ///
    /// # Safety
    /// The resources are filled, and this is called once, on the idle thread, which is `worker`'s.
    unsafe fn idle(worker: CurrentWorker, owned: &mut Self::Owned);

    /// Runs `#[shutdown]`.
    ///
    /// # Safety
    /// The resources are filled. No job runs or will run, and every other thread of the app has
    /// ended, except that `idle` may still be running, or on a board does not continue, if
    /// [`IDLE_AND_SHUTDOWN`](Self::IDLE_AND_SHUTDOWN) is empty.
    unsafe fn shutdown();

    /// Drops every resource and every value that no static stores, each within a call of `drops`.
    ///
    /// # Safety
    /// The resources are filled, every other thread of the app has ended, and nothing uses the
    /// resources afterwards.
    unsafe fn drop_resources(owned: Self::Owned, drops: &Drops);
}

/// Drops resources one by one: a destructor that panics is a fault of the app, and does not prevent
/// others from running.
pub struct Drops(pub(crate) &'static Runtime);

impl Drops {
    /// Runs the destructor of a resource.
    pub fn resource(&self, name: &'static str, drop: impl FnOnce()) {
        Host::contained(self.0, Culprit::Resource(name), drop);
    }
}
