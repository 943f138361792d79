//! Between a fault and the end of the app nothing may fail: not because output is impossible, nor
//! because a destructor panics, nor because `idle` is still running.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod another_app;
mod callbacks;
mod destructors;
mod idle;
mod process_end;
mod sections;
mod unwritable;

/// Executor of an app in these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Partition,
    Polling,
    Global,
}

const EXECUTORS: [Executor; 3] = [Executor::Partition, Executor::Polling, Executor::Global];

/// Returns the executors that this machine has enough CPUs for.
fn executors() -> impl Iterator<Item = Executor> {
    let cpus = rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count());
    EXECUTORS.into_iter().filter(move |executor| cpus > 1 || *executor != Executor::Polling)
}
