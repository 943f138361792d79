//! Probabilistic worst-case execution time: a time that a job exceeds only with a given
//! probability, by extreme-value statistics.
//!
//! *Cucu-Grosjean, Santinelli, Houston, Lo, Vardanega, Kosmidis, Abella, Mezzetti, Quiñones,
//! Cazorla, "Measurement-Based Probabilistic Timing Analysis for Multi-path Programs", ECRTS 2012*:
//! the maxima of blocks of jobs follow an extreme-value distribution if jobs are independent and
//! identically distributed, which is tested first. *Hosking, "L-Moments", J. R. Statist. Soc. B 52,
//! 1990*, and *Hosking, Wallis, Wood, "Estimation of the Generalized Extreme-Value Distribution by
//! the Method of Probability-Weighted Moments", Technometrics 27, 1985*: the fit, and the test of
//! the shape. *Stephens, "Goodness of Fit for the Extreme Value Distribution", Biometrika 64,
//! 1977*: the test of the fit.
//!
//! Limits (*Cazorla, Kosmidis, Mezzetti, Hernandez, Abella, Vardanega, "Probabilistic Worst-Case
//! Timing Analysis: Taxonomy and Comprehensive Survey", ACM Computing Surveys 52(1), 2019*; *Gil,
//! Bate, Lima, Santinelli, Gogonel, Cucu-Grosjean, "Open Challenges for Probabilistic
//! Measurement-Based Worst-Case Execution Time", IEEE Embedded Systems Letters 9(3), 2017*): the
//! probability refers to runs like the observed one. A path, an input or a cache state that no job
//! met is in no distribution. Tests can refute a hypothesis but not prove it.

use crate::time::Nanos;

/// Minimum number of jobs per block.
const BLOCK: usize = 20;
/// Minimum number of block maxima.
const BLOCKS: usize = 50;
/// Maximum number of blocks; more jobs make longer blocks.
const MAX_BLOCKS: usize = 1_000;

/// Critical value of |Z| at 5 %: two-sided, standard normal.
const NORMAL: f64 = 1.960;
/// Critical value at 5 % of the Kolmogorov–Smirnov distance times √(n·m / (n + m)).
const KOLMOGOROV: f64 = 1.358;
/// Critical value at 5 % of A² times 1 + 0.2 / √n for a Gumbel distribution with both parameters
/// estimated: table 1 of Stephens 1977.
const ANDERSON: f64 = 0.757;
/// Critical value of Z at 5 %, one-sided.
const NORMAL_ONE_SIDED: f64 = 1.645;
/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// A statistical test, and the critical value at which its hypothesis is rejected at 5 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// Test statistic.
    pub value: f64,
    /// Critical value.
    pub most: f64,
}

impl Test {
    /// Returns whether the hypothesis stands.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.value <= self.most
    }
}

/// A fit with the results of its tests.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Pwcet {
    /// Jobs per block.
    pub block: usize,
    /// Number of block maxima.
    pub blocks: usize,
    /// Absolute Z of the number of runs above and below the median (Wald & Wolfowitz): tests that
    /// jobs are independent.
    pub runs: Test,
    /// Distance between the distributions of the first and the second half (Kolmogorov & Smirnov):
    /// tests that jobs are identically distributed.
    pub halves: Test,
    /// Z of the shape: tests that the tail is no heavier than Gumbel's; a heavier tail has no such
    /// bound.
    pub shape: Test,
    /// A² of the fit (Anderson & Darling).
    pub fit: Test,
    /// Location of the Gumbel distribution of maxima, in ns.
    pub location: f64,
    /// Scale of the Gumbel distribution, in ns.
    pub scale: f64,
    /// Execution time, in ns, that a job exceeds with the requested probability; never below the
    /// longest observed one.
    pub execution: Nanos,
}

impl Pwcet {
    /// Returns the meaning of the first failed test, if any.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        let tests = [
            (self.runs, "they are not independent (runs test)"),
            (self.halves, "the first half is not like the second (Kolmogorov-Smirnov)"),
            (self.shape, "their maxima have a heavier tail than Gumbel's (shape)"),
            (self.fit, "their maxima do not fit a Gumbel distribution (Anderson-Darling)"),
        ];
        // NaN fails every test.
        tests.into_iter().find(|(test, _)| !test.passes()).map(|(_, why)| why)
    }
}

