//! Recording, for tests.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../../punctual/tests/support/tracefs.rs"]
mod tracefs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use punctual_trace::event::{Event, Kind};
use punctual_trace::jobs::Counters;
use punctual_trace::record::{Absent, Config, Filter, Group, RecordError, Recording};
use tempfile::TempDir;
use test_skip::{Need, skip};

/// Locates tracefs for this thread, or prints that it cannot.
pub fn enter() {
    if let Err(why) = tracefs::enter() {
        eprintln!("tracefs cannot be mounted here: {why}");
    }
}

/// Starts to record, or prints that this machine does not allow it.
pub fn start(config: Config, directory: &Path) -> Option<Recording> {
    match Recording::start(config, directory) {
        Err(error @ (RecordError::NoTracefs | RecordError::Permission { .. })) => {
            skip(Need::Tracefs, error);
            None
        }
        result => Some(result.unwrap()),
    }
}

/// Returns whether the kernel has recorded nearly every switch; prints a notice if not. Some
/// kernels omit all of a CPU's switches from the idle thread for minutes, in every tool's
/// recordings, and count none as lost. Then there are few jobs to test.
pub fn whole(counters: Counters) -> bool {
    let Counters { switches, unseen_switches, bounded_switches, .. } = counters;
    let unseen_switches = unseen_switches + bounded_switches;
    let whole = unseen_switches * 50 <= switches;
    if !whole {
        let lost = format!("{unseen_switches} of {switches} switches are not in the recording");
        skip(Need::System("a kernel that records every switch"), lost);
    }
    whole
}

/// Returns the tracefs instances of a process.
pub fn instances_of(process: u32) -> Vec<String> {
    let entries = fs::read_dir("/sys/kernel/tracing/instances").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("punctual-{process}-"))).collect()
}

/// Starts two threads that wake each other, so that there are events to record. Returns the ID of
/// the one that ends here.
pub fn play() -> u32 {
    let (there, here) = std::sync::mpsc::channel();
    let (back, answers) = std::sync::mpsc::channel();
    let partner = std::thread::Builder::new().name("partner".to_owned());
    let partner = partner.spawn(move || {
        here.iter().for_each(|n: u32| back.send(n).unwrap());
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    });
    for n in 0..500 {
        there.send(n).unwrap();
        assert_eq!(answers.recv(), Ok(n));
    }
    drop(there);
    partner.unwrap().join().unwrap()
}

/// Returns the default groups and the programs, of this process.
pub fn config() -> Config {
    let filter = Filter { processes: vec![std::process::id()], ..Filter::default() };
    Config { filter, ..Config::default() }
}

/// Returns whether the group is available, or prints that it is not.
pub fn has_programs(absent: &[Absent]) -> bool {
    let missing = absent.iter().find(|absent| absent.group == Group::Schedule);
    missing.iter().for_each(|absent| skip(Need::System("BPF programs"), absent));
    missing.is_none()
}

/// Starts to record with the programs, or prints that this machine does not allow it.
pub fn start_with_programs(config: Config, place: &TempDir) -> Option<Recording> {
    start(config, &place.path().join("raw")).filter(|recording| has_programs(recording.absent()))
}

/// Removes scheduler calls that did not switch: they are overhead only if they are recorded.
pub fn without_vain_calls(events: &[Event]) -> Vec<Event> {
    let mut entered: BTreeMap<u16, usize> = BTreeMap::new();
    let mut vain = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        match event.kind {
            Kind::ScheduleEnter => drop(entered.insert(event.cpu, index)),
            Kind::Switch { .. } => drop(entered.remove(&event.cpu)),
            Kind::ScheduleExit => {
                vain.extend(entered.remove(&event.cpu).into_iter().flat_map(|entry| [entry, index]))
            }
            _ => {}
        }
    }
    events.iter().enumerate().filter(|(index, _)| !vain.contains(index)).map(|(_, event)| *event).collect()
}
