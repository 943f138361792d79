//! Recordings of strangers: as many events as `trace-cmd report` prints.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_trace::event::Kind;
use punctual_trace::jobs::{Config, Decomposer, Select};
use punctual_trace::read::{ReadError, Trace};

/// Says where the recordings are.
const PLACE: &str = "PUNCTUAL_TRACES";

fn recordings() -> Vec<PathBuf> {
    let place = std::env::var_os(PLACE).unwrap_or_else(|| panic!("{PLACE} is the directory of recordings"));
    let mut files: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "dat"));
    files.sort();
    files
}

/// `name-17  [001]  1234.567890: sched_switch: …`: how many lines there are of each event.
fn printed(file: &Path) -> BTreeMap<String, u64> {
    let mut report = Command::new("trace-cmd");
    report.arg("report").arg("-i").arg(file).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut report = report.spawn().expect("trace-cmd is installed");
    let mut counts = BTreeMap::new();
    for line in BufReader::new(report.stdout.take().unwrap()).split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        if let Some(name) = event_of(&line) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    assert!(report.wait().unwrap().success());
    counts
}

fn event_of(line: &str) -> Option<&str> {
    // A name may have anything in it, and so may what follows the name of the event.
    line.match_indices(" [").find_map(|(at, _)| {
        let (cpu, rest) = line[at + 2..].split_once(']')?;
        let (time, rest) = rest.trim_start().split_once(": ")?;
        let time = time.rsplit(' ').next()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (seconds, fraction) = time.split_once('.')?;
        (is_number(cpu) && is_number(seconds) && is_number(fraction)).then_some(())?;
        rest.trim_start().split_once(':').map(|(name, _)| name)
    })
}

/// How many records there are, by event where that is not known to the analysis, and by all the others together.
fn read(file: &Path) -> (BTreeMap<String, u64>, u64) {
    let trace = match Trace::open(file) {
        Err(ReadError::Empty { .. }) => return (BTreeMap::new(), 0),
        trace => trace.unwrap(),
    };
    let mut events = trace.events().unwrap();
    let mut known = 0;
    let mut decomposer = Decomposer::new(Config {
        select: Select { priorities: Some(i32::MIN..=i32::MAX), ..Select::real_time() },
        handlers: true,
        ..Config::default()
    });
    for event in events.by_ref() {
        let event = event.unwrap();
        known += u64::from(!matches!(event.kind, Kind::Lost { .. }));
        decomposer.feed(&event, &mut |job| {
            if job.complete() {
                assert_eq!(job.check(), Ok(()), "{job:?}");
            }
        });
    }
    decomposer.finish(&mut |_| {});
    let skipped = events.skipped_names(trace.formats());
    let name = |event: String| event.rsplit(':').next().unwrap_or_default().to_owned();
    (skipped.into_iter().map(|(event, count)| (name(event), count)).collect(), known)
}

#[test]
#[ignore = "needs trace-cmd and recordings; `cargo xtask traces` fetches them"]
fn reads_as_many_events_as_trace_cmd() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    let mut failed = Vec::new();
    for file in &recordings {
        let mut printed = printed(file);
        let (skipped, known) = read(file);
        let all: u64 = printed.values().sum();
        let mut wrong = Vec::new();
        for (event, count) in &skipped {
            let found = printed.remove(event).unwrap_or(0);
            if found != *count {
                wrong.push(format!("{event}: {count}, and trace-cmd prints {found}"));
            }
        }
        let rest: u64 = printed.values().sum();
        if rest != known {
            wrong.push(format!(
                "{known} of the kinds that are known, and trace-cmd prints {rest}: {printed:?}"
            ));
        }
        println!(
            "{}: {all} events, {known} understood{}",
            file.display(),
            if wrong.is_empty() { "" } else { ", WRONG" }
        );
        failed.extend(wrong.into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn finds_names_of_events_in_lines() {
    for (line, event) in [
        ("          <idle>-0     [001]    76.402065: sched_wakeup:         x", Some("sched_wakeup")),
        (" a [003] b: c-1 [3]: -17  [000] d..1 26.5: print: ip: foo", Some("print")),
        ("cpus=2", None),
        ("CPU:1 [12 EVENTS DROPPED]", None),
    ] {
        assert_eq!(event_of(line), event, "{line}");
    }
}
