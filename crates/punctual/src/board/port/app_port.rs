//! The port of a partition on a board.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use punctual_core::{Instant, Port, ReadyLevels, Stamp, Worker};

use super::clock;

/// No handler runs, or one that has begun to serve jobs.
const OUTSIDE: u8 = 0;
/// A handler runs.
const INSIDE: u8 = 1;
/// A handler runs in which a job was armed: the clock has to be checked again.
const AGAIN: u8 = 2;

/// A core of a board.
#[derive(Debug)]
pub struct AppPort {
    core: AtomicU32,
    /// The value of [`own`](super::own) on the core while the partition runs there.
    owner: AtomicPtr<()>,
    /// State of a handler on the core that has not begun to serve jobs: [`OUTSIDE`], [`INSIDE`] or
    /// [`AGAIN`].
    handler: AtomicU8,
}

impl AppPort {
    /// Creates the port of a partition of the app `_host`, which the port does not use.
    pub(crate) const fn new<T>(_host: &'static T) -> Self {
        Self {
            core: AtomicU32::new(0),
            owner: AtomicPtr::new(ptr::null_mut()),
            handler: AtomicU8::new(OUTSIDE),
        }
    }

    /// Sets the number of the core and the value of [`own`](super::own) there, before a run.
    pub(crate) fn set_core(&self, core: u32, owner: *const ()) {
        self.core.store(core, Ordering::Relaxed);
        self.owner.store(owner.cast_mut(), Ordering::Relaxed);
    }

    /// Returns whether a handler runs on the core that has not begun to serve jobs. For the core's
    /// own code.
    #[inline]
    pub(crate) fn is_in_handler(&self) -> bool {
        self.handler.load(Ordering::Relaxed) != OUTSIDE
    }

    /// Marks the start of a handler that releases jobs. With interrupts masked, until it
    /// [ends](Self::end_handler).
    #[inline]
    pub(crate) fn begin_handler(&self) {
        self.handler.store(INSIDE, Ordering::Relaxed);
    }

    /// Marks the end of its releases; returns whether further jobs were released or armed.
    #[inline]
    pub(crate) fn end_handler(&self) -> bool {
        let again = self.handler.load(Ordering::Relaxed) == AGAIN;
        self.handler.store(OUTSIDE, Ordering::Relaxed);
        again
    }
}

impl Port for AppPort {
    type Word = ReadyLevels;

    #[inline]
    fn now(&self) -> Instant {
        Instant::from_ticks(clock::now())
    }

    /// A job has been armed for an earlier time than the timer: the timer fires now, and then
    /// computes the next time. A handler decides for itself when to check. The handler of another
    /// core's bell checks there.
    fn wake(&self, _: &Worker) {
        if !ptr::eq(super::own(), self.owner.load(Ordering::Relaxed)) {
            super::ring(self.core.load(Ordering::Relaxed));
        } else if self.is_in_handler() {
            self.handler.store(AGAIN, Ordering::Relaxed);
        } else {
            clock::alarm(0);
        }
    }

    fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
        super::wait();
        false
    }

    // The only thread of the partition never waits for a level: the running code occupies the
    // highest.
    fn wait_while(&self, count: &AtomicU32, seen: u32) {
        assert_ne!(count.load(Ordering::Relaxed), seen, "no event could end this wait");
    }

    fn wake_all(&self, _: &AtomicU32) {}

    fn boost(&self, _: &AtomicU32) -> bool {
        false
    }

    fn unboost(&self, _: &AtomicU32) {}
}
