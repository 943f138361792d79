//! The figures of the report: charts with legend and caption.
//!
//! Each chart is drawn twice, for wide and for narrow screens, of which the style sheet shows one. Scaling
//! one drawing to both would leave its text unreadable on a phone.

use super::angle::Microradians;
use super::data::{AxisResponse, Distribution, RunSummary, StepResponse, TaskRow};
use super::histogram;
use super::line_chart::{LineChart, Series};
use punctual_html::{Escaped, Grouped, Micros};
use std::fmt::{self, Formatter};
use std::ops::RangeInclusive;

/// Width of a chart that fills the page, of one that shares it with another, and of one on a phone.
const FULL_PX: f64 = 1080.0;
const HALF_PX: f64 = 528.0;
const NARROW_PX: f64 = 352.0;

/// What of the time around a step is shown enlarged, in nanoseconds before and after it.
const BEFORE_STEP_NS: u64 = 50_000_000;
const AFTER_STEP_NS: u64 = 550_000_000;

/// Writes the section on how the gimbal moved.
pub(super) fn step_response(step: &StepResponse, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<section><h2>Step response</h2>")?;
    let angles = if step.true_angles { "true angles of the simulated gimbal" } else { "encoder angles" };
    write!(f, "<p>{} samples per axis, {angles}", Grouped(step.samples))?;
    if step.dropped > 0 {
        write!(f, "; <strong>{} more did not fit the record</strong>", Grouped(step.dropped))?;
    }
    f.write_str(
        ". Of every pixel column the lowest and the highest sample are drawn, so no spike is lost.</p>",
    )?;
    for axis in &step.axes {
        axis_figure(axis, f)?;
    }
    f.write_str("<div class=\"pair\">")?;
    for axis in &step.axes {
        largest_step_figure(axis, f)?;
    }
    f.write_str("</div></section>")
}

fn axis_figure(axis: &AxisResponse, f: &mut Formatter<'_>) -> fmt::Result {
    let name = Escaped(&axis.name);
    write!(f, "<figure class=\"axis\"><h3>{name}</h3>")?;
    legend(axis, f)?;
    let whole = span(&axis.run);
    let label = format!("Angle of the {} axis over time", axis.name);
    both_sizes(&angles_chart(axis, label, whole.clone()), FULL_PX, (280.0, 240.0), f)?;
    let (Some(max), Some(rms)) = (axis.residual_max_urad, axis.residual_rms_urad) else {
        return f.write_str("<figcaption>There is no reference to compare with.</figcaption></figure>");
    };
    let residual = LineChart {
        label: format!("Run minus reference of the {} axis over time", axis.name),
        y_title: "run − reference in µrad",
        y_factor: 1e6,
        span_ns: whole,
        series: vec![Series { class: "residual", points: &axis.residual }],
    };
    both_sizes(&residual, FULL_PX, (160.0, 160.0), f)?;
    let at_s = axis.residual_max_at_ns.unwrap_or_default() as f64 * 1e-9;
    write!(f, "<figcaption>Run minus reference, {name}: maximum <b>{} µrad</b>", Microradians(max))?;
    if max > 0.0 {
        write!(f, " (at {at_s:.3} s)")?;
    }
    write!(
        f,
        ", RMS <b>{} µrad</b>. One count of the encoder is 767 µrad.</figcaption></figure>",
        Microradians(rms)
    )
}

fn largest_step_figure(axis: &AxisResponse, f: &mut Formatter<'_>) -> fmt::Result {
    let Some((at_ns, size_rad)) = largest_step(&axis.setpoint) else { return Ok(()) };
    let name = Escaped(&axis.name);
    write!(f, "<figure class=\"axis\"><h3>{name}, largest step</h3>")?;
    legend(axis, f)?;
    let span_ns = at_ns.saturating_sub(BEFORE_STEP_NS)..=at_ns.saturating_add(AFTER_STEP_NS);
    let label = format!("Angle of the {} axis around its largest step", axis.name);
    both_sizes(&angles_chart(axis, label, span_ns), HALF_PX, (260.0, 240.0), f)?;
    let at_s = at_ns as f64 * 1e-9;
    write!(f, "<figcaption>The step of {:.2} rad at {at_s:.3} s.</figcaption></figure>", size_rad.abs())
}

