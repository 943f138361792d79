//! `punctual top`: its view of running apps, and of other processes.

mod support;
#[path = "support/watched.rs"]
mod watched;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde_json::Value;
use support::{program, punctual, text};
use test_skip::{Need, skip};
use watched::App;

/// Time limit on a busy machine.
const TOP_TIMEOUT: Duration = Duration::from_secs(280);

#[test]
#[ignore = "a program of other tests"]
fn watched_program() {
    watched::run();
}

fn top(arguments: &[&str]) -> Command {
    let mut command = punctual(&["top"]);
    command.args(arguments);
    command
}

/// Returns an update of this app.
fn snapshot(app: &App, more: &[&str]) -> Value {
    let output =
        top(&[&app.process(), "--json", "--count", "1"]).args(more).output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn task<'a>(snapshot: &'a Value, name: &str) -> &'a Value {
    snapshot["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name).unwrap()
}

#[test]
fn shows_every_task_of_running_app() {
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let first = snapshot(&app, &[]);
    assert_eq!((&first["schema"], &first["app"]), (&"punctual-top/1".into(), &"watched".into()));
    let names: Vec<_> = first["tasks"].as_array().unwrap().iter().map(|task| &task["name"]).collect();
    assert_eq!(names, ["beat", "late", "never"]);
    assert_eq!(task(&first, "never")["jobs"], 0);
    assert_eq!(task(&first, "beat")["period"], 2_000_000);

    let end = Instant::now() + TOP_TIMEOUT;
    let jobs = |snapshot: &Value| task(snapshot, "beat")["jobs"].as_u64().unwrap();
    let misses = |snapshot: &Value| task(snapshot, "late")["misses"].as_u64().unwrap();
    loop {
        let now = snapshot(&app, &[]);
        let response = &task(&now, "beat")["response"];
        assert!(response["p50"].as_u64() <= response["max"].as_u64(), "{now}");
        // An ordinary thread of the app publishes the traffic, and a busy machine delays it for
        // longer than jobs.
        let has_traffic = now["traffic"].as_array().is_some_and(|topics| !topics.is_empty());
        if jobs(&now) > jobs(&first) && misses(&now) > 0 && has_traffic {
            let traffic = serde_json::json!([{ "name": "/watched", "carried": 7, "lost": 1, "refused": 2 }]);
            assert_eq!(now["traffic"], traffic);
            break;
        }
        assert!(Instant::now() < end, "jobs, misses or traffic are not counted: {now}");
    }
}

#[test]
fn prints_table_without_terminal() {
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let output = top(&[&app.process(), "--count", "2", "--every", "50ms", "--sort", "task"])
        .output_within(TEST_LIMIT)
        .unwrap();
    let out = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert_eq!(out.matches(&format!("process {}", app.process())).count(), 2, "{out}");
    assert_eq!(out.lines().filter(|line| line.starts_with("beat ")).count(), 2, "{out}");
}

