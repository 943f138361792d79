//! Setpoints over time: steps that hold until the next one.

#[cfg(target_os = "none")]
use alloc::vec::Vec;

use crate::axes::Axes;
#[cfg(target_os = "none")]
use crate::float::Float as _;

/// Length of the built-in sequence at its natural speed, in seconds.
pub const BUILT_IN_SECONDS: f64 = 10.0;

/// The built-in sequence: time in seconds, pan and tilt in radians.
///
/// One axis steps at a time, so that any motion of the other is disturbance and not response; only
/// the last step moves both. The steps differ in size: 0.5 rad stays within the current limit for
/// most of the motion, 2 rad is at the limit for most of it.
const BUILT_IN: [(f64, f64, f64); 9] = [
    (0.0, 0.0, 0.0),
    (0.5, 0.5, 0.0),
    (1.5, 0.5, 0.4),
    (2.5, 0.5, -0.2),
    (3.5, -0.3, -0.2),
    (4.5, -0.3, 0.6),
    (5.5, 1.7, 0.6),
    (7.0, 1.7, 0.5),
    (8.5, 0.0, 0.0),
];

/// Setpoints in the order of their times, each holding until the next; both angles are zero before
/// the first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    points: Vec<(u64, Axes<f64>)>,
    /// The period of repetition.
    repeat_ns: Option<u64>,
}

impl Timeline {
    /// Creates a timeline without setpoints: always zero.
    pub const fn new() -> Self {
        Self { points: Vec::new(), repeat_ns: None }
    }

    /// Returns the built-in sequence for a run of `seconds`.
    ///
    /// For a run shorter than [`BUILT_IN_SECONDS`] it is compressed to fit, for a longer one
    /// repeated.
    pub fn built_in(seconds: f64) -> Self {
        let scale = (seconds / BUILT_IN_SECONDS).clamp(0.0, 1.0);
        let mut timeline = Self::new();
        for (time_s, pan_rad, tilt_rad) in BUILT_IN {
            timeline.push(time_s * scale, Axes::new(pan_rad, tilt_rad));
        }
        timeline.repeat_ns = Some(nanoseconds(BUILT_IN_SECONDS * scale)).filter(|&period| period > 0);
        timeline
    }

    /// Adds a setpoint that holds from `time_s` on.
    ///
    /// A time before that of the last setpoint counts as the same time, at which the newer setpoint
    /// takes precedence.
    pub fn push(&mut self, time_s: f64, angles_rad: Axes<f64>) {
        let last_ns = self.points.last().map_or(0, |&(t_ns, _)| t_ns);
        self.points.push((nanoseconds(time_s).max(last_ns), angles_rad));
    }

    /// Returns the setpoint angles at `t_ns` nanoseconds after the start of the run, in radians.
    pub fn at(&self, t_ns: u64) -> Axes<f64> {
        let t_ns = self.repeat_ns.map_or(t_ns, |period_ns| t_ns % period_ns);
        match self.points.partition_point(|&(from_ns, _)| from_ns <= t_ns) {
            0 => Axes::both(0.0),
            after => self.points[after - 1].1,
        }
    }

    /// Returns the number of setpoints.
    pub const fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns whether there are no setpoints.
    pub const fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the time of the last setpoint after the start of the run, in nanoseconds.
    pub fn end_ns(&self) -> u64 {
        self.points.last().map_or(0, |&(t_ns, _)| t_ns)
    }
}

/// The conversion saturates: a negative time becomes zero, one beyond 584 years the maximum.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::GIMBAL;
    use proptest::prelude::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn holds_step_until_next() {
        let mut timeline = Timeline::new();
        assert_eq!(timeline.at(5), Axes::both(0.0));
        timeline.push(1.0, Axes::new(0.1, 0.2));
        timeline.push(2.0, Axes::new(0.3, 0.4));
        assert_eq!(timeline.at(SECOND_NS - 1), Axes::both(0.0));
        assert_eq!(timeline.at(SECOND_NS), Axes::new(0.1, 0.2));
        assert_eq!(timeline.at(2 * SECOND_NS - 1), Axes::new(0.1, 0.2));
        assert_eq!(timeline.at(u64::MAX), Axes::new(0.3, 0.4));
        assert_eq!(timeline.end_ns(), 2 * SECOND_NS);
    }

    #[test]
    fn prefers_newer_of_two_simultaneous_setpoints() {
        let mut timeline = Timeline::new();
        timeline.push(1.0, Axes::both(0.1));
        timeline.push(0.5, Axes::both(0.2));
        assert_eq!(timeline.at(SECOND_NS - 1), Axes::both(0.0));
        assert_eq!(timeline.at(SECOND_NS), Axes::both(0.2));
    }

    #[test]
    fn compresses_or_repeats_built_in_sequence() {
        let natural = Timeline::built_in(BUILT_IN_SECONDS);
        let short = Timeline::built_in(1.0);
        let long = Timeline::built_in(25.0);
        for ms in 0..10_000 {
            let t_ns = ms * SECOND_NS / 1_000;
            assert_eq!(natural.at(t_ns), short.at(t_ns / 10));
            assert_eq!(natural.at(t_ns), long.at(t_ns + 20 * SECOND_NS));
        }
    }

    proptest! {
        #[test]
        fn keeps_built_in_sequence_in_range(seconds in any::<f64>(), t_ns in any::<u64>()) {
            let wanted = Timeline::built_in(seconds).at(t_ns);
            prop_assert!(GIMBAL.pan.range.contains(wanted.pan));
            prop_assert!(GIMBAL.tilt.range.contains(wanted.tilt));
        }
    }
}
