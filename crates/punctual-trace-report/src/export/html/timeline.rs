//! A job as a drawing, in the style of figures 8 to 10 of the *Timeflow* paper: its phases in one
//! row, the actors that delayed it below, arrows from its wakers, and times.

use punctual_report::format::{format_part, unit};
use punctual_report::scale::Linear;
use punctual_report::svg::{Anchor, Mark, Svg, fitted, width};
use punctual_trace::event::{Kind, Tid};
use punctual_trace::jobs::{Actor, Bounds, Job, Phase, WaitTarget};
use punctual_trace::names::Names;
use punctual_trace::stats::CapturedJob;

use super::labels::{Labels, Placement};
use super::scene::{Row, Scene, scene};
use crate::explain;

/// Right margin.
const RIGHT: f64 = 14.0;
/// Top and height of the job's row.
const TOP: f64 = 66.0;
const JOB_HEIGHT: f64 = 32.0;
/// Height of a line of labels.
const LINE: f64 = 15.0;
/// Height of another actor's row, including the gap below it.
const ROW: f64 = 26.0;
const STRETCH: f64 = 16.0;
const AXIS: f64 = 26.0;

/// Minimum width of a shape, so that everything is visible.
const MIN_WIDTH: f64 = 1.2;

/// Segments shorter than this fraction of the job are not drawn directly next to one of the same
/// kind. Zooming shows them.
const FINEST: u64 = 16_384;

/// Maximum number of labels outside their shapes.
const MAX_LABELS: usize = 14;

/// Width of a drawing, and the space left of its scale.
struct Size {
    class: &'static str,
    width: f64,
    left: f64,
}

/// Each job is drawn twice, and the style sheet shows one of the two: a single drawing would be
/// unreadable on narrow screens.
const WIDE: Size = Size { class: "timeline wide", width: 1080.0, left: 176.0 };
const NARROW: Size = Size { class: "timeline narrow", width: 368.0, left: 96.0 };

/// Draws a job. `must_observe` returns whether all switches of a thread are recorded.
pub(super) fn draw(captured: &CapturedJob, names: &Names, must_observe: impl Fn(Tid) -> bool) -> String {
    let (scene, names) = (scene(captured, must_observe), &names.at(captured.job.end));
    let beside = beside(captured, names);
    sized(&WIDE, &captured.job, &scene, &beside, names)
        + &sized(&NARROW, &captured.job, &scene, &beside, names)
}

fn sized(size: &Size, job: &Job, scene: &Scene, beside: &[Beside], names: &Names) -> String {
    let released = job.released.map_or(job.woken.unwrap_or(job.start), |released| released.0);
    // The scale needs at least 1 ns.
    let from = released.min(job.start).min(u64::MAX - 1);
    let to = job.end.max(from + 1);
    let (left, right) = (size.left, size.width - RIGHT);
    let scale = Linear::new(0.0, (to - from) as f64, left, right);
    let mut drawing = Drawing { svg: Svg::new(size.width), scale, from, to, left, right };
    drawing.brackets(job);
    drawing.svg.text("name", (left - 12.0, TOP + JOB_HEIGHT / 2.0 + 4.0), Anchor::End, "this job");
    let labels = drawing.phases(job, scene);
    drawing.beside(beside);
    let first = TOP + JOB_HEIGHT + 10.0 + labels as f64 * LINE;
    for (index, row) in scene.rows.iter().enumerate() {
        drawing.row(row, first + index as f64 * ROW, job, names);
    }
    let mut bottom = first + scene.rows.len() as f64 * ROW;
    if scene.left_out > 0 {
        let text = format!("and {} more", scene.left_out);
        drawing.svg.text("name", (left - 12.0, bottom + 12.0), Anchor::End, &text);
        bottom += ROW;
    }
    drawing.arrows(job, scene, first, bottom, names);
    drawing.axis(bottom + 4.0);
    let label = format!("Timeline of a job that took {}", explain::value(job.response));
    let mark = Mark::titled(label).data("job", job.number);
    let mark = mark.data("plot", format_args!("{left} {right} {}", to - from));
    drawing.svg.finish(size.class, bottom + 4.0 + AXIS, &mark)
}

struct Drawing {
    svg: Svg,
    scale: Linear,
    from: u64,
    to: u64,
    left: f64,
    right: f64,
}

