//! Instants and durations: unsigned 64-bit nanoseconds on `CLOCK_MONOTONIC`.
//!
//! Both are `fugit` types, the same as in the rest of Punctual, so `100.micros()` and checked
//! arithmetic work.
//!
//! ```
//! use punctual_sync::{Duration, now};
//!
//! let soon = now() + Duration::from_micros(5);
//! assert!(soon > now() - Duration::from_secs(1));
//! ```

/// A span of time in nanoseconds.
pub type Duration = fugit::NanosDurationU64;

/// A point in time: nanoseconds of `CLOCK_MONOTONIC`, that is since boot, excluding suspend.
pub type Instant = fugit::MonotonicTimerInstantU64<1_000_000_000>;

/// Returns the current time. Reads `CLOCK_MONOTONIC` through the vDSO, so it does not enter the
/// kernel if the kernel's clock source allows that.
#[cfg(all(feature = "std", not(loom)))]
#[inline]
pub fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_ticks(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the time of the model.
#[cfg(all(feature = "std", loom))]
pub fn now() -> Instant {
    crate::futex::model::now()
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn now_lies_between_two_clock_readings() {
        let clock = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let before = clock();
        let between = std::time::Duration::from_nanos(now().as_ticks());
        assert!(before <= between && between <= clock());
    }
}
