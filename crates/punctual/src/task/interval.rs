//! The minimum inter-arrival time of a task: at most `burst` releases in any window of a given
//! length.
//!
//! The last `n` releases are recorded, each in its own slot, and a release takes the slot of the
//! oldest. It is early unless that one is at least the interval before it. So *any two on-time
//! releases recorded in one slot are an interval apart*, and of any `n + 1` two share a slot: they
//! do not fit into a shorter window. This is why a compare-and-swap on one slot is enough when
//! several threads release at once: recorded times only grow, so the oldest is still the oldest as
//! long as its slot is unchanged.
//!
//! Real-time safety: the slots are static, and a release scans all of them, at most 64. Nothing
//! here allocates, blocks or enters the kernel.

use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{Duration, Instant};

use crate::model::OnEarly;
use crate::report::TaskReport;

/// Value of an unused slot; a used one contains the time plus 1.
const NEVER: u64 = 0;

/// The minimum inter-arrival time and the last releases of a task. A static of the generated code.
#[derive(Debug)]
pub struct Interval<P: ?Sized = [AtomicU64]> {
    length: u64,
    on_early: OnEarly,
    early: AtomicU64,
    /// The last `N` releases.
    last: P,
}

impl<const N: usize> Interval<[AtomicU64; N]> {
    /// Creates a limit of `N` releases in any interval of this length.
    pub const fn new(length: Duration, on_early: OnEarly) -> Self {
        assert!(length.as_ticks() > 0, "`min_interval` cannot be zero");
        let last = [const { AtomicU64::new(NEVER) }; N];
        Self { length: length.as_ticks(), on_early, early: AtomicU64::new(0), last }
    }
}

/// Decision about a release.
#[derive(Debug)]
pub(crate) enum Claim<'a> {
    /// It is recorded with this time.
    At(Instant, Noted<'a>),
    /// It is early, and rejected.
    Refused,
}

/// A recorded release, which can be [withdrawn](Interval::withdraw).
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    place: &'a AtomicU64,
    note: u64,
    before: u64,
}

impl Interval {
    /// Returns the policy for early releases.
    #[inline]
    pub(crate) fn on_early(&self) -> OnEarly {
        self.on_early
    }

    /// Clears all releases before a run.
    pub(crate) fn reset(&self) {
        self.last.iter().for_each(|place| place.store(NEVER, Ordering::Relaxed));
        self.early.store(0, Ordering::Relaxed);
    }

