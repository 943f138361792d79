//! The charts of a task: of each term a histogram, and every job over time.

use std::fmt::Write as _;

use punctual_report::chart::Size;
use punctual_report::histogram::Histogram;
use punctual_report::page::note;

use super::chart::{self, Chart};
use super::series::{Extremes, Series, Track};
use super::{Report, page};
use crate::stats::{TaskStats, Term};

const HISTOGRAM: Size = Size { class: "histogram", width: 430.0, height: 160.0 };

/// Draws them; series have at most so many slots.
pub(super) fn draw(task: &TaskStats, report: &Report<'_>, slots: usize) -> String {
    if task.jobs() == 0 {
        return note("No job of it is without a flaw, so there are no figures.");
    }
    let mut out = String::from("<h3>Every job</h3>");
    let name = page::name(task.key().actor, report.names);
    let histograms = Term::ALL.map(|term| {
        let quantity = task.quantity(term);
        Histogram::new(quantity.buckets(), quantity.summary().max)
    });
    let decades = Histogram::decades(&histograms);
    let span = report.collector.span().unwrap_or_default();
    let series = report.collector.task(task.key()).map(|gathered| gathered.series.within(slots));
    for (term, histogram) in Term::ALL.into_iter().zip(&histograms) {
        let (letter, summary) = (term.letter(), task.summary(term));
        let head = format!("<i class=\"sign {letter}\">{letter}</i>{}", term.meaning());
        let nothing = match (summary.count, summary.max) {
            (0, _) => "unknown of every job",
            (_, 0) => "none in any job",
            _ => "",
        };
        if !nothing.is_empty() {
            let _ = write!(out, "<p class=\"nothing\" data-term=\"{letter}\">{head}: {nothing}</p>");
            continue;
        }
        let _ = write!(out, "<figure class=\"pair\" data-term=\"{letter}\"><figcaption>{head}</figcaption>");
        let label = format!("Histogram of the {} of {name}", term.meaning());
        out += &histogram.draw(&format!("bar {letter}"), &decades, HISTOGRAM, &label);
        if let Some(series) = &series {
            let label = format!("The {} of every job of {name} over time", term.meaning());
            let _ = write!(out, "<div>{}</div>", over_time(term, series, span, &label));
        }
        out += "</figure>";
    }
    out
}

fn over_time(term: Term, series: &Series, span: (u64, u64), label: &str) -> String {
    let parts: &[(Track, &str, &str)] = match term {
        Term::Response => &[(Track::Response, "points R", "")],
        Term::Jitter => &[(Track::Jitter, "points J", "")],
        // As in figure 13 of the paper; one covers the other where both are drawn in one chart.
        Term::Overhead => &[(Track::Entry, "points SS", "entry: "), (Track::Exit, "points SS", "exit: ")],
        Term::Window => &[(Track::Window, "points W", "")],
        Term::Blocking => &[(Track::Blocking, "points B", "")],
        Term::Interference => &[(Track::Interference, "points I", "")],
        Term::Execution => &[(Track::Execution, "points C", "")],
    };
    let longest = |&(track, ..): &(Track, _, _)| series.of(track).map(|(_, Extremes { max, .. })| max).max();
    let reach = parts.iter().filter_map(longest).max().unwrap_or(0);
    let height = if parts.len() > 1 { chart::HEIGHT * 0.6 } else { chart::HEIGHT };
    let mut out = String::new();
    for &(track, class, part) in parts {
        out += &chart::draw(&Chart { series, track, class, part, reach, height }, span, label);
    }
    out
}
