//! The peers of Punctual: POSIX threads, mutexes and semaphores, called directly.

mod mutex;
mod pthread;

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

pub(crate) use self::mutex::{Mutex, Protocol, TimedOut};
pub(crate) use self::pthread::{Attributes, Thread};

/// Panics on the error number that a `pthread_*` function returned.
#[track_caller]
fn check(error: libc::c_int) {
    assert!(error == 0, "{}", io::Error::from_raw_os_error(error));
}

/// The POSIX semaphore: a `sem_t` private to this process. Boxed, because it must not move once
/// initialized.
#[derive(Debug)]
pub(crate) struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: a POSIX semaphore is designed for use by several threads at once; the type gives no other
// access to it.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    pub(crate) fn new(units: u32) -> Self {
        // SAFETY: `sem_t` is plain memory, valid as all zeros; `sem_init` initializes it below.
        let semaphore =
            Box::new(UnsafeCell::new(unsafe { MaybeUninit::<libc::sem_t>::zeroed().assume_init() }));
        // SAFETY: the semaphore is at its final address and not yet shared.
        let done = unsafe { libc::sem_init(semaphore.get(), 0, units) };
        assert!(done == 0, "{}", std::io::Error::last_os_error());
        Self(semaphore)
    }

    /// P: takes a unit, sleeping until one is available.
    #[inline(always)]
    pub(crate) fn acquire(&self) {
        // SAFETY: `new` initialized it, it has not moved since, and `drop` has not run. A wait
        // interrupted by a signal is repeated.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }

    /// V: returns a unit, and wakes a waiting thread.
    #[inline(always)]
    pub(crate) fn signal(&self) {
        // SAFETY: as in `acquire`. The call fails only at 2³¹ units.
        unsafe { libc::sem_post(self.0.get()) };
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: `new` initialized it; no thread waits, because `acquire` borrows `self` while it
        // does.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
