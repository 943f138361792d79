//! A periodic task's grid that follows an external clock.
//!
//! The grid points are fixed up to the next one. So the distance to the one after it is the only
//! correction: it is chosen such that this grid point is a multiple of the period on the external
//! clock, plus the offset, or as close to it as the limits of the grid permit. The filter is that
//! of the estimate; the grid adds none.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use punctual_core::{Duration, Periodic};

use super::ExternalClock;
use super::servo::{Estimate, FRACTION, SETTLED};
use crate::report::{ClockReport, ClockState};

/// Time by which a reading may be ahead of the next release. Instants of another clock, such as
/// `CLOCK_REALTIME`, are further ahead.
const MAX_LEAD: u64 = 1_000_000_000;

/// The part of the period by which a locked grid may deviate from the estimate before it counts as
/// no longer locked: 1 %.
const LOST: i128 = 100;

/// The largest phase error of a grid that was never locked.
const NEVER_LOCKED: u64 = u64::MAX;

/// The external clock of a task, and the figures of its grid.
///
/// The thread that occupies the task's level writes the figures; any thread reads them.
pub struct Discipline {
    name: &'static str,
    clock: &'static ExternalClock,
    period: Duration,
    offset: Duration,
    state: AtomicU32,
    /// [`Estimate::restarts`] at the last job: a change is a new lock.
    restarts: AtomicU32,
    /// True if the distance set last was within the limits.
    is_reached: AtomicBool,
    drift_ppb: AtomicI64,
    phase: AtomicI64,
    phase_max: AtomicU64,
    steps: AtomicU64,
    hold_overs: AtomicU64,
}

impl Discipline {
    /// Creates the state of a task that follows `clock`, spelled `name` in the source.
    pub const fn new(
        name: &'static str,
        clock: &'static ExternalClock,
        period: Duration,
        offset: Duration,
    ) -> Self {
        Self {
            name,
            clock,
            period,
            offset,
            state: AtomicU32::new(0),
            restarts: AtomicU32::new(0),
            is_reached: AtomicBool::new(false),
            drift_ppb: AtomicI64::new(0),
            phase: AtomicI64::new(0),
            phase_max: AtomicU64::new(NEVER_LOCKED),
            steps: AtomicU64::new(0),
            hold_overs: AtomicU64::new(0),
        }
    }

    /// Clears the state of the previous run.
    pub(crate) fn begin(&self) {
        self.clock.begin_run();
        self.state.store(ClockState::Never as u32, Relaxed);
        self.is_reached.store(false, Relaxed);
        self.phase_max.store(NEVER_LOCKED, Relaxed);
        self.steps.store(0, Relaxed);
        self.hold_overs.store(0, Relaxed);
    }

    /// Corrects the grid after a job. For the thread that occupies the task's level.
    ///
    /// Real-time safety: integer arithmetic and atomic operations.
    pub fn correct(&self, grid: &Periodic) {
        let Some(next) = grid.next_release().map(|next| next.as_ticks()) else { return };
        let Some(newest) = self.clock.estimate() else { return };
        let Some(estimate) = newest.filter(|newest| newest.at <= next.saturating_add(MAX_LEAD)) else {
            grid.set_distance(self.period);
            self.state.store(ClockState::Never as u32, Relaxed);
            return;
        };
        let period = i128::from(self.period.as_ticks()) << FRACTION;
        let deviation = self.deviation(&estimate, next, period);
        // Rounded to the nearest: a truncated distance would leave the grid early.
        let wanted = (estimate.local(period - deviation) + (1 << (FRACTION - 1))) >> FRACTION;
        let wanted = Duration::from_ticks(u64::try_from(wanted).unwrap_or(0));
        let is_reached = grid.set_distance(wanted) == wanted;
        self.record(&estimate, next, deviation, is_reached);
    }

    /// Returns the external time by which the grid point `next` is late, from minus half a period
    /// to half a period; negative if it is early.
    fn deviation(&self, estimate: &Estimate, next: u64, period: i128) -> i128 {
        let late =
            (estimate.time_at(next) - (i128::from(self.offset.as_ticks()) << FRACTION)).rem_euclid(period);
        if late >= period / 2 { late - period } else { late }
    }

