//! The difference between two recorded series.
//!
//! The series need not be sampled at the same times. Each is interpolated linearly between its
//! points, and the difference is formed at every time at which either has a point, within the span
//! that both cover. Between those times the difference is linear, too, so the result contains its
//! largest value and its mean square exactly.

/// The difference of two series.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// First minus second series, over time in nanoseconds.
    pub points: Vec<(u64, f64)>,
    /// Square root of the mean square over time.
    pub rms: f64,
    /// Largest absolute value.
    pub max: f64,
    /// Time of the largest absolute value, in nanoseconds.
    pub max_at_ns: u64,
}

/// Returns the difference `first − second` of two series of (time in nanoseconds, value).
///
/// Both must be in order of time. Returns `None` if there is no time that both cover. Of several
/// points at the same time, the last one applies.
pub fn difference(first: &[(u64, f64)], second: &[(u64, f64)]) -> Option<Difference> {
    let start_ns = first.first()?.0.max(second.first()?.0);
    let end_ns = first.last()?.0.min(second.last()?.0);
    if start_ns > end_ns {
        return None;
    }
    let mut times_ns: Vec<u64> = first.iter().chain(second).map(|point| point.0).collect();
    times_ns.retain(|t_ns| (start_ns..=end_ns).contains(t_ns));
    times_ns.sort_unstable();
    times_ns.dedup();

    let (mut first, mut second) = (Follower::new(first), Follower::new(second));
    let points: Vec<_> =
        times_ns.into_iter().map(|t_ns| (t_ns, first.value_at(t_ns) - second.value_at(t_ns))).collect();

    let &(max_at_ns, extreme) = points.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(Difference { rms: rms(&points), max: extreme.abs(), max_at_ns, points })
}

/// Returns the root mean square over time of the linear interpolation of `points`.
fn rms(points: &[(u64, f64)]) -> f64 {
    let (mut integral, mut length_ns) = (0.0, 0.0);
    for pair in points.windows(2) {
        let [(from_ns, a), (to_ns, b)] = [pair[0], pair[1]];
        let span_ns = (to_ns - from_ns) as f64;
        integral += span_ns * (a * a + a * b + b * b) / 3.0;
        length_ns += span_ns;
    }
    match points {
        [(_, only)] => only.abs(),
        _ => (integral / length_ns).sqrt(),
    }
}

/// Reads a series at rising times, continuing from the previous position.
struct Follower<'a> {
    points: &'a [(u64, f64)],
}

impl<'a> Follower<'a> {
    const fn new(points: &'a [(u64, f64)]) -> Self {
        Self { points }
    }

    /// Returns the value at `t_ns`, which must not be before the first point or before the
    /// previously requested time.
    fn value_at(&mut self, t_ns: u64) -> f64 {
        while let [_, next, ..] = self.points
            && next.0 <= t_ns
        {
            self.points = &self.points[1..];
        }
        match self.points {
            [] => f64::NAN,
            [(from_ns, a), (to_ns, b), ..] if *from_ns < t_ns => {
                let part = (t_ns - from_ns) as f64 / (to_ns - from_ns) as f64;
                a + (b - a) * part
            }
            [(_, value), ..] => *value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_no_difference_between_equal_series() {
        let series = [(0, 1.0), (10, 2.0), (30, -1.0)];
        let difference = difference(&series, &series).unwrap();
        assert_eq!((difference.rms, difference.max), (0.0, 0.0));
    }

    #[test]
    fn finds_no_difference_between_samplings_of_one_line() {
        let coarse = [(0, 0.0), (100, 10.0)];
        let fine: Vec<_> = (0..=100).step_by(7).map(|t| (t, t as f64 / 10.0)).collect();
        let difference = difference(&fine, &coarse).unwrap();
        assert!(difference.max < 1e-12);
        assert_eq!(difference.points.last().unwrap().0, 98, "only where both are known");
    }

    #[test]
    fn reports_constant_offset_as_rms_and_maximum() {
        let first = [(0, 1.5), (50, 1.5), (100, 1.5)];
        let difference = difference(&first, &[(10, 1.0), (90, 1.0)]).unwrap();
        assert!((difference.rms - 0.5).abs() < 1e-12);
        assert!((difference.max - 0.5).abs() < 1e-12);
        assert_eq!(difference.points.first().unwrap().0, 10);
    }

    #[test]
    fn computes_rms_of_ramp() {
        let difference = difference(&[(0, 0.0), (1_000, 6.0)], &[(0, 0.0), (1_000, 0.0)]).unwrap();
        assert!((difference.rms - 6.0 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((difference.max, difference.max_at_ns), (6.0, 1_000));
    }

    #[test]
    fn detects_spike_between_points_of_other_series() {
        let spike = [(0, 0.0), (49, 0.0), (50, -9.0), (51, 0.0), (100, 0.0)];
        let difference = difference(&spike, &[(0, 0.0), (100, 0.0)]).unwrap();
        assert_eq!((difference.max, difference.max_at_ns), (9.0, 50));
    }

    #[test]
    fn finds_no_difference_without_common_time() {
        assert_eq!(difference(&[(0, 1.0), (10, 1.0)], &[(11, 1.0)]), None);
        assert_eq!(difference(&[], &[(11, 1.0)]), None);
        let touch = difference(&[(0, 1.0), (10, 1.0)], &[(10, 4.0), (20, 4.0)]).unwrap();
        assert_eq!((touch.rms, touch.max, touch.points.len()), (3.0, 3.0, 1));
    }
}
