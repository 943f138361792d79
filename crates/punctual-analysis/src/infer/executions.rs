//! Longest total execution times of n consecutive jobs: C(n), where C(1) is C.
//!
//! *Quinton, Hanke, Ernst, "Formal Analysis of Sporadic Overload in Real-Time Systems", DATE 2012*,
//! among others: the longest jobs rarely follow each other, so C(n) is less than n times C. For
//! large n, C(n) is recorded for powers of two; the values between follow, since a sequence takes
//! no longer than any split of it into two parts.

use std::collections::VecDeque;

use crate::time::Nanos;

/// Largest number of jobs to look back.
pub(super) const FAR: usize = 1 << 13;

/// Execution times of a sequence of jobs, computed online.
#[derive(Debug, Clone)]
pub struct Executions {
    most: usize,
    recent: VecDeque<Nanos>,
    longest: Vec<Nanos>,
    shortest: Option<Nanos>,
    /// Longest sums of more than `most` jobs: twice as many, and twice as many again.
    far: Vec<Far>,
}

/// Sum over a fixed number of consecutive jobs.
#[derive(Debug, Clone)]
struct Far {
    jobs: usize,
    /// Sum of the last jobs, or of the jobs since the last gap if there are fewer.
    sum: Nanos,
    /// Longest of these sums; shorter sequences never take longer.
    longest: Nanos,
    /// True if a full sequence without a gap was observed.
    is_seen: bool,
}

impl Executions {
    /// Creates sums of up to `most` jobs, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        let numbers = std::iter::successors(Some(2 * most), |jobs| Some(2 * jobs));
        let far = numbers.take_while(|&jobs| jobs <= FAR).map(|jobs| Far {
            jobs,
            sum: 0,
            longest: 0,
            is_seen: false,
        });
        Self { most, recent: VecDeque::new(), longest: Vec::new(), shortest: None, far: far.collect() }
    }

    /// Adds the next job, with its execution time in ns.
    pub fn push(&mut self, execution: Nanos) {
        self.shortest = Some(self.shortest.map_or(execution, |shortest| shortest.min(execution)));
        for far in &mut self.far {
            far.sum = far.sum.saturating_add(execution);
            if let Some(place) = self.recent.len().checked_sub(far.jobs) {
                far.sum = far.sum.saturating_sub(self.recent[place]);
            }
            far.longest = far.longest.max(far.sum);
            far.is_seen |= self.recent.len() + 1 >= far.jobs;
        }
        if self.recent.len() == FAR.max(self.most) {
            self.recent.pop_front();
        }
        self.recent.push_back(execution);
        let mut sum: Nanos = 0;
        for (at, &job) in self.recent.iter().rev().take(self.most).enumerate() {
            sum = sum.saturating_add(job);
            match self.longest.get_mut(at) {
                Some(longest) => *longest = (*longest).max(sum),
                None => self.longest.push(sum),
            }
        }
    }

    /// Marks a gap in the recording: no sum spans it.
    pub fn interrupt(&mut self) {
        self.recent.clear();
        self.far.iter_mut().for_each(|far| far.sum = 0);
    }

    /// C(1), C(2), …
    #[must_use]
    pub fn longest(&self) -> &[Nanos] {
        &self.longest
    }

    /// C.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        self.longest.first().copied()
    }

    /// Returns the shortest execution time of a job.
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        self.shortest
    }

    /// Returns C(1), C(2), …, extended to the power-of-two lengths.
    fn longest_of_many(&self) -> Vec<Nanos> {
        let mut longest = self.longest.clone();
        let mut known = self.most;
        for far in self.far.iter().take_while(|far| far.is_seen) {
            for jobs in known + 1..=2 * known {
                let parts = longest[known - 1].saturating_add(longest[jobs - known - 1]);
                longest.push(parts.min(far.longest));
            }
            known = far.jobs;
        }
        longest
    }

    /// Returns a pair of execution times that bounds every C(n): each job takes `usual`, and at
    /// most one of `every` consecutive jobs takes C. Selects the pair with the lowest long-term
    /// demand; `every` is 1 if the gain is below a tenth.
    #[must_use]
    pub fn split(&self) -> Split {
        let Some(most) = self.max() else { return Split { usual: 0, most: 0, every: 1 } };
        let plain = Split { usual: most, most, every: 1 };
        let sums = self.longest_of_many();
        let (near, far) = (self.longest.len() as u64, sums.len() as u64);
        let powers = (1..).map(|power| 1_u64 << power).skip_while(|&every| every <= near);
        let splits = (2..=near).chain(powers.take_while(|&every| every <= far)).map(|every| {
            // The first of each `every` jobs may take C: n jobs contain ⌈n / every⌉ of these.
            let usual = sums.iter().zip(1_u64..).map(|(&sum, n)| {
                let long = n.div_ceil(every);
                let rest = n - long;
                let left = sum.saturating_sub(long.saturating_mul(most));
                if rest == 0 { 0 } else { left.div_ceil(rest) }
            });
            Split { usual: usual.max().unwrap_or(most).min(most), most, every }
        });
        // Mean per job, as a fraction with the denominator `every`.
        let mean = |split: &Split| {
            let Split { usual, most, every } = *split;
            (u128::from(usual) * u128::from(every - 1) + u128::from(most)) * 1_000_000 / u128::from(every)
        };
        let best = splits.min_by_key(|split| (mean(split), split.every));
        best.filter(|best| mean(best) < mean(&plain) / 10 * 9).unwrap_or(plain)
    }
}