    /// Records the figures of the grid.
    fn record(&self, estimate: &Estimate, next: u64, deviation: i128, is_reached: bool) {
        self.drift_ppb.store(estimate.drift_ppb(), Relaxed);
        self.steps.store(estimate.steps, Relaxed);
        let (period, before) = (self.period.as_ticks(), self.state());
        let was_reached = self.is_reached.swap(is_reached, Relaxed);
        let has_restarted = self.restarts.swap(estimate.restarts, Relaxed) != estimate.restarts;
        let silence = next.saturating_sub(period).saturating_sub(estimate.at);
        let state = if silence > self.clock.hold_over_after.as_ticks() {
            ClockState::HoldOver
        } else if before == ClockState::Locked && !has_restarted {
            let is_lost = deviation.abs() > (i128::from(period) << FRACTION) / LOST;
            if is_lost { ClockState::Locking } else { ClockState::Locked }
        } else if is_reached && was_reached && !has_restarted && estimate.readings >= SETTLED {
            ClockState::Locked
        } else {
            ClockState::Locking
        };
        self.state.store(state as u32, Relaxed);
        if state == ClockState::HoldOver {
            if before != state {
                self.hold_overs.store(self.hold_overs.load(Relaxed) + 1, Relaxed);
            }
            return;
        }
        let phase = ((deviation >> FRACTION) as i64).saturating_add(estimate.offset);
        self.phase.store(phase, Relaxed);
        let max = self.phase_max.load(Relaxed);
        if state == ClockState::Locked && (max == NEVER_LOCKED || phase.unsigned_abs() > max) {
            self.phase_max.store(phase.unsigned_abs(), Relaxed);
        }
    }

    fn state(&self) -> ClockState {
        let state = self.state.load(Relaxed);
        ClockState::ALL.into_iter().find(|&each| each as u32 == state).unwrap_or_default()
    }

    /// Returns the figures so far.
    pub(crate) fn report(&self) -> ClockReport {
        let state = self.state();
        let known = state != ClockState::Never;
        ClockReport {
            clock: self.name,
            state,
            drift_ppb: known.then(|| self.drift_ppb.load(Relaxed)),
            phase_ns: (known && state != ClockState::HoldOver).then(|| self.phase.load(Relaxed)),
            phase_max_ns: Some(self.phase_max.load(Relaxed)).filter(|&max| max != NEVER_LOCKED),
            steps: self.steps.load(Relaxed),
            hold_overs: self.hold_overs.load(Relaxed),
        }
    }
}

impl fmt::Debug for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discipline").field("report", &self.report()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::{Instant, Reaction};

    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    /// Returns the state after a job for each reading of a grid that began at 0, and the distance
    /// to the release after the next.
    fn after_readings(clock: &'static ExternalClock, readings: &[(u64, u64)]) -> (ClockState, u64) {
        let zero = Duration::from_ticks(0);
        let grid = Periodic::new(0, 1, PERIOD, zero, Reaction::Skip);
        let discipline = Discipline::new("CLOCK", clock, PERIOD, zero);
        grid.start(Instant::from_ticks(0));
        discipline.begin();
        let mut source = clock.source().unwrap();
        for &(at, external) in readings {
            source.record(Instant::from_ticks(at), external).unwrap();
            discipline.correct(&grid);
        }
        (discipline.report().state, grid.distance().as_ticks())
    }

    #[test]
    fn distance_reaches_nearest_multiple_of_period() {
        static CLOCK: ExternalClock = ExternalClock::new();
        let with = |external| after_readings(&CLOCK, &[(0, external)]).1;
        assert_eq!([with(0), with(300), with(999_700)], [1_000_000, 999_700, 1_000_300]);
        assert_eq!([with(499_999), with(500_000)], [999_000, 1_001_000], "the nearer one, within 0.1 %");
    }

    #[test]
    fn grid_runs_free_after_reading_far_in_future() {
        static CLOCK: ExternalClock = ExternalClock::new();
        let far = (1_700_000_000_000_000_000, 300);
        assert_eq!(after_readings(&CLOCK, &[(0, 300)]).0, ClockState::Locking);
        assert_eq!(after_readings(&CLOCK, &[(0, 300), far]), (ClockState::Never, 1_000_000));
    }

    #[test]
    fn reading_far_in_future_has_no_effect() {
        static CLOCK: ExternalClock = ExternalClock::new();
        let realtime = 1_700_000_000_000_000_000;
        assert_eq!(after_readings(&CLOCK, &[(realtime, 300)]), (ClockState::Never, 1_000_000));
        assert_eq!(after_readings(&CLOCK, &[(MAX_LEAD, 300)]).0, ClockState::Locking);
    }
}
