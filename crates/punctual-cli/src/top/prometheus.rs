//! Serving the metrics of running apps to Prometheus, in its text format over HTTP.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_core::metrics::{Figure, FigureRow, MAX_TRAFFIC, Term, TermRow, bucket_of};

use super::find::{Apps, Found};
use super::http;
use super::memory::{About, Figures, Memory, Quantity, Snapshot, Task, Traffic};
use crate::output::message;

/// Minimum time between two updates of the apps: requests in between get the same page, so their
/// number does not matter.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum length of the text about the apps of one user, in bytes. The figures of any user are
/// served, and a user can invent some.
const MAX_USER_TEXT: usize = 32 << 20;

/// Maximum length of a line without the labels of the app and the task, in bytes: the longest name
/// of a metric, a bound, and a value.
const MAX_LINE: usize = 128;

/// Serves until the process ends.
///
/// # Errors
/// Returns an error if the address cannot be used.
pub(crate) fn serve(address: SocketAddr, wanted: Option<&str>) -> Result<(), String> {
    let listener = TcpListener::bind(address).map_err(|error| {
        format!("--prometheus: {address}: {error}; give another port, as in --prometheus=127.0.0.1:9754")
    })?;
    let at = listener.local_addr().unwrap_or(address);
    message!("serving http://{at}{}", http::PATH);
    if !at.ip().is_loopback() {
        message!("warning: all who reach {at} can read the metrics: there is no encryption and no password");
    }
    let wanted = wanted.map(str::to_owned);
    let mut newest: Option<(Instant, Arc<str>)> = None;
    let page = move || match &newest {
        Some((at, page)) if at.elapsed() < MIN_INTERVAL => Arc::clone(page),
        _ => {
            let page: Arc<str> = metrics(&Apps::running(), wanted.as_deref()).into();
            newest = Some((Instant::now(), Arc::clone(&page)));
            page
        }
    };
    match http::serve(&listener, http::Timeouts::default(), page) {
        Ok(never) => match never {},
        Err(error) => Err(format!("--prometheus: {at}: cannot serve: {error}")),
    }
}

/// Returns the metrics of the `wanted` apps, or of all.
fn metrics(apps: &Apps, wanted: Option<&str>) -> String {
    let found: Vec<&Found> = match wanted {
        Some(wanted) => apps.named(wanted),
        None => apps.found.iter().collect(),
    };
    let (mut shown, mut room) = (Vec::new(), HashMap::new());
    for found in found {
        // An app that cannot be read is missing, like one that does not run.
        let Ok(mut memory) = Memory::open(found) else { continue };
        let labels = labels(&memory.about, found);
        if !takes_room(&mut room, found.user, longest_text(&memory.about, &labels)) {
            continue;
        }
        let Ok(snapshot) = memory.snapshot() else { continue };
        shown.push((labels, memory, snapshot));
    }
    let apps = shown.iter().map(|(labels, memory, snapshot)| App { labels, about: &memory.about, snapshot });
    text(&apps.collect::<Vec<_>>())
}

/// Takes the room for the text about an app from that of its user. Returns `false` if there is too
/// little left.
fn takes_room(room: &mut HashMap<u32, usize>, user: u32, length: usize) -> bool {
    let room = room.entry(user).or_insert(MAX_USER_TEXT);
    let left = room.checked_sub(length);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// Returns the maximum length of the text about an app with these labels, without the descriptions
/// of the metrics, in bytes.
fn longest_text(about: &About, labels: &str) -> usize {
    let of_task = Figure::ALL.len() + Term::ALL.len() * (bounds().count() + 4);
    let tasks = about.tasks.iter().map(|task| of_task * (task_labels(labels, task).len() + MAX_LINE));
    // Names of traffic are escaped, and 64 bytes without that.
    let of_app = OF_TRAFFIC.len() * MAX_TRAFFIC + OF_APPS.len();
    tasks.sum::<usize>() + of_app * (labels.len() + 1024 + MAX_LINE)
}

/// An app at one moment.
struct App<'a> {
    labels: &'a str,
    about: &'a About,
    snapshot: &'a Snapshot,
}

