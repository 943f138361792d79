//! Recordings of strangers: as many events as `trace-cmd report` prints.

mod trace_cmd;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use punctual_trace::event::Kind;
use punctual_trace::jobs::{Config, Decomposer, Select};
use punctual_trace::machines::{MergeError, Relation, merge};
use punctual_trace::read::{ReadError, Trace};
use trace_cmd::{event_of, printed};

/// Says where the recordings are.
const PLACE: &str = "PUNCTUAL_TRACES";

fn place() -> PathBuf {
    std::env::var_os(PLACE).unwrap_or_else(|| panic!("{PLACE} is the directory of recordings")).into()
}

fn recordings() -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(place()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "dat"));
    files.sort();
    files
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
        let mut printed = printed(file).expect("trace-cmd is installed");
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

/// Each twice, as if of two machines with one clock.
#[test]
#[ignore = "needs trace-cmd and recordings; `cargo xtask traces` fetches them"]
fn merges_recordings_so_that_trace_cmd_reads_them() {
    let mut all = recordings();
    all.extend(fs::read_dir(place().join("ctf")).unwrap().map(|entry| entry.unwrap().path()));
    let file = std::env::temp_dir().join(format!("punctual-corpus-merged-{}.dat", std::process::id()));
    let mut compared = 0;
    for recording in &all {
        let open = || Trace::open(recording);
        let traces = match (open(), open()) {
            (Ok(one), Ok(other)) => [one, other],
            (Err(ReadError::Empty { .. }), _) => continue,
            (result, _) => panic!("{}: {:?}", recording.display(), result.err()),
        };
        match merge(&traces, Relation::Shared(0), &file) {
            Ok(merged) => println!("{}: {:?}", recording.display(), merged.damage),
            Err(MergeError::Unsupported { what, .. }) => {
                println!("{}: not merged: {what}", recording.display());
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let twice: u64 = printed(&file).expect("trace-cmd is installed").values().sum();
        let once: u64 = if recording.is_dir() {
            let events = traces[0].events().unwrap().with_others().map(Result::unwrap);
            events.filter(|event| !matches!(event.kind, Kind::Lost { .. })).count() as u64
        } else {
            printed(recording).expect("trace-cmd is installed").values().sum()
        };
        assert_eq!(twice, 2 * once, "{}", recording.display());
        compared += 1;
    }
    let _ = fs::remove_file(&file);
    assert!(compared * 2 > all.len(), "{compared} of {} are compared", all.len());
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
