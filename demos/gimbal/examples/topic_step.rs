//! Draws the step response that was recorded through the topics `/target` and `/angles`, together
//! with the reference in ideal time, and the counts of the encoder after settling.
//!
//! ```text
//! cargo run --release -p gimbal -- --mcap run.mcap
//! cargo run --release -p gimbal --example topic_step -- run.mcap step.html
//! ```
//!
//! A topic has an angle every 10 ms. The time at which a step was commanded is known from
//! `/target`, with a delay of up to 10 ms; the reference receives each step in the middle of that
//! interval.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::process::ExitCode;

use gimbal::encoder::RESOLUTION_RAD;
use gimbal::plant::GIMBAL;
use gimbal::program::print_line;
use gimbal::reference;
use gimbal::setpoints::Timeline;
use mcap::MessageStream;
use mcap::read::Options;
use punctual_report::chart::{LineChart, Series, Size};
use punctual_report::page::{Figure, Frame, Page, legend};

/// Time in ns since the first message, and an angle in rad.
type Points = Vec<(u64, f64)>;

const AXES: [(&str, usize); 2] = [("pan", 0), ("tilt", 1)];
/// The enlarged interval: this long before a step or the end.
const SETTLED_NS: u64 = 400_000_000;
/// The period of the topics.
const PERIOD_NS: u64 = 10_000_000;
/// The limit of the recording's length, because the reference is computed for the same time.
const LONGEST_NS: u64 = 3_600_000_000_000;

fn main() -> ExitCode {
    let paths: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [recording, page] = &*paths else {
        print_line(format_args!("usage: topic_step RUN.mcap STEP.html"));
        return ExitCode::from(2);
    };
    let drawn = std::fs::read(recording).map_err(|error| error.to_string()).and_then(|bytes| draw(&bytes));
    match drawn.and_then(|html| std::fs::write(page, html).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(format_args!("topic_step: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the angles of both axes in the messages of a topic, by the time of their release.
fn topic(recorded: &[u8], name: &str) -> Result<Vec<(u64, [f64; 2])>, String> {
    let messages = MessageStream::new_with_options(recorded, Options::IgnoreEndMagic.into());
    let messages = messages.map_err(|error| format!("not a recording: {error}"))?.map_while(Result::ok);
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(f64::from_le_bytes)
    };
    let angles = messages.filter(|message| message.channel.topic == name).map(|message| {
        // After the header: x and y of a Vector3.
        Some((message.log_time, [number(&message.data, 4)?, number(&message.data, 12)?]))
    });
    let angles: Option<Vec<_>> = angles.collect();
    angles.filter(|angles| !angles.is_empty()).ok_or_else(|| format!("{name} has no angles in it"))
}

fn draw(recorded: &[u8]) -> Result<String, String> {
    let (angles, targets) = (topic(recorded, "/angles")?, topic(recorded, "/target")?);
    let start = angles[0].0.min(targets[0].0);
    let since = |topic: &[(u64, [f64; 2])], axis: usize| -> Points {
        topic.iter().map(|(t_ns, angles)| (t_ns.saturating_sub(start), angles[axis])).collect()
    };
    let mut timeline = Timeline::new();
    let mut last = None;
    for (t_ns, [pan, tilt]) in &targets {
        if last != Some([*pan, *tilt]) {
            let middle_ns = t_ns.saturating_sub(start).saturating_sub(PERIOD_NS / 2);
            timeline.push(middle_ns as f64 / 1e9, gimbal::axes::Axes::new(*pan, *tilt));
            last = Some([*pan, *tilt]);
        }
    }
    let end_ns = angles.last().map_or(0, |last| last.0.saturating_sub(start));
    if end_ns > LONGEST_NS {
        return Err("/angles takes longer than an hour; record less".into());
    }
    let ideal = reference::run(GIMBAL, |t_ns| timeline.at(t_ns), end_ns);

    let style = include_str!("../src/report/style.css");
    let line = format!("{} angles, one every 10 ms, {:.1} s", angles.len(), end_ns as f64 / 1e9);
    let title = "Step response through the topic /angles";
    let mut page = Page::new(&Frame { title, lines: &[line], style, ..Frame::default() });
    let count = format!("{:.1} µrad", RESOLUTION_RAD * 1e6);
    page.figures(&[Figure::new("One count of the encoder", count, "2π / 8192")]);
    for (name, axis) in AXES {
        let measured = |sample: &gimbal::log::Sample| match axis {
            0 => sample.measured_rad.pan,
            _ => sample.measured_rad.tilt,
        };
        let of_reference: Points =
            ideal.samples().iter().map(|sample| (sample.t_ns, measured(sample))).collect();
        let (run, setpoint) = (since(&angles, axis), since(&targets, axis));
        figures(page.body(), name, [&of_reference, &setpoint, &run]);
    }
    Ok(page.finish())
}

/// Draws the whole motion of an axis, and an enlarged part in which it has settled.
fn figures(out: &mut String, name: &str, points: [&Points; 3]) {
    let entries = [("setpoint", "/target"), ("run", "/angles"), ("reference", "reference (ideal time)")];
    let chart = |label: String, y_title, y_factor, span_ns: RangeInclusive<u64>, points: [&Points; 3]| {
        let series = ["reference", "setpoint", "run"].into_iter().zip(points);
        let series = series.map(|(class, points)| Series { class, points }).collect();
        let chart = LineChart { label, y_title, y_factor, span_ns, series };
        chart.draw(Size { class: "wide", width: 1080.0, height: 280.0 })
            + &chart.draw(Size { class: "narrow", width: 352.0, height: 240.0 })
    };
    let end_ns = points[2].last().map_or(0, |last| last.0);
    let whole = chart(format!("Angle of the {name} axis"), "angle in rad", 1.0, 0..=end_ns, points);
    // Before the last change of the setpoint, if the axis has settled after one.
    let changes = points[1].windows(2).filter(|pair| pair[0].1.to_bits() != pair[1].1.to_bits());
    let settled_ns = changes.map(|pair| pair[0].0).rfind(|at| *at > 2 * SETTLED_NS);
    let until_ns = settled_ns.unwrap_or(end_ns);
    let span_ns = until_ns.saturating_sub(SETTLED_NS)..=until_ns;
    let wanted = points[1].iter().rev().find(|point| point.0 <= until_ns).map_or(0.0, |point| point.1);
    let off =
        points.map(|points| -> Points { points.iter().map(|(t, angle)| (*t, angle - wanted)).collect() });
    let label = format!("Angle of the {name} axis and its setpoint, enlarged");
    let zoom = chart(label, "angle − setpoint in µrad", 1e6, span_ns, off.each_ref());
    let _ = writeln!(
        out,
        "<section><h2>{name}</h2><figure class=\"axis\">{}{whole}</figure>\
         <figure class=\"axis\"><h3>Settled, enlarged</h3>{zoom}</figure></section>",
        legend(&entries)
    );
}
