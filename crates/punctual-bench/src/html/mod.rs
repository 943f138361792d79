//! A run as a self-contained HTML page, without network access or scripts.
//!
//! Every group of rows becomes a chart, with a histogram for each row on one logarithmic time axis,
//! and a table. The page follows the reader's choice of light or dark.

mod chart;
mod curves;

use std::fmt::Write as _;

use punctual_report::escape::{Code, Escaped, NoBreak};
use punctual_report::format::{format_count, format_nanos, format_part};
use punctual_report::page::{Figure, Frame, Page, legend, note};

use crate::compare::Comparison;
use crate::grouping::{Footnotes, groups};
use crate::model::{Answer, Row, Run, Suite, Verdict};
use crate::tables::{self, Figures, quantity_text};

const STYLE: &str = include_str!("style.css");

/// Returns the page. With a comparison, it also shows the changes.
pub fn page(run: &Run, compared: Option<&Comparison>) -> String {
    let samples = format_count(run.settings.samples as u64);
    let lines = [
        finding(run, compared),
        run.machine.hardware_line(),
        run.machine.kernel_line(),
        format!("{}, in {:.0} s; CPU {}; {samples} samples a row", run.started, run.took_s, run.settings.cpu),
    ];
    let mut page =
        Page::new(&Frame { title: "punctual bench", lines: &lines, style: STYLE, ..Frame::default() });
    let out = page.body();
    if run.interrupted {
        *out += "<p class=\"fault\">The run was stopped early; these are the results so far.</p>\n";
    }
    run.machine.notes.iter().for_each(|text| *out += &note(text));
    page.figures(&key_figures(run, compared));
    let out = page.body();
    navigation(run, compared, out);
    *out += &legend(&[
        ("median", "median"),
        ("max", "maximum"),
        ("nominal", "requested time"),
        ("published", "published mean, with a line to the maximum"),
    ]);
    if let Some(compared) = compared {
        comparison(compared, out);
    }
    run.suites.iter().for_each(|each| suite(each, run.overhead.p50_ns, out));
    page.finish()
}

/// Returns the result of the run in one sentence.
fn finding(run: &Run, comparison: Option<&Comparison>) -> String {
    let mut parts = Vec::new();
    if let Some(comparison) = comparison {
        parts.push(format!("{} regressions since {}", comparison.regressions(), comparison.old_started));
    }
    match run.failures() {
        0 if run.checks().next().is_some() => parts.push("all rules hold".to_owned()),
        0 => {}
        1 => parts.push("1 rule is broken".to_owned()),
        failures => parts.push(format!("{failures} rules are broken")),
    }
    if let Some((row, max)) = longest(run.rows().filter(|row| is_latency(row))) {
        parts.push(format!("the longest latency of a task is {} ({})", format_nanos(max), row.operation));
    }
    parts.extend(run.suites.iter().filter_map(|suite| shortest_period(&suite.answers)));
    let peers = run.suites.iter().map(|suite| tables::faster_peers(&groups(suite)));
    let (faster, compared) =
        peers.fold((0, 0), |(faster, all), (more, groups)| (faster + more.len(), all + groups));
    if compared > 0 {
        parts.push(format!("a peer has the lower median in {faster} of {compared} groups"));
    }
    parts.join("; ")
}

/// Returns the shortest period without a late release in any condition.
fn shortest_period(answers: &[Answer]) -> Option<String> {
    let holds = |period| answers.iter().all(|it| it.period_ns != period || it.is_held() == Some(true));
    let shortest = answers.iter().map(|answer| answer.period_ns).filter(|&period| holds(period)).min();
    match shortest {
        Some(period) => {
            Some(format!("the shortest period without a late release is {}", format_part(period)))
        }
        None if answers.iter().any(|answer| answer.is_held() == Some(false)) => {
            Some("releases are late at every judged period".to_owned())
        }
        None if answers.is_empty() => None,
        None => Some("no period was judged".to_owned()),
    }
}

/// True for rows of Punctual that depend on time or events, and not on a requested time.
fn is_latency(row: &Row) -> bool {
    row.subject == "Punctual" && row.condition.is_some() && row.nominal_ns.is_none()
}

