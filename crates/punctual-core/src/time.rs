//! Instants and durations: unsigned 64-bit nanoseconds.
//!
//! Both are `fugit` types, as in RTIC, so that `100.micros()` and checked arithmetic are the ones a user
//! of RTIC knows. An [`Instant`] counts from the epoch of the port: the boot of the machine on Linux
//! (`CLOCK_MONOTONIC`), the start of the run in virtual time.
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