impl Drawing {
    /// Draws a rectangle over a time range, downward from `y`. Scripts that zoom read the times
    /// from it.
    fn rect(&mut self, class: &str, (start, end): (u64, u64), (y, height): (f64, f64), mark: Mark) {
        let (from, to) = (self.x(start), self.x(end).max(self.x(start) + MIN_WIDTH));
        let mark = mark.data("t", format_args!("{} {}", self.since(start), self.since(end)));
        self.svg.rect(class, (from, y), (to - from, height), &mark);
    }

    /// Draws a shape at one instant.
    fn moment(&mut self, time: u64, draw: impl FnOnce(&mut Svg, f64)) {
        let (at, mark) = (self.x(time), Mark::none().data("t", self.since(time)));
        self.svg.group("moment", &mark, |svg| draw(svg, at));
    }

    /// Returns the time since the start of the drawing, clamped to it.
    fn since(&self, time: u64) -> u64 {
        time.clamp(self.from, self.to) - self.from
    }

    /// Returns whether a segment is too short to be drawn next to one of the same kind that ends
    /// before it.
    fn too_fine(&self, before: u64, end: u64) -> bool {
        end < before.saturating_add((self.to - self.from) / FINEST)
    }

    fn x(&self, time: u64) -> f64 {
        self.scale.at(self.since(time) as f64)
    }

    /// Draws R above J and W.
    fn brackets(&mut self, job: &Job) {
        let (start, end) = (self.x(job.start), self.x(job.end));
        if job.response != Bounds::Unknown {
            self.bracket(self.left, end, 18.0, &format!("R {}", explain::value(job.response)));
        }
        if start > self.left {
            self.bracket(self.left, start, 42.0, &format!("J {}", explain::value(job.jitter)));
        }
        self.bracket(start, end, 42.0, &format!("W {}", explain::value(job.window)));
    }

    fn bracket(&mut self, from: f64, to: f64, y: f64, text: &str) {
        let foot = y + 5.0;
        self.svg.line("bracket", (from, y), (to, y));
        self.svg.line("bracket", (from, y - 4.0), (from, foot));
        self.svg.line("bracket", (to, y - 4.0), (to, foot));
        if width(text) < to - from - 8.0 {
            self.svg.text("sum", ((from + to) / 2.0, y - 4.0), Anchor::Middle, text);
        } else {
            let text = fitted(text, self.left - 16.0);
            self.svg.text("sum", (self.left - 12.0, y + 4.0), Anchor::End, &text);
        }
    }

    /// Draws system calls below the job's own row, and other events above it.
    fn beside(&mut self, beside: &[Beside]) {
        for Beside { class, start, end, mark } in beside {
            let y = if *class == "call" { TOP + JOB_HEIGHT - 4.0 } else { TOP - 6.0 };
            self.rect(class, (*start, *end), (y, 4.0), mark.clone());
        }
    }

    /// Draws the job's own row. Returns the number of label lines below it.
    fn phases(&mut self, job: &Job, scene: &Scene) -> usize {
        let mut labels = Labels::between(self.left, self.right);
        scene.wakes.iter().for_each(|wake| labels.avoid(self.x(wake.time)));
        let mut outside: Vec<(u64, f64, String)> = Vec::new();
        let mut drawn: Option<(Phase, u64)> = None;
        for segment in &job.segments {
            if drawn.is_some_and(|(phase, end)| phase == segment.phase && self.too_fine(end, segment.end)) {
                continue;
            }
            drawn = Some((segment.phase, segment.end));
            let (start, end) = (self.x(segment.start), self.x(segment.end));
            let ns = segment.end - segment.start;
            let (class, letter) = style(segment.phase);
            let title = format!("{letter}: {} on CPU {}", format_part(ns), segment.cpu);
            let mark = Mark::titled(title).data("ns", ns);
            let times = (segment.start, segment.end);
            self.rect(&format!("phase {class}"), times, (TOP, JOB_HEIGHT), mark);
            let text = format!("{letter} {}", format_part(ns));
            let middle = (start + end) / 2.0;
            if width(&text) + 6.0 < end - start {
                self.svg.text(
                    &format!("on-{class}"),
                    (middle, TOP + JOB_HEIGHT / 2.0 + 4.0),
                    Anchor::Middle,
                    &text,
                );
            } else {
                outside.push((ns, middle, text));
            }
        }
        let listed = job.segments.last().map_or(job.start, |segment| segment.end);
        if listed < job.end {
            let mark = Mark::titled("stretches beyond these are not listed");
            self.rect("unlisted", (listed, job.end), (TOP, JOB_HEIGHT), mark);
        }
        // The longest get room first.
        outside.sort_by_key(|&(ns, ..)| std::cmp::Reverse(ns));
        outside.truncate(MAX_LABELS);
        let others: Vec<f64> = outside.iter().map(|&(_, x, _)| x).collect();
        let mut spots: Vec<Placement> = Vec::new();
        for (_, x, text) in &outside {
            let Some(spot) = labels.place(*x, text, &others) else { continue };
            let baseline = TOP + JOB_HEIGHT + 16.0 + spot.line as f64 * LINE;
            self.svg.line("leader", (*x, TOP + JOB_HEIGHT), (spot.x, baseline - 11.0));
            self.svg.text("time", (spot.x, baseline), Anchor::Middle, text);
            spots.push(spot);
        }
        labels.lines(&spots)
    }

