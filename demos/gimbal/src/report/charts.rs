//! The figures of the report: charts with legend and caption.
//!
//! Each chart is drawn twice, for wide and for narrow screens, of which the style sheet shows one.
//! If one drawing were scaled to both, its text would be unreadable on a phone.

use super::page::{angle_unit, format_urad};
use super::{AxisResponse, Distribution, RunSummary, StepResponse, TaskRow};
use punctual_report::chart::{LineChart, Series, Size};
use punctual_report::escape::{Code, Escaped, NoBreak};
use punctual_report::format::{format_count, format_nanos};
use punctual_report::histogram::Histogram;
use punctual_report::page;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Width of a full-width chart, of one that shares the width with another, and of one on a phone.
const FULL_PX: f64 = 1080.0;
const HALF_WIDTH_PX: f64 = 528.0;
const NARROW_PX: f64 = 352.0;

/// The enlarged interval around a step, in nanoseconds before and after it.
const BEFORE_STEP_NS: u64 = 50_000_000;
const AFTER_STEP_NS: u64 = 550_000_000;

/// Writes the section on the gimbal's motion.
pub(super) fn step_response(step: &StepResponse, out: &mut String) {
    let angles = if step.true_angles { "true angles of the simulated gimbal" } else { "encoder angles" };
    let samples = format_count(step.samples);
    let _ = write!(out, "<section><h2>Step response</h2><p>{} samples per axis, {angles}", NoBreak(&samples));
    if step.dropped > 0 {
        let dropped = format_count(step.dropped);
        let _ = write!(out, "; <b class=\"fault\">{} more did not fit the record</b>", NoBreak(&dropped));
    }
    *out += ". Every spike is drawn.</p>";
    step.axes.iter().for_each(|axis| axis_figure(axis, out));
    *out += "<div class=\"pair\">";
    step.axes.iter().for_each(|axis| largest_step_figure(axis, out));
    *out += "</div></section>\n";
}

fn axis_figure(axis: &AxisResponse, out: &mut String) {
    let name = Escaped(&axis.name);
    let _ = write!(out, "<figure class=\"axis\"><h3>{name}</h3>{}", legend(axis));
    let whole = span(&axis.run);
    let label = format!("Angle of the {} axis over time", axis.name);
    let angles = angles_chart(axis, label, whole.clone());
    *out += &both_sizes(FULL_PX, 280.0, 240.0, |size| angles.draw(size));
    let (Some(max), Some(rms)) = (axis.residual_max_urad, axis.residual_rms_urad) else {
        *out += "<figcaption>There is no reference to compare with.</figcaption></figure>";
        return;
    };
    let (unit, size) = angle_unit(max);
    let residual = LineChart {
        label: format!("Run minus reference of the {} axis over time", axis.name),
        y_title: if unit == "µrad" { "run − reference in µrad" } else { "run − reference in mrad" },
        y_factor: 1e6 / size,
        span_ns: whole,
        series: vec![Series { class: "residual", points: &axis.residual }],
    };
    *out += &both_sizes(FULL_PX, 160.0, 160.0, |size| residual.draw(size));
    let at_s = axis.residual_max_at_ns.unwrap_or_default() as f64 * 1e-9;
    let [max_text, rms] = [max, rms].map(format_urad);
    let (max_text, rms) = (NoBreak(&max_text), NoBreak(&rms));
    let _ = write!(out, "<figcaption>Run minus reference, {name}: maximum <b>{max_text}</b>");
    if max > 0.0 {
        let _ = write!(out, " (at {at_s:.3}\u{202F}s)");
    }
    let _ =
        write!(out, ", RMS <b>{rms}</b>. One count of the encoder is 767\u{202F}µrad.</figcaption></figure>");
}

fn largest_step_figure(axis: &AxisResponse, out: &mut String) {
    let Some((at_ns, size_rad)) = largest_step(&axis.setpoint) else { return };
    let name = Escaped(&axis.name);
    let _ = write!(out, "<figure class=\"axis\"><h3>{name}, largest step</h3>{}", legend(axis));
    let span_ns = at_ns.saturating_sub(BEFORE_STEP_NS)..=at_ns.saturating_add(AFTER_STEP_NS);
    let label = format!("Angle of the {} axis around its largest step", axis.name);
    let angles = angles_chart(axis, label, span_ns);
    *out += &both_sizes(HALF_WIDTH_PX, 260.0, 240.0, |size| angles.draw(size));
    let (size_rad, at_s) = (size_rad.abs(), at_ns as f64 * 1e-9);
    let step = format!("The step of {size_rad:.2} rad at {at_s:.3} s.");
    let _ = write!(out, "<figcaption>{}</figcaption></figure>", Code(&step));
}

