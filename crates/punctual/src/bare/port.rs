//! The port of a partition on a bare board.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_core::{Instant, Port, Worker};

use super::{board, current};

/// A core of a board.
#[derive(Debug)]
pub struct AppPort(());

impl AppPort {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

impl Port for AppPort {
    type Word = AtomicU64;

    #[inline]
    fn now(&self) -> Instant {
        Instant::from_ticks(board::now())
    }

    /// Something has been armed for earlier than the timer is: it fires now, and then looks what is next. In a handler there is
    /// no need, since the core looks once more when that is done.
    fn wake(&self, _: &Worker) {
        if !current::in_handler() {
            board::alarm(0);
        }
    }

    fn wait(&self, _: &Worker, _: Option<Instant>) {
        board::wait();
    }

    // The one thread of the partition never waits for a level: whoever runs occupies the highest.
    fn wait_while(&self, count: &AtomicU32, seen: u32) {
        assert_ne!(count.load(Ordering::Relaxed), seen, "nobody could end this wait");
    }

    fn wake_all(&self, _: &AtomicU32) {}

    fn boost(&self, _: &AtomicU32) -> bool {
        false
    }

    fn unboost(&self, _: &AtomicU32) {}
}