/// Returns the key figures.
fn key_figures(run: &Run, comparison: Option<&Comparison>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let judged =
        run.checks().filter(|check| matches!(check.verdict, Verdict::Passed | Verdict::Failed)).count();
    if run.checks().next().is_some() {
        let satisfied = format!("{} of {judged}", judged - run.failures());
        figures.push(
            Figure::new("Rules kept", satisfied, "by the order of events").fault_if(run.failures() > 0),
        );
    }
    if let Some((row, max)) = longest(run.rows().filter(|row| is_latency(row))) {
        let of = format!("{}, {}", row.operation, row.condition.as_deref().unwrap_or_default());
        figures.push(Figure::new("Longest latency of a task", format_nanos(max), of));
    }
    if let Some((row, max)) = longest(run.rows().filter(|row| row.id.starts_with("hourglass/"))) {
        let cause = row.causes.first().map_or(String::new(), |cause| format!(", {}", cause.name));
        let of = format!("{}{cause}", row.subject);
        figures.push(Figure::new("Longest gap of a loop", format_nanos(max), of));
    }
    if let Some(comparison) = comparison {
        let count = comparison.regressions();
        let figure = Figure::new("Regressions", count.to_string(), "since the earlier run");
        figures.push(figure.fault_if(count > 0));
    }
    let (empty, clock) = (&run.overhead, &run.machine.clock);
    let detail = format!("at most {}, by {clock}; not subtracted", format_nanos(empty.max_ns));
    figures.push(Figure::new("An empty measurement", format_nanos(empty.p50_ns), detail));
    figures
}

