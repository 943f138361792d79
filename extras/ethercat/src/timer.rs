//! The clock of `ethercrab`'s time limits, which stands still during the exchange of process data.
//!
//! While the bus starts, [`advance`] sets the clock before each poll, and the limits of `ethercrab`
//! apply. In the task, the next release is the limit: no timer expires, and no thread waits for
//! one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;
use std::time::Instant;

struct Clock {
    micros: AtomicU64,
}

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        self.micros.load(Relaxed)
    }

    /// Does nothing: futures are polled after each frame and each millisecond.
    fn schedule_wake(&self, _: u64, _: &Waker) {}
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock { micros: AtomicU64::new(0) });

/// Sets the clock to the present time.
pub(crate) fn advance() {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let micros = START.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
    CLOCK.micros.fetch_max(micros, Relaxed);
}