/// Returns the labels of an app.
fn labels(about: &About, found: &Found) -> String {
    // An empty label is the same as none.
    let program = about.program.as_deref().unwrap_or_default();
    let [app, program, user] = [&*about.app, program, &*found.user_name()].map(escaped);
    format!(r#"app="{app}",program="{program}",user="{user}",process="{}""#, found.process)
}

/// Returns the labels of a task, after those of its app.
fn task_labels(of_app: &str, task: &Task) -> String {
    let (partition, name) = (escaped(&task.partition), escaped(&task.name));
    format!(r#"{of_app},partition="{partition}",task="{name}""#)
}

/// A figure of an app.
type AppMetric = fn(&App<'_>) -> u64;
/// A count of messages.
type TrafficMetric = fn(&Traffic) -> u64;

/// Name, description and value of each count of messages.
const OF_TRAFFIC: [(&str, &str, TrafficMetric); 3] = [
    ("carried", "Messages carried in or out.", |traffic| traffic.carried),
    ("lost", "Messages lost on the way in or out.", |traffic| traffic.lost),
    ("refused", "Messages that arrived and were rejected.", |traffic| traffic.refused),
];

/// Name, kind, description and value of each figure of an app.
const OF_APPS: [(&str, &str, &str, AppMetric); 5] = [
    ("dropped_jobs_total", "counter", "Jobs that were released and never ran.", |app| app.snapshot.dropped),
    ("helper_starts_total", "counter", "Starts of helper processes.", |app| app.snapshot.helper_starts),
    ("helper_ends_total", "counter", "Ends of helper processes that the app had not requested.", |app| {
        app.snapshot.helper_ends
    }),
    ("missing_settings", "gauge", "Real-time settings that the kernel did not grant.", |app| {
        app.about.missing.len() as u64
    }),
    ("stale", "gauge", "1 if the app has not updated its figures for two periods.", |app| {
        app.snapshot.is_stale().into()
    }),
];

fn text(apps: &[App<'_>]) -> String {
    let mut text = String::new();
    let is_maximum = |figure: &Figure| figure.row().maximum_of.is_some();
    for figure in Figure::ALL.into_iter().filter(|figure| !is_maximum(figure)) {
        let FigureRow { metric, help, of_jobs, .. } = figure.row();
        let name = format!("punctual_{metric}_total");
        head(&mut text, &name, help, "counter");
        for (labels, _, figures) in tasks(apps).filter(|(_, task, _)| task.is_measured() || !of_jobs) {
            line(&mut text, format_args!("{name}{{{labels}}} {}", figures.number(figure)));
        }
    }
    for term in Term::ALL {
        let TermRow { metric, help, .. } = term.row();
        let histogram = format!("punctual_{metric}_seconds");
        head(&mut text, &histogram, &format!("{help}."), "histogram");
        for (labels, _, figures) in tasks(apps).filter(|(_, task, _)| task.is_measured()) {
            buckets(&mut text, &histogram, &labels, figures.term(term));
        }
        let max = format!("punctual_{metric}_max_seconds");
        head(&mut text, &max, &format!("{help}: the largest value since the start."), "gauge");
        for (labels, _, figures) in tasks(apps).filter(|(_, task, _)| task.is_measured()) {
            line(&mut text, format_args!("{max}{{{labels}}} {}", seconds(figures.term(term).max)));
        }
    }
    for figure in Figure::ALL.into_iter().filter(is_maximum) {
        let FigureRow { metric, help, .. } = figure.row();
        let max = format!("punctual_{metric}_seconds");
        head(&mut text, &max, help, "gauge");
        for (labels, _, figures) in tasks(apps).filter(|(_, task, _)| task.is_measured()) {
            line(&mut text, format_args!("{max}{{{labels}}} {}", seconds(figures.number(figure))));
        }
    }
    for (name, help, count) in OF_TRAFFIC {
        let name = format!("punctual_messages_{name}_total");
        head(&mut text, &name, help, "counter");
        for (app, traffic) in apps.iter().flat_map(|app| app.snapshot.traffic.iter().map(move |of| (app, of)))
        {
            let labels = format!(r#"{},name="{}""#, app.labels, escaped(&traffic.name));
            line(&mut text, format_args!("{name}{{{labels}}} {}", count(traffic)));
        }
    }
    for (name, kind, help, of) in OF_APPS {
        let name = format!("punctual_{name}");
        head(&mut text, &name, help, kind);
        apps.iter().for_each(|app| line(&mut text, format_args!("{name}{{{}}} {}", app.labels, of(app))));
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string can be written to");
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

/// Returns labels, declaration and figures of each task of each app.
fn tasks<'a>(apps: &'a [App<'_>]) -> impl Iterator<Item = (String, &'a Task, &'a Figures)> {
    let of = |app: &'a App<'_>| {
        let tasks = app.about.tasks.iter().zip(&app.snapshot.tasks);
        tasks.map(|(task, figures)| (task_labels(app.labels, task), task, figures))
    };
    apps.iter().flat_map(of)
}

/// The upper bounds of the buckets of every histogram in ns: two for each doubling from 511 ns to
/// 8.6 s.
///
/// All tasks and apps have the same bounds, so that histograms can be added. Each bound is the last
/// value of a bucket in the app's memory, so that every value belongs to exactly one bucket.
fn bounds() -> impl Iterator<Item = u64> {
    (9..33).flat_map(|bit| [1 << bit, 3 << (bit - 1)]).chain([1 << 33]).map(|end: u64| end - 1)
}

/// Writes a histogram.
fn buckets(text: &mut String, name: &str, labels: &str, quantity: &Quantity) {
    let mut counts = quantity.counts.iter().map(|&count| u64::from(count)).enumerate().peekable();
    let mut below = 0;
    for bound in bounds() {
        while let Some((_, count)) = counts.next_if(|&(bucket, _)| bucket <= bucket_of(bound)) {
            below += count;
        }
        line(text, format_args!("{name}_bucket{{{labels},le=\"{}\"}} {below}", seconds(bound)));
    }
    let count = below + counts.map(|(_, count)| count).sum::<u64>();
    line(text, format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}"));
    line(text, format_args!("{name}_sum{{{labels}}} {}", seconds(quantity.sum)));
    line(text, format_args!("{name}_count{{{labels}}} {count}"));
}

fn seconds(ns: u64) -> String {
    format!("{:e}", ns as f64 / 1e9)
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use punctual_core::metrics::{BUCKETS, bucket_end};

    use super::*;
    use crate::top::figures::tests::{about, snapshot};

    /// The value of a sample.
    fn sample<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    }

    /// An app of a user without a name.
    pub(super) fn found() -> Found {
        Found { process: 7, app: "app".into(), user: u32::MAX - 1, path: "".into(), id: (0, 0) }
    }

    /// Returns the text about this one app.
    pub(super) fn text_of(about: &About, snapshot: &Snapshot) -> String {
        text(&[App { labels: &labels(about, &found()), about, snapshot }])
    }

    #[test]
    fn labels_each_sample_and_gives_each_name_one_type() {
        let snapshot = snapshot(Instant::now(), &[&[1_000, 3_000], &[]]);
        let about = about(&["a\"b", "c"]);
        let text = text_of(&about, &snapshot);
        let app = r#"app="app",program="program",user="4294967294",process="7""#;
        let task = format!(r#"{app},partition="main",task="a\"b""#);
        for (name, value) in [
            (format!("punctual_jobs_total{{{task}}}"), "2"),
            (format!("punctual_response_time_max_seconds{{{task}}}"), "3e-6"),
            (format!("punctual_response_time_seconds_sum{{{task}}}"), "4e-6"),
            (format!("punctual_response_time_seconds_count{{{task}}}"), "2"),
            (format!("punctual_suspension_max_seconds{{{task}}}"), "0e0"),
            (format!("punctual_missing_settings{{{app}}}"), "1"),
            (format!("punctual_stale{{{app}}}"), "0"),
            (format!("punctual_helper_starts_total{{{app}}}"), "3"),
            (format!("punctual_helper_ends_total{{{app}}}"), "2"),
            (format!(r#"punctual_messages_carried_total{{{app},name="/a"}}"#), "7"),
            (format!(r#"punctual_messages_refused_total{{{app},name="/a"}}"#), "2"),
        ] {
            assert_eq!(sample(&text, &name), Some(value), "{name}\n{text}");
        }
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!((types.len(), count), (21, 21));
    }

    #[test]
    fn counts_every_job_in_the_buckets_above_it() {
        let snapshot = snapshot(Instant::now(), &[&[0, 511, 512, 1_000, 50_000_000_000]]);
        let about = about(&["a"]);
        let text = text_of(&about, &snapshot);
        let labels = r#"app="app",program="program",user="4294967294",process="7",partition="main",task="a""#;
        let below = |le: &str| {
            let name = format!(r#"punctual_response_time_seconds_bucket{{{labels},le="{le}"}}"#);
            sample(&text, &name).unwrap_or_else(|| panic!("{name}\n{text}"))
        };
        for (le, count) in
            [("5.11e-7", "2"), ("7.67e-7", "3"), ("1.023e-6", "4"), ("8.589934591e0", "4"), ("+Inf", "5")]
        {
            assert_eq!(below(le), count, "{le}");
        }
        let counts = text.lines().filter(|line| line.starts_with("punctual_response_time_seconds_bucket"));
        let counts: Vec<u64> = counts.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert!(counts.is_sorted() && counts.len() == bounds().count() + 1, "{counts:?}");
    }

    #[test]
    fn bounds_are_ends_of_histogram_buckets() {
        let bounds: Vec<u64> = bounds().collect();
        assert!(bounds.is_sorted_by(|a, b| a < b) && bounds.len() == 49);
        assert!(bounds.iter().all(|&bound| bucket_end(bucket_of(bound)) == bound), "{bounds:?}");
    }

    #[test]
    fn limits_text_about_apps_of_each_user() {
        const MAX: u64 = u64::MAX;
        let quantity = |_| Quantity { last: MAX, max: MAX, sum: MAX, counts: vec![u32::MAX; BUCKETS] };
        let figures = |_| Figures { numbers: [MAX; Figure::ALL.len()], terms: Term::ALL.map(quantity) };
        let name = "\"".repeat(60);
        let traffic = |_| Traffic { name: name.clone(), carried: MAX, lost: MAX, refused: MAX };
        let snapshot = Snapshot {
            tasks: (0..4).map(figures).collect(),
            traffic: (0..MAX_TRAFFIC).map(traffic).collect(),
            dropped: MAX,
            helper_starts: MAX,
            helper_ends: MAX,
            ..snapshot(Instant::now(), &[])
        };
        let about = about(&[&*name; 4]);
        let longest = longest_text(&about, &labels(&about, &found()));
        let length = text_of(&about, &snapshot).len() - text(&[]).len();
        assert!(length <= longest && longest < 3 * length, "{length} {longest}");

        let mut room = HashMap::new();
        let served = (0..MAX_USER_TEXT).take_while(|_| takes_room(&mut room, 1, longest)).count();
        assert_eq!(served, MAX_USER_TEXT / longest);
        assert!(takes_room(&mut room, 7, longest), "the room of another user");
    }

    #[test]
    fn omits_job_metrics_of_unmeasured_tasks() {
        let snapshot = snapshot(Instant::now(), &[&[1_000]]);
        let about = about_unmeasured(&["a"]);
        let text = text_of(&about, &snapshot);
        assert!(!text.contains("punctual_jobs_total{") && !text.contains("_bucket{"), "{text}");
        assert!(text.contains("punctual_overruns_total{"), "{text}");
    }

    fn about_unmeasured(names: &[&str]) -> About {
        let mut about = about(names);
        about.tasks.iter_mut().for_each(Task::unmeasure);
        about
    }
}

#[cfg(test)]
#[path = "monitoring_tests.rs"]
mod monitoring_tests;
