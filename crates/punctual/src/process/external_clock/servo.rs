//! The servo: estimates an external clock from its readings.
//!
//! A proportional-integral controller, as in `pi.c` of linuxptp (R. Cochran), for the offset
//! between a reading and the estimate: the proportional gain corrects the time, the integral gain
//! the rate. Its gains begin as those of a least-squares line through all readings so far, the
//! expanding-memory filter of E. Brookner, *Tracking and Kalman Filtering Made Easy*, Wiley 1998,
//! section 1.2.10, and stay as they are after [`MEMORY`] readings. So the rate is known after few
//! readings, and noise of a reading moves the estimate by 12 % of itself afterwards, with a damping
//! ratio of 0.79.
//!
//! There is no wind-up: the rate, which is the integral, is limited, and the estimate has no other
//! limit that could hold the offset open. The limits of the grids that follow the estimate do not
//! feed back into it.
//!
//! Integers only, so that a run in virtual time has the same result on every machine.

use super::StaleReading;

/// Readings after which the gains stay constant.
const MEMORY: u64 = 32;

/// Readings after which the rate is precise enough to call a grid locked.
pub(super) const SETTLED: u64 = 8;

/// Fractional bits of an estimated time in ns.
pub(super) const FRACTION: u32 = 16;

/// Fractional bits of a rate.
const RATE: u32 = 40;

/// Largest difference of an external clock's rate from the machine's: 500 ppm, the limit of the
/// kernel's own clock.
const MAX_RATE: i128 = (1 << RATE) / 2_000;

/// The estimate at the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Instant of the reading, in ns.
    pub(super) at: u64,
    /// External time then, in 2^-[`FRACTION`] ns.
    time: i128,
    /// External time that passes in a nanosecond, minus 1, in 2^-[`RATE`].
    rate: i64,
    /// Difference of the reading from the previous estimate, in ns.
    pub(super) offset: i64,
    /// Number of readings since the servo started.
    pub(super) readings: u64,
    /// Number of steps of the external clock.
    pub(super) steps: u64,
    /// Incremented whenever the time restarts at a reading: after a step or a silence.
    pub(super) restarts: u32,
}

impl Estimate {
    /// Returns the external time at an instant, in 2^-[`FRACTION`] ns.
    pub(super) fn time_at(&self, instant: u64) -> i128 {
        let elapsed = i128::from(instant) - i128::from(self.at);
        self.time + (elapsed << FRACTION) + ((elapsed * i128::from(self.rate)) >> (RATE - FRACTION))
    }

    /// Returns the time on the machine's clock of a span of external time, in the same unit.
    pub(super) fn local(&self, external: i128) -> i128 {
        (external << RATE) / ((1 << RATE) + i128::from(self.rate))
    }

    /// Returns the drift of the external clock against the machine's, in ppb.
    pub(super) fn drift_ppb(&self) -> i64 {
        ((i128::from(self.rate) * 1_000_000_000) >> RATE) as i64
    }
}

/// The controller.
#[derive(Debug)]
pub(super) struct Servo {
    estimate: Estimate,
    /// Mean interval between readings, in ns; 0 before the second.
    interval: u64,
}

impl Servo {
    /// Starts at a reading.
    pub(super) fn new(at: u64, external: u64) -> Self {
        let time = i128::from(external) << FRACTION;
        let estimate = Estimate { at, time, rate: 0, offset: 0, readings: 1, steps: 0, restarts: 0 };
        Self { estimate, interval: 0 }
    }

