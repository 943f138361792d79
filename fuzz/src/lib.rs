//! Random apps, and the properties that each of them must have.
//!
//! [`generate`] writes the source of apps: tasks of every kind, resources, nested locks, `idle` and
//! hooks. It determines everything that the compiler must know. A [`script`] determines in each run
//! what the bodies do at their [points](job::Job::point): spawn, cancel, wake, sleep, panic, shut
//! down. So a few compiled apps cover many behaviors.
//!
//! Each run is a separate process ([`child`]). Its [`ledger`] is in memory that it shares with its
//! parent, so it survives a process that is killed while jobs run. [`watch`] contains the checks
//! during the run, `verdict` and [`runner`] those at its end.

pub mod app;
pub mod child;
pub mod generate;
pub mod job;
pub mod ledger;
pub mod random;
pub mod runner;
pub mod script;
mod timers;
pub mod token;
mod verdict;
pub mod wakers;
pub mod watch;

/// Foreign threads, which use the app.
mod foreign {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use crate::job::{Job, Role};

    thread_local! {
        static HERE: Cell<bool> = const { Cell::new(false) };
    }

    /// Returns true on a foreign thread.
    pub(crate) fn is_here() -> bool {
        HERE.get()
    }

    /// Makes the calling thread a foreign one, as the main thread is between runs.
    pub(crate) fn enter() {
        HERE.set(true);
    }

    /// Makes the calling thread a thread of the app.
    pub(crate) fn leave() {
        HERE.set(false);
    }

    /// Uses the app until `over`.
    pub(crate) fn live(over: &AtomicBool) {
        enter();
        let mut job = Job::of(Role::Foreign);
        while !over.load(Ordering::Relaxed) {
            job.point();
            match job.below(4) {
                0 => thread::sleep(Duration::from_micros(job.below(400))),
                1 => thread::yield_now(),
                _ => {}
            }
        }
    }
}
