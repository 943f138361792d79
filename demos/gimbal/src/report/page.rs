//! The page as a whole: head, key figures, and the sections in order of importance.

use super::{Clock, RunSummary, TaskRow};
use super::{charts, tables};
use punctual_report::format::{format_count, format_nanos, format_significant};
use punctual_report::page::{Figure, Frame, Page};

const STYLE: &str = include_str!("style.css");

/// Returns the report as HTML.
pub(super) fn page(summary: &RunSummary) -> String {
    let meta = &summary.meta;
    let clock = match meta.clock {
        Clock::Real => "in real time",
        Clock::Virtual => "in virtual time",
    };
    let line = format!("{} · {:.1} s {clock}", meta.started, meta.length_ns as f64 * 1e-9);
    let lines = [finding(summary), line];
    let mut page = Page::new(&Frame { title: &meta.title, lines: &lines, style: STYLE, ..Frame::default() });
    page.figures(&key_figures(summary));
    let body = page.body();
    charts::step_response(&summary.step, body);
    tables::tasks(summary, body);
    charts::histograms(summary, body);
    tables::settings(&summary.settings, body);
    tables::conditions(summary, body);
    page.finish()
}

/// Returns the result of the run in one sentence.
fn finding(summary: &RunSummary) -> String {
    let sum = |count: fn(&TaskRow) -> u64| summary.tasks.iter().map(count).sum::<u64>();
    let (jobs, misses) = (format_count(sum(|task| task.jobs)), sum(|task| task.misses));
    let deadlines = match misses {
        0 => format!("every deadline was met, in {jobs} jobs"),
        misses => format!("{} of {jobs} jobs missed their deadline", format_count(misses)),
    };
    match worst_difference(summary) {
        Some((max_urad, name)) => format!(
            "{deadlines}; the axis furthest from the reference, {name}, differed by up to {}",
            format_urad(max_urad)
        ),
        None => deadlines,
    }
}

/// Returns the largest difference from the reference in microradians, and its axis.
fn worst_difference(summary: &RunSummary) -> Option<(f64, &str)> {
    let axes = summary.step.axes.iter();
    let differences = axes.filter_map(|axis| Some((axis.residual_max_urad?, axis.name.as_str())));
    differences.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Formats an angle, in µrad up to 999 µrad, otherwise in mrad.
pub(crate) fn format_urad(urad: f64) -> String {
    let (unit, size) = angle_unit(urad);
    format!("{} {unit}", format_significant(urad / size))
}

/// Returns the unit for angles up to this one in microradians, and its size in microradians.
pub(super) fn angle_unit(max_urad: f64) -> (&'static str, f64) {
    if max_urad < 999.5 { ("µrad", 1.0) } else { ("mrad", 1e3) }
}

/// Returns the most important numbers, maxima first.
fn key_figures(summary: &RunSummary) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut longest = |what: &str, ns: fn(&TaskRow) -> u64| {
        let ran = summary.tasks.iter().filter(|task| task.jobs > 0);
        if let Some(task) = ran.max_by_key(|task| ns(task)) {
            figures.push(Figure::new(what, format_nanos(ns(task) as f64), &*task.name));
        }
    };
    longest("Longest release jitter", |task| task.jitter.max_ns);
    longest("Longest response time", |task| task.response.max_ns);
    if let Some((max_urad, name)) = worst_difference(summary) {
        figures.push(Figure::new("Largest difference to reference", format_urad(max_urad), name));
    }
    let sum = |count: fn(&TaskRow) -> u64| summary.tasks.iter().map(count).sum::<u64>();
    let (jobs, misses, overruns) =
        (sum(|task| task.jobs), sum(|task| task.misses), sum(|task| task.overruns));
    let of = format!("of {} jobs; overruns: {}", format_count(jobs), format_count(overruns));
    figures.push(Figure::new("Deadline misses", format_count(misses), of).fault_if(misses > 0));
    figures
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
    fn escapes_text() {
        let page = to_html(&hostile());
        assert!(!page.contains("<script") && !page.contains('\u{202E}'));
        assert_eq!(page.matches("</style>").count(), 1);
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn explains_missing_distributions_of_virtual_time() {
        let mut summary = hostile();
        let timed = to_html(&summary);
        assert!(timed.contains("Histogram of the") && !timed.contains("No job took any time"));
        summary.tasks[0].jitter = Distribution { buckets: vec![(0, 1)], ..Distribution::default() };
        let untimed = to_html(&summary);
        assert!(untimed.contains("No job took any time") && !untimed.contains("Histogram of the"));
    }

    #[test]
    fn needs_no_network() {
        let page = to_html(&hostile());
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn writes_version_and_same_numbers_as_json() {
        let json: serde_json::Value = serde_json::from_str(&to_json(&hostile()).unwrap()).unwrap();
        assert_eq!(json["version"], FORMAT_VERSION);
        assert_eq!(json["meta"]["clock"], "real");
        assert_eq!(json["tasks"][0]["jitter"]["max_ns"], 5);
        assert_eq!(json["tasks"][0]["jitter"]["buckets"], serde_json::json!([[5, 1]]));
        assert_eq!(json["settings"][0]["outcome"], "refused");
        assert_eq!(json["step"]["axes"][0]["setpoint"], serde_json::json!([[0, 0.0], [1, 1.0]]));
    }

    #[test]
    fn writes_page_for_empty_run() {
        let mut summary = hostile();
        summary.tasks.clear();
        summary.settings.clear();
        summary.step.axes.clear();
        assert!(to_html(&summary).ends_with("</html>\n"));
    }
}
