//! Relates two clocks by messages.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::exchange::Message;

/// Maximum difference between the rates of two clocks: 1000 ppm.
const MAX_DRIFT: f64 = 1e-3;
/// Enough iterations to narrow any range to a point.
const ROUNDS: usize = 120;

/// The offset of one clock from another: the center of the range that messages allow, with constant
/// rates of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocks {
    /// A time of the other clock, in ns, and its offset then.
    at: u64,
    ahead: i128,
    /// Change of the offset, in ns per ns.
    rate: f64,
    /// Uncertainty of the offset in ns, between the first and the last time that it was computed
    /// for.
    uncertainty: u64,
    messages: usize,
}

/// Reason why two clocks cannot be related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockError {
    /// There are too few messages: the numbers from the first machine that the other received, and
    /// in the opposite direction.
    TooFew(usize, usize),
    /// No constant rates agree with all messages; they differ by at least this many ns.
    Contradiction(u64),
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew(0, 0) => write!(
                f,
                "the recordings have no messages that both machines marked; run `punctual trace exchange` on both while they record, \
                 or give --shared-clock"
            ),
            Self::TooFew(there, back) => write!(
                f,
                "the recordings have {there} messages to the other machine and {back} back that both marked, and some of each are needed"
            ),
            Self::Contradiction(ns) => write!(
                f,
                "no relation of the two clocks agrees with all messages, by {ns} ns; was one of them set meanwhile? Record with \
                 the clock mono"
            ),
        }
    }
}

impl std::error::Error for ClockError {}

/// A bound at a time: x in ns of the other clock, y its offset in ns, both relative to the first.
type Bound = (f64, f64);

impl Clocks {
    /// Relates two clocks that agree to within `uncertainty` ns.
    #[must_use]
    pub fn shared(uncertainty: u64) -> Self {
        Self { at: 0, ahead: 0, rate: 0.0, uncertainty, messages: 0 }
    }

    /// Computes the offset from messages in both directions, for times of the other clock from the
    /// first to the last of `span`.
    ///
    /// # Errors
    /// Returns an error if there are too few messages, or if they contradict each other.
    pub fn of(first: &[Message], other: &[Message], span: (u64, u64)) -> Result<Self, ClockError> {
        let received = |messages: &[Message]| -> HashMap<u64, u64> {
            messages
                .iter()
                .filter(|message| !message.sent)
                .map(|message| (message.number, message.time))
                .collect()
        };
        let (by_first, by_other) = (received(first), received(other));
        let sent = |messages: &'_ [Message]| {
            messages.iter().filter(|message| message.sent).copied().collect::<Vec<_>>()
        };
        // Upper and lower bounds of the other clock's offset, at times of that clock.
        let upper = sent(first).into_iter().filter_map(|message| {
            let at = *by_other.get(&message.number)?;
            Some((message.number, at, i128::from(at) - i128::from(message.time)))
        });
        let lower = sent(other).into_iter().filter_map(|message| {
            let at = *by_first.get(&message.number)?;
            Some((message.number, message.time, i128::from(message.time) - i128::from(at)))
        });
        // A recording may contain the marks of both ends, if both were made on one machine.
        let (upper, lower): (Vec<_>, Vec<_>) = (upper.collect(), lower.collect());
        let numbers: HashSet<u64> = upper.iter().chain(&lower).map(|&(number, ..)| number).collect();
        let plain = |bounds: Vec<(u64, u64, i128)>| -> Vec<(u64, i128)> {
            bounds.into_iter().map(|(_, at, value)| (at, value)).collect()
        };
        let (upper, lower) = (plain(upper), plain(lower));
        let (Some(&(at, ahead)), false) = (upper.first(), lower.is_empty()) else {
            return Err(ClockError::TooFew(upper.len(), lower.len()));
        };
        let x = |time: u64| (i128::from(time) - i128::from(at)) as f64;
        let relative = |bounds: &[(u64, i128)]| -> Vec<Bound> {
            bounds.iter().map(|&(time, value)| (x(time), (value - ahead) as f64)).collect()
        };
        let bounds = Bounds { upper: relative(&upper), lower: relative(&lower) };
        let rates = bounds.rates()?;
        // Check both ends: in between, the uncertainty is no larger, at any rate of the clocks.
        let ends = [span.0.min(span.1), span.0.max(span.1)].map(x);
        let [(middle, half), (end_middle, end_half)] = ends.map(|x| {
            let (low, high) = (bounds.least(x, rates), bounds.most(x, rates));
            (f64::midpoint(low, high), (high - low) / 2.0)
        });
        let length = ends[1] - ends[0];
        let rate = if length > 0.0 { (end_middle - middle) / length } else { 0.0 };
        Ok(Self {
            at: span.0.min(span.1),
            ahead: ahead + middle.round() as i128,
            rate,
            // One more for each rounding.
            uncertainty: half.max(end_half).max(0.0).ceil() as u64 + 2,
            messages: numbers.len(),
        })
    }

    /// Returns the time of the first clock for a time of the other, in ns; negative before the
    /// first clock started.
    #[must_use]
    pub fn first(&self, other: u64) -> i128 {
        let after = i128::from(other) - i128::from(self.at);
        i128::from(other) - self.ahead - (self.rate * after as f64).round() as i128
    }

    /// Returns the maximum error, in ns.
    #[must_use]
    pub fn uncertainty(&self) -> u64 {
        self.uncertainty
    }

    /// Returns the offset of the other clock at the beginning, in ns.
    #[must_use]
    pub fn ahead(&self) -> i128 {
        self.ahead
    }

    /// Returns the rate difference of the other clock, in ppm; positive if it is faster.
    #[must_use]
    pub fn drift_ppm(&self) -> f64 {
        self.rate * 1e6
    }

    /// Returns the number of messages used.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }
}

