//! Apps in virtual time, on threads of the kernel, and as separate programs.
//!
//! Tests with a global allocator, tests that stop every app of the process, and the stress test are
//! separate binaries.

#[cfg(feature = "signals")]
#[path = "../support/leftovers.rs"]
mod leftovers;
#[cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]
#[path = "../support/log.rs"]
mod log;
#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;
#[cfg(feature = "signals")]
#[path = "../support/tracefs.rs"]
mod tracefs;

mod asynch;
mod biased_word;
mod blocked;
mod endless_idle;
mod faults;
mod features;
mod forks;
mod futex_refused;
mod guard_without_allocator;
mod helper_process;
mod idle_boosted;
mod inherited;
mod killed;
mod logger;
mod marks;
mod messages;
mod model;
mod monitor;
mod no_proc;
mod panic;
mod partitions;
mod polling;
mod profile;
mod reporting;
#[cfg(feature = "monitoring")]
mod service;
mod settings;
mod signals;
mod sources;
mod stacks;
mod start;
mod time;
mod valgrind;
mod wait_for_event;
mod word_fallback;

use std::sync::MutexGuard;

/// Serializes the tests that run apps on threads of the kernel in this process: with real-time
/// priorities, apps on the same CPU prevent each other from running.
fn alone() -> MutexGuard<'static, ()> {
    privileges::no_runaways_here();
    test_skip::alone()
}