    pub(super) fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Adds a reading. `silence` is the interval, in ns, after which the time restarts at the
    /// reading, and `step` the least offset, in ns, that counts as a step.
    pub(super) fn add(
        &mut self,
        at: u64,
        external: u64,
        silence: u64,
        step: u64,
    ) -> Result<(), StaleReading> {
        let last = &mut self.estimate;
        let elapsed = at.checked_sub(last.at).filter(|&elapsed| elapsed > 0).ok_or(StaleReading)?;
        let reading = i128::from(external) << FRACTION;
        let predicted = last.time_at(at);
        let offset = reading - predicted;
        let is_silent = elapsed > silence;
        // An unknown or old rate may be wrong by the whole range.
        let drifted = match is_silent || last.readings < MEMORY {
            true => (i128::from(elapsed) * 2 * MAX_RATE) >> (RATE - FRACTION),
            false => 0,
        };
        let has_stepped = offset.abs() > (i128::from(step) << FRACTION) + drifted;
        last.at = at;
        last.offset = (offset >> FRACTION).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if has_stepped || is_silent {
            last.time = reading;
            last.restarts = last.restarts.wrapping_add(1);
            if has_stepped {
                last.steps += 1;
                // The next readings show how far the grid is from the new phase.
                last.offset = 0;
            }
            if last.readings < MEMORY {
                // The rate of the few readings before may be that of the step.
                (last.readings, last.rate, self.interval) = (1, 0, 0);
            }
            return Ok(());
        }
        let before = last.readings.min(MEMORY);
        let difference = i128::from(elapsed) - i128::from(self.interval);
        self.interval = (i128::from(self.interval) + difference / i128::from(before)) as u64;
        let memory = i128::from((before + 1) * (before + 2));
        last.time = predicted + offset * i128::from(2 * (2 * before + 1)) / memory;
        // The rate cannot be estimated from readings in quick succession: their noise counts as if
        // they were a mean interval apart.
        let interval = i128::from(elapsed.max(self.interval));
        let rate = i128::from(last.rate) + (offset << (RATE - FRACTION)) * 6 / (memory * interval);
        last.rate = rate.clamp(-MAX_RATE, MAX_RATE) as i64;
        last.readings += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SILENCE: u64 = 3_000 * MS;

    /// An external clock with a rate and noise, in ppb and ns.
    struct Clock {
        ppb: i128,
        noise: u64,
        origin: u64,
        state: u64,
    }

    impl Clock {
        fn new(ppb: i128, noise: u64) -> Self {
            Self { ppb, noise, origin: 1_700_000_000_000_000_000, state: 1 }
        }

        fn exact(&self, at: u64) -> u64 {
            self.origin + (i128::from(at) * (1_000_000_000 + self.ppb) / 1_000_000_000) as u64
        }

        /// Returns a reading with noise in ±`noise`.
        fn read(&mut self, at: u64) -> u64 {
            // Knuth's linear congruential generator.
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.exact(at) + (self.state >> 33) % (2 * self.noise + 1) - self.noise
        }
    }

    fn error(servo: &Servo, clock: &Clock, at: u64) -> i64 {
        ((servo.estimate().time_at(at) >> FRACTION) - i128::from(clock.exact(at))) as i64
    }

    /// Adds `count` readings, one per `interval`.
    fn follow(servo: &mut Servo, clock: &mut Clock, interval: u64, count: u64) {
        for _ in 0..count {
            let at = servo.estimate().at + interval;
            servo.add(at, clock.read(at), SILENCE, MS).unwrap();
        }
    }

    #[test]
    fn converges_to_fast_noisy_clock() {
        for (interval, ppb) in [(MS, 50_000), (100 * MS, 50_000), (1_000 * MS, -120_000), (10 * MS, 0)] {
            let mut clock = Clock::new(ppb, 1_000);
            let mut servo = Servo::new(0, clock.read(0));
            follow(&mut servo, &mut clock, interval, 400);
            for _ in 0..400 {
                follow(&mut servo, &mut clock, interval, 1);
                let at = servo.estimate().at;
                let [now, later] = [at, at + interval].map(|at| error(&servo, &clock, at).abs());
                assert!(now < 800 && later < 900, "{interval} {ppb}: {now} {later}");
            }
            let drift = i128::from(servo.estimate().drift_ppb());
            // Of the noise of a reading, 4 % in an interval.
            let most = 1 + i128::from(40 * 1_000_000_000 / interval);
            assert!((drift - ppb).abs() <= most, "{interval} {ppb}: {drift}");
        }
    }

    #[test]
    fn follows_exact_clock_exactly() {
        let mut clock = Clock::new(50_000, 0);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 10 * MS, 100);
        assert!(error(&servo, &clock, servo.estimate().at + 10 * MS).abs() <= 1);
        assert!((servo.estimate().drift_ppb() - 50_000).abs() <= 20);
    }

