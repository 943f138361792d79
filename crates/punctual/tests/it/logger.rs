//! Receiver of warnings about missing settings and of records of jobs: the program's logger if it
//! has one, and standard error otherwise.
//!
//! Each case is a separate process, because a logger can only be set once. An app that requests
//! marks in an unavailable trace lacks a setting on every machine.

use std::process::Command;

use log::{LevelFilter, Log, Metadata, Record};
use punctual::Config;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

const CASE: &str = "PUNCTUAL_TEST_LOGGER";
const MESSAGE: &str = "jobs are not marked in the trace";

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        job::spawn().expect("it has room");
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn job(_: job::Context) {
        punctual::log!(Info, "job {}", 1);
        punctual::log!(Debug, "details");
        panic!("at the end");
    }
}

/// Prints its records, and the kind of thread.
struct Printing;

impl Log for Printing {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let policy = punctual_process::scheduling::Scheduling::current().unwrap().policy();
        println!("LOGGED {} {} policy {policy}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

struct Panicking;

impl Log for Panicking {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {
        panic!("the logger is broken");
    }

    fn flush(&self) {}
}

/// The program whose output the tests look at.
#[test]
fn program() {
    let Ok(case) = std::env::var(CASE) else { return };
    match case.as_str() {
        "none" => {}
        "no logger, a level" => log::set_max_level(LevelFilter::Trace),
        "a logger, no level" => log::set_logger(&Printing).unwrap(),
        "warnings" => log::set_logger(&Printing).map(|()| log::set_max_level(LevelFilter::Warn)).unwrap(),
        "errors" => log::set_logger(&Printing).map(|()| log::set_max_level(LevelFilter::Error)).unwrap(),
        "panics" => log::set_logger(&Panicking).map(|()| log::set_max_level(LevelFilter::Trace)).unwrap(),
        other => unreachable!("{other}"),
    }
    let report = app::run(Config::from_env()).expect("nothing that it misses is asked for");
    assert_eq!(report.exit_code(), 101);
    assert!(report.settings.notes.iter().any(|note| note.contains(MESSAGE)), "{report}");
}

/// Returns the program's standard output and standard error.
fn run(case: &str) -> (String, String) {
    let output = Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "logger::program", "--nocapture"])
        .env(CASE, case)
        .env("PUNCTUAL_TRACE", "/there/is/no/trace_marker_raw")
        .output_within(TEST_LIMIT)
        .expect("this test can be started again");
    let [printed, record] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{case}:\n{printed}\n{record}");
    (printed, record)
}

#[test]
fn reports_on_standard_error_without_logger() {
    for case in ["none", "no logger, a level", "a logger, no level", "panics"] {
        let (printed, record) = run(case);
        assert!(record.contains(&format!("punctual: {MESSAGE}")), "{case}:\n{record}");
        assert!(!printed.contains("LOGGED"), "{case}:\n{printed}");
    }
}

#[test]
fn writes_records_of_jobs_to_standard_error_without_logger() {
    for (case, shows_details) in
        [("none", false), ("no logger, a level", true), ("a logger, no level", false)]
    {
        let (_, record) = run(case);
        assert!(record.contains("INFO it::logger::app: job 1\n"), "{case}:\n{record}");
        assert_eq!(record.contains("DEBUG it::logger::app: details\n"), shows_details, "{case}:\n{record}");
    }
}

#[test]
fn logs_only_on_ordinary_threads_and_never_during_fault() {
    let (printed, record) = run("warnings");
    let logged: Vec<_> = printed.lines().filter(|line| line.contains("LOGGED")).collect();
    assert!(logged.iter().any(|line| line.contains(MESSAGE)), "{printed}");
    assert!(logged.iter().all(|line| line.contains("LOGGED WARN punctual policy 0: ")), "{printed}");
    assert!(!record.contains(MESSAGE), "{record}");
    assert!(
        record.contains("task `job` panicked: at the end") && !printed.contains("at the end"),
        "{printed}\n{record}"
    );
}

#[test]
fn respects_level_of_logger() {
    let (printed, record) = run("errors");
    assert!(!printed.contains(MESSAGE) && !record.contains(MESSAGE), "{printed}\n{record}");
}
