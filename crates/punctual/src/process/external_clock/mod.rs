//! External clocks: the grid of a periodic task follows a clock other than the machine's.
//!
//! A PTP hardware clock, the distributed clock of an EtherCAT segment and the sample clock of a
//! sound card run faster or slower than the clock of the machine, by up to some 100 ppm. A task
//! with `clock = CLOCK` is released at the multiples of its period *on that clock*, plus its
//! offset.
//!
//! An ordinary thread, or a task that knows the external time anyway, passes readings to the clock
//! through its only [`ClockSource`]. A reading is an instant of [`now`](crate::now) with the
//! external time at that instant. A proportional-integral servo in the source estimates the
//! external time and its drift. After each job the task compares its next grid point with the
//! estimate, and sets the distance to the one after that.
//!
//! ```
//! #[punctual::app(main = false)]
//! mod app {
//!     use punctual::prelude::*;
//!     use punctual::{ClockSource, ExternalClock};
//!
//!     static CLOCK: ExternalClock = ExternalClock::new();
//!
//!     #[shared]
//!     struct Shared {}
//!
//!     #[local]
//!     struct Local {
//!         source: ClockSource,
//!     }
//!
//!     #[init]
//!     fn init(_: init::Context) -> (Shared, Local) {
//!         (Shared {}, Local { source: CLOCK.source().expect("the only source") })
//!     }
//!
//!     #[task(priority = 2, period = 1.millis(), clock = CLOCK)]
//!     fn control(_: control::Context) {}
//!
//!     /// Reads a clock that runs 50 ppm fast.
//!     #[task(priority = 1, period = 10.millis(), local = [source])]
//!     fn read(cx: read::Context) {
//!         let now = punctual::now();
//!         let external = now.as_ticks() + now.as_ticks() / 20_000;
//!         cx.local.source.record(now, external).expect("the clock of the run advances");
//!     }
//! }
//!
//! let config = punctual::Config::new().virtual_time().until(punctual::Duration::from_secs(2));
//! let report = app::run(config).expect("nothing can be missing");
//! let clock = report.task("control").and_then(|task| task.clock).expect("the task has a clock");
//! assert_eq!(clock.state, punctual::report::ClockState::Locked);
//! assert!(clock.drift_ppb.is_some_and(|ppb| (49_900..50_100).contains(&ppb)), "{clock:?}");
//! ```
//!
//! # The distance of releases
//!
//! Two releases are at least 99.9 % and at most 100.1 % of the period apart
//! ([`MAX_ADJUSTMENT`](punctual_core::MAX_ADJUSTMENT)), for any contents of the readings: a clock
//! that jumps moves the grid slowly to its new phase. The model for the response-time analysis
//! therefore has 99.9 % of the period as the shortest distance, which is also the default deadline,
//! and no offset. The estimate of the drift is limited to ±500 ppm, so the grid can always correct
//! its phase by another 500 ppm.
//!
//! # Missing readings
//!
//! Before the first reading the grid runs on the clock of the machine. Without a reading for longer
//! than the [limit](ExternalClock::hold_over_after), the grid continues at the last estimated rate:
//! *hold-over*, in which the phase error is unknown and reported as such. A reading ends it.

mod discipline;
mod servo;

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use punctual_core::{Duration, Instant};
use punctual_sync::Taken;
use punctual_sync::asynch::watch::{Watch, WatchWriter};

pub use self::discipline::Discipline;
use self::servo::{Estimate, Servo};

/// Slots of the cell with the estimate: the source, the current value, and 14 tasks that read at
/// the same time on different CPUs. A further one keeps its rate until its next job.
const SLOTS: usize = 16;

/// A clock that the grids of periodic tasks follow; see the [module](self).
pub struct ExternalClock {
    newest: Watch<(u32, Estimate), SLOTS>,
    has_source: AtomicBool,
    /// Incremented by each run: estimates of earlier ones are void, because virtual time starts at
    /// zero again.
    run: AtomicU32,
    hold_over_after: Duration,
    step: Duration,
}