    /// Records a release at `time`; an early one at a later time if delayed, or not at all if
    /// rejected.
    pub(crate) fn claim(&self, time: Instant, on_early: OnEarly) -> Claim<'_> {
        loop {
            let (place, before, from) = self.oldest();
            let at = match (from <= time, on_early) {
                (true, _) | (false, OnEarly::Count) => time,
                (false, OnEarly::Delay) => from,
                (false, OnEarly::Reject) => return Claim::Refused,
            };
            // Times only grow, even if releases are recorded out of order.
            let note = at.as_ticks().saturating_add(1).max(before);
            if place.compare_exchange_weak(before, note, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Claim::At(at, Noted { place, note, before });
            }
        }
    }

    /// Withdraws a release that did not happen. A later release that took its slot, or was delayed
    /// because of it, is not corrected.
    pub(crate) fn withdraw(&self, Noted { place, note, before }: Noted<'_>) {
        let _ = place.compare_exchange(note, before, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Records a release at `release`, and counts it if it is early. For tasks whose early releases
    /// take place; called when the job starts.
    pub(crate) fn observe(&self, release: Instant) {
        if self.oldest().2 > release {
            self.count();
        }
        self.claim(release, OnEarly::Count);
    }

    /// Counts an early release.
    pub(crate) fn count(&self) {
        self.early.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether a release is recorded for a time after `now`.
    #[cfg(feature = "std")]
    pub(crate) fn is_delaying(&self, now: Instant) -> bool {
        self.last.iter().any(|place| place.load(Ordering::Relaxed) > now.as_ticks().saturating_add(1))
    }

    /// Returns the number of early releases so far.
    pub(crate) fn early(&self) -> u64 {
        self.early.load(Ordering::Relaxed)
    }

    /// Fills in `report`.
    pub(crate) fn fill(&self, report: &mut TaskReport) {
        report.min_interval = Some(Duration::from_ticks(self.length));
        report.burst = self.last.len() as u16;
        report.early = self.early();
        report.on_early = Some(self.on_early);
    }

    /// Returns the slot of the oldest release, its value, and the earliest time of the next
    /// release.
    fn oldest(&self) -> (&AtomicU64, u64, Instant) {
        let noted = self.last.iter().map(|place| (place, place.load(Ordering::Relaxed)));
        let (place, note) = noted.min_by_key(|(_, note)| *note).expect("a burst is one release at least");
        let from = if note == NEVER { 0 } else { (note - 1).saturating_add(self.length) };
        (place, note, Instant::from_ticks(from))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn at(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    fn interval<const N: usize>(on_early: OnEarly) -> Interval<[AtomicU64; N]> {
        Interval::new(Duration::from_ticks(100), on_early)
    }

    /// Returns the recorded time of a release at `time`.
    fn noted(interval: &Interval, time: u64) -> Option<u64> {
        match interval.claim(at(time), interval.on_early()) {
            Claim::At(time, _) => Some(time.as_ticks()),
            Claim::Refused => None,
        }
    }

    #[test]
    fn releases_one_interval_apart_are_on_time() {
        let interval: &Interval = &interval::<1>(OnEarly::Reject);
        let times = [0, 99, 100, 199, 200];
        assert_eq!(times.map(|time| noted(interval, time)), [Some(0), None, Some(100), None, Some(200)]);
    }

    #[test]
    fn admits_burst_then_enforces_interval() {
        let interval: &Interval = &interval::<3>(OnEarly::Reject);
        let times = [0, 10, 10, 50, 99, 100, 109, 110, 110];
        let expected = [Some(0), Some(10), Some(10), None, None, Some(100), None, Some(110), Some(110)];
        assert_eq!(times.map(|time| noted(interval, time)), expected);
    }

    #[test]
    fn early_releases_wait_in_sequence() {
        let interval: &Interval = &interval::<2>(OnEarly::Delay);
        let times = [0, 0, 1, 2, 3, 150];
        assert_eq!(times.map(|time| noted(interval, time)), [0, 0, 100, 100, 200, 200].map(Some));
        assert!(interval.is_delaying(at(199)) && !interval.is_delaying(at(200)));
    }

    #[test]
    fn early_releases_are_counted() {
        let interval: &Interval = &interval::<2>(OnEarly::Count);
        // Each is compared with the one before the last.
        [0, 10, 20, 130, 140].iter().for_each(|&time| interval.observe(at(time)));
        let mut report = TaskReport::default();
        interval.fill(&mut report);
        assert_eq!((report.early, report.burst), (1, 2));
        assert_eq!(report.min_interval, Some(Duration::from_ticks(100)));
        interval.reset();
        interval.observe(at(20));
        interval.fill(&mut report);
        assert_eq!(report.early, 0);
    }

    #[test]
    fn withdrawn_event_did_not_happen() {
        let interval: &Interval = &interval::<1>(OnEarly::Reject);
        let Claim::At(_, claimed) = interval.claim(at(50), OnEarly::Reject) else {
            panic!("it is the first")
        };
        interval.withdraw(claimed);
        assert_eq!(noted(interval, 60), Some(60));
    }

    #[test]
    fn no_window_exceeds_the_burst_under_concurrent_releases() {
        let interval: &Interval = &interval::<3>(OnEarly::Reject);
        let clock = AtomicU64::new(0);
        let mut times: Vec<u64> = std::thread::scope(|scope| {
            let release = || {
                let times =
                    (0..10_000).filter_map(|_| noted(interval, clock.fetch_add(7, Ordering::Relaxed)));
                times.collect::<Vec<_>>()
            };
            let threads = [(); 3].map(|()| scope.spawn(release));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        times.sort_unstable();
        assert!(times.len() > 3, "{}", times.len());
        let mut last = VecDeque::new();
        for time in times {
            if last.len() == 3 {
                let first = last.pop_front().unwrap();
                assert!(time - first >= 100, "{first} {last:?} {time}");
            }
            last.push_back(time);
        }
    }
}
