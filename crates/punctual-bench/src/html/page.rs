//! The page as a whole: what it was measured on, the key figures, what has changed, and the suites.

use std::fmt::{self, Display, Formatter};

use punctual_html::Escaped;

use super::{chart, tables};
use crate::compare::Comparison;
use crate::grouping::{Footnotes, groups};
use crate::model::{Run, Suite, Verdict};
use crate::time::humane;

const STYLE: &str = include_str!("style.css");

pub(super) struct Page<'a> {
    pub(super) run: &'a Run,
    pub(super) comparison: Option<&'a Comparison>,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let run = self.run;
        write!(
            f,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>punctual bench</title>\n<style>\n{STYLE}</style></head>\n<body><main><header><h1>punctual bench</h1>"
        )?;
        writeln!(
            f,
            "<p>{}<br>{}<br>{}, in {:.0} s; CPU {}; {} samples a row</p>",
            Escaped(&run.machine.hardware_line()),
            Escaped(&run.machine.kernel_line()),
            Escaped(&run.started),
            run.took_s,
            run.settings.cpu,
            run.settings.samples
        )?;
        if run.interrupted {
            writeln!(
                f,
                "<p class=\"fail\">The run was ended before it was through: this is what it had measured.</p>"
            )?;
        }
        for note in &run.machine.notes {
            writeln!(f, "<p class=\"note\">{}</p>", Escaped(note))?;
        }
        f.write_str("</header>\n")?;
        key_figures(run, self.comparison, f)?;
        navigation(run, self.comparison, f)?;
        if let Some(comparison) = self.comparison {
            tables::comparison(comparison, f)?;
        }
        for each in &run.suites {
            suite(each, run.overhead.p50_ns, f)?;
        }
        f.write_str("</main></body></html>\n")
    }
}

/// The numbers one looks for first.
fn key_figures(run: &Run, comparison: Option<&Comparison>, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<ul class=\"figures\">")?;
    let mut figure = |what: &str, value: String, fault: bool, detail: String| {
        let class = if fault { " class=\"fail\"" } else { "" };
        write!(f, "<li><span>{what}</span><strong{class}>{value}</strong><em>{}</em></li>", Escaped(&detail))
    };
    let judged =
        run.checks().filter(|check| matches!(check.verdict, Verdict::Passed | Verdict::Failed)).count();
    if run.checks().next().is_some() {
        let kept = judged - run.failures();
        figure(
            "Rules kept",
            format!("{kept} of {judged}"),
            run.failures() > 0,
            "by the order of events".into(),
        )?;
    }
    let late = run
        .rows()
        .filter(|row| row.subject == "Punctual" && row.condition.is_some() && row.nominal_ns.is_none());
    let late = late.filter_map(|row| Some((row, row.figures.as_ref()?.max_ns)));
    if let Some((row, max)) = late.max_by(|a, b| a.1.total_cmp(&b.1)) {
        let of = format!("{}, {}", row.operation, row.condition.as_deref().unwrap_or_default());
        figure("Longest latency of a task", humane(max), false, of)?;
    }
    let gap = run.rows().filter(|row| row.id.starts_with("hourglass/"));
    let gap = gap.filter_map(|row| Some((row, row.figures.as_ref()?.max_ns)));
    if let Some((row, max)) = gap.max_by(|a, b| a.1.total_cmp(&b.1)) {
        let cause = row.causes.first().map_or(String::new(), |cause| format!(", {}", cause.name));
        figure("Longest gap of a loop", humane(max), false, format!("{}{cause}", row.subject))?;
    }
    if let Some(comparison) = comparison {
        let count = comparison.regressions();
        figure("Regressions", count.to_string(), count > 0, "since the earlier run".into())?;
    }
    let empty = &run.overhead;
    let detail = format!("at most {}, by {}; not subtracted", humane(empty.max_ns), run.machine.clock);
    figure("An empty measurement", humane(empty.p50_ns), false, detail)?;
    f.write_str("</ul>\n")
}

fn navigation(run: &Run, comparison: Option<&Comparison>, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<nav>")?;
    if comparison.is_some() {
        f.write_str("<a href=\"#comparison\">comparison</a>")?;
    }
    for suite in &run.suites {
        write!(f, "<a href=\"#{0}\">{0}</a>", Escaped(&suite.name))?;
    }
    f.write_str("</nav>\n")
}

fn suite(suite: &Suite, empty_ns: f64, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "<section id=\"{}\"><h2>{}</h2>", Escaped(&suite.name), Escaped(&suite.title))?;
    let mut footnotes = Footnotes::default();
    if !suite.checks.is_empty() {
        tables::checks(&suite.checks, &mut footnotes, f)?;
    }
    for group in groups(suite) {
        writeln!(f, "<article><h3>{}</h3>", Escaped(&group.title()))?;
        chart::draw(&group, f)?;
        tables::figures(&group, empty_ns, &mut footnotes, f)?;
        f.write_str("</article>\n")?;
    }
    f.write_str("<div class=\"notes\">")?;
    for (number, text) in footnotes.iter() {
        writeln!(f, "<p><sup>{number}</sup> {}</p>", Escaped(text))?;
    }
    for note in &suite.notes {
        writeln!(f, "<p>{}</p>", Escaped(note))?;
    }
    f.write_str("</div></section>\n")
}
