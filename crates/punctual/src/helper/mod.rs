//! Threads for everything that is not real time: logging, networking, user interfaces.
//!
//! A thread started from a task would inherit the task's CPU (its policy is not inherited). [`spawn`] starts
//! one that is ordinary in every respect and stays off the partitions' CPUs where the machine has another. Tasks of a polling
//! partition, which must not enter the kernel, have such a thread make their system calls: [`submit`].
//!
//! ```
//! let answer = punctual::helper::spawn("adder", || 40 + 2).expect("threads can be started");
//! assert_eq!(answer.join().unwrap(), 42);
//! ```

pub(crate) mod calls;

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::port::linux::notice;

pub use calls::submit;
pub(crate) use calls::{Consumer, with};

/// Starts a named ordinary thread off the partition's CPU.
///
/// A panic of `body` ends that thread and nothing else: who [joins](JoinHandle::join) it is given the payload, and the app goes on.
/// The panic hook of the program is called for it, also while an app runs. If its output blocks, so does the helper, and the
/// app does not wait for it.
///
/// Real-time safety: allocates and enters the kernel; call it from `init` or from other helpers.
///
/// # Errors
/// As [`std::thread::Builder::spawn`].
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let cpus = crate::port::linux::helper_cpus();
    Builder::new().name(name.into()).spawn(move || {
        if let Some(cpus) = cpus {
            // Staying where the parent was is worse for timing and no error for the helper.
            if let Err(error) = cpus.apply() {
                notice::warn(format_args!("a helper thread stays on its parent's CPUs: {error}"));
            }
        }
        body()
    })
}
