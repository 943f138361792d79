//! Section of the page for a chain of tasks: its table, and a drawing of its longest crossing with
//! one row per stage.

use punctual_report::escape::{Code, NoBreak};
use punctual_report::format::{format_clock, format_count, format_part, unit};
use punctual_report::page::note;
use punctual_report::scale::Linear;
use punctual_report::svg::{Anchor, Mark, Svg, fitted};
use punctual_trace::names::Names;
use punctual_trace::stats::Key;

use super::Report;
use super::task::phases;
use super::timeline::{since_release, style};
use crate::chains::{Chain, Crossing};
use crate::explain;
use crate::export::{chain_table, phase_name};

const ROW: f64 = 30.0;
const BAR: f64 = 18.0;
const TOP: f64 = 10.0;
const MIN_WIDTH: f64 = 1.2;

/// Returns the section.
pub(super) fn section(stages: &[String], chain: &Chain, report: &Report<'_>) -> String {
    let title = stages.join(" → ");
    let mut out = format!("<section class=\"chain\"><h2>{}</h2>", Code(&fitted(&title, 700.0)));
    out += "<p>From the release of the first job to the end of the last, each of which woke the next.</p>";
    out += &chain_table(chain, stages).html(&title);
    for (count, what) in [
        (chain.flawed(), "crossings are left out because a job of theirs has a flaw."),
        (
            chain.unmatched(),
            "jobs of the last task were not woken along the chain, or that was not recorded.",
        ),
    ] {
        if count > 0 {
            out += &note(&format!("{} {what}", format_count(count)));
        }
    }
    if let Some(longest) = chain.longest().first() {
        out += "<h3>The longest crossing</h3><figure class=\"worst\">";
        out += &phases();
        let end = longest.stages.last().map_or(0, |stage| stage.to);
        out += &format!(
            "<p class=\"which\"><b>{}</b> · ended at {} by the trace's clock</p>",
            NoBreak(&explain::value(longest.latency)),
            format_clock(end)
        );
        for (class, width, left) in [("timeline wide", 1080.0, 176.0), ("timeline narrow", 368.0, 96.0)] {
            out += &draw(longest, report.names, class, width, left);
        }
        out += "<ol>";
        for sentence in explain::crossing(longest, report.names) {
            out += &format!("<li>{}</li>", Code(&sentence));
        }
        out += "</ol></figure>";
    }
    out + "</section>\n"
}

fn draw(crossing: &Crossing, names: &Names, class: &'static str, width: f64, left: f64) -> String {
    // The scale needs at least 1 ns.
    let from = crossing.stages.first().map_or(0, |stage| stage.from).min(u64::MAX - 1);
    let to = crossing.stages.last().map_or(0, |stage| stage.to).max(from + 1);
    let scale = Linear::new(0.0, (to - from) as f64, left, width - 14.0);
    let x = |time: u64| scale.at(time.clamp(from, to).saturating_sub(from) as f64);
    let mut svg = Svg::new(width);
    for (index, (job, stage)) in crossing.jobs.iter().zip(&crossing.stages).enumerate() {
        let y = TOP + index as f64 * ROW;
        let name = fitted(&names.at(job.end).of(Key::of(job).actor), left - 16.0);
        svg.text("name", (left - 12.0, y + BAR - 4.0), Anchor::End, &name);
        for segment in &job.segments {
            let (start, end) = (segment.start.max(stage.from), segment.end.min(stage.to));
            if start < end {
                let title = format!("{} {}", phase_name(segment.phase), format_part(end - start));
                let times = format!("{} {}", start.saturating_sub(from), end.saturating_sub(from));
                let mark = Mark::titled(title).data("ns", end - start).data("t", times);
                let size = ((x(end) - x(start)).max(MIN_WIDTH), BAR);
                svg.rect(&format!("phase {}", style(segment.phase).0), (x(start), y), size, &mark);
            }
        }
        if index + 1 < crossing.stages.len() {
            let mark = Mark::none().data("t", stage.to.saturating_sub(from));
            svg.group("moment", &mark, |svg| {
                svg.line("wake", (x(stage.to), y + BAR), (x(stage.to), y + ROW))
            });
        }
    }
    let bottom = TOP + crossing.stages.len() as f64 * ROW + 2.0;
    svg.line("axis", (left, bottom), (width - 14.0, bottom));
    let (name, factor) = unit((to - from) as f64);
    for (ns, text) in scale.ticks(((width - left) / 90.0) as u32, factor) {
        let at = scale.at(ns);
        svg.line("axis mark", (at, bottom), (at, bottom + 4.0));
        let anchor = if at > width - 30.0 { Anchor::End } else { Anchor::Middle };
        svg.text("tick", (at, bottom + 17.0), anchor, &text);
    }
    svg.text("tick", (left - 24.0, bottom + 17.0), Anchor::End, &since_release(name, left - 24.0));
    let label = format!("Timeline of a crossing that took {}", explain::value(crossing.latency));
    let plot = format!("{left} {} {}", width - 14.0, to - from);
    svg.finish(class, bottom + 24.0, &Mark::titled(label).data("plot", plot))
}