fn angles_chart(axis: &AxisResponse, label: String, span_ns: RangeInclusive<u64>) -> LineChart<'_> {
    let series = [("reference", &axis.reference), ("setpoint", &axis.setpoint), ("run", &axis.run)];
    let series = series.map(|(class, points)| Series { class, points });
    LineChart { label, y_title: "angle in rad", y_factor: 1.0, span_ns, series: series.into() }
}

fn legend(axis: &AxisResponse) -> String {
    let entries = [
        (("setpoint", "setpoint"), &axis.setpoint),
        (("run", "this run"), &axis.run),
        (("reference", "reference (ideal time)"), &axis.reference),
    ];
    let drawn = entries.iter().filter(|entry| !entry.1.is_empty()).map(|entry| entry.0);
    page::legend(&drawn.collect::<Vec<_>>())
}

/// Returns the drawings of `draw` for wide and narrow screens.
fn both_sizes(width: f64, height: f64, narrow_height: f64, draw: impl Fn(Size) -> String) -> String {
    draw(Size { class: "wide", width, height })
        + &draw(Size { class: "narrow", width: NARROW_PX, height: narrow_height })
}

fn span(points: &[(u64, f64)]) -> RangeInclusive<u64> {
    match points {
        [] => 0..=0,
        [first, .., last] => first.0..=last.0,
        [only] => only.0..=only.0,
    }
}

/// Returns the time and size of the largest step, if there is any.
fn largest_step(setpoint: &[(u64, f64)]) -> Option<(u64, f64)> {
    let steps = setpoint.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
    steps.filter(|step| step.1.abs() > 0.0).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// Writes the section with the histograms of all tasks.
pub(super) fn histograms(summary: &RunSummary, out: &mut String) {
    let is_timed = |task: &TaskRow| task.jitter.max_ns > 0 || task.response.max_ns > 0;
    if !summary.tasks.iter().any(is_timed) {
        let why =
            "No job took any time: in virtual time, a job takes as long as its task declares by `execution`.";
        let _ = writeln!(out, "<section><h2>Distributions</h2>{}</section>", page::note(why));
        return;
    }
    *out += "<section><h2>Distributions</h2><p>Both axes are logarithmic, ten bars per decade; the dashed line \
             marks the longest of all. The horizontal axis is the same for every task.</p>";
    let histograms = |of: fn(&TaskRow) -> &Distribution| -> Vec<Histogram> {
        let all = summary.tasks.iter().map(of);
        all.map(|times| Histogram::new(times.buckets.iter().copied(), times.max_ns)).collect()
    };
    let (jitters, responses) = (histograms(|task| &task.jitter), histograms(|task| &task.response));
    let (jitter_decades, response_decades) = (Histogram::decades(&jitters), Histogram::decades(&responses));
    for (task, (jitter, response)) in summary.tasks.iter().zip(jitters.iter().zip(&responses)) {
        *out += "<div class=\"pair\">";
        task_figure(task, "release jitter", (jitter, task.jitter.max_ns), &jitter_decades, out);
        task_figure(task, "response time", (response, task.response.max_ns), &response_decades, out);
        *out += "</div>";
    }
    *out += "</section>\n";
}

fn task_figure(
    task: &TaskRow,
    what: &str,
    (histogram, max_ns): (&Histogram, u64),
    decades: &RangeInclusive<i32>,
    out: &mut String,
) {
    let _ = write!(out, "<figure><h3>{} {what}</h3>", Escaped(&task.name));
    if task.jobs == 0 {
        *out += &page::note("No jobs.");
    } else {
        let max = format_nanos(max_ns as f64);
        let label = format!("Histogram of the {what} of task {}, maximum {max}", task.name);
        *out += &both_sizes(HALF_WIDTH_PX, 170.0, 160.0, |size| histogram.draw("bar", decades, size, &label));
    }
    *out += "</figure>";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_largest_step_in_both_directions() {
        assert_eq!(largest_step(&[(0, 0.0), (1, 0.5), (2, 0.5), (3, -1.0), (4, 0.0)]), Some((3, -1.5)));
        assert_eq!(largest_step(&[(0, 0.5), (1, 0.5)]), None);
        assert_eq!(largest_step(&[]), None);
    }
}
