//! Tests of reading the memory of apps, including damaged memory.

use std::io::Write;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

const TEXT: &str = r#"{"app": "app", "program": null, "punctual": "0.1.0", "partitions": [{"name": "p", "cpu": 3}],
    "tasks": [{"name": "a\u001b[2J", "partition": "p", "level": 2, "period": 1000, "deadline": null, "measured": 1}],
    "kernel": "", "memory": "", "threads": [], "missing": [], "notes": []}"#;

/// A region with one task, whose 8-byte words count up from 1000, and two kinds of traffic.
fn region() -> Vec<u8> {
    let mut bytes = vec![0; size_of::<Header>()];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let (tasks_at, stride) = (size_of::<Header>() as u64, size_of::<TaskFigures>() as u64);
    put(offset_of!(Header, magic), &MAGIC.to_ne_bytes());
    put(offset_of!(Header, version), &VERSION.to_ne_bytes());
    put(offset_of!(Header, tasks), &1_u32.to_ne_bytes());
    put(offset_of!(Header, tasks_at), &tasks_at.to_ne_bytes());
    put(offset_of!(Header, stride), &stride.to_ne_bytes());
    let traffic_at = tasks_at + stride;
    let text_at = traffic_at + (MAX_TRAFFIC * size_of::<TrafficFigures>()) as u64;
    put(offset_of!(Header, traffic_at), &traffic_at.to_ne_bytes());
    put(offset_of!(Header, traffic), &2_u64.to_ne_bytes());
    put(offset_of!(Header, text_at), &text_at.to_ne_bytes());
    put(offset_of!(Header, text_len), &(TEXT.len() as u64).to_ne_bytes());
    bytes.extend((0..stride / 8).flat_map(|index| (1000 + index).to_ne_bytes()));
    bytes.resize(text_at as usize, 0);
    for (index, name) in ["/angles\u{1b}[2J", &"x".repeat(MAX_TRAFFIC_NAME)].into_iter().enumerate() {
        let at = traffic_at as usize + index * size_of::<TrafficFigures>();
        bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
        for (count, value) in [
            (offset_of!(TrafficFigures, carried), 70_u64),
            (offset_of!(TrafficFigures, lost), 5),
            (offset_of!(TrafficFigures, refused), 3),
        ] {
            bytes[at + count..at + count + 8].copy_from_slice(&(value + index as u64).to_ne_bytes());
        }
    }
    bytes.extend(TEXT.bytes());
    bytes
}

fn open(bytes: &[u8]) -> Result<Memory, Unreadable> {
    let mut file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    let found = Found { process: 1, app: "app".into(), user: 0, path: PathBuf::new(), id: (0, 0) };
    Memory::of(file, found)
}

fn refused(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = region();
    change(&mut bytes);
    open(&bytes).expect_err("it is damaged").to_string()
}

#[test]
fn reads_each_value_from_its_column() {
    let mut memory = open(&region()).unwrap();
    let figures = memory.read().unwrap().tasks.remove(0);
    let at = |offset: usize| 1000 + offset as u64 / 8;
    assert_eq!(figures.number(Figure::Jobs), at(0));
    assert_eq!(figures.number(Figure::Misses), at(8));
    assert_eq!(figures.term(Term::Response).max, at(offset_of!(TaskFigures, response) + 8));
    assert_eq!(figures.number(Figure::Overruns), at(offset_of!(TaskFigures, occasional)));
    let undisturbed = at(offset_of!(TaskFigures, undisturbed_times)) as u32;
    assert_eq!(figures.executions_first(), at(offset_of!(TaskFigures, executions)) as u32 + undisturbed);
    assert_eq!(memory.about.tasks[0].period, Some(1000));
    assert_eq!(memory.about.partitions[0].cpu, Some(3));
}

#[test]
fn finds_carried_dependencies() {
    let mut memory = open(&region()).unwrap();
    let traffic = memory.read().unwrap().traffic;
    let of = |name: &str, carried, lost, refused| Traffic { name: name.into(), carried, lost, refused };
    assert_eq!(traffic, [of("/angles\\u{1b}[2J", 70, 5, 3), of(&"x".repeat(MAX_TRAFFIC_NAME), 71, 6, 4)]);
}

