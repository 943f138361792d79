//! Serving the figures to Prometheus: its text format, over HTTP.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::figures::{Row, Since, Stat, rows};
use super::find::{Apps, Found};
use super::memory::{Look, Memory, Traffic};
use crate::output::say;

/// The longest request that is read, in bytes.
const MAX_REQUEST: usize = 8192;
/// A client has so long to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves until the process ends.
///
/// # Errors
/// If the address cannot be listened at.
pub(crate) fn serve(address: SocketAddr, wanted: Option<&str>) -> Result<(), String> {
    let listener = TcpListener::bind(address).map_err(|error| {
        format!("--prometheus: {address}: {error}; give another port, as in --prometheus=127.0.0.1:9754")
    })?;
    let at = listener.local_addr().unwrap_or(address);
    say!("serving http://{at}/metrics");
    if !at.ip().is_loopback() {
        say!(
            "warning: whoever reaches {at} can read the figures; there is neither encryption nor a password"
        );
    }
    loop {
        match listener.accept() {
            // One after the other: a scraper asks a few times a minute.
            Ok((client, _)) => {
                // A client that does not listen is none of the others' concern.
                let _ = answer(client, wanted);
            }
            // As many files are open as may be, or the client has gone already.
            Err(error) => {
                say!("warning: {at}: {error}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Reads a request and answers it.
fn answer(mut client: TcpStream, wanted: Option<&str>) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > MAX_REQUEST {
            return respond(&mut client, "400 Bad Request", "the request is too long or came too slowly\n");
        }
        client.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1024];
        match client.read(&mut bytes)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&bytes[..count]),
        }
    }
    let line = String::from_utf8_lossy(&request);
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => respond(&mut client, "200 OK", &metrics(&Apps::running(), wanted)),
        (Some("GET"), _) => respond(&mut client, "404 Not Found", "the figures are at /metrics\n"),
        _ => respond(&mut client, "405 Method Not Allowed", "only GET is answered\n"),
    }
}

