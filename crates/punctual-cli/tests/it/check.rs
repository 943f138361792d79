//! `punctual check`: answers, exit statuses, and outputs, on this machine and on recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use serde_json::Value;
use test_skip::Need;

use crate::support::{Scratch, punctual, text};
use xtask_support::schema::Schema;

/// A recorded machine without findings, and a Raspberry Pi with PREEMPT_RT.
fn machine(name: &str) -> String {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../punctual-isolate/tests/machines");
    machines.join(name).with_extension("txt").display().to_string()
}

/// The recording of the guide: `control`, `vision` and `log` on one CPU.
fn recording() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threads.dat").display().to_string()
}

fn run(arguments: &[&str]) -> Output {
    punctual(&["check"]).args(arguments).stdin(Stdio::null()).output_within(TEST_LIMIT).unwrap()
}

/// Returns the JSON, which must follow its schema and agree with the exit status.
fn checked(arguments: &[&str]) -> Value {
    let output = run(&[&["--json"], arguments].concat());
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
    Schema::new(include_str!("../../../../docs/check-schema.json")).assert(&document);
    let status = ["yes", "no", "unknown"].iter().position(|answer| document["answer"] == *answer);
    assert_eq!(output.status.code(), status.map(|status| status as i32), "{document}");
    document
}

