//! The app: its static state, its configuration and execution, and the report of a run.

pub(crate) mod current;
pub(crate) mod event_source;
pub(crate) mod fault;
pub(crate) mod figures;
pub(crate) mod forked;
#[cfg(feature = "guard")]
pub mod guard;
#[cfg(not(feature = "guard"))]
#[path = "no_guard.rs"]
pub(crate) mod guard;
pub(crate) mod heartbeat;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod panic_hook;
pub(crate) mod partition;
pub(crate) mod profile;
#[cfg(feature = "async")]
pub(crate) mod reactor;
#[cfg(not(feature = "async"))]
#[path = "no_reactor.rs"]
pub(crate) mod reactor;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod services;
pub(crate) mod spawn_gate;
pub(crate) mod stage;
pub(crate) mod stop;
pub(crate) mod trace_markers;
pub(crate) mod virtual_time;

use crate::port::Host;

impl Host for runtime::Runtime {
    fn about_to_sleep(&'static self) {
        forked::check(self);
    }

    fn unwinds(&'static self) {
        fault::section_unwinds(self);
    }
}
