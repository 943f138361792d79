//! A periodic job without work: does this machine hold a period?

use std::sync::Arc;
use std::time::Duration;

use crate::recorder::Recorder;
use crate::suites::latency::Window;
use crate::suites::latency::timers::spawn_at;
use crate::{Stop, rt};

/// The time limit of the probe's thread beyond the length of the measurement.
const RUNAWAY_MARGIN: Duration = Duration::from_secs(5);
/// The maximum number of releases; they take 80 MB.
const MAX_RELEASES: u64 = 10_000_000;

/// The releases of a probe.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The lateness of the job's start after each release, in ns.
    pub lateness_ns: Vec<u64>,
    /// The real-time settings that the job's thread was refused.
    pub refused: Vec<String>,
}

impl Probe {
    /// Returns the number of jobs that started later than this after their release.
    pub fn misses(&self, deadline_ns: u64) -> u64 {
        self.lateness_ns.iter().filter(|&&lateness| lateness > deadline_ns).count() as u64
    }

    /// Returns the largest lateness, in ns; `None` without a release.
    pub fn worst_ns(&self) -> Option<u64> {
        self.lateness_ns.iter().copied().max()
    }
}

/// Returns the miss rate that `releases` without a miss exclude with 95 % confidence: the rule of
/// three.
pub fn miss_rate_bound(releases: u64) -> f64 {
    (3.0 / releases.max(1) as f64).min(1.0)
}

/// Releases a task of a Punctual app once per period for this long, on `cpu`, and measures its
/// lateness. Idle states stay as they are, and memory is locked.
///
/// # Errors
///
/// Returns the reason if the app did not start, or if there would be no release or too many.
pub fn probe(period: Duration, length: Duration, cpu: usize, stop: &Stop) -> Result<Probe, String> {
    rt::limit_runaways(length + RUNAWAY_MARGIN);
    let _locked = rt::LockedMemory::new();
    releases(period, length, cpu, stop)
}

/// [`probe`] in a process with locked memory and limited real-time threads.
pub(crate) fn releases(period: Duration, length: Duration, cpu: usize, stop: &Stop) -> Result<Probe, String> {
    let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
    let releases = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX) / period_ns;
    if !(1..=MAX_RELEASES).contains(&releases) {
        return Err(format!(
            "{releases} periods of {period:?} fit into {length:?}; choose a length with 1 to {MAX_RELEASES} of them"
        ));
    }
    let recorder = Arc::new(Recorder::new(releases as usize));
    let window = Window { recorder: recorder.clone(), until: releases as usize, stop: stop.clone() };
    let refused = spawn_at(period_ns, 0, cpu)(&window)?;
    Ok(Probe { lateness_ns: recorder.values().collect(), refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_every_release_and_those_that_were_late() {
        let probe = Probe { lateness_ns: vec![5, 70, 10, 90], refused: Vec::new() };
        assert_eq!((probe.misses(10), probe.misses(100), probe.worst_ns()), (2, 0, Some(90)));
        assert_eq!((miss_rate_bound(1_000), miss_rate_bound(0)), (0.003, 1.0));
    }

    #[test]
    fn rejects_a_length_without_a_release() {
        let error = probe(Duration::from_secs(1), Duration::from_millis(1), 0, &Stop::default()).unwrap_err();
        assert!(error.starts_with("0 periods of 1s fit into 1ms"), "{error}");
    }
}
