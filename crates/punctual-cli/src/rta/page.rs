//! The result as a page: bounds against deadlines, margins, and the busy window of each task at its
//! worst.

use std::fmt::Write as _;

use punctual_analysis::bound::{Analysis, Bound};
use punctual_analysis::explain::explain;
use punctual_analysis::margin::Margins;
use punctual_analysis::schedule::{self, Part};
use punctual_analysis::system::System;
use punctual_report::chart::{Plot, Size};
use punctual_report::escape::{Code, Escaped};
use punctual_report::format::{format_part, format_significant};
use punctual_report::page::{Figure, Frame, Page, legend, note};
use punctual_report::scale::Linear;
use punctual_report::svg::{Anchor, Mark, fitted, width};

use super::text;

const STYLE: &str = "\
svg .own { fill: var(--bar); }
svg .above { fill: var(--muted); opacity: 0.55; }
svg .blocking { fill: var(--fault); opacity: 0.7; }
svg .ready { stroke: var(--text); }
svg .seen { stroke: var(--text); stroke-width: 2; }
svg .job { fill: var(--text); opacity: 0.75; }
.legend .above { background: var(--muted); opacity: 0.55; }
.legend .blocking { background: var(--fault); opacity: 0.7; }
.legend .job { background: var(--text); opacity: 0.75; }
.legend .ready, .legend .seen, .legend .max { width: 3px; height: 14px; border-radius: 0; background: none; vertical-align: -2px; }
.legend .ready { border-left: 1px solid var(--text); }
.legend .seen { border-left: 2px solid var(--text); }
.legend .max { border-left: 2px dashed var(--fault); }
";

/// Height of a row of a drawing.
const ROW: f64 = 24.0;
/// The class and the width of a drawing, and the left end of its bars, right of the names. The
/// style sheet shows one of the two.
const LAYOUTS: [(&str, f64, f64); 2] = [("wide", 1080.0, 150.0), ("narrow", 352.0, 100.0)];
/// The end of the axis of bounds, in percent of the deadline.
const AXIS_END: f64 = 150.0;
/// Maximum number of parts that are drawn: more would be indistinguishable.
const MAX_PARTS: usize = 4_000;

/// Returns the whole page.
pub(super) fn page(system: &System, analysis: &Analysis, margins: &Margins) -> String {
    let name = if system.name.is_empty() { "task set" } else { &system.name };
    let title = format!("Response times of {name}");
    let lines = [text::verdict(system, analysis, margins.all)];
    let mut page = Page::new(&Frame { title: &title, lines: &lines, style: STYLE, ..Frame::default() });
    page.figures(&figures(system, analysis, margins));
    let body = page.body();
    let _ = write!(body, "<section><h2>Bounds</h2>{}", text::bounds(system, analysis).html("Bounds"));
    *body += &note(&text::legend(system));
    *body += &bars(system, analysis);
    *body += "</section>\n";
    if !margins.tasks.is_empty() {
        let table = text::limits(system, margins).html("Margins");
        let _ = writeln!(body, "<section><h2>Margins</h2>{table}</section>");
    }
    if !system.chains.is_empty() {
        let table = text::chains(system, analysis).html("Chains");
        let _ = writeln!(body, "<section><h2>Chains</h2>{table}</section>");
    }
    for (at, task) in system.tasks.iter().enumerate() {
        let _ = write!(body, "<section><h2>{}</h2>", Escaped(&task.name));
        if let Ok(bound) = &analysis.tasks[at] {
            *body += &window(system, at, bound);
        }
        *body += "<p>";
        for sentence in explain(system, analysis, at) {
            let _ = write!(body, "{} ", Code(&sentence));
        }
        *body += "</p></section>\n";
    }
    if !system.assumptions.is_empty() {
        *body += "<section><h2>Assumed because it is unknown</h2>";
        system.assumptions.iter().for_each(|assumption| *body += &note(assumption));
        *body += "</section>\n";
    }
    page.finish()
}