    /// Draws the row of another actor at `y`.
    fn row(&mut self, row: &Row, y: f64, job: &Job, names: &Names) {
        let name = names.of(row.actor);
        let base = y + STRETCH;
        self.svg.line("rule", (self.left, base), (self.right, base));
        self.svg.text("name", (self.left - 12.0, base - 4.0), Anchor::End, &fitted(&name, self.left - 16.0));
        let mut drawn: Option<(bool, Option<Phase>, u64)> = None;
        for stretch in &row.stretches {
            let times = (stretch.start, stretch.end);
            let kind = (stretch.cpu.is_some(), stretch.cost);
            if drawn.is_some_and(|(ran, cost, end)| (ran, cost) == kind && self.too_fine(end, times.1)) {
                continue;
            }
            drawn = Some((kind.0, kind.1, times.1));
            let (start, end) = (self.x(times.0), self.x(times.1));
            let time = format_part(stretch.end - stretch.start);
            let Some(cpu) = stretch.cpu else {
                let title = format!("{name}: ready to run for {time}");
                self.rect("ready", times, (base - 5.0, 5.0), Mark::titled(title));
                continue;
            };
            let (class, title) = match stretch.cost {
                Some(phase) => {
                    let (class, letter) = style(phase);
                    (class, format!("{name} on CPU {cpu} for {time}: part of {letter}"))
                }
                None => ("ran", format!("{name} on CPU {cpu} for {time}")),
            };
            self.rect(&format!("piece {class}"), times, (y, STRETCH), Mark::titled(title));
            let long = format!("{time} on CPU {cpu}");
            let at = ((start + end) / 2.0, base - 4.0);
            if let Some(text) = [&long, &time].into_iter().find(|text| width(text) + 6.0 < end - start) {
                self.svg.text(&format!("on-{class}"), at, Anchor::Middle, text);
            }
        }
        for &(start, end, wait) in &row.holds {
            let on = job.blockings.get(wait).map_or(String::new(), |wait| lock(wait.target));
            let title = format!("{name} holds {on} while this job waits for it");
            self.rect("holds", (start, end), (base + 1.5, 3.0), Mark::titled(title));
        }
    }

    /// Draws the release of the job and the arrows from its wakers.
    fn arrows(&mut self, job: &Job, scene: &Scene, first: f64, bottom: f64, names: &Names) {
        if job.released.is_some() {
            self.moment(self.from, |svg, at| {
                svg.line("release", (at, TOP + JOB_HEIGHT), (at, TOP - 12.0));
                svg.path("release-head", &format!("M{at} {}l-4 9h8z", TOP - 18.0), &Mark::none());
            });
        }
        for wake in &scene.wakes {
            let (y, class) = match wake.row {
                Some(row) => (first + row as f64 * ROW, "wake"),
                // From a waker without a row: from below.
                None => (bottom, "wake from-none"),
            };
            let mark = Mark::titled(format!("woken by {}", names.of(wake.actor)));
            self.moment(wake.time, |svg, at| {
                svg.line(class, (at, y), (at, TOP + JOB_HEIGHT + 7.0));
                let head = format!("M{at:.1} {}l-4 8h8z", TOP + JOB_HEIGHT + 1.0);
                svg.path("wake-head", &head, &Mark::none());
                svg.dot("wake-from", (at, y), 2.5, &mark);
            });
        }
    }

