//! The decision whether deadline misses are due to a fault.

/// Returns the probability that the misses per slot of time are as much more numerous with a fault
/// as they are, if the fault has no effect: the rank-sum test of Mann and Whitney, one-sided, with
/// the normal approximation and the correction for ties.
pub(crate) fn probability(fault: &[u64], control: &[u64]) -> f64 {
    let mut all: Vec<(u64, bool)> = fault.iter().map(|misses| (*misses, true)).collect();
    all.extend(control.iter().map(|misses| (*misses, false)));
    all.sort_unstable();
    let (mut rank_sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let count = equal.len() as f64;
        let mean_rank = before + (count + 1.0) / 2.0;
        rank_sum += mean_rank * equal.iter().filter(|(_, is_fault)| *is_fault).count() as f64;
        ties += count.powi(3) - count;
        before += count;
    }
    let (of_fault, of_control, all) = (fault.len() as f64, control.len() as f64, all.len() as f64);
    let statistic = rank_sum - of_fault * (of_fault + 1.0) / 2.0;
    let variance = of_fault * of_control / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)).max(1.0));
    if variance <= 0.0 {
        return 1.0;
    }
    // With the correction for continuity.
    upper_tail((statistic - of_fault * of_control / 2.0 - 0.5) / variance.sqrt())
}

/// Returns the probability that a normally distributed value exceeds `z` standard deviations, with
/// an error below 1e-7: formula 26.2.17 of Abramowitz and Stegun.
fn upper_tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if z < 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_that_of_normal_distribution() {
        for (z, expected) in [(0.0, 0.5), (1.0, 0.158_655_3), (-1.0, 0.841_344_7), (3.0, 0.001_349_9)] {
            assert!((upper_tail(z) - expected).abs() < 1e-6, "{z}: {}", upper_tail(z));
        }
    }

    #[test]
    fn more_misses_with_fault_are_improbable_otherwise() {
        let (quiet, noisy) = ([0; 20], [3, 5, 1, 2, 9, 4, 1, 1, 2, 6, 3, 5, 1, 2, 9, 4, 1, 1, 2, 6]);
        assert!(probability(&noisy, &quiet) < 1e-6);
        let worse: Vec<u64> = noisy.iter().map(|misses| misses * 10).collect();
        assert!(probability(&worse, &noisy) < 1e-4, "also if every slot has misses");
        assert!(probability(&quiet, &noisy) > 0.999);
    }

    #[test]
    fn equal_misses_are_probable() {
        assert_eq!(probability(&[0; 20], &[0; 20]), 1.0, "nothing is missed");
        assert_eq!(probability(&[], &[]), 1.0);
        let mut one = [0; 20];
        one[7] = 40;
        assert!(probability(&one, &[0; 20]) > 0.1, "one slot may be chance");
        assert!(probability(&one, &one) > 0.3);
    }
}