fn figures(system: &System, analysis: &Analysis, margins: &Margins) -> Vec<Figure> {
    let misses = analysis.tasks.iter().zip(&system.tasks);
    let misses = misses.filter(|(outcome, task)| match outcome {
        Ok(bound) => !bound.meets(task.deadline),
        Err(_) => task.deadline.is_some(),
    });
    let misses = misses.count();
    let all = margins.all;
    let first = all.first.map_or(String::new(), |at| format!("then `{}` misses", system.tasks[at].name));
    let change = match all.permille {
        0 => Figure::new("Every C would have to shrink to", "–", "no shorter C would do"),
        1..1_000 => Figure::new("Every C would have to shrink to", text::share(all), ""),
        _ => Figure::new("Every C may grow by", text::growth(all), first),
    };
    vec![
        Figure::new("Tasks that can miss", misses.to_string(), format!("of {}", system.tasks.len()))
            .fault_if(misses > 0),
        change.fault_if(all.permille < 1_000),
    ]
}

/// Draws bound, deadline and the longest observed response, as fractions of the deadline. What ends
/// beyond the axis is written next to it.
fn bars(system: &System, analysis: &Analysis) -> String {
    let with_deadline: Vec<(usize, u64)> =
        (0..system.tasks.len()).filter_map(|at| Some((at, system.tasks[at].deadline?))).collect();
    if with_deadline.is_empty() {
        return String::new();
    }
    let percent = |ns: u64, deadline: u64| ns as f64 / deadline.max(1) as f64 * 100.0;
    // The larger of two, for which a phone has room.
    let beyond = |&(at, deadline): &(usize, u64)| {
        let bound = analysis.tasks[at].as_ref().ok().map(|bound| ("bound", bound.response));
        let seen = system.tasks[at].observed.response.map(|seen| ("seen", seen));
        let (what, ns) = bound.into_iter().chain(seen).max_by_key(|&(_, ns)| ns)?;
        let share = percent(ns, deadline);
        (share > AXIS_END).then(|| format!("{what} {} %", format_significant(share)))
    };
    let beyond: Vec<Option<String>> = with_deadline.iter().map(beyond).collect();
    let room = beyond.iter().flatten().map(|label| width(label)).fold(0.0, f64::max);
    let drawings = LAYOUTS.map(|(class, width, left)| {
        let height = ROW * with_deadline.len() as f64 + 60.0;
        let mut plot = Plot::new(Size { class, width, height });
        (plot.left, plot.right) = (left, plot.right - room);
        let scale = Linear::new(0.0, AXIS_END, left, plot.right);
        for (row, &(at, deadline)) in with_deadline.iter().enumerate() {
            let (task, top) = (&system.tasks[at], plot.top + row as f64 * ROW);
            let share = |ns: u64| percent(ns, deadline).min(AXIS_END);
            plot.svg.text("tick", (left - 8.0, top + 15.0), Anchor::End, &fitted(&task.name, left - 12.0));
            if let Ok(bound) = &analysis.tasks[at] {
                let title =
                    format!("bound {}, deadline {}", format_part(bound.response), format_part(deadline));
                let length = scale.at(share(bound.response)) - left;
                let class = if bound.response > deadline { "blocking" } else { "own" };
                plot.svg.rect(class, (left, top + 4.0), (length, ROW - 8.0), &Mark::titled(title));
            }
            if let Some(seen) = task.observed.response {
                let x = scale.at(share(seen));
                plot.svg.line("seen", (x, top + 2.0), (x, top + ROW - 2.0));
            }
            if let Some(label) = &beyond[row] {
                plot.svg.text("tick", (plot.right + 6.0, top + 15.0), Anchor::Start, label);
            }
        }
        let end = scale.at(100.0);
        plot.svg.line("max", (end, plot.top), (end, plot.bottom));
        plot.x_scale(&scale, ("% of D", 1.0));
        plot.finish(&Mark::titled("Bounds as shares of deadlines"))
    });
    let drawing = drawings.concat();
    let entries = [
        ("own", "bound"),
        ("blocking", "bound beyond the deadline"),
        ("seen", "longest response seen"),
        ("max", "deadline"),
    ];
    format!("<figure>{drawing}{}</figure>", legend_of(&entries, &drawing))
}

