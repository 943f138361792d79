//! A thread that provides inputs in virtual time.

use std::io::{self, ErrorKind};
use std::thread::JoinHandle;

use punctual_core::{Instant, Port};

use crate::background;
use crate::state::runtime::Runtime;
use crate::state::thread;

/// The turns of a thread in virtual time; see [`spawn_in_virtual_time`].
#[derive(Debug)]
pub struct VirtualThread {
    runtime: &'static Runtime,
}

impl VirtualThread {
    /// Lets time pass until `instant`; returns before the jobs that are released then. An instant
    /// in the past is now. Returns `false` if the app is stopping: the thread must end then.
    pub fn sleep_until(&mut self, instant: Instant) -> bool {
        // Partitions check descriptors, which this thread may have made ready, when they run.
        if self.runtime.sources().next().is_some() || self.runtime.reactor().is_some() {
            for partition in self.runtime.partitions {
                partition.core.port().wake(partition.idle);
            }
        }
        self.runtime.host.turns.pause_guest(instant)
    }

    /// Returns `true` if the app is stopping: the thread must end then. For waiting in real time,
    /// during which no time passes in the app.
    pub fn is_stopping(&self) -> bool {
        self.runtime.is_stopping()
    }
}

/// Ends the turns of the thread.
struct Turns(&'static Runtime);

impl Drop for Turns {
    fn drop(&mut self) {
        self.0.host.turns.leave_as_guest();
    }
}

/// Starts an ordinary thread that takes turns with the partitions of an app in virtual time, to
/// provide inputs at given instants: it runs alone, and virtual time passes only in
/// [`VirtualThread::sleep_until`]. Runs with the same inputs are therefore equal.
///
/// To be called in `init`. `body` starts at time 0, before the first jobs, and is dropped if `init`
/// fails. [`punctual::now`](crate::now) returns virtual time in it. It must not wait for the app in
/// any other way, for example by joining a thread that waits for a job.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the calling thread does not belong to an app in virtual time,
/// [`ErrorKind::AlreadyExists`] if the run has such a thread, and those of
/// [`std::thread::Builder::spawn`].
pub fn spawn_in_virtual_time(
    name: &str,
    body: impl FnOnce(&mut VirtualThread) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let here = thread::get().filter(|(partition, _)| partition.core.port().is_virtual());
    let Some((partition, _)) = here else {
        let message = "this thread does not belong to an app in virtual time";
        return Err(io::Error::new(ErrorKind::Unsupported, message));
    };
    let runtime = partition.runtime;
    if !runtime.host.turns.admit_guest() {
        let message = "another thread provides inputs in virtual time";
        return Err(io::Error::new(ErrorKind::AlreadyExists, message));
    }
    let turns = Turns(runtime);
    background::spawn(name, move || {
        // Dropped last, even if the thread cannot be started.
        let _turns = turns;
        thread::begin_as_guest(runtime);
        if runtime.host.turns.wait_as_guest() {
            body(&mut VirtualThread { runtime });
        }
    })
}