#[test]
fn rejects_counts_larger_than_data() {
    let mut bytes = region();
    let at = offset_of!(Header, traffic);
    bytes[at..at + 8].copy_from_slice(&u64::MAX.to_ne_bytes());
    assert_eq!(open(&bytes).unwrap().read().unwrap().traffic.len(), MAX_TRAFFIC);
}

impl Figures {
    fn executions_first(&self) -> u32 {
        self.term(Term::Execution).counts[0]
    }
}

#[test]
fn names_contain_no_terminal_escapes() {
    assert_eq!(open(&region()).unwrap().about.tasks[0].name, "a\\u{1b}[2J");
}

#[test]
fn error_names_supported_version() {
    let other = refused(|bytes| bytes[offset_of!(Header, version)] = 7);
    assert!(other.contains(&format!("of version 7, and this program reads version {VERSION}")), "{other}");
}

#[test]
fn waits_for_memory_that_is_not_ready() {
    let mut bytes = region();
    bytes[..8].fill(0);
    assert!(matches!(open(&bytes), Err(Unreadable::NotYet)));
}

#[test]
fn rejects_values_that_do_not_fit() {
    let set = |offset: usize, value: u64| {
        refused(move |bytes| bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes()))
    };
    for (offset, value) in [
        (offset_of!(Header, magic), 1),
        (offset_of!(Header, stride), 0),
        (offset_of!(Header, stride), u64::MAX),
        (offset_of!(Header, stride), size_of::<TaskFigures>() as u64 + 64),
        (offset_of!(Header, tasks_at), u64::MAX),
        (offset_of!(Header, traffic_at), u64::MAX - 7),
        (offset_of!(Header, text_at), u64::MAX - 1),
        (offset_of!(Header, text_len), 1 << 40),
        (offset_of!(Header, text_len), 3),
    ] {
        assert!(set(offset, value).contains("damaged"), "{offset} {value}");
    }
    let many = refused(|bytes| bytes[offset_of!(Header, tasks) + 3] = 255);
    assert!(many.contains("number of its tasks"), "{many}");
    assert!(refused(|bytes| bytes.truncate(40)).contains("too short"));
    assert!(refused(|bytes| bytes.truncate(9000)).contains("exceed it"));
}

#[test]
fn rejects_long_names() {
    let with_name = |length: usize| {
        let text = TEXT.replace(r#""app": "app""#, &format!(r#""app": "{}""#, "x".repeat(length)));
        let mut bytes = region();
        bytes.truncate(bytes.len() - TEXT.len());
        bytes.extend(text.bytes());
        let at = offset_of!(Header, text_len);
        bytes[at..at + 8].copy_from_slice(&(text.len() as u64).to_ne_bytes());
        open(&bytes).map(|memory| memory.about.app.len()).map_err(|error| error.to_string())
    };
    assert_eq!(with_name(MAX_NAME), Ok(MAX_NAME));
    assert!(with_name(MAX_NAME + 1).is_err_and(|error| error.contains("length of a name")));
}

#[test]
fn shrinking_file_is_an_error() {
    let mut memory = open(&region()).unwrap();
    memory.file.set_len(500).unwrap();
    let error = memory.read().expect_err("it is too short").to_string();
    assert!(error.contains("has become shorter"), "{error}");
}

/// For any corrupted byte, all derived output can be produced: nothing panics or takes long.
#[test]
fn any_flipped_byte_is_rejected_or_shown() {
    use crate::top::figures::{Since, rows};

    let good = region();
    let text_at = good.len() - TEXT.len();
    let head = size_of::<Header>();
    let offsets = (0..head + 200).chain(text_at..good.len());
    for place in offsets {
        let flips: &[u8] = if place < head { &[0x01, 0x80, 0xff] } else { &[0x81] };
        for flip in flips {
            let mut bytes = good.clone();
            bytes[place] ^= flip;
            let Ok(mut memory) = open(&bytes) else { continue };
            let snapshot = memory.read().expect("it is as long as it was");
            let mut since = Since::default();
            rows(&memory.about, &snapshot, &since);
            since.reset(&snapshot);
            since.next(snapshot.clone());
            rows(&memory.about, &snapshot, &since);
        }
    }
}
