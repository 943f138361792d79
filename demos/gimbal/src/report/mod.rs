//! The report of a run: as a page for readers, and as numbers for programs.
//!
//! [`RunSummary`] contains all of its data: times in nanoseconds and angles in radians, as in the
//! rest of the program; the page converts them to readable units. [`to_html`] renders it as one
//! self-contained file that needs neither network nor scripts; [`to_json`] writes the same numbers
//! for other programs.

mod charts;
mod page;
mod tables;

use serde::Serialize;

use crate::axes::Axes;
use crate::client::LinkCounters;
use crate::difference::difference;
use crate::log::{Recorder, Sample};

pub(crate) use page::format_urad;

/// Returns the report as an HTML page.
pub fn to_html(summary: &RunSummary) -> String {
    page::page(summary)
}

/// Returns the report as JSON, with the field names of [`RunSummary`].
///
/// # Errors
///
/// No case is known: every field can be expressed in JSON (a number that is not finite becomes
/// `null`).
pub fn to_json(summary: &RunSummary) -> serde_json::Result<String> {
    serde_json::to_string(summary)
}

/// Version of the JSON form: incremented whenever a field changes its meaning or is removed.
pub const FORMAT_VERSION: u32 = 1;

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// The program of the run, and its machine.
    pub meta: Meta,
    /// One row per task, highest level first.
    pub tasks: Vec<TaskRow>,
    /// The requested real-time settings, and their results.
    pub settings: Vec<SettingRow>,
    /// The traffic on the SPI bus.
    pub link: LinkCounters,
    /// The gimbal's motion.
    pub step: StepResponse,
}

/// The program of the run, and its machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meta {
    /// Headline of the report.
    pub title: String,
    /// Date and time of the start, as text.
    pub started: String,
    /// The time in which the tasks ran.
    pub clock: Clock,
    /// Length of the run, in nanoseconds.
    pub length_ns: u64,
    /// Other conditions needed to evaluate or repeat the run.
    pub conditions: Vec<Condition>,
}

/// The time in which the tasks of a run execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The time of the machine.
    Real,
    /// Time that only the program advances.
    Virtual,
}

/// A named condition of the run, such as the kernel or the load on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Name of the condition.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The timing of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskRow {
    /// Name of the task.
    pub name: String,
    /// Its level; a higher one preempts a lower one.
    pub level: u32,
    /// Jobs that ran to their end.
    pub jobs: u64,
    /// Releases skipped or late because the previous job was still running.
    pub overruns: u64,
    /// Jobs that ended after their deadline.
    pub misses: u64,
    /// Jobs that suspended themselves, which a real-time job should never do.
    pub suspensions: u64,
    /// Release jitter J: from the planned release to the actual start.
    pub jitter: Distribution,
    /// Response time R: from the planned release to the end of the job.
    pub response: Distribution,
    /// Execution time C: from start to end without preempting jobs and suspensions.
    pub execution: Distribution,
}

/// The frequency of each duration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The longest, exactly.
    pub max_ns: u64,
    /// Not exceeded by 99.9 % of all.
    pub p999_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// Upper bound in nanoseconds and count of each bucket, in order of the bounds; empty ones may
    /// be omitted.
    pub buckets: Vec<(u64, u64)>,
}

/// A real-time setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingRow {
    /// Name of the setting.
    pub name: String,
    /// The requested value.
    pub wanted: String,
    /// The effective value.
    pub effective: String,
    /// Whether these agree.
    pub outcome: Outcome,
    /// The reason for a difference, or its consequence.
    pub note: String,
}

/// The state of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// In effect as requested.
    Applied,
    /// In effect, but not as requested.
    Partial,
    /// Not in effect.
    Refused,
    /// Not requested.
    NotRequested,
}

/// The record of both axes, and its comparison with the reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepResponse {
    /// Whether `run` and `reference` are angles without quantization, which only a simulated gimbal
    /// has.
    pub true_angles: bool,
    /// Samples recorded.
    pub samples: u64,
    /// Samples that did not fit into the record.
    pub dropped: u64,
    /// Pan and tilt.
    pub axes: Vec<AxisResponse>,
}

/// The record of one axis; all series are (time in nanoseconds, angle in radians).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AxisResponse {
    /// Name of the axis.
    pub name: String,
    /// Largest absolute difference from the reference in microradians, if there is a reference.
    pub residual_max_urad: Option<f64>,
    /// Time of that difference, in nanoseconds.
    pub residual_max_at_ns: Option<u64>,
    /// Root mean square of the difference from the reference in microradians, if there is a
    /// reference.
    pub residual_rms_urad: Option<f64>,
    /// The setpoint angle.
    pub setpoint: Vec<(u64, f64)>,
    /// The angle in this run.
    pub run: Vec<(u64, f64)>,
    /// The angle in the reference run; empty if none exists.
    pub reference: Vec<(u64, f64)>,
    /// Run minus reference.
    pub residual: Vec<(u64, f64)>,
}

/// The response of an axis to the first step of its setpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstStep {
    /// The angle after the step, in radians.
    pub target_rad: f64,
    /// The time from the step until the angle stays within 2 % of the step, in nanoseconds; `None`
    /// if it does not.
    pub settled_ns: Option<u64>,
    /// The overshoot as a fraction of the step.
    pub overshoot: f64,
}