/// Fits the execution times of jobs, given in order, for an exceedance `probability` per job.
///
/// # Errors
/// Returns the reason if no fit is possible. A fit that is [refused](Pwcet::refusal) must not be
/// used.
pub fn fit(executions: &[Nanos], probability: f64) -> Result<Pwcet, String> {
    let needed = BLOCK * BLOCKS;
    if executions.len() < needed {
        return Err(format!("{} jobs are too few: {needed} are needed", executions.len()));
    }
    if !(probability > 0.0 && probability < 1.0) {
        return Err("a probability is between 0 and 1".into());
    }
    let block = BLOCK.max(executions.len().div_ceil(MAX_BLOCKS));
    let maxima = executions.chunks_exact(block).filter_map(|jobs| jobs.iter().max());
    let mut maxima: Vec<f64> = maxima.map(|&ns| ns as f64).collect();
    let jobs: Vec<f64> = executions.iter().map(|&ns| ns as f64).collect();
    maxima.sort_by(f64::total_cmp);
    let blocks = maxima.len();
    if maxima.first() == maxima.last() {
        return Err("the maxima of all blocks are the same: there is no distribution to fit".into());
    }
    let [l1, l2, l3] = moments(&maxima);
    let scale = l2 / std::f64::consts::LN_2;
    let location = l1 - GAMMA * scale;
    // Shape of the generalized distribution: below 0 the tail is heavier.
    let c = 2.0 / (3.0 + l3 / l2) - std::f64::consts::LN_2 / 3.0_f64.ln();
    let shape = 7.8590 * c + 2.9554 * c * c;
    let count = blocks as f64;
    let longest = executions.iter().max().copied().unwrap_or(0);
    let exceeded = quantile(location, scale, probability, block);
    let test = |value, most| Test { value, most };
    Ok(Pwcet {
        block,
        blocks,
        runs: test(runs(&jobs), NORMAL),
        halves: test(distance(&jobs), KOLMOGOROV),
        shape: test(-shape * (count / 0.5633).sqrt(), NORMAL_ONE_SIDED),
        fit: test(anderson(&maxima, location, scale) * (1.0 + 0.2 / count.sqrt()), ANDERSON),
        location,
        scale,
        execution: (exceeded.ceil() as Nanos).max(longest),
    })
}

/// Returns the time that a job exceeds with this probability, given the distribution of block
/// maxima.
fn quantile(location: f64, scale: f64, probability: f64, block: usize) -> f64 {
    // A block stays below x if each of its jobs does: F(x) = (1 − p)^block.
    let minus_log = -(block as f64) * (-probability).ln_1p();
    location - scale * minus_log.ln()
}

/// Returns the first three L-moments of a sorted sample.
fn moments(sorted: &[f64]) -> [f64; 3] {
    let n = sorted.len() as f64;
    let (mut b0, mut b1, mut b2) = (0.0, 0.0, 0.0);
    for (at, &value) in sorted.iter().enumerate() {
        let at = at as f64;
        b0 += value / n;
        b1 += value * at / (n * (n - 1.0));
        b2 += value * at * (at - 1.0) / (n * (n - 1.0) * (n - 2.0));
    }
    [b0, 2.0 * b1 - b0, 6.0 * b2 - 6.0 * b1 + b0]
}

/// Returns |Z| of the number of runs above and below the median, without values equal to it.
/// Infinite if one side is empty.
fn runs(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    };
    let sides: Vec<bool> =
        values.iter().filter(|&&value| value != median).map(|&value| value > median).collect();
    let above = sides.iter().filter(|&&side| side).count() as f64;
    let below = sides.len() as f64 - above;
    let seen = 1.0 + sides.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let product = 2.0 * above * below;
    let count = above + below;
    let variance = product * (product - count) / (count * count * (count - 1.0));
    if variance > 0.0 { (seen - product / count - 1.0).abs() / variance.sqrt() } else { f64::INFINITY }
}

/// Returns the distance between the distributions of the two halves, times √(n·m / (n + m)).
fn distance(values: &[f64]) -> f64 {
    let (first, second) = values.split_at(values.len() / 2);
    let sorted = |half: &[f64]| {
        let mut half = half.to_vec();
        half.sort_by(f64::total_cmp);
        half
    };
    let (first, second) = (sorted(first), sorted(second));
    let (n, m) = (first.len() as f64, second.len() as f64);
    let below = |half: &[f64], value: f64| half.partition_point(|&other| other <= value) as f64;
    let apart = |&value: &f64| (below(&first, value) / n - below(&second, value) / m).abs();
    let most = first.iter().chain(&second).map(apart).fold(0.0, f64::max);
    most * (n * m / (n + m)).sqrt()
}