fn respond(client: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// The figures of all apps, or of those that are wanted.
fn metrics(apps: &Apps, wanted: Option<&str>) -> String {
    let found: Vec<&Found> = match wanted {
        Some(wanted) => apps.named(wanted),
        None => apps.found.iter().collect(),
    };
    let mut shown = Vec::new();
    for found in found {
        // What cannot be read is missing, as what does not run.
        let Ok(mut memory) = Memory::open(found) else { continue };
        let Ok(look) = memory.look() else { continue };
        shown.push((memory, look));
    }
    text(&shown.iter().map(|(memory, look)| App::new(memory, look)).collect::<Vec<_>>())
}

/// What is said of an app.
struct App {
    labels: String,
    missing: u64,
    dropped: u64,
    rows: Vec<Row>,
    traffic: Vec<Traffic>,
}

impl App {
    fn new(memory: &Memory, look: &Look) -> Self {
        let about = &memory.about;
        let labels = format!(r#"app="{}",process="{}""#, escaped(&about.app), memory.found().process);
        let rows = rows(about, look, &Since::default());
        let (missing, traffic) = (about.missing.len() as u64, look.traffic.clone());
        Self { labels, missing, dropped: look.dropped, rows, traffic }
    }
}

/// A count of a task.
type Count = fn(&Row) -> u64;
/// A figure of an app.
type OfApp = fn(&App) -> u64;
/// A count of what is carried.
type OfTraffic = fn(&Traffic) -> u64;
/// A quantity of a task.
type Of = fn(&Row) -> &Stat;

fn text(apps: &[App]) -> String {
    let mut text = String::new();
    let mut say =
        |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string can be written to");
    let counts: [(&str, &str, bool, Count); 6] = [
        ("jobs", "Jobs that have ended.", true, |row| row.jobs),
        ("deadline_misses", "Jobs that ended after their deadline.", true, |row| row.misses),
        ("self_suspensions", "Jobs that suspended themselves.", true, |row| row.suspended),
        ("overruns", "Releases that found the previous job unfinished.", false, |row| row.overruns),
        ("early_releases", "Releases less than the minimum inter-arrival time apart.", false, |row| {
            row.early
        }),
        ("idle_releases", "Jobs released by an idle event source.", false, |row| row.idle_releases),
    ];
    for (name, help, of_jobs, count) in counts {
        say(format_args!("# HELP punctual_{name}_total {help}\n# TYPE punctual_{name}_total counter"));
        for (app, row) in tasks(apps).filter(|(_, row)| row.measured || !of_jobs) {
            say(format_args!("punctual_{name}_total{{{}}} {}", labels(app, row), count(row)));
        }
    }
    let quantities: [(&str, &str, Of); 3] = [
        ("release_jitter", "Release to start.", |row| &row.jitter),
        ("response_time", "Release to end.", |row| &row.response),
        ("execution_time", "Start to end, without the jobs that preempted.", |row| &row.execution),
    ];
    for (name, help, of) in quantities {
        say(format_args!("# HELP punctual_{name}_seconds {help}\n# TYPE punctual_{name}_seconds summary"));
        for (app, row) in tasks(apps).filter(|(_, row)| row.measured) {
            let (labels, stat) = (labels(app, row), of(row));
            for (quantile, ns) in [("0.5", stat.p50), ("0.999", stat.p999), ("1", stat.max)] {
                say(format_args!(
                    "punctual_{name}_seconds{{{labels},quantile=\"{quantile}\"}} {}",
                    seconds(ns as f64)
                ));
            }
            let sum = stat.mean * row.jobs as f64;
            say(format_args!("punctual_{name}_seconds_sum{{{labels}}} {}", seconds(sum)));
            say(format_args!("punctual_{name}_seconds_count{{{labels}}} {}", row.jobs));
        }
    }
    let of_traffic: [(&str, &str, OfTraffic); 3] = [
        ("carried", "Messages carried in or out.", |traffic| traffic.carried),
        ("lost", "Messages lost on the way in or out.", |traffic| traffic.lost),
        ("refused", "Messages that came in and were not taken.", |traffic| traffic.refused),
    ];
    for (name, help, count) in of_traffic {
        let name = format!("messages_{name}_total");
        say(format_args!("# HELP punctual_{name} {help}\n# TYPE punctual_{name} counter"));
        for (app, traffic) in
            apps.iter().flat_map(|app| app.traffic.iter().map(move |traffic| (app, traffic)))
        {
            let labels = format!(r#"{},name="{}""#, app.labels, escaped(&traffic.name));
            say(format_args!("punctual_{name}{{{labels}}} {}", count(traffic)));
        }
    }
    let of_apps: [(&str, &str, &str, OfApp); 2] = [
        ("dropped_jobs_total", "counter", "Jobs released and never run.", |app| app.dropped),
        ("missing_settings", "gauge", "Real-time settings that the kernel did not grant.", |app| app.missing),
    ];
    for (name, kind, help, of) in of_apps {
        say(format_args!("# HELP punctual_{name} {help}\n# TYPE punctual_{name} {kind}"));
        apps.iter().for_each(|app| say(format_args!("punctual_{name}{{{}}} {}", app.labels, of(app))));
    }
    text
}

fn tasks(apps: &[App]) -> impl Iterator<Item = (&App, &Row)> {
    apps.iter().flat_map(|app| app.rows.iter().map(move |row| (app, row)))
}

fn labels(app: &App, row: &Row) -> String {
    format!(r#"{},partition="{}",task="{}""#, app.labels, escaped(&row.partition), escaped(&row.name))
}

fn seconds(ns: f64) -> String {
    format!("{:e}", ns / 1e9)
}

/// A label's value, as Prometheus wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::figures::tests::{about, look};

    #[test]
    fn each_figure_has_its_line_and_each_name_one_type() {
        let look = look(Instant::now(), &[&[1_000, 3_000], &[]]);
        let rows = rows(&about(&["a\"b", "c"]), &look, &Since::default());
        let app = App {
            labels: r#"app="app",process="7""#.into(),
            missing: 2,
            dropped: 0,
            rows,
            traffic: look.traffic.clone(),
        };
        let text = text(&[app]);
        for line in [
            r#"punctual_jobs_total{app="app",process="7",partition="main",task="a\"b"} 2"#,
            r#"punctual_response_time_seconds{app="app",process="7",partition="main",task="a\"b",quantile="1"} 3e-6"#,
            r#"punctual_response_time_seconds_sum{app="app",process="7",partition="main",task="a\"b"} 4e-6"#,
            r#"punctual_missing_settings{app="app",process="7"} 2"#,
            r#"punctual_messages_carried_total{app="app",process="7",name="/a"} 7"#,
            r#"punctual_messages_refused_total{app="app",process="7",name="/a"} 2"#,
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!((types.len(), count), (14, 14));
    }

    #[test]
    fn what_is_not_measured_has_no_figures_of_jobs() {
        let look = look(Instant::now(), &[&[1_000]]);
        let mut rows = rows(&about(&["a"]), &look, &Since::default());
        rows[0].measured = false;
        let text = text(&[App { labels: String::new(), missing: 0, dropped: 0, rows, traffic: Vec::new() }]);
        assert!(!text.contains("punctual_jobs_total{"), "{text}");
        assert!(text.contains("punctual_overruns_total{"), "{text}");
    }

    #[test]
    fn answers_requests_and_not_what_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ask = |request: &[u8]| {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(request).unwrap();
            let (served, _) = listener.accept().unwrap();
            answer(served, Some("no such app")).unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            text
        };
        let found = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            found.starts_with("HTTP/1.1 200 OK\r\n") && found.contains("# TYPE punctual_jobs_total"),
            "{found}"
        );
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(&[b'x'; MAX_REQUEST + 1]).starts_with("HTTP/1.1 400"));
    }
}