    #[test]
    fn step_restarts_time_and_keeps_rate() {
        let mut clock = Clock::new(50_000, 100);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 10 * MS, 200);
        clock.origin += 37_000 * MS;
        follow(&mut servo, &mut clock, 10 * MS, 1);
        let estimate = servo.estimate();
        assert_eq!((estimate.steps, estimate.restarts, estimate.offset), (1, 1, 0));
        assert!((estimate.drift_ppb() - 50_000).abs() < 1_000);
        clock.origin -= 30_000 * MS;
        follow(&mut servo, &mut clock, 10 * MS, 50);
        assert_eq!(servo.estimate().steps, 2);
        assert!(error(&servo, &clock, servo.estimate().at).abs() < 100);
    }

    #[test]
    fn offset_below_step_is_no_step() {
        let mut clock = Clock::new(0, 0);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 10 * MS, 100);
        clock.origin += MS;
        follow(&mut servo, &mut clock, 10 * MS, 1);
        assert_eq!((servo.estimate().steps, servo.estimate().offset), (0, 1_000_000));
        follow(&mut servo, &mut clock, 10 * MS, 300);
        assert!(error(&servo, &clock, servo.estimate().at).abs() < 1_000);
    }

    #[test]
    fn silence_is_no_step_and_holds_rate() {
        let mut clock = Clock::new(50_000, 100);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 10 * MS, 400);
        let before = servo.estimate();
        let later = before.at + 20_000 * MS;
        let held = error(&servo, &clock, later).abs();
        assert!(held < 20_000, "20 s of a drift wrong by less than 1 ppm: {held}");
        servo.add(later, clock.read(later), SILENCE, MS).unwrap();
        let after = servo.estimate();
        assert_eq!((after.steps, after.restarts, after.rate), (0, 1, before.rate));
        assert!(after.offset.abs() <= held + 101, "the error of the hold-over is reported");
        assert!(error(&servo, &clock, later).abs() <= 100);
    }

    #[test]
    fn slow_readings_of_fast_clock_are_no_steps() {
        let mut clock = Clock::new(400_000, 0);
        let mut servo = Servo::new(0, clock.read(0));
        // The second reading is 4 ms from the first estimate, which knows no rate.
        follow(&mut servo, &mut clock, 10_000 * MS, 1);
        assert_eq!(servo.estimate().steps, 0);
    }

    #[test]
    fn rate_is_limited_without_wind_up() {
        let mut clock = Clock::new(2_000_000, 0);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 10 * MS, 500);
        assert_eq!(servo.estimate().drift_ppb(), 500_000 - 1);
        // The clock becomes correct: the estimate is too, at once.
        let at = servo.estimate().at;
        clock = Clock { origin: clock.exact(at) - at, ..Clock::new(0, 0) };
        follow(&mut servo, &mut clock, 10 * MS, 150);
        assert!(servo.estimate().drift_ppb().abs() < 1_000, "{}", servo.estimate().drift_ppb());
    }

    #[test]
    fn bursts_of_readings_do_not_disturb_rate() {
        let mut clock = Clock::new(50_000, 1_000);
        let mut servo = Servo::new(0, clock.read(0));
        follow(&mut servo, &mut clock, 100 * MS, 100);
        follow(&mut servo, &mut clock, 1_000, 20);
        let drift = servo.estimate().drift_ppb();
        assert!((drift - 50_000).abs() < 5_000, "{drift}");
    }

    #[test]
    fn rejects_stale_reading() {
        let mut servo = Servo::new(10, 0);
        assert_eq!(servo.add(10, 5, SILENCE, MS), Err(StaleReading));
        assert_eq!(servo.add(9, 5, SILENCE, MS), Err(StaleReading));
        assert_eq!(servo.estimate().at, 10);
    }

    #[test]
    fn survives_extreme_readings() {
        let values = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let mut servo = Servo::new(0, u64::MAX);
        for (index, &external) in values.iter().chain(&values).enumerate() {
            let _ = servo.add((index as u64 + 1) * (u64::MAX / 11), external, u64::MAX, u64::MAX);
            let estimate = servo.estimate();
            assert!(estimate.rate.unsigned_abs() <= MAX_RATE as u64);
            for at in values {
                estimate.local(estimate.time_at(at));
            }
        }
    }
}