/// Returns the row with the longest time.
fn longest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<(&'a Row, f64)> {
    rows.filter_map(|row| Some((row, row.figures.as_ref()?.max_ns))).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn navigation(run: &Run, comparison: Option<&Comparison>, out: &mut String) {
    *out += "<nav>";
    if comparison.is_some() {
        *out += "<a href=\"#comparison\">comparison</a>";
    }
    for suite in &run.suites {
        let _ = write!(out, "<a href=\"#{0}\">{0}</a>", Escaped(&suite.name));
    }
    *out += "</nav>\n";
}

/// Adds the changes since an earlier run.
fn comparison(comparison: &Comparison, out: &mut String) {
    let _ = writeln!(
        out,
        "<section id=\"comparison\"><h2>Compared with the run of {}</h2><p>{} regressions: the median grew by more than a \
         tenth and the middle halves do not overlap, or a rule that was kept is now broken.</p>",
        Escaped(&comparison.old_started),
        comparison.regressions()
    );
    comparison.notes.iter().for_each(|text| *out += &note(text));
    let table = tables::comparison(comparison);
    *out += &match table.is_empty() {
        true => note("Nothing measured by both runs differs."),
        false => table.html("What has changed"),
    };
    for beside in &comparison.beside {
        let _ = writeln!(out, "<h3>Side by side: {}</h3>", Escaped(&beside.title));
        // No ratios between different machines.
        body(beside, f64::INFINITY, out);
    }
    *out += "</section>\n";
}

fn suite(suite: &Suite, empty_ns: f64, out: &mut String) {
    let _ = writeln!(out, "<section id=\"{}\"><h2>{}</h2>", Escaped(&suite.name), Escaped(&suite.title));
    body(suite, empty_ns, out);
    *out += "</section>\n";
}

fn body(suite: &Suite, empty_ns: f64, out: &mut String) {
    let mut footnotes = Footnotes::default();
    if !suite.checks.is_empty() {
        *out += &tables::checks(&suite.checks, &mut footnotes).html("Rules");
    }
    if !suite.answers.is_empty() {
        *out += &tables::answers(&suite.answers, &mut footnotes).html("Periods");
    }
    let (faster, compared) = tables::faster_peers(&groups(suite));
    if compared > 0 {
        let text = format!("A peer has the lower median in {} of {compared} groups.", faster.len());
        *out += &note(&text);
        faster.iter().for_each(|line| *out += &note(line));
    }
    for (title, drawing) in curves::draw(suite) {
        let _ = writeln!(out, "<article><h3>{}</h3><figure>{drawing}</figure></article>", Escaped(&title));
    }
    for group in groups(suite) {
        let title = group.title();
        let _ = write!(out, "<article><h3>{}</h3><figure>{}</figure>", Escaped(&title), chart::draw(&group));
        let mut figures = Figures::new(std::slice::from_ref(&group), empty_ns, true);
        figures.add(&group, &mut footnotes, |_, _| {});
        *out += &figures.table.html(&title);
        group.rows.iter().for_each(|row| details(row, out));
        *out += "</article>\n";
    }
    *out += "<div class=\"notes\">";
    for (number, text) in footnotes.iter() {
        let _ = writeln!(out, "<p><sup>{number}</sup> {}</p>", Code(text));
    }
    for note in &suite.notes {
        let _ = writeln!(out, "<p>{}</p>", Code(note));
    }
    *out += "</div>\n";
}

/// Adds the quantities and causes of a row.
fn details(row: &Row, out: &mut String) {
    if !row.quantities.is_empty() {
        let _ = write!(out, "<p class=\"quantities\"><b>{}</b>", Escaped(&row.subject));
        for quantity in &row.quantities {
            let text = quantity_text(quantity);
            let _ = write!(out, " · {}: {}", Escaped(&quantity.name), NoBreak(&text));
        }
        *out += "</p>\n";
    }
    if !row.causes.is_empty() {
        let title = format!("{}: causes of gaps", row.subject);
        *out += &tables::causes(&title, row).html(&title);
    }
}

#[cfg(test)]
mod tests {
    use crate::compare::Comparison;
    use crate::model::Answer;
    use crate::sample::{row, run};

    #[test]
    fn draws_every_sample_of_every_row() {
        let run = run(vec![row("a/x", "Punctual", 1000), row("b/x", "POSIX", 70_000)]);
        let page = super::page(&run, None);
        for row in run.rows() {
            let chart = page.split(&format!("data-row=\"{}\"", row.id)).nth(1).expect("the row has a chart");
            let chart = chart.split("</g>").next().unwrap();
            let counts = chart.split("data-count=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            let drawn: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
            assert_eq!(drawn, row.figures.as_ref().unwrap().samples, "{}", row.id);
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn escapes_text_and_needs_no_network() {
        let evil = "</style><script>alert(1)</script>\"'&\u{0}\u{202E}";
        let mut hostile = row("x\"><script>", evil, 1000);
        hostile.operation = evil.into();
        hostile.why.push(evil.into());
        hostile.published[0].system = evil.into();
        hostile.causes[0].name = evil.into();
        let mut run = run(vec![hostile]);
        run.machine.kernel = evil.into();
        run.suites[0].checks[0].observed = evil.into();
        let comparison = Comparison::new(&run, &run);
        let page = super::page(&run, Some(&comparison));
        assert!(!page.contains("<script") && !page.contains(['\u{0}', '\u{202E}']));
        assert_eq!(page.matches("</style>").count(), 1);
        for outside in ["http:", "https:", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn finding_names_shortest_period_and_counts_faster_peers() {
        let mut run = run(vec![row("a/x", "Punctual", 1_000), row("a/y", "POSIX", 700)]);
        run.suites[0].checks.clear();
        let answer =
            |period_ns, misses: u64| Answer { period_ns, misses, releases: 1_000, ..Answer::default() };
        let finding = |answers: &[Answer]| {
            let mut run = run.clone();
            run.suites[0].answers = answers.to_vec();
            super::finding(&run, None)
        };
        let all = [answer(10_000_000, 0), answer(1_000_000, 0), answer(100_000, 0), answer(100_000, 5)];
        let expected = "the shortest period without a late release is 1 000 µs; \
                        a peer has the lower median in 1 of 1 groups";
        assert!(finding(&all).ends_with(expected), "{}", finding(&all));
        assert!(finding(&all[3..]).contains("; releases are late at every judged period; "));
        assert!(finding(&[Answer::default()]).contains("; no period was judged; "));
        let unreleased = Answer { period_ns: 100_000, miss_rate_bound: Some(1.0), ..Answer::default() };
        assert!(finding(&[unreleased]).contains("; no period was judged; "));
    }

    #[test]
    fn writes_page_for_empty_run() {
        let mut run = run(Vec::new());
        run.suites.clear();
        run.interrupted = true;
        let page = super::page(&run, None);
        assert!(page.ends_with("</html>\n") && page.contains("stopped early"));
    }
}