/// Upper and lower bounds on a line.
struct Bounds {
    upper: Vec<Bound>,
    lower: Vec<Bound>,
}

impl Bounds {
    /// Returns the vertical room for lines with that rate.
    fn room(&self, rate: f64) -> f64 {
        self.most_at(0.0, rate) - self.least_at(0.0, rate)
    }

    /// Returns the upper limit of a line with that rate at `x`.
    fn most_at(&self, x: f64, rate: f64) -> f64 {
        self.upper.iter().map(|&(at, y)| y + rate * (x - at)).fold(f64::INFINITY, f64::min)
    }

    /// Returns the lower limit of a line with that rate at `x`.
    fn least_at(&self, x: f64, rate: f64) -> f64 {
        self.lower.iter().map(|&(at, y)| y + rate * (x - at)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the minimum and maximum rate of a line.
    fn rates(&self) -> Result<(f64, f64), ClockError> {
        let best = highest((-MAX_DRIFT, MAX_DRIFT), |rate| self.room(rate));
        let room = self.room(best);
        if room < 0.0 {
            return Err(ClockError::Contradiction((-room).ceil() as u64));
        }
        let edge = |mut inside: f64, mut outside: f64| {
            if self.room(outside) >= 0.0 {
                return outside;
            }
            for _ in 0..ROUNDS {
                let middle = f64::midpoint(inside, outside);
                if self.room(middle) >= 0.0 { inside = middle } else { outside = middle }
            }
            // On the outer side, so that no rate is excluded.
            outside
        };
        Ok((edge(best, -MAX_DRIFT), edge(best, MAX_DRIFT)))
    }

    /// Returns the upper limit at `x` of a line with any of these rates.
    fn most(&self, x: f64, rates: (f64, f64)) -> f64 {
        self.most_at(x, highest(rates, |rate| self.most_at(x, rate)))
    }

    fn least(&self, x: f64, rates: (f64, f64)) -> f64 {
        self.least_at(x, highest(rates, |rate| -self.least_at(x, rate)))
    }
}

/// Returns the position of a concave function's maximum in a range.
fn highest((mut low, mut high): (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..ROUNDS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if of(left) < of(right) { low = left } else { high = right }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % end
        }
    }

    /// Returns the time of the other clock at a time of the first.
    fn truth(first: u64, ahead: i128, ppm: f64) -> u64 {
        let drift = (first as f64 * ppm / 1e6) as i128;
        u64::try_from(i128::from(first) + ahead + drift).unwrap()
    }

    /// Messages in both directions, with random delays, some of them long.
    fn exchanged(random: &mut Random, ahead: i128, ppm: f64, count: u64) -> (Vec<Message>, Vec<Message>) {
        let (mut first, mut other) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut time = 50_000_000_000 + number * 10_000_000;
            for (to, number) in [(true, 2 * number), (false, 2 * number + 1)] {
                let long = if random.below(10) == 0 { 1_000_000 } else { 20_000 };
                let (sent, received) = (time, time + 15_000 + random.below(long));
                let on_other = |time| truth(time, ahead, ppm);
                if to {
                    first.push(Message { number, time: sent, sent: true });
                    other.push(Message { number, time: on_other(received), sent: false });
                } else {
                    other.push(Message { number, time: on_other(sent), sent: true });
                    first.push(Message { number, time: received, sent: false });
                }
                time = received + 2_000;
            }
        }
        (first, other)
    }

    #[test]
    fn contains_true_value_and_states_error() {
        let mut random = Random(88_172_645_463_325_252);
        for (ahead, ppm) in [(0, 0.0), (-49_000_000_000, 40.0), (7_000_000_000_000, -200.0), (123, 3.5)] {
            for count in [1, 2, 30, 500] {
                let (first, other) = exchanged(&mut random, ahead, ppm, count);
                let begin = 49_900_000_000;
                let end = 50_100_000_000 + count * 10_000_000;
                let on_other = |time| truth(time, ahead, ppm);
                let clocks = Clocks::of(&first, &other, (on_other(begin), on_other(end))).unwrap();
                assert_eq!(clocks.messages() as u64, 2 * count);
                for time in [begin, (begin + end) / 2, end] {
                    let wrong = (clocks.first(on_other(time)) - i128::from(time)).unsigned_abs() as u64;
                    assert!(wrong <= clocks.uncertainty() + 1, "{wrong} {clocks:?} {ahead} {ppm} {count}");
                }
                if count == 500 {
                    // The shortest delays are 15 µs each way.
                    assert!(clocks.uncertainty() < 40_000, "{clocks:?}");
                    assert!((clocks.drift_ppm() - ppm).abs() < 20.0, "{clocks:?}");
                }
            }
        }
    }

    #[test]
    fn rejects_incomplete_or_contradicting_input() {
        let mut random = Random(1);
        let (first, other) = exchanged(&mut random, 5_000, 0.0, 20);
        let span = (50_000_000_000, 51_000_000_000);
        assert_eq!(Clocks::of(&[], &[], span), Err(ClockError::TooFew(0, 0)));
        let only_there: Vec<Message> = first.iter().copied().filter(|message| message.sent).collect();
        assert_eq!(Clocks::of(&only_there, &other, span), Err(ClockError::TooFew(20, 0)));
        // The other clock is set back by a second in between.
        let mut set = other.clone();
        set.iter_mut().skip(20).for_each(|message| message.time -= 1_000_000_000);
        assert!(
            matches!(Clocks::of(&first, &set, span), Err(ClockError::Contradiction(ns)) if ns > 100_000_000)
        );
    }
}
