//! Instants and durations: unsigned 64-bit nanoseconds.
//!
//! Both are `fugit` types, as in RTIC, so that `100.micros()` and checked arithmetic are familiar
//! to users of RTIC. An [`Instant`] counts from the epoch of the port: the boot of the machine on
//! Linux (`CLOCK_MONOTONIC`), the start of the run in virtual time.
//!
//! ```
//! use punctual_core::{Duration, Instant};
//!
//! let start = Instant::from_ticks(1_000);
//! assert_eq!((start + Duration::from_micros(2)).as_ticks(), 3_000);
//! ```

/// A span of time in nanoseconds.
pub type Duration = fugit::NanosDurationU64;

/// A point in time in nanoseconds since the epoch of the port.
pub type Instant = fugit::MonotonicTimerInstantU64<1_000_000_000>;

/// Durations written as numbers with a unit: `10.millis()`, `3u32.micros()`.
///
/// # Panics
/// All methods panic if the number is negative or the duration does not fit in 64 bits of
/// nanoseconds.
///
/// ```
/// use punctual_core::{Duration, Units};
///
/// assert_eq!(10.millis(), Duration::from_millis(10));
/// assert_eq!(3u32.secs(), Duration::from_secs(3));
/// ```
pub trait Units: Sized {
    /// Returns the number as nanoseconds times `scale`.
    #[doc(hidden)]
    fn scaled(self, scale: u64) -> Duration;

    /// Converts a number of nanoseconds.
    fn nanos(self) -> Duration {
        self.scaled(1)
    }

    /// Converts a number of microseconds.
    fn micros(self) -> Duration {
        self.scaled(1_000)
    }

    /// Converts a number of milliseconds.
    fn millis(self) -> Duration {
        self.scaled(1_000_000)
    }

    /// Converts a number of seconds.
    fn secs(self) -> Duration {
        self.scaled(1_000_000_000)
    }

    /// Converts a number of minutes.
    fn minutes(self) -> Duration {
        self.scaled(60_000_000_000)
    }

    /// Converts a number of hours.
    fn hours(self) -> Duration {
        self.scaled(3_600_000_000_000)
    }
}

impl Units for u64 {
    #[inline]
    #[track_caller]
    fn scaled(self, scale: u64) -> Duration {
        Duration::from_ticks(self.checked_mul(scale).expect("the duration fits in 64 bits of nanoseconds"))
    }
}

impl Units for u32 {
    #[inline]
    #[track_caller]
    fn scaled(self, scale: u64) -> Duration {
        u64::from(self).scaled(scale)
    }
}

/// The type of an unsuffixed literal.
impl Units for i32 {
    #[inline]
    #[track_caller]
    fn scaled(self, scale: u64) -> Duration {
        u64::try_from(self).expect("a duration is not negative").scaled(scale)
    }
}

/// Short names of the [`Duration`] constructors: `Duration::millis(3)` is
/// `Duration::from_millis(3)`.
pub trait ShortNames {
    /// Creates a duration of `count` nanoseconds.
    fn nanos(count: u64) -> Self;
    /// Creates a duration of `count` microseconds.
    fn micros(count: u64) -> Self;
    /// Creates a duration of `count` milliseconds.
    fn millis(count: u64) -> Self;
    /// Creates a duration of `count` seconds.
    fn secs(count: u64) -> Self;
    /// Creates a duration of `count` minutes.
    fn minutes(count: u64) -> Self;
    /// Creates a duration of `count` hours.
    fn hours(count: u64) -> Self;
}

impl ShortNames for Duration {
    #[inline]
    fn nanos(count: u64) -> Self {
        Self::from_nanos(count)
    }

    #[inline]
    fn micros(count: u64) -> Self {
        Self::from_micros(count)
    }

    #[inline]
    fn millis(count: u64) -> Self {
        Self::from_millis(count)
    }

    #[inline]
    fn secs(count: u64) -> Self {
        Self::from_secs(count)
    }

    #[inline]
    fn minutes(count: u64) -> Self {
        Self::from_minutes(count)
    }

    #[inline]
    fn hours(count: u64) -> Self {
        Self::from_hours(count)
    }
}

/// Types that can be converted into a [`Duration`]: `fugit` durations of 64 or 32 bits, and the
/// standard library's.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a length of time",
    note = "write `10.millis()`, a `punctual::Duration` or a `std::time::Duration`"
)]
pub trait IntoDuration {
    /// Converts the value, saturating at the longest duration.
    fn into_duration(self) -> Duration;
}

impl IntoDuration for Duration {
    #[inline]
    fn into_duration(self) -> Duration {
        self
    }
}

impl IntoDuration for fugit::NanosDurationU32 {
    #[inline]
    fn into_duration(self) -> Duration {
        self.into()
    }
}

impl IntoDuration for core::time::Duration {
    #[inline]
    fn into_duration(self) -> Duration {
        from_std(self)
    }
}

/// Converts a standard duration, saturating at the longest [`Duration`].
pub const fn from_std(duration: core::time::Duration) -> Duration {
    let nanos = duration.as_nanos();
    Duration::from_ticks(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
}

#[cfg(test)]
mod tests {
    use core::time::Duration as StdDuration;

    use super::*;

    #[test]
    fn all_units_give_same_duration() {
        let expected = Duration::from_millis(3);
        assert_eq!([3.millis(), 3u32.millis(), 3u64.millis(), Duration::millis(3)], [expected; 4]);
        assert_eq!(StdDuration::from_millis(3).into_duration(), expected);
        assert_eq!(fugit::NanosDurationU32::from_millis(3).into_duration(), expected);
        assert_eq!(2.hours(), 120u32.minutes());
    }

    #[test]
    fn saturates_long_durations() {
        assert_eq!(StdDuration::MAX.into_duration(), Duration::from_ticks(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "not negative")]
    fn negative_durations_panic() {
        let _ = (-1).secs();
    }
}
