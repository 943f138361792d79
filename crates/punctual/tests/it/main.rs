//! Apps in virtual time, on threads of the kernel, and as separate programs.
//!
//! Tests with a global allocator, tests that stop every app of the process, and the stress test are
//! separate binaries.

#[cfg(feature = "signals")]
#[path = "../support/leftovers.rs"]
mod leftovers;
#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;
#[cfg(feature = "signals")]
#[path = "../support/tracefs.rs"]
mod tracefs;

mod asynch;
mod blocked;
mod faults;
mod features;
mod forks;
mod futex_refused;
mod helper_process;
mod idle;
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
mod word_fallback;

use std::os::fd::AsFd;
use std::sync::MutexGuard;

use rustix::event::{PollFd, PollFlags};

/// Waits until the other end of this pipe or socket, which this process has closed, is closed in
/// all processes. A program that another test starts inherits it until the program is executed, and
/// virtual time does not wait for that.
#[allow(dead_code, reason = "some sets of features have no test that closes descriptors")]
fn wait_until_hung_up(fd: &impl AsFd) {
    let limit = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut fds = [PollFd::new(fd, PollFlags::empty())];
    while !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        let ready = rustix::event::poll(&mut fds, Some(&limit));
        assert_ne!(ready, Ok(0), "the other end stays open");
    }
}

/// Serializes the tests that run apps on threads of the kernel in this process: with real-time
/// priorities, apps on the same CPU prevent each other from running.
///
/// Locks the process's memory: otherwise, each of their hundreds of apps would lock and unlock it,
/// which takes a third of the time. Apps in separate programs lock it themselves.
fn alone() -> MutexGuard<'static, ()> {
    privileges::no_runaways_here();
    test_skip::lock_memory();
    test_skip::alone()
}

/// Notes of tasks in virtual time: the time in milliseconds, and a text.
#[cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]
mod log {
    use std::sync::{Arc, Mutex, PoisonError};

    type Entry = (u64, &'static str);

    /// A log that tasks write to and the test reads; clones share it.
    #[derive(Clone, Default)]
    pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

    impl Log {
        /// Notes `what` with the app's time, which has to be whole milliseconds.
        pub(crate) fn note(&self, what: &'static str) {
            let now = punctual::now().as_ticks();
            assert_eq!(now % 1_000_000, 0, "these tests use whole milliseconds");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now / 1_000_000, what));
        }

        /// Returns and clears all notes.
        pub(crate) fn take(&self) -> Vec<Entry> {
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }
}
