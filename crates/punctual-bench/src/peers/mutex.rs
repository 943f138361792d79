//! The POSIX mutex, plain or with priority inheritance.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::time::Duration;

use super::check;
use crate::clock;

/// The priority protocol of a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// None.
    None,
    /// The holder inherits the priority of its waiters.
    Inherit,
}

/// A `pthread_mutex_t`. Boxed, because it must not move once initialized.
#[derive(Debug)]
pub(crate) struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a POSIX mutex is designed for use by several threads at once; the type gives no other
// access to it.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

/// The lock timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimedOut;

impl Mutex {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the mutex is at its final address and not yet shared.
        unsafe {
            with_attributes(protocol, |attributes| check(libc::pthread_mutex_init(mutex.get(), attributes)))
        };
        Self(mutex)
    }

    /// Locks, runs `critical` and unlocks. If `critical` panics, the mutex stays locked.
    #[inline(always)]
    pub(crate) fn with<R>(&self, critical: impl FnOnce() -> R) -> R {
        // SAFETY: `new` initialized the mutex, it has not moved since, and `drop` has not run.
        check(unsafe { libc::pthread_mutex_lock(self.0.get()) });
        self.finish(critical)
    }

    /// Like [`with`](Self::with), but gives up after `timeout`, which also ends a deadlock.
    pub(crate) fn with_timeout<R>(
        &self,
        timeout: Duration,
        critical: impl FnOnce() -> R,
    ) -> Result<R, TimedOut> {
        // This call's limit is on `CLOCK_REALTIME`.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let ns = now.tv_nsec as u64 + timeout.as_nanos() as u64;
        let until = libc::timespec {
            tv_sec: now.tv_sec as libc::time_t + (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: as in `with`; `until` is initialized and outlives the call.
        match unsafe { libc::pthread_mutex_timedlock(self.0.get(), &until) } {
            libc::ETIMEDOUT => Err(TimedOut),
            error => {
                check(error);
                Ok(self.finish(critical))
            }
        }
    }

    /// Runs `critical` and unlocks; for the thread that has just locked.
    #[inline(always)]
    fn finish<R>(&self, critical: impl FnOnce() -> R) -> R {
        let result = critical();
        // SAFETY: the mutex is initialized, and both callers have locked it on this thread.
        check(unsafe { libc::pthread_mutex_unlock(self.0.get()) });
        result
    }

    /// Measures the ticks for initializing and destroying a mutex with priority inheritance, until
    /// `each` returns `false`.
    pub(crate) fn creations(mut each: impl FnMut(u64, u64) -> bool) {
        let place = UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER);
        // SAFETY: the memory belongs to this function and is not moved; each initialization is
        // followed by the destruction of that mutex, which is not held.
        unsafe {
            with_attributes(Protocol::Inherit, |attributes| {
                loop {
                    let from = clock::now();
                    let made = libc::pthread_mutex_init(place.get(), attributes);
                    let between = clock::now();
                    let destroyed = libc::pthread_mutex_destroy(place.get());
                    let to = clock::now();
                    check(made);
                    check(destroyed);
                    if !each(between - from, to - between) {
                        break;
                    }
                }
            });
        }
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: `new` initialized the mutex; no thread holds it, because `with` borrows `self`
        // while it does. If a panic has left it locked, the call returns EBUSY and the box is freed
        // without it.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// Calls `then` with attributes for mutexes of this protocol, which live until it returns.
fn with_attributes(protocol: Protocol, then: impl FnOnce(*const libc::pthread_mutexattr_t)) {
    let protocol = match protocol {
        Protocol::None => libc::PTHREAD_PRIO_NONE,
        Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
    };
    let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: `attributes` is valid for writes, and the first call initializes it before the others
    // use it; each call is checked before the next.
    unsafe {
        check(libc::pthread_mutexattr_init(attributes));
        check(libc::pthread_mutexattr_setprotocol(attributes, protocol));
        then(attributes);
        check(libc::pthread_mutexattr_destroy(attributes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes_second_owner_and_times_out() {
        for protocol in [Protocol::None, Protocol::Inherit] {
            let mutex = Mutex::new(protocol);
            let timeout = Duration::from_millis(1);
            assert_eq!(mutex.with(|| 1), 1);
            std::thread::scope(|scope| {
                let other =
                    mutex.with(|| crate::rt::spawn(scope, || mutex.with_timeout(timeout, || ())).join());
                assert_eq!(other.unwrap(), Err(TimedOut));
            });
            assert_eq!(mutex.with_timeout(timeout, || 2), Ok(2));
        }
    }
}
