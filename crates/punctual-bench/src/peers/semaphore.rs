//! The POSIX semaphore.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// A `sem_t` of this process. Boxed, because one must not move once it is initialised.
#[derive(Debug)]
pub(crate) struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: a POSIX semaphore is made to be used by several threads at once; the type gives no other access to it.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    pub(crate) fn new(units: u32) -> Self {
        // SAFETY: `sem_t` is plain memory, valid as all zeros; `sem_init` makes a semaphore of it below.
        let semaphore =
            Box::new(UnsafeCell::new(unsafe { MaybeUninit::<libc::sem_t>::zeroed().assume_init() }));
        // SAFETY: the semaphore is at its final address and not yet shared.
        let done = unsafe { libc::sem_init(semaphore.get(), 0, units) };
        assert!(done == 0, "{}", std::io::Error::last_os_error());
        Self(semaphore)
    }

    /// P: takes a unit, and sleeps until there is one.
    #[inline(always)]
    pub(crate) fn acquire(&self) {
        // SAFETY: `new` initialised it, it has not moved since, and `drop` has not run. A signal ends a wait early, and it
        // begins again.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }

    /// V: gives a unit back, and wakes a thread that waits for one.
    #[inline(always)]
    pub(crate) fn signal(&self) {
        // SAFETY: as in `acquire`. It fails only at 2³¹ units.
        unsafe { libc::sem_post(self.0.get()) };
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: `new` initialised it; nobody waits, because `acquire` borrows `self` while it does.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
