//! The panic hook of a run: panic messages of the app's threads are deferred to the supervisor.
//!
//! The standard library's hook prints before unwinding starts, on the thread that panics. There it would keep the level of
//! a job from being vacated, and the app from being stopped, for as long as standard error takes nothing.
//!
//! The hook is set by the first run and stays, and hands on everything that is not of a running app to the hook that was
//! there before. To take it back after each run would take the lock of the standard library that a thread holds while it
//! prints its panic, so a run could fail to end because of a thread that is none of the app's.

use std::cell::Cell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::app::runtime::Runtime;
use crate::app::stop::panic_text;
use crate::port::linux::stderr::{defer, write_deferred};

thread_local! {
    /// The run that the thread defers its panic messages to.
    static RUN: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
}

/// Whether the hook is installed, possibly behind one that was set later.
static IN_FORCE: AtomicBool = AtomicBool::new(false);

/// Installs the hook unless it is installed.
pub(crate) fn record_panics() {
    // The standard library lets no thread change the hook that panics itself, as one may that runs an app in a destructor.
    if thread::panicking() || IN_FORCE.swap(true, Ordering::AcqRel) {
        return;
    }
    let (before, presence) = (take_hook(), Presence);
    set_hook(Box::new(move |info| {
        // Dropped with the hook, if somebody sets another in its place.
        let _ = &presence;
        match RUN.get() {
            Some(runtime) => record(runtime, info),
            None => before(info),
        }
    }));
}

struct Presence;

impl Drop for Presence {
    fn drop(&mut self) {
        IN_FORCE.store(false, Ordering::Release);
    }
}

fn record(runtime: &'static Runtime, info: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let (name, text) = (thread.name().unwrap_or("<unnamed>"), panic_text(info.payload()));
    match info.location() {
        Some(place) => defer(format_args!("\nthread '{name}' panicked at {place}:\n{text}\n")),
        None => defer(format_args!("\nthread '{name}' panicked:\n{text}\n")),
    }
    runtime.notify_supervisor();
}

/// Redirects the panic messages of the calling thread to the supervisor of a run, until dropped.
pub(crate) struct PanicRedirect {
    before: Option<&'static Runtime>,
}

impl PanicRedirect {
    /// For a thread of `runtime`.
    pub(crate) fn to(runtime: &'static Runtime) -> Self {
        Self { before: RUN.replace((!runtime.keeps_panic_hook()).then_some(runtime)) }
    }
}

impl Drop for PanicRedirect {
    fn drop(&mut self) {
        RUN.set(self.before);
    }
}

/// Writes deferred messages when dropped: at the end of a run, after the supervisor has ended.
pub(crate) struct FlushDeferred;

impl Drop for FlushDeferred {
    fn drop(&mut self) {
        write_deferred();
    }
}
