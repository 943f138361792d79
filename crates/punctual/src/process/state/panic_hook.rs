//! The panic hook of a run: panic messages of the app's threads are deferred to the supervisor.
//!
//! The standard library's hook prints on the panicking thread before unwinding starts. While
//! standard error is blocked, that would keep the job's level occupied, and the app from stopping.
//!
//! The hook is installed by the first run and stays. Panics of threads that belong to no running
//! app go to the previous hook. Removing it after each run would need a lock of the standard
//! library that a thread holds while it prints its panic, so a foreign thread could keep a run from
//! ending.

use std::cell::Cell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::port::linux::stderr::{defer, write_deferred};
use crate::state::fault;
use crate::state::fault::panic_text;
use crate::state::runtime::Runtime;

thread_local! {
    /// The run to which the thread defers its panic messages.
    static RUN: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
}

/// True if the hook is installed, possibly behind one that was set later.
static IN_FORCE: AtomicBool = AtomicBool::new(false);

/// Installs the hook unless it is installed.
pub(crate) fn install() {
    // A panicking thread cannot set the hook, and a destructor may run an app while its thread
    // panics.
    if thread::panicking() || IN_FORCE.swap(true, Ordering::AcqRel) {
        return;
    }
    let (before, presence) = (take_hook(), Presence);
    set_hook(Box::new(move |info| {
        // Dropped with the hook, if another one replaces it.
        let _ = &presence;
        // It panics in a destructor, if at all.
        fault::is_not_leaving_idle();
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
