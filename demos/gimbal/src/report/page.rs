//! The page as a whole: head, key figures, and the sections in the order in which they are asked for.

use super::angle::Microradians;
use super::data::{Clock, RunSummary, TaskRow};
use super::{charts, tables};
use punctual_html::{Escaped, Grouped, Micros};
use std::fmt::{self, Display, Formatter};

/// The report as HTML.
pub(super) struct Page<'a>(pub(super) &'a RunSummary);

const STYLE: &str = include_str!("style.css");

impl Display for Page<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let summary = self.0;
        let title = Escaped(&summary.meta.title);
        write!(
            f,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body><main><header><h1>{title}</h1>"
        )?;
        let clock = match summary.meta.clock {
            Clock::Real => "in real time",
            Clock::Virtual => "in virtual time",
        };
        let length_s = summary.meta.length_ns as f64 * 1e-9;
        writeln!(f, "<p>{} · {length_s:.1} s {clock}</p></header>", Escaped(&summary.meta.started))?;
        key_figures(summary, f)?;
        f.write_str("\n")?;
        charts::step_response(&summary.step, f)?;
        f.write_str("\n")?;
        tables::tasks(summary, f)?;
        f.write_str("\n")?;
        charts::histograms(summary, f)?;
        f.write_str("\n")?;
        tables::settings(&summary.settings, f)?;
        f.write_str("\n")?;
        tables::conditions(summary, f)?;
        f.write_str("\n</main></body></html>\n")
    }
}

/// The numbers one looks for first, maxima before everything else.
fn key_figures(summary: &RunSummary, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("<ul class=\"figures\">")?;
    let ran = || summary.tasks.iter().filter(|task| task.jobs > 0);
    if let Some(task) = ran().max_by_key(|task| task.jitter.max_ns) {
        worst("Longest release jitter", task, task.jitter.max_ns, f)?;
    }
    if let Some(task) = ran().max_by_key(|task| task.response.max_ns) {
        worst("Longest response time", task, task.response.max_ns, f)?;
    }
    let differences = summary.step.axes.iter().filter_map(|axis| Some((axis.residual_max_urad?, &axis.name)));
    if let Some((max_urad, name)) = differences.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let value = Microradians(max_urad);
        figure("Largest difference to reference", &value, "µrad", false, &Escaped(name), f)?;
    }
    let jobs: u64 = summary.tasks.iter().map(|task| task.jobs).sum();
    let misses: u64 = summary.tasks.iter().map(|task| task.misses).sum();
    let overruns: u64 = summary.tasks.iter().map(|task| task.overruns).sum();
    let of = format!("of {} jobs; overruns: {}", Grouped(jobs), Grouped(overruns));
    figure("Deadline misses", &Grouped(misses), "", misses > 0, &of, f)?;
    f.write_str("</ul>")
}

fn worst(what: &str, task: &TaskRow, ns: u64, f: &mut Formatter<'_>) -> fmt::Result {
    let name = format!("<code>{}</code>", Escaped(&task.name));
    figure(what, &Micros(ns), "µs", false, &name, f)
}

/// `detail` is HTML, everything else is text.
fn figure(
    what: &str,
    value: &dyn Display,
    unit: &str,
    fault: bool,
    detail: &dyn Display,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let class = if fault { " class=\"fault\"" } else { "" };
    write!(
        f,
        "<li><span>{what}</span><strong{class}>{value}<small> {unit}</small></strong><em>{detail}</em></li>"
    )
}

#[cfg(test)]
mod tests {
    use crate::client::LinkCounters;
    use crate::report::*;

    fn hostile() -> RunSummary {
        let evil = "</style><script>alert(1)</script>\"'&\u{202E}".to_owned();
        let setting = SettingRow {
            name: evil.clone(),
            wanted: evil.clone(),
            effective: evil.clone(),
            outcome: Outcome::Refused,
            note: evil.clone(),
        };
        let task = TaskRow {
            name: evil.clone(),
            level: 1,
            jobs: 1,
            overruns: 0,
            misses: 0,
            suspensions: 0,
            jitter: Distribution { max_ns: 5, buckets: vec![(5, 1)], ..Distribution::default() },
            response: Distribution::default(),
            execution: Distribution::default(),
        };
        let axis = AxisResponse {
            name: evil.clone(),
            setpoint: vec![(0, 0.0), (1, 1.0)],
            residual_max_urad: Some(1.0),
            residual_rms_urad: Some(1.0),
            ..AxisResponse::default()
        };
        RunSummary {
            version: FORMAT_VERSION,
            meta: Meta {
                title: evil.clone(),
                started: evil.clone(),
                clock: Clock::Real,
                length_ns: 1,
                conditions: vec![Condition { name: evil.clone(), value: evil }],
            },
            tasks: vec![task],
            settings: vec![setting],
            link: LinkCounters::default(),
            step: StepResponse { axes: vec![axis], ..StepResponse::default() },
        }
    }

    #[test]
    fn no_text_becomes_markup() {
        let page = to_html(&hostile());
        assert!(!page.contains("<script") && !page.contains('\u{202E}'));
        assert_eq!(page.matches("</style>").count(), 1);
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn the_page_needs_no_network() {
        let page = to_html(&hostile());
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_json_has_the_version_and_the_same_numbers() {
        let json: serde_json::Value = serde_json::from_str(&to_json(&hostile()).unwrap()).unwrap();
        assert_eq!(json["version"], FORMAT_VERSION);
        assert_eq!(json["meta"]["clock"], "real");
        assert_eq!(json["tasks"][0]["jitter"]["max_ns"], 5);
        assert_eq!(json["tasks"][0]["jitter"]["buckets"], serde_json::json!([[5, 1]]));
        assert_eq!(json["settings"][0]["outcome"], "refused");
        assert_eq!(json["step"]["axes"][0]["setpoint"], serde_json::json!([[0, 0.0], [1, 1.0]]));
    }

    #[test]
    fn an_empty_run_makes_a_page_too() {
        let mut summary = hostile();
        summary.tasks.clear();
        summary.settings.clear();
        summary.step.axes.clear();
        assert!(to_html(&summary).ends_with("</html>\n"));
    }
}
