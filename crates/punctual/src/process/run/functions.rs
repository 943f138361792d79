//! User functions without their types: the code that runs an app is compiled once, not once for
//! each app.

use punctual_core::CurrentWorker;

use crate::run::{App, Drops};

/// The items of [`App`], as values.
pub(super) struct Functions<'a> {
    pub(super) has_idle: bool,
    pub(super) has_shutdown: bool,
    pub(super) idle_and_shutdown: &'static [&'static str],
    /// [`App::shutdown`], with its contract.
    pub(super) shutdown: unsafe fn(),
    state: Box<dyn State + 'a>,
}

impl<'a> Functions<'a> {
    pub(super) fn of<A: App + 'a>(app: A) -> Self {
        Self {
            has_idle: A::HAS_IDLE,
            has_shutdown: A::HAS_SHUTDOWN,
            idle_and_shutdown: A::IDLE_AND_SHUTDOWN,
            shutdown: A::shutdown,
            state: Box::new(Typed::Arguments(app)),
        }
    }

    /// Runs `#[init]`, once.
    ///
    /// # Safety
    /// As for [`App::init`].
    pub(super) unsafe fn init(&mut self, worker: CurrentWorker) {
        // SAFETY: by this function's contract, which is the same.
        unsafe { self.state.init(worker) }
    }

    /// Runs `#[idle]`.
    ///
    /// # Safety
    /// As for [`App::idle`].
    pub(super) unsafe fn idle(&mut self, worker: CurrentWorker) {
        // SAFETY: by this function's contract, which is the same.
        unsafe { self.state.idle(worker) }
    }

    /// Drops every resource.
    ///
    /// # Safety
    /// As for [`App::drop_resources`].
    pub(super) unsafe fn drop_resources(self, drops: &Drops) {
        // SAFETY: by this function's contract, which is the same.
        unsafe { self.state.drop_resources(drops) }
    }
}

/// Functions with types that only the app knows. Their contracts are those of [`App`].
trait State {
    unsafe fn init(&mut self, worker: CurrentWorker);
    unsafe fn idle(&mut self, worker: CurrentWorker);
    unsafe fn drop_resources(self: Box<Self>, drops: &Drops);
}

enum Typed<A: App> {
    /// Before `init`.
    Arguments(A),
    /// While `init` runs, and after it has panicked.
    Nothing,
    /// After `init`.
    Owned(A::Owned),
}

impl<A: App> State for Typed<A> {
    unsafe fn init(&mut self, worker: CurrentWorker) {
        let Self::Arguments(app) = std::mem::replace(self, Self::Nothing) else {
            unreachable!("init runs once");
        };
        // SAFETY: by this function's contract, which is the same.
        *self = Self::Owned(unsafe { app.init(worker) });
    }

    unsafe fn idle(&mut self, worker: CurrentWorker) {
        let Self::Owned(owned) = self else { unreachable!("idle runs after init") };
        // SAFETY: by this function's contract, which is the same.
        unsafe { A::idle(worker, owned) };
    }

    unsafe fn drop_resources(self: Box<Self>, drops: &Drops) {
        let Self::Owned(owned) = *self else { unreachable!("only init fills resources") };
        // SAFETY: by this function's contract, which is the same.
        unsafe { A::drop_resources(owned, drops) };
    }
}