#[test]
fn reattaches_to_restarted_app() {
    let _alone = test_skip::alone();
    let first = App::start("watched_program");
    // By the program, since apps of other programs may have the same name.
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let mut watch = top(&[program, "--json", "--every", "50ms"]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let process = |line: String| serde_json::from_str::<Value>(&line).unwrap()["process"].to_string();
    process(lines.next().expect("an app is running"));
    drop(first);
    let second = App::start("watched_program");
    let found = lines.by_ref().map(process).find(|process| *process == second.process());
    assert!(found.is_some(), "the new one is not found");
    watch.kill().unwrap();
    watch.status_within(TEST_LIMIT).unwrap();

    let gone = second.process();
    drop(second);
    let output = top(&[&gone, "--count", "1"]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.starts_with(&format!("error: no running app, program or process is called {gone}")),
        "{error}"
    );
}

#[test]
fn does_not_find_app_without_shared_data() {
    let _alone = test_skip::alone();
    let app = App::start_with("watched_program", &[("PUNCTUAL_METRICS", "0")]);
    let output = top(&[&app.process(), "--count", "1"]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}

#[test]
fn rejects_memory_of_other_programs() {
    // Another test looks for an app of this program.
    let _alone = test_skip::alone();
    for (name, bytes, why) in [
        ("empty", &b""[..], "too short for a header"),
        ("noise", &[0x5a; 70_000][..], "does not begin with the mark"),
        ("open", &[0x5a; 70_000][..], "its size is not sealed"),
    ] {
        let is_sealed = name != "open";
        let name = format!("{name}-{}", std::process::id());
        let mut file = File::from(
            memfd_create(format!("punctual:{name}"), MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
                .unwrap(),
        );
        file.write_all(bytes).unwrap();
        if is_sealed {
            fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        }
        let output = top(&[&name, "--count", "1"]).output_within(TEST_LIMIT).unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains(why) && error.contains(&name), "{error}");
    }
}

#[test]
fn serves_prometheus() {
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let mut server = top(&[&app.process(), "--prometheus=127.0.0.1:0"]);
    let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
    let mut says = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut says).unwrap();
    let address = says.trim().strip_prefix("serving http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.expect("it says where");
    // Connections that send nothing delay no other client.
    let silent: Vec<_> = (0..10).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(TOP_TIMEOUT)).unwrap();
    client.write_all(b"GET /metrics?collect=all HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    drop(silent);
    server.kill().unwrap();
    server.status_within(TEST_LIMIT).unwrap();
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let user = snapshot(&app, &[])["user"].as_str().unwrap().to_owned();
    let process = app.process();
    let labels = format!(r#"app="watched",program="{program}",user="{user}",process="{process}",partition="#);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for name in ["punctual_jobs_total", "punctual_response_time_seconds_bucket"] {
        assert!(answer.contains(&format!("{name}{{{labels}")), "{name}{{{labels}\n{answer}");
    }
}

#[test]
fn error_names_occupied_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let output = top(&[&format!("--prometheus={address}")]).output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains(&address.to_string()) && error.contains("give another port"), "{error}");
}

/// A terminal of 80 by 24 that `punctual top` runs on.
struct Tmux(support::Scratch);

impl Tmux {
    fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.0.file("socket")).args(["-f", "/dev/null"]).args(arguments);
        text(&command.output_within(TEST_LIMIT).unwrap().stdout)
    }

    /// Waits until the screen fulfils `is_so`.
    fn until(&self, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + TOP_TIMEOUT;
        loop {
            let shown = self.command(&["capture-pane", "-p"]);
            if is_so(&shown) {
                return shown;
            }
            assert!(Instant::now() < end, "it is not shown: {shown}");
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}

#[test]
fn shows_live_view_on_terminal() {
    if !test_skip::is_installed("tmux") {
        return skip(Need::Tool("tmux"), "the live view on a terminal");
    }
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let tmux = Tmux(support::Scratch::new("tmux"));
    let view = format!("{} top {} --every 100ms; echo over $?; cat", program().display(), app.process());
    tmux.command(&["new-session", "-d", "-x", "80", "-y", "24", &view]);

    let shown = tmux.until(|shown| shown.contains("beat") && shown.contains("█"));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("watched of ") && lines[1].starts_with("TASK by level"), "{shown}");
    assert_eq!(lines.len(), 24, "{shown}");
    tmux.command(&["send-keys", "w"]);
    tmux.until(|shown| shown.contains("partitions, threads, settings") && shown.contains("thread level 2"));
    tmux.command(&["send-keys", "w", "Down", "h"]);
    tmux.until(|shown| shown.contains("late: release jitter J"));
    tmux.command(&["send-keys", "m"]);
    tmux.until(|shown| shown.contains("/watched  7 messages, 1 lost, 2 refused"));
    tmux.command(&["send-keys", "l"]);
    tmux.until(|shown| shown.contains("level 3") && shown.contains(" %"));
    tmux.command(&["send-keys", "l", "r"]);
    tmux.until(|shown| shown.contains("since r"));
    tmux.command(&["resize-window", "-x", "130", "-y", "10"]);
    tmux.until(|shown| shown.contains("PARTITION"));

    drop(app);
    tmux.until(|shown| shown.contains("it has ended") || shown.contains("no running app"));
    tmux.command(&["send-keys", "q"]);
    let shown = tmux.until(|shown| shown.contains("over 0"));
    assert!(!shown.contains("TASK by"), "the screen is as it was before: {shown}");
}