#[test]
fn answers_yes_if_every_bound_of_a_recording_meets_its_deadline_on_a_fit_machine() {
    let (trace, fit) = (recording(), machine("prepared"));
    let known = ["--trace", &trace, "--machine", &fit];
    let yes = checked(&[&known[..], &["--deadline", "control=400us", "--deadline", "102=5ms"]].concat());
    assert_eq!(yes["answer"], "yes", "{yes}");
    assert_eq!(yes["worst"], "control/101");
    let control = yes["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "control/101").unwrap();
    assert_eq!(control["period_ns"], 1_000_000);
    assert_eq!((&control["seen_ns"], &control["deadline_ns"]), (&208_000.into(), &400_000.into()));
    assert!(control["bound_ns"].as_u64() >= Some(208_000), "{control}");
    assert_eq!(yes["causes"], Value::Array(Vec::new()));
}

#[test]
fn answers_no_if_a_recorded_job_missed_its_deadline() {
    let no = checked(&["--trace", &recording(), "--deadline", "control=200us"]);
    assert_eq!(no["answer"], "no");
    assert!(no["reason"].as_str().unwrap().contains("`control/101` missed its deadline"), "{no}");
    assert!(no["tasks"][0]["margin"].as_f64() < Some(0.0), "{no}");
}

#[test]
fn answers_unknown_without_deadlines_or_without_the_machine() {
    let trace = recording();
    let none = checked(&["--trace", &trace]);
    assert_eq!(none["answer"], "unknown");
    assert!(none["reason"].as_str().unwrap().contains("--deadline"), "{none}");
    let misspelt = checked(&["--trace", &trace, "--deadline", "contrl=400us", "--deadline", "101=400us"]);
    assert_eq!(misspelt["unknown"][0]["what"], "the deadline of `contrl`", "{misspelt}");
    let why = "--deadline: no task has this name; there are control/101, vision/102, log/103";
    assert_eq!(misspelt["unknown"][0]["why"], why);
    assert_ne!(misspelt["unknown"][1]["what"], "the deadline of `101`", "{misspelt}");
    let probe = checked(&["--duration", "20ms", "--deadline", "100s", "--deadline", "contrl=1ms"]);
    assert_eq!(probe["answer"], "unknown");
    let reason = probe["reason"].as_str().unwrap();
    assert!(
        reason == "--deadline names no task `contrl`; there are probe" || reason.contains("setting"),
        "{probe}"
    );
    let elsewhere = checked(&["--trace", &trace, "--deadline", "control=400us"]);
    assert_eq!((&elsewhere["answer"], &elsewhere["machine"]), (&"unknown".into(), &Value::Null));
    let unknown = elsewhere["unknown"].as_array().unwrap();
    assert!(unknown.iter().any(|it| it["what"] == "the settings of the machine"), "{elsewhere}");
}

#[test]
fn lists_the_three_largest_causes_of_a_recorded_machine() {
    let pi = checked(&["--machine", &machine("rt-pi"), "--period", "500us"]);
    assert_eq!((&pi["answer"], &pi["subject"]["kind"]), (&"unknown".into(), &"machine".into()));
    assert_eq!(pi["machine"]["preempt_rt"], true);
    let causes = pi["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 3);
    assert!(causes.iter().all(|cause| cause["command"].is_string()), "{pi}");
    assert_eq!(pi["tasks"][0]["deadline_ns"], 500_000);
    assert_eq!(pi["tasks"][0]["seen_ns"], Value::Null, "nothing was measured");
}

#[test]
fn probe_measures_this_machine() {
    let probe = checked(&["--period", "1ms", "--duration", "50ms", "--deadline", "100s"]);
    let task = &probe["tasks"][0];
    assert_eq!(
        (&probe["subject"]["kind"], &task["jobs"], &task["misses"]),
        (&"probe".into(), &50.into(), &0.into())
    );
    assert!(task["seen_ns"].is_u64() && task["bound_ns"].is_null(), "{probe}");
    // Without real-time priority the measurement does not count.
    assert!(matches!(probe["answer"].as_str(), Some("yes" | "unknown")), "{probe}");
    if probe["answer"] == "yes" {
        assert!(probe["reason"].as_str().unwrap().contains("fewer than 6.00 % are"), "{probe}");
    }
}

/// A program that writes the recorded model and profile of the gimbal, in place of the gimbal.
#[test]
fn compares_the_recorded_run_of_the_gimbal_with_its_bounds() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("check-gimbal");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let app = scratch.file("gimbal");
    let script = format!(
        "#!/bin/sh\n[ -n \"$PUNCTUAL_MODEL\" ] && {{ cp {docs}/gimbal-model.json \"$PUNCTUAL_MODEL\"; exit 0; }}\n\
         cp {docs}/gimbal-profile.json \"$PUNCTUAL_PROFILE\"\n",
        docs = docs.display()
    );
    fs::write(&app, script).unwrap();
    fs::set_permissions(&app, fs::Permissions::from_mode(0o755)).unwrap();
    let app = app.to_str().unwrap();
    let checked = |deadline: &[&str]| checked(&[deadline, &["--", app]].concat());
    let gimbal = checked(&[]);
    assert_eq!((&gimbal["subject"]["kind"], &gimbal["worst"]), (&"app".into(), &"sample".into()));
    // Every deadline is met; the rest depends on this machine.
    assert!(matches!(gimbal["answer"].as_str(), Some("yes" | "unknown")), "{gimbal}");
    let tasks = gimbal["tasks"].as_array().unwrap();
    let measured: Vec<&Value> = tasks.iter().filter(|task| task["jobs"] != 0).collect();
    assert_eq!((tasks.len(), measured.len()), (5, 4));
    for task in measured {
        let time = |key: &str| task[key].as_u64().unwrap();
        assert!(time("seen_ns") <= time("profiled_bound_ns"), "{task}");
        assert!(time("bound_ns") <= time("profiled_bound_ns"), "{task}");
    }
    let late = checked(&["--deadline", "sample=30us"]);
    assert_eq!(late["answer"], "no", "{late}");
    assert_eq!(late["reason"], "`sample` missed its deadline: at least 1 job, the latest by 8.4 µs");
}

#[test]
fn measures_cyclictest() {
    if !test_skip::is_installed("cyclictest") {
        return test_skip::skip(Need::Tool("cyclictest"), "a foreign periodic program");
    }
    let command = ["--", "cyclictest", "-q", "-p", "60", "-i", "1000"];
    let program = checked(&[&["--duration", "1s", "--deadline", "100s"], &command[..]].concat());
    let Some(task) = program["tasks"].as_array().unwrap().first() else {
        return test_skip::skip(Need::Tracefs, "a foreign periodic program");
    };
    assert!(task["name"].as_str().unwrap().starts_with("cyclictest/"), "{program}");
    // Some kernels omit so many switches that no job is complete.
    let [jobs, unmeasured] = ["jobs", "unmeasured"].map(|key| task[key].as_u64().unwrap());
    assert!(jobs + unmeasured > 0 && (jobs == 0) == task["seen_ns"].is_null(), "{program}");
    assert_eq!(task["deadline_ns"], 100_000_000_000_u64);
    assert!(matches!(program["answer"].as_str(), Some("yes" | "unknown")), "{program}");
}

#[test]
fn reports_what_is_known_of_a_foreign_program() {
    let program = checked(&["--duration", "1s", "--deadline", "1ms", "--", "sleep", "60"]);
    assert_eq!((&program["answer"], &program["subject"]["kind"]), (&"unknown".into(), &"program".into()));
    assert!(program["machine"]["kernel"].is_string(), "{program}");
    let unknown = program["unknown"].as_array().unwrap();
    assert!(unknown.iter().any(|it| it["what"] == "response times"), "{program}");
}

#[test]
fn writes_page_and_json_next_to_the_text() {
    let scratch = Scratch::new("check");
    let (page, json) = (scratch.file("c.html"), scratch.file("c.json"));
    let trace = recording();
    let mut command = punctual(&["check", "--trace", &trace, "--deadline", "control=200us"]);
    command.arg("--html").arg(&page).arg(format!("--json={}", json.display()));
    let output = command.output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("no: `control/101` missed"), "{}", text(&output.stdout));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<h2>Tasks</h2>") && page.contains("control/101") && page.ends_with("</html>\n"));
    let json: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(json["answer"], "no");
}

#[test]
fn rejects_commands_and_files_that_do_not_exist() {
    let missing: PathBuf = "/no/such/file".into();
    for (arguments, remedy) in [
        (&["--", "/no/such/app"][..], "; give the path of one"),
        (&["--trace", missing.to_str().unwrap()], "; give a trace.dat file"),
        (&["--machine", missing.to_str().unwrap()], "; give a file of --record"),
        (&["--machine", "Cargo.toml"], "; give a file of --record"),
        (&["--period", "1s", "--duration", "1ms"], ""),
        (&["--html", "/no/such/directory/page.html"], "; give a file in an existing directory"),
        (&["--html", "/"], "; give a file"),
        (&["--deadline", "5"], "has no unit"),
        (&["--period", "0s"], "; write 1ns or more"),
        (&["--period", "0"], "; write a number with a unit"),
        (&["--period", "99999999999s"], "; give a shorter time"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.starts_with("error: ") && error.contains(remedy), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