/// Execution times of two sizes: see [`Executions::split`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Limit for an ordinary job, in ns.
    pub usual: Nanos,
    /// Limit for a long job, in ns.
    pub most: Nanos,
    /// Number of consecutive jobs of which one may be long.
    pub every: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(most: usize, jobs: &[Nanos]) -> Executions {
        let mut executions = Executions::new(most);
        jobs.iter().for_each(|&job| executions.push(job));
        executions
    }

    #[test]
    fn sums_consecutive_jobs() {
        let executions = of(3, &[1, 9, 2, 2, 8, 1]);
        assert_eq!(executions.longest(), [9, 11, 13]);
        assert_eq!((executions.max(), executions.min()), (Some(9), Some(1)));
    }

    #[test]
    fn does_not_sum_across_gap() {
        let mut executions = of(2, &[9]);
        executions.interrupt();
        executions.push(8);
        assert_eq!(executions.longest(), [9]);
    }

    /// A split bounds every observed sum for any arrangement of jobs.
    #[test]
    fn splits_are_never_below_observed_times() {
        let mut seed = 7_u64;
        for _ in 0..300 {
            let jobs: Vec<Nanos> = (0..40)
                .map(|_| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if seed >> 60 == 0 { 100 } else { (seed >> 33) % 10 }
                })
                .collect();
            let executions = of(16, &jobs);
            let Split { usual, most, every } = executions.split();
            for (&sum, n) in executions.longest().iter().zip(1_u64..) {
                let long = n.div_ceil(every);
                assert!(sum <= long * most + (n - long) * usual, "{jobs:?}: {n} jobs took {sum}");
            }
            assert!(usual <= most);
        }
    }

    /// Compares with the longest sum of every number of jobs, found by enumeration.
    #[test]
    fn extrapolates_upper_bound_of_many_jobs() {
        let mut seed = 3_u64;
        let jobs: Vec<Nanos> = (0..150)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if seed >> 59 == 0 { 500 } else { (seed >> 33) % 10 }
            })
            .collect();
        for most in [1, 3, 4, 32] {
            let longest = of(most, &jobs).longest_of_many();
            assert!(longest.len() > 75, "{}", longest.len());
            for (n, &longest) in (1..).zip(&longest) {
                let tried = jobs.windows(n).map(|it| it.iter().sum::<Nanos>()).max().unwrap();
                let is_seen = n <= most || n % most == 0 && (n / most).is_power_of_two();
                assert!(
                    if is_seen { longest == tried } else { longest >= tried },
                    "{n}: {longest}, not {tried}"
                );
            }
        }
    }

    #[test]
    fn sums_many_jobs_on_one_side_of_gap() {
        let mut executions = of(2, &[9; 3]);
        executions.interrupt();
        [1; 5].into_iter().for_each(|job| executions.push(job));
        assert_eq!(executions.longest_of_many(), [9, 18, 27, 27]);
    }

    #[test]
    fn limits_look_back_to_window() {
        let executions = of(32, &vec![5; 3 * FAR]);
        assert_eq!((executions.recent.len(), executions.longest_of_many().len()), (FAR, FAR));
        let mut rare = vec![5; 4 * FAR];
        rare[FAR] = 1_000_000;
        assert_eq!(of(32, &rare).split().every, FAR as u64);
    }

    #[test]
    fn separates_rare_long_jobs() {
        let jobs: Vec<Nanos> = (0..64).map(|at| if at % 8 == 3 { 50 } else { 5 }).collect();
        assert_eq!(of(32, &jobs).split(), Split { usual: 5, most: 50, every: 8 });
        assert_eq!(of(32, &[7; 20]).split().every, 1);
    }
}
