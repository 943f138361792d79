//! The peers of Punctual: POSIX threads, mutexes and semaphores, called directly.

mod mutex;
mod pthread;
mod semaphore;

pub(crate) use mutex::{Mutex, Protocol, TimedOut};
pub(crate) use pthread::{Attributes, Thread};
pub(crate) use semaphore::Semaphore;

use std::io;

/// Panics on the error number that a `pthread_*` function returned.
#[track_caller]
fn check(error: libc::c_int) {
    assert!(error == 0, "{}", io::Error::from_raw_os_error(error));
}