/// Draws the schedule, from the start of the worst busy window to the end of the job that
/// determines the bound.
fn window(system: &System, at: usize, bound: &Bound) -> String {
    let Some(parts) = schedule::worst_window(system, at, bound, MAX_PARTS) else {
        return note("The busy window is too long to draw, or its order is unknown.");
    };
    let mut rows: Vec<String> = Vec::new();
    for part in &parts {
        let name = name(system, part);
        if !rows.contains(&name) {
            rows.push(name);
        }
    }
    // The longest observed job, next to the one that determines the bound: aligned with its nominal
    // release.
    let nominal = bound.released as f64 - bound.jitter as f64;
    let seen = system.tasks[at].observed.response.map(|seen| (nominal, nominal + seen as f64));
    if seen.is_some() {
        rows.push("longest seen".into());
    }
    let drawings = LAYOUTS.map(|(class, width, left)| {
        let mut plot = Plot::new(Size { class, width, height: ROW * rows.len() as f64 + 60.0 });
        plot.left = left;
        let (first, last) = seen.unwrap_or_default();
        let scale = Linear::new(first.min(0.0), last.max(bound.window as f64), left, plot.right);
        for (row, name) in rows.iter().enumerate() {
            let y = plot.top + row as f64 * ROW + 15.0;
            plot.svg.text("tick", (left - 8.0, y), Anchor::End, &fitted(name, left - 12.0));
        }
        for part in &parts {
            let name = name(system, part);
            let row = rows.iter().position(|row| *row == name).unwrap_or(0);
            let (from, to) = (scale.at(part.from as f64), scale.at(part.to as f64));
            let class = match part.what {
                schedule::What::Own => "own",
                schedule::What::Blocking => "blocking",
                schedule::What::Above(_) | schedule::What::NotSupplied => "above",
            };
            let title =
                format!("{name}: {} from {}", format_part(part.to - part.from), format_part(part.from));
            let top = plot.top + row as f64 * ROW + 4.0;
            plot.svg.rect(class, (from, top), ((to - from).max(0.5), ROW - 8.0), &Mark::titled(title));
        }
        if let Some((from, to)) = seen {
            let title = format!("longest seen: {} from its release", format_part((to - from) as u64));
            let top = plot.top + (rows.len() - 1) as f64 * ROW + 4.0;
            let length = (scale.at(to) - scale.at(from)).max(0.5);
            plot.svg.rect("job", (scale.at(from), top), (length, ROW - 8.0), &Mark::titled(title));
        }
        let ready = scale.at(bound.released as f64);
        plot.svg.line("ready", (ready, plot.top), (ready, plot.bottom));
        plot.x_scale(&scale, punctual_report::format::unit(bound.window as f64));
        plot.finish(&Mark::titled(format!("The worst busy window of {}", system.tasks[at].name)))
    });
    let drawing = drawings.concat();
    let entries = [
        ("ready", "release"),
        ("own", "execution"),
        ("above", "interference"),
        ("blocking", "blocking"),
        ("job", "longest job seen, from its nominal release to its end"),
    ];
    format!("<figure>{drawing}{}</figure>", legend_of(&entries, &drawing))
}

/// Returns the legend of the classes that occur in a drawing.
fn legend_of(entries: &[(&str, &str)], drawing: &str) -> String {
    let occurs = |class: &str| drawing.contains(&format!("class=\"{class}\""));
    let shown: Vec<(&str, &str)> = entries.iter().copied().filter(|(class, _)| occurs(class)).collect();
    legend(&shown)
}

fn name(system: &System, part: &Part) -> String {
    use punctual_analysis::bound::Interferer;
    match part.what {
        schedule::What::Own => "the task".into(),
        schedule::What::Blocking => "blocking".into(),
        schedule::What::NotSupplied => "not ours".into(),
        schedule::What::Above(Interferer::Higher(at) | Interferer::Peer(at)) => system.tasks[at].name.clone(),
        schedule::What::Above(Interferer::Interrupt(at)) => system.interrupts[at].name.clone(),
        schedule::What::Above(Interferer::Release(_)) => "releases".into(),
    }
}
