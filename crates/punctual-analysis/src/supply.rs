//! Supply bound functions: the longest time until a CPU that is only partly available has supplied
//! a given amount.
//!
//! *Shin & Lee, "Periodic Resource Model for Compositional Real-Time Guarantees", RTSS 2003* (a
//! budget in every period, at any position); *Mok, Feng & Chen, "Resource Partition for Real-Time
//! Systems", RTAS 2001* (bounded delay).
//!
//! Exact for each model: the least supply of every interval length is attained.

use crate::fraction::Fraction;
use crate::time::Nanos;

/// Availability of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supply {
    /// The whole CPU.
    #[default]
    Full,
    /// At least `budget` in every period, at any position: a throttled group, a server, a virtual
    /// CPU.
    Periodic {
        /// Least supply per period; at least 1 ns, at most the period.
        budget: Nanos,
        /// Time from one replenishment to the next, in ns.
        period: Nanos,
    },
    /// A share of the CPU after a delay.
    BoundedDelay {
        /// Longest time without supply, in ns.
        delay: Nanos,
        /// Share after the delay in parts per million, from 1 to 1 000 000.
        share_ppm: u64,
    },
}

impl Supply {
    /// Returns the longest time until `demand` has been supplied, in ns, or `None` on overflow.
    #[inline]
    #[must_use]
    pub fn time_for(self, demand: Nanos) -> Option<Nanos> {
        if demand == 0 {
            return Some(0);
        }
        match self {
            Self::Full => Some(demand),
            Self::Periodic { budget, period } => {
                // Worst case: one budget at the start of its period, and the next ones at the ends
                // of theirs.
                let whole = (demand - 1) / budget;
                let rest = demand - whole * budget;
                (period - budget).checked_mul(2)?.checked_add(whole.checked_mul(period)?)?.checked_add(rest)
            }
            Self::BoundedDelay { delay, share_ppm } => {
                let time = (u128::from(demand) * 1_000_000).div_ceil(u128::from(share_ppm));
                u64::try_from(time).ok()?.checked_add(delay)
            }
        }
    }

    /// Returns the least supply in an interval of this length, in ns.
    #[must_use]
    pub fn within(self, length: Nanos) -> Nanos {
        match self {
            Self::Full => length,
            Self::Periodic { budget, period } => {
                let gap = period - budget;
                let Some(after) = length.checked_sub(gap) else { return 0 };
                let (whole, rest) = (after / period, after % period);
                whole * budget + rest.saturating_sub(gap)
            }
            Self::BoundedDelay { delay, share_ppm } => {
                let supplied = u128::from(length.saturating_sub(delay)) * u128::from(share_ppm) / 1_000_000;
                u64::try_from(supplied).unwrap_or(length)
            }
        }
    }

    /// Estimates [`rate`](Self::rate).
    #[must_use]
    pub fn rate_estimate(self) -> f64 {
        match self {
            Self::Full => 1.0,
            Self::Periodic { budget, period } => budget as f64 / period as f64,
            Self::BoundedDelay { share_ppm, .. } => share_ppm as f64 / 1e6,
        }
    }

    /// Returns the long-term share of the CPU.
    #[must_use]
    pub fn rate(self) -> Fraction {
        match self {
            Self::Full => Fraction::ONE,
            Self::Periodic { budget, period } => Fraction::new(budget.into(), period.into()),
            Self::BoundedDelay { share_ppm, .. } => Fraction::new(share_ppm.into(), 1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the least supply by trying every position of an interval against the worst pattern of
    /// budgets: first in one period, last in the following ones.
    fn least_periodic(budget: u64, period: u64, length: u64) -> u64 {
        let supplied = |t: u64| if t < period { t < budget } else { t % period >= period - budget };
        (0..=period).map(|from| (from..from + length).filter(|&t| supplied(t)).count() as u64).min().unwrap()
    }

    #[test]
    fn equals_worst_case_supply_pattern() {
        for (budget, period) in [(1, 1), (1, 4), (3, 5), (5, 5), (2, 7)] {
            let supply = Supply::Periodic { budget, period };
            for length in 0..40 {
                assert_eq!(
                    supply.within(length),
                    least_periodic(budget, period, length),
                    "{supply:?} {length}"
                );
            }
        }
    }

    #[test]
    fn inverts_supply_to_response() {
        let supplies = [
            Supply::Full,
            Supply::Periodic { budget: 3, period: 8 },
            Supply::Periodic { budget: 8, period: 8 },
            Supply::BoundedDelay { delay: 5, share_ppm: 333_333 },
        ];
        for supply in supplies {
            for demand in 1..50 {
                let time = supply.time_for(demand).unwrap();
                assert!(
                    supply.within(time) >= demand && supply.within(time - 1) < demand,
                    "{supply:?} {demand}"
                );
            }
            assert_eq!(supply.time_for(0), Some(0));
        }
        assert_eq!(Supply::Periodic { budget: 1, period: u64::MAX }.time_for(9), None);
    }
}