impl AxisResponse {
    /// Returns the response to the first step of the setpoint, up to the next one.
    pub fn first_step(&self) -> Option<FirstStep> {
        let is_step = |pair: &[(u64, f64)]| pair[0].1 != pair[1].1;
        let at = self.setpoint.windows(2).position(is_step)? + 1;
        let (start_ns, target_rad) = self.setpoint[at];
        let step_rad = target_rad - self.setpoint[at - 1].1;
        let end_ns =
            self.setpoint[at..].windows(2).find(|pair| is_step(pair)).map_or(u64::MAX, |pair| pair[1].0);
        let during = self.run.iter().filter(|(t_ns, _)| (start_ns..end_ns).contains(t_ns));
        // The error as a fraction of the step, positive beyond the target.
        let errors = during.map(|(t_ns, angle)| (t_ns - start_ns, (angle - target_rad) / step_rad));
        let (mut settled_ns, mut overshoot) = (None, 0.0_f64);
        for (t_ns, error) in errors {
            overshoot = overshoot.max(error);
            if error.abs() > 0.02 {
                settled_ns = None;
            } else {
                settled_ns = settled_ns.or(Some(t_ns));
            }
        }
        Some(FirstStep { target_rad, settled_ns, overshoot })
    }
}

impl StepResponse {
    /// Compares the record of a run with that of the reference, if there is one.
    ///
    /// Compares true angles if both records have them throughout, otherwise encoder angles.
    pub fn from_records(run: &Recorder, reference: Option<&Recorder>) -> Self {
        let records = [Some(run), reference];
        let true_angles =
            records.iter().flatten().all(|record| record.samples().iter().all(|s| s.true_rad.is_some()));
        let angle = |sample: &Sample| match sample.true_rad {
            Some(true_rad) if true_angles => true_rad,
            _ => sample.measured_rad,
        };
        let axis = |name: &str, select: fn(Axes<f64>) -> f64| {
            let series = |record: &Recorder, value: &dyn Fn(&Sample) -> Axes<f64>| -> Vec<_> {
                record.samples().iter().map(|s| (s.t_ns, select(value(s)))).collect()
            };
            let setpoint = series(run, &|s| s.setpoint_rad);
            let run = series(run, &angle);
            let reference = reference.map_or_else(Vec::new, |reference| series(reference, &angle));
            let difference = difference(&run, &reference);
            AxisResponse {
                name: name.to_owned(),
                residual_max_urad: difference.as_ref().map(|d| d.max * 1e6),
                residual_max_at_ns: difference.as_ref().map(|d| d.max_at_ns),
                residual_rms_urad: difference.as_ref().map(|d| d.rms * 1e6),
                setpoint,
                run,
                reference,
                residual: difference.map_or_else(Vec::new, |d| d.points),
            }
        };
        Self {
            true_angles,
            samples: run.samples().len() as u64,
            dropped: run.dropped(),
            axes: vec![axis("pan", |a| a.pan), axis("tilt", |a| a.tilt)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset_rad: f64, with_truth: bool) -> Recorder {
        let mut recorder = Recorder::with_capacity(2);
        for t_ns in [0, 1_000_000, 2_000_000] {
            let measured_rad = Axes::new(0.25 + offset_rad, 0.5);
            let true_rad = with_truth.then_some(Axes::new(0.75 + offset_rad, 0.5));
            recorder.record(Sample { t_ns, setpoint_rad: Axes::both(1.0), measured_rad, true_rad });
        }
        recorder
    }

    #[test]
    fn compares_true_angles_only_if_both_have_them() {
        let both = StepResponse::from_records(&record(1e-6, true), Some(&record(0.0, true)));
        assert!(both.true_angles);
        assert_eq!(both.axes[0].run[0].1, 0.75 + 1e-6);
        let one = StepResponse::from_records(&record(1e-6, false), Some(&record(0.0, true)));
        assert!(!one.true_angles);
        assert_eq!(one.axes[0].reference[0].1, 0.25);
    }

    #[test]
    fn reports_difference_in_microradians() {
        let step = StepResponse::from_records(&record(3e-6, true), Some(&record(0.0, true)));
        assert!((step.axes[0].residual_max_urad.unwrap() - 3.0).abs() < 1e-6);
        assert!((step.axes[0].residual_rms_urad.unwrap() - 3.0).abs() < 1e-6);
        assert_eq!(step.axes[1].residual_max_urad, Some(0.0));
        assert_eq!((step.samples, step.dropped), (2, 1));
    }

    #[test]
    fn measures_first_step_up_to_the_next_one() {
        let setpoint = vec![(0, 1.0), (10, 0.0), (40, 5.0)];
        let run = vec![(0, 1.0), (10, 1.0), (20, -0.1), (30, 0.01), (40, 0.0), (50, 9.0)];
        let axis = AxisResponse { setpoint, run, ..AxisResponse::default() };
        let step = axis.first_step().unwrap();
        assert_eq!((step.target_rad, step.settled_ns), (0.0, Some(20)));
        assert!((step.overshoot - 0.1).abs() < 1e-9, "{step:?}");
        let constant = AxisResponse { setpoint: vec![(0, 1.0), (1, 1.0)], ..axis };
        assert_eq!(constant.first_step(), None);
    }

    #[test]
    fn has_no_difference_without_reference() {
        let step = StepResponse::from_records(&record(0.0, true), None);
        assert_eq!(step.axes[0].residual_max_urad, None);
        assert!(step.axes[0].residual.is_empty());
    }
}