/// Returns A² of a sorted sample.
fn anderson(sorted: &[f64], location: f64, scale: f64) -> f64 {
    let n = sorted.len() as f64;
    // ln F and ln(1 − F).
    let log = |value: f64| -(-(value - location) / scale).exp();
    let log_rest = |value: f64| (-log(value).exp_m1()).ln();
    let terms = sorted.iter().zip(sorted.iter().rev()).enumerate();
    let sum: f64 =
        terms.map(|(at, (&low, &high))| (2.0 * at as f64 + 1.0) * (log(low) + log_rest(high))).sum();
    -n - sum / n
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        /// Returns a number in the open interval (0, 1): splitmix64 (Steele, Lea, Flood 2014).
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn gumbel(&mut self, location: f64, scale: f64) -> Nanos {
            (location - scale * (-self.unit().ln()).ln()) as Nanos
        }
    }

    fn sample(seed: u64, count: usize, each: impl Fn(&mut Random) -> Nanos) -> Vec<Nanos> {
        let mut random = Random(seed);
        (0..count).map(|_| each(&mut random)).collect()
    }

    /// Textbook example with 10 coin tosses: 6 runs of 5 and 5 are the expected value.
    #[test]
    fn counts_runs() {
        let alternating: Vec<f64> = (0..100).map(|at| f64::from(at % 2)).collect();
        // 100 runs; the expected value is 51 with a variance of 24.747.
        assert!(
            (runs(&alternating) - 49.0 / (2.0_f64 * 50.0 * 50.0 * 4_900.0 / (10_000.0 * 99.0)).sqrt()).abs()
                < 1e-9
        );
        let expected = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
        assert!(runs(&expected).abs() < 1e-9);
        assert_eq!(runs(&[3.0; 9]), f64::INFINITY);
    }

    /// By hand: at 2, one half contains 2 of 3 values and the other none.
    #[test]
    fn compares_distributions_of_both_halves() {
        let found = distance(&[1.0, 2.0, 4.0, 3.0, 4.0, 5.0]);
        assert!((found - 2.0 / 3.0 * 1.5_f64.sqrt()).abs() < 1e-12, "{found}");
    }

    /// L-moments of 1 … 5: mean 3, half the mean difference 1, skewness 0.
    #[test]
    fn computes_l_moments() {
        let found = moments(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        for (found, expected) in found.iter().zip([3.0, 1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
    }

    /// Block maxima of Gumbel variables are Gumbel, shifted by scale · ln(block), so the quantile
    /// is that of one variable.
    #[test]
    fn recovers_quantile_of_gumbel_distribution() {
        for seed in 0..20 {
            let found = fit(&sample(seed, 20_000, |random| random.gumbel(100_000.0, 1_000.0)), 1e-9).unwrap();
            let exact = 100_000.0 + 1_000.0 * 9.0 * 10.0_f64.ln();
            assert!((found.execution as f64 / exact - 1.0).abs() < 0.02, "{found:?}, exact {exact}");
            assert!((found.scale / 1_000.0 - 1.0).abs() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn rarer_quantiles_are_longer() {
        let jobs = sample(3, 20_000, |random| random.gumbel(100_000.0, 1_000.0));
        let of = |probability| fit(&jobs, probability).unwrap().execution;
        assert!(of(1e-12) > of(1e-9) && of(1e-9) > of(1e-6));
        // Never below the longest observation.
        assert_eq!(of(0.5), *jobs.iter().max().unwrap());
    }

    #[test]
    fn rejects_dependent_jobs() {
        let mut last = 0;
        let mut random = Random(4);
        let jobs: Vec<Nanos> = (0..5_000)
            .map(|_| {
                last = (last * 9 + random.gumbel(100_000.0, 1_000.0)) / 10;
                last
            })
            .collect();
        assert!(fit(&jobs, 1e-9).unwrap().refusal().unwrap().contains("runs"));
    }

    #[test]
    fn rejects_changing_distribution() {
        let mut random = Random(4);
        let later = |at: usize| if at < 2_500 { 100_000.0 } else { 100_050.0 };
        let jobs: Vec<Nanos> = (0..5_000).map(|at| random.gumbel(later(at), 300.0)).collect();
        let found = fit(&jobs, 1e-9).unwrap();
        assert!(!found.halves.passes() && found.refusal().is_some(), "{found:?}");
    }

    /// Pareto with exponent 2: a new maximum is likely to be twice the longest observation.
    #[test]
    fn rejects_heavy_tails() {
        let jobs = sample(6, 20_000, |random| (1_000.0 / random.unit().sqrt()) as Nanos);
        assert!(fit(&jobs, 1e-9).unwrap().refusal().unwrap().contains("tail"));
    }

    /// Two paths, the longer of them rare.
    #[test]
    fn rejects_values_that_do_not_fit() {
        let path = |random: &mut Random| if random.unit() < 0.02 { 50_000 } else { 0 };
        let jobs = sample(8, 20_000, |random| random.gumbel(100_000.0, 500.0) + path(random));
        assert!(!fit(&jobs, 1e-9).unwrap().fit.passes());
    }

    #[test]
    fn rejects_too_few_jobs_and_constants() {
        assert!(fit(&[1; 999], 1e-9).unwrap_err().contains("1000 are needed"));
        assert!(fit(&[5; 5_000], 1e-9).unwrap_err().contains("the same"));
        assert!(fit(&[5; 5_000], 0.0).is_err());
    }

    /// False rejections: each test rejects one valid sample in twenty, so all tests together at
    /// most one in five.
    #[test]
    fn rarely_rejects_good_fits() {
        let refused = (0..60).filter(|&seed| {
            let jobs = sample(1_000 + seed, 2_000, |random| random.gumbel(100_000.0, 1_000.0));
            fit(&jobs, 1e-9).unwrap().refusal().is_some()
        });
        let refused = refused.count();
        assert!(refused <= 18, "{refused} of 60");
    }
}
