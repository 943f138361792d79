//! Threads for everything that is not real-time: logging, networking, user interfaces.
//!
//! A thread started from a task inherits the task's CPU, but not its policy. [`spawn`] starts an
//! ordinary thread off the partitions' CPUs, if the machine has others. Tasks of a polling
//! partition, which must not enter the kernel, [`submit`] their system calls to such a thread. Any
//! other task can own a [`Helper`] for operations that are not real-time, or a [`Requester`] for a
//! separate program whose crash does not affect the app. [`HelperProcess`] runs any program beside
//! the app, and restarts it.
//!
//! ```
//! let answer = punctual::background::spawn("adder", || 40 + 2).expect("threads can be started");
//! assert_eq!(answer.join().unwrap(), 42);
//! ```

pub(crate) mod calls;
mod helper;
mod pauses;
pub(crate) mod process;
mod requests;
pub(crate) mod traffic;

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::port::linux::{notice, settings};

pub use crate::port::linux::notice::warn;

pub use calls::submit;
pub(crate) use calls::{Consumer, with};
pub use helper::Helper;
pub(crate) use pauses::Pauses;
pub use process::{HelperCommand, HelperProcess, Resource, Restart};
pub use requests::{Requester, Requests};
pub use traffic::Traffic;

/// Starts a named ordinary thread off the partitions' CPUs.
///
/// A panic of `body` ends only that thread: [`JoinHandle::join`] returns the payload, and the app
/// continues. The program's panic hook is called for it, even while an app runs. If the hook's
/// output blocks, so does the thread, but the app does not wait for it.
///
/// Real-time safety: allocates and enters the kernel; call it from `init` or from other background
/// threads.
///
/// # Errors
/// Returns the errors of [`std::thread::Builder::spawn`].
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let cpus = crate::port::linux::background_cpus();
    Builder::new().name(name.into()).spawn(move || {
        // Threads of apps do not pass on their policy; a foreign thread may.
        if let Err(error) = settings::leave_real_time() {
            notice::warn(format_args!("a background thread keeps its parent's real-time priority: {error}"));
        }
        if let Some(cpus) = cpus {
            // Staying on the parent's CPUs affects timing, but is not an error of this thread.
            if let Err(error) = cpus.apply() {
                notice::warn(format_args!("a background thread stays on its parent's CPUs: {error}"));
            }
        }
        body()
    })
}

#[cfg(test)]
mod tests {
    use punctual_process::scheduling;

    use super::*;

    #[test]
    fn background_threads_of_foreign_real_time_threads_are_ordinary() {
        std::thread::spawn(|| {
            // Threads of this one inherit its policy. If it is refused, all are ordinary.
            let _ = scheduling::set_policy(libc::SCHED_FIFO, 1);
            let background = spawn("ordinary", settings::policy).unwrap();
            assert_eq!(background.join().unwrap(), ("SCHED_OTHER", 0));
        })
        .join()
        .unwrap();
    }
}
