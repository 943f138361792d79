//! The port of a partition on a bare board.

use core::sync::atomic::{AtomicU32, Ordering};

use punctual_core::{Instant, OneThread, Port, Worker};

use super::{board, clock, current};

/// A core of a board.
#[derive(Debug)]
pub struct AppPort {
    core: AtomicU32,
}

impl AppPort {
    pub(crate) const fn new() -> Self {
        Self { core: AtomicU32::new(0) }
    }

    /// Sets the number of the core, before a run.
    pub(crate) fn set_core(&self, core: u32) {
        self.core.store(core, Ordering::Relaxed);
    }
}

impl Port for AppPort {
    type Word = OneThread;

    #[inline]
    fn now(&self) -> Instant {
        Instant::from_ticks(clock::now())
    }

    /// A job has been armed for an earlier time than the timer: the timer fires now, and then
    /// computes the next time. A handler decides for itself when to check. The handler of another
    /// core's bell checks there.
    fn wake(&self, _: &Worker) {
        match current::partition() {
            Some(partition) if core::ptr::eq(partition.core.port(), self) => {
                match partition.is_in_handler() {
                    true => partition.look_again(),
                    false => clock::alarm(0),
                }
            }
            _ => board::ring(self.core.load(Ordering::Relaxed)),
        }
    }

    fn wait(&self, _: &Worker, _: Option<Instant>) -> bool {
        board::wait();
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
