//! The kernel's priority-inheritance mutex with its POSIX interface: a peer in the benchmarks of
//! more than one crate.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// A `pthread_mutex_t` with `PTHREAD_PRIO_INHERIT`: the kernel's answer to priority inversion.
///
/// Boxed, because a POSIX mutex must not move once it is initialized.
pub(crate) struct PiMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

impl PiMutex {
    pub(crate) fn new() -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: `attributes` is valid for writes and is initialized by the first call before the
        // others use it; the mutex is at its final address and not yet shared. Each call is checked
        // before the next.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes));
            check(libc::pthread_mutexattr_setprotocol(attributes, libc::PTHREAD_PRIO_INHERIT));
            check(libc::pthread_mutex_init(mutex.get(), attributes));
            check(libc::pthread_mutexattr_destroy(attributes));
        }
        Self(mutex)
    }

    /// Runs `critical` with the mutex held.
    pub(crate) fn with<R>(&self, critical: impl FnOnce() -> R) -> R {
        // SAFETY: `new` initialized the mutex, it has not moved since, and `drop` has not run.
        check(unsafe { libc::pthread_mutex_lock(self.0.get()) });
        let result = critical();
        // SAFETY: as above, and this thread holds the mutex: it has just locked it.
        check(unsafe { libc::pthread_mutex_unlock(self.0.get()) });
        result
    }
}

impl Drop for PiMutex {
    fn drop(&mut self) {
        // SAFETY: `new` initialized the mutex; no thread holds it, because `with` borrows `self`
        // while it does.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// Panics on the error number that a `pthread_*` function returned.
fn check(error: libc::c_int) {
    assert!(error == 0, "{}", io::Error::from_raw_os_error(error));
}
