//! Polling partitions: one thread that never sleeps and never enters the kernel.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

#[path = "../support/log.rs"]
mod log;
mod no_system_calls;
mod order;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/tracefs.rs"]
mod tracefs;
mod witness;
mod work;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two apps that poll would share the CPUs.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there are two CPUs to run on. Says so if not.
fn two_cpus() -> bool {
    let enough = rustix::thread::sched_getaffinity(None).is_ok_and(|cpus| cpus.count() > 1);
    if !enough {
        eprintln!("SKIPPED: a polling partition needs a CPU beside another");
    }
    enough
}

/// Virtual time, and threads if there are CPUs for them.
fn both() -> impl Iterator<Item = punctual::Config> {
    let virtual_time = punctual::Config::new().virtual_time();
    std::iter::once(virtual_time).chain(two_cpus().then(punctual::Config::new))
}