#[test]
fn one_key_records_next_miss() {
    if !test_skip::is_installed("tmux") {
        return skip(Need::Tool("tmux"), "the live view on a terminal");
    }
    let _alone = test_skip::alone();
    let app = App::start("watched_program");
    let tmux = Tmux(support::Scratch::new("tmux-miss"));
    let (directory, program) = (tmux.0.0.display(), program());
    let program = program.display();
    let view = format!("cd {directory}; {program} top {} --every 100ms; echo over $?; cat", app.process());
    tmux.command(&["new-session", "-d", "-x", "80", "-y", "24", &view]);
    tmux.until(|shown| shown.contains("beat"));
    tmux.command(&["send-keys", "t"]);
    let has_ended = |shown: &str| shown.contains("ends with the miss") || shown.contains("is not recorded");
    let shown = tmux.until(has_ended).replace('\n', " ");
    if shown.contains("is not recorded") {
        let why = shown.split("is not recorded: ").nth(1).unwrap_or_default();
        assert!(why.contains("root") || why.contains("tracefs"), "{shown}");
        return skip(Need::Tracefs, why);
    }
    let file = tmux.0.file("watched-miss.dat");
    let report = support::punctual(&["trace", "report", "--task", "*", "--from", "-1s"])
        .arg(&file)
        .output_within(TEST_LIMIT)
        .unwrap();
    assert!(report.status.success(), "{}", text(&report.stderr));
    assert!(text(&report.stdout).contains("R response time"), "{}", text(&report.stdout));
    assert!(!tmux.0.file("watched-miss.dat.raw").exists());

    // The second time it is canceled, by the end of the view.
    tmux.command(&["send-keys", "r"]);
    tmux.until(|shown| shown.contains("since r"));
    tmux.command(&["send-keys", "t", "t"]);
    tmux.until(|shown| shown.contains("no longer recorded") || shown.contains("watched-miss-2.dat"));
    tmux.command(&["send-keys", "t", "q"]);
    tmux.until(|shown| shown.contains("over 0"));
    let left: Vec<_> = fs::read_dir(&tmux.0.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_raw = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".raw");
    assert!(!left.iter().any(is_raw), "{left:?}");
}

#[test]
fn ends_with_terminal() {
    if !test_skip::is_installed("tmux") {
        return skip(Need::Tool("tmux"), "the live view on a terminal");
    }
    let _alone = test_skip::alone();
    let tmux = Tmux(support::Scratch::new("tmux-gone"));
    // Ignored, as below `nohup`, so that only the terminal reports it.
    let view = format!("trap '' HUP; exec {} top --every 100ms", program().display());
    tmux.command(&["new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", &view]);
    tmux.until(|shown| shown.contains("no running app") || shown.contains("TASK by"));
    let process = tmux.command(&["display-message", "-p", "#{pane_pid}"]);
    let process = Path::new("/proc").join(process.trim()).join("stat");
    assert!(process.exists(), "{}", process.display());
    tmux.command(&["kill-server"]);
    let is_gone = || fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
    let begun = Instant::now();
    while !is_gone() {
        assert!(begun.elapsed() < TOP_TIMEOUT, "`top` continues without a terminal");
        thread::sleep(Duration::from_millis(20));
    }
}