impl ExternalClock {
    /// Creates a clock without readings, for a `static`.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            newest: Watch::with_slots(),
            has_source: AtomicBool::new(false),
            run: AtomicU32::new(0),
            hold_over_after: Duration::from_secs(3),
            step: Duration::from_millis(1),
        }
    }

    /// Sets the time without a reading after which the grids are in hold-over; 3 s by default. It
    /// should exceed two intervals between readings.
    #[must_use]
    pub const fn hold_over_after(mut self, limit: Duration) -> Self {
        self.hold_over_after = limit;
        self
    }

    /// Sets the least difference between a reading and the estimate that counts as a step of the
    /// external clock, 1 ms by default: the estimate then restarts at the reading. It should exceed
    /// the largest error of a reading.
    #[must_use]
    pub const fn step_above(mut self, difference: Duration) -> Self {
        self.step = difference;
        self
    }

    /// Returns the source of readings. Dropping it makes it available again, so a thread that
    /// failed can be replaced.
    ///
    /// # Errors
    /// [`Taken`] if there is a source.
    pub fn source(&'static self) -> Result<ClockSource, Taken> {
        // Acquire: the previous source has returned its slot.
        if self.has_source.swap(true, Ordering::Acquire) {
            return Err(Taken);
        }
        match self.newest.writer() {
            Ok(writer) => Ok(ClockSource { clock: self, writer: Some(writer), run: 0, servo: None }),
            Err(taken) => {
                self.has_source.store(false, Ordering::Release);
                Err(taken)
            }
        }
    }

    /// Makes the estimates of earlier runs void.
    fn begin_run(&self) {
        self.run.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the newest estimate of this run; the outer `None` if too many tasks read it.
    fn estimate(&self) -> Option<Option<Estimate>> {
        let mut reader = self.newest.reader().ok()?;
        let run = self.run.load(Ordering::Relaxed);
        Some(reader.try_get().filter(|newest| newest.0 == run).map(|newest| newest.1))
    }
}

impl Default for ExternalClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ExternalClock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalClock")
            .field("has_source", &self.has_source)
            .field("hold_over_after", &self.hold_over_after)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// The source of the readings of an [`ExternalClock`].
pub struct ClockSource {
    clock: &'static ExternalClock,
    /// `None` only while this is dropped.
    writer: Option<WatchWriter<'static, (u32, Estimate), SLOTS>>,
    run: u32,
    servo: Option<Servo>,
}

impl ClockSource {
    /// Adds a reading: the external time, in ns since any origin, at the instant `at` of the app's
    /// clock ([`now`](crate::now)).
    ///
    /// Readings need no fixed interval. Delay between the two parts of a reading is a constant
    /// phase error that the servo cannot detect: compensate it. After a reading of an instant over
    /// a second after the next release, such as one of a foreign clock, the grid runs on the
    /// machine's clock until a reading with a later instant. A new [source](ExternalClock::source)
    /// accepts any instant.
    ///
    /// Real-time safety: integer arithmetic and atomic operations; does not allocate, block or
    /// enter the kernel.
    ///
    /// # Errors
    /// [`StaleReading`] if `at` is not later than that of the previous reading, which then stays
    /// the last one.
    pub fn record(&mut self, at: Instant, external_ns: u64) -> Result<(), StaleReading> {
        let run = self.clock.run.load(Ordering::Relaxed);
        if self.run != run {
            (self.run, self.servo) = (run, None);
        }
        let (silence, step) = (self.clock.hold_over_after.as_ticks(), self.clock.step.as_ticks());
        let servo = match &mut self.servo {
            Some(servo) => {
                servo.add(at.as_ticks(), external_ns, silence, step)?;
                servo
            }
            None => self.servo.insert(Servo::new(at.as_ticks(), external_ns)),
        };
        if let Some(writer) = &mut self.writer {
            writer.write((run, servo.estimate()));
        }
        Ok(())
    }
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockSource").field("servo", &self.servo).finish_non_exhaustive()
    }
}

impl Drop for ClockSource {
    fn drop(&mut self) {
        self.writer = None;
        // Release: pairs with the swap in `source`.
        self.clock.has_source.store(false, Ordering::Release);
    }
}

/// A reading of an external clock that is not later than the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleReading;

impl Display for StaleReading {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the reading is not later than the previous one; pass readings in the order of their instants",
        )
    }
}

impl std::error::Error for StaleReading {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_one_source_at_a_time() {
        static CLOCK: ExternalClock = ExternalClock::new();
        let source = CLOCK.source().unwrap();
        assert_eq!(CLOCK.source().unwrap_err(), Taken);
        drop(source);
        drop(CLOCK.source().unwrap());
    }

    #[test]
    fn new_run_voids_estimate_of_earlier_ones() {
        static CLOCK: ExternalClock = ExternalClock::new();
        let mut source = CLOCK.source().unwrap();
        source.record(Instant::from_ticks(5), 1).unwrap();
        assert!(CLOCK.estimate().flatten().is_some());
        CLOCK.begin_run();
        assert!(CLOCK.estimate().flatten().is_none());
        // Virtual time starts again, so this is not stale.
        source.record(Instant::from_ticks(2), 1).unwrap();
        assert!(CLOCK.estimate().flatten().is_some());
        assert_eq!(source.record(Instant::from_ticks(2), 9), Err(StaleReading));
    }
}