    fn axis(&mut self, y: f64) {
        let unit = unit((self.to - self.from) as f64);
        self.svg.line("axis", (self.left, y), (self.right, y));
        for (ns, text) in self.scale.ticks(((self.right - self.left) / 90.0) as u32, unit.1) {
            let at = self.scale.at(ns);
            self.svg.line("axis mark", (at, y), (at, y + 4.0));
            let anchor = if at > self.right - 16.0 { Anchor::End } else { Anchor::Middle };
            self.svg.text("tick", (at, y + 17.0), anchor, &text);
        }
        let what = since_release(unit.0, self.left - 24.0);
        self.svg.text("tick", (self.left - 24.0, y + 17.0), Anchor::End, &what);
    }
}

/// Returns the axis title that fits the available width.
pub(super) fn since_release(unit: &str, room: f64) -> String {
    let whole = format!("{unit} since release");
    if width(&whole) < room { whole } else { unit.to_owned() }
}

/// Returns the CSS class and the name of a phase.
pub(super) fn style(phase: Phase) -> (&'static str, &'static str) {
    match phase {
        Phase::Jitter => ("J", "J"),
        Phase::Execution => ("C", "C"),
        Phase::ExecutionOrOverhead => ("CS", "C|SS"),
        Phase::Overhead => ("SS", "SS"),
        Phase::Blocking => ("B", "B"),
        Phase::Interference => ("I", "I"),
        Phase::Suspended => ("Z", "C asleep"),
    }
}

fn lock(on: WaitTarget) -> String {
    match on {
        WaitTarget::Futex { word } => format!("futex {word:#x}"),
        WaitTarget::Lock { address, .. } => format!("kernel lock {address:#x}"),
        WaitTarget::Kernel => "what it sleeps for in the kernel".into(),
    }
}

/// Maximum number of marks drawn of each kind.
const MAX_MARKS: usize = 500;

/// An event in addition to the phases of a job.
struct Beside {
    class: &'static str,
    start: u64,
    end: u64,
    mark: Mark,
}

/// Returns the system calls of the job's thread and the unknown events of any thread, with their
/// names.
fn beside(captured: &CapturedJob, names: &Names) -> Vec<Beside> {
    let calls = explain::calls(captured).into_iter().take(MAX_MARKS).map(|call| {
        let title = format!("{}: {}", call.name(names), format_part(call.ns));
        Beside { class: "call", start: call.start, end: call.start + call.ns, mark: Mark::titled(title) }
    });
    let others = captured.events.iter().filter_map(|event| {
        let Kind::Other { event: id } = event.kind else { return None };
        let by = names.of(Actor::Thread(event.by));
        let title = format!("{} on CPU {}, of {by}", names.of_event(id), event.cpu);
        Some(Beside { class: "event", start: event.time, end: event.time, mark: Mark::titled(title) })
    });
    calls.chain(others.take(MAX_MARKS)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::{inversion, worst};
    use super::*;

    fn drawn() -> String {
        let mut names = Names::new();
        names.thread(9, "<logger>");
        let mut events = inversion();
        events.iter_mut().for_each(|event| event.time *= 1_000);
        let drawn = draw(&worst(&events), &names, |_| true);
        let (wide, narrow) = drawn.split_once("</svg>").unwrap();
        assert!(narrow.contains("timeline narrow"));
        wide.to_owned()
    }

    #[test]
    fn fills_response_time_with_phases() {
        let drawing = drawn();
        let lengths = drawing.split("data-ns=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        assert_eq!(lengths.map(|ns| ns.parse::<u64>().unwrap()).sum::<u64>(), 1_034_000);
        for text in [
            "R 1 034 µs",
            "W 1 024 µs",
            "J 10 µs",
            "B 812 µs",
            "&lt;logger&gt;/9",
            "310 µs on CPU 0",
            "irq 30",
        ] {
            assert!(drawing.contains(text), "{text} is missing from {drawing}");
        }
        assert!(!drawing.contains("<logger>") && !drawing.contains("NaN"));
        assert_eq!(drawing.matches("wake-head").count(), 2);
    }

    #[test]
    fn draws_job_without_events_or_segments() {
        let mut captured = worst(&inversion());
        captured.events.clear();
        captured.job.segments.clear();
        captured.job.released = None;
        let drawing = draw(&captured, &Names::new(), |_| true);
        assert!(drawing.contains("class=\"unlisted\"") && !drawing.contains("class=\"release\""));
    }
}
