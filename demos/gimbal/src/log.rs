//! The record of a run, in memory allocated before the run starts.

#[cfg(target_os = "none")]
use alloc::{boxed::Box, vec};

use crate::axes::Axes;

/// One row of the record.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Time of the sample since the start of the run, in nanoseconds.
    pub t_ns: u64,
    /// Setpoint angles, in radians.
    pub setpoint_rad: Axes<f64>,
    /// Angles that the encoders showed, in radians.
    pub measured_rad: Axes<f64>,
    /// Angles without quantization, in radians; only a simulated gimbal provides them.
    pub true_rad: Option<Axes<f64>>,
}

/// A record of at most a fixed number of samples.
///
/// Recording writes to memory that was allocated and touched when the recorder was created: it
/// neither allocates nor causes page faults. Samples that do not fit are counted.
#[derive(Debug, Clone)]
pub struct Recorder {
    samples: Box<[Sample]>,
    used: usize,
    dropped: u64,
}

impl Recorder {
    /// Creates an empty record with room for `capacity` samples.
    pub fn with_capacity(capacity: usize) -> Self {
        // A nonzero time, because zero pages could be provided without being touched.
        let blank = Sample { t_ns: u64::MAX, ..Sample::default() };
        Self { samples: vec![blank; capacity].into_boxed_slice(), used: 0, dropped: 0 }
    }

    /// Adds a sample, or counts it if the record is full.
    pub fn record(&mut self, sample: Sample) {
        match self.samples.get_mut(self.used) {
            Some(free) => {
                *free = sample;
                self.used += 1;
            }
            None => self.dropped += 1,
        }
    }

    /// Returns the recorded samples, in the order of recording.
    pub fn samples(&self) -> &[Sample] {
        &self.samples[..self.used]
    }

    /// Returns the number of samples that did not fit.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_overflow_and_keeps_beginning() {
        let mut recorder = Recorder::with_capacity(3);
        let memory = recorder.samples.as_ptr();
        for t_ns in 0..5 {
            recorder.record(Sample { t_ns, ..Sample::default() });
        }
        assert_eq!(recorder.samples().iter().map(|s| s.t_ns).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(recorder.dropped(), 2);
        assert_eq!(recorder.samples.as_ptr(), memory);
    }

    #[test]
    fn rejects_zero_capacity() {
        let mut recorder = Recorder::with_capacity(0);
        recorder.record(Sample::default());
        assert_eq!((recorder.samples().len(), recorder.dropped()), (0, 1));
    }
}