fn angles_chart(axis: &AxisResponse, label: String, span_ns: RangeInclusive<u64>) -> LineChart<'_> {
    let series = [("reference", &axis.reference), ("setpoint", &axis.setpoint), ("run", &axis.run)];
    let series = series.map(|(class, points)| Series { class, points });
    LineChart { label, y_title: "angle in rad", y_factor: 1.0, span_ns, series: series.into() }
}

fn legend(axis: &AxisResponse, f: &mut Formatter<'_>) -> fmt::Result {
    let entries = [
        ("setpoint", "setpoint", &axis.setpoint),
        ("run", "this run", &axis.run),
        ("reference", "reference (ideal time)", &axis.reference),
    ];
    f.write_str("<ul class=\"legend\">")?;
    for (class, text, _) in entries.iter().filter(|entry| !entry.2.is_empty()) {
        write!(
            f,
            "<li><svg viewBox=\"0 0 26 8\" aria-hidden=\"true\"><line class=\"{class}\" x1=\"1\" y1=\"4\" \
             x2=\"25\" y2=\"4\"/></svg>{text}</li>"
        )?;
    }
    f.write_str("</ul>")
}

fn both_sizes(
    chart: &LineChart<'_>,
    width: f64,
    (tall, narrow_tall): (f64, f64),
    f: &mut Formatter<'_>,
) -> fmt::Result {
    chart.draw("wide", width, tall, f)?;
    chart.draw("narrow", NARROW_PX, narrow_tall, f)
}

fn span(points: &[(u64, f64)]) -> RangeInclusive<u64> {
    match points {
        [] => 0..=0,
        [first, .., last] => first.0..=last.0,
        [only] => only.0..=only.0,
    }
}

/// Time and size of the largest step, if there is any.
fn largest_step(setpoint: &[(u64, f64)]) -> Option<(u64, f64)> {
    let steps = setpoint.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
    steps.filter(|step| step.1.abs() > 0.0).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// Writes the section with the histograms of all tasks.
pub(super) fn histograms(summary: &RunSummary, f: &mut Formatter<'_>) -> fmt::Result {
    let jitters = histogram::common_decades(summary.tasks.iter().map(|task| &task.jitter));
    let responses = histogram::common_decades(summary.tasks.iter().map(|task| &task.response));
    f.write_str(
        "<section><h2>Distributions</h2><p>Both axes are logarithmic, ten bars per decade; the dashed line \
         marks the longest of all. The horizontal axis is the same for every task.</p>",
    )?;
    for task in &summary.tasks {
        f.write_str("<div class=\"pair\">")?;
        task_figure(task, "release jitter", &task.jitter, &jitters, f)?;
        task_figure(task, "response time", &task.response, &responses, f)?;
        f.write_str("</div>")?;
    }
    f.write_str("</section>")
}

fn task_figure(
    task: &TaskRow,
    what: &str,
    distribution: &Distribution,
    decades_us: &RangeInclusive<i32>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    write!(f, "<figure><h3><code>{}</code> {what}</h3>", Escaped(&task.name))?;
    if task.jobs == 0 {
        return f.write_str("<p class=\"note\">No jobs.</p></figure>");
    }
    let label =
        format!("Histogram of the {what} of task {}, maximum {} µs", task.name, Micros(distribution.max_ns));
    for size in [("wide", HALF_PX, 170.0), ("narrow", NARROW_PX, 160.0)] {
        histogram::draw(distribution, &label, decades_us, size, f)?;
    }
    f.write_str("</figure>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_is_found_whichever_way_it_goes() {
        assert_eq!(largest_step(&[(0, 0.0), (1, 0.5), (2, 0.5), (3, -1.0), (4, 0.0)]), Some((3, -1.5)));
        assert_eq!(largest_step(&[(0, 0.5), (1, 0.5)]), None);
        assert_eq!(largest_step(&[]), None);
    }
}
