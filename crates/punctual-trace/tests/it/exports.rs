//! Exports can be parsed again, and match the decomposition.

use std::collections::BTreeMap;

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Event, Kind, Task};
use punctual_trace::jobs::{Bounds, Config, Job};
use punctual_trace::names::Names;
use punctual_trace::stats::{Term, Watch};
use punctual_trace_report::explain;
use punctual_trace_report::export::{Csv, Perfetto, captured_job, columns, json};

const HIGH: Task = task(7, 10);
const LOW: Task = task(9, 30);
const IRQ: Task = task(24, 5);

/// HIGH waits for LOW's plain mutex while an irq thread displaces LOW.
fn scene() -> Script {
    let mut s = Script::new();
    let us = 1_000;
    s.waking(10 * us, 0, LOW, 0).switch(20 * us, 0, Runnable, LOW);
    s.waking(100 * us, 0, HIGH, 0).switch(110 * us, 0, Runnable, HIGH);
    s.at(150 * us, 0, Kind::FutexEnter { word: 0x7ffe_1000, operation: 128, value: 2 });
    s.switch(160 * us, 0, Sleeping, LOW);
    s.at(200 * us, 0, Kind::IrqEntry { irq: 24 }).waking(201 * us, 0, IRQ, 0);
    s.at(203 * us, 0, Kind::IrqExit { irq: 24 }).switch(210 * us, 0, Runnable, IRQ);
    s.switch(520 * us, 0, Sleeping, LOW);
    s.at(1_900 * us, 0, Kind::FutexEnter { word: 0x7ffe_1000, operation: 129, value: 1 });
    s.waking(1_905 * us, 0, HIGH, 0).at(1_906 * us, 0, Kind::FutexExit { result: 1 });
    s.switch(1_910 * us, 0, Runnable, HIGH).at(1_962 * us, 0, Kind::FutexExit { result: 0 });
    s.at(2_000 * us, 0, Kind::IrqEntry { irq: 30 }).at(2_020 * us, 0, Kind::IrqExit { irq: 30 });
    s.switch(2_134 * us, 0, Sleeping, LOW);
    s.switch(2_200 * us, 0, Sleeping, IDLE);
    s
}

fn names() -> Names {
    let mut names = Names::new();
    names.thread(7, "control");
    names.thread(9, "log,\"ger\"");
    names.thread(24, "irq/24-eth0");
    names
}

fn scene_jobs() -> Vec<Job> {
    scene().jobs(Config { segments: true, handlers: true, ..Config::default() })
}

#[test]
fn explains_each_term_in_one_sentence() {
    let mut names = names();
    names.thread(9, "logger");
    let jobs = scene_jobs();
    let sentences = explain::job(of(&jobs, 7)[0], &names);
    let expected = [
        "R: control/7 took 2 034 µs from its wake-up by logger/9 on CPU 0 to its end.",
        "J: 10 µs of 2 034 µs R: released and not yet running, while logger/9 took 10 µs of the CPU.",
        "SS: at most 192 µs (likely 50 µs) of 2 034 µs R: in the scheduler, at most 40 µs entering and at most 152 µs leaving.",
        "W: 2 024 µs of 2 034 µs R: from its first run on CPU 0 to its end on CPU 0.",
        "B: 1 812 µs of 2 034 µs R: blocked on futex 0x7ffe1000 held by `logger/9`, which was preempted by \
         `irq/24-eth0/24` for 310 µs, `control/7` for 10 µs and `irq 24` for 3.0 µs and ran for 1 \
         432 µs; 57 µs to resume, kept from the CPU by `logger/9` for 5.0 µs.",
        "I: 20 µs of 2 034 µs R: displaced by irq 30 for 20 µs.",
        "C: at most 192 µs (likely 142 µs) of 2 034 µs R: executing.",
    ];
    assert_eq!(sentences, expected);
    assert_eq!(explain::longest(of(&jobs, 7)[0], &names), sentences[4]);
}

#[test]
fn writes_every_column_on_every_csv_line() {
    let mut csv = Csv::new(Vec::new()).unwrap();
    let jobs = scene_jobs();
    jobs.iter().for_each(|job| csv.job(job, &names()).unwrap());
    let text = String::from_utf8(csv.finish().unwrap()).unwrap();
    let rows: Vec<Vec<String>> = text.lines().map(fields).collect();
    let columns = columns();
    assert!(rows[0].iter().eq(columns.iter().map(|column| &*column.name)), "{:?}", rows[0]);
    assert_eq!(rows.len(), jobs.len() + 1);
    assert!(rows.iter().all(|row| row.len() == columns.len()));
    let column = |name| columns.iter().position(|column| column.name == name).unwrap();
    let row = rows.iter().find(|row| row[column("name")] == "control").unwrap();
    assert_eq!(row[column("r_max_ns")], "2034000");
    assert_eq!(row[column("b_min_ns")], "1812000");
    assert_eq!(row[column("longest_blocking_holder")], "log,\"ger\"/9");
    let irq = rows.iter().find(|row| row[column("sort")] == "irq").unwrap();
    assert_eq!(irq[column("j_max_ns")], "");
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = fields.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => last.push(chars.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => last.push(c),
        }
    }
    fields
}

#[test]
fn writes_same_values_as_json() {
    let jobs = scene_jobs();
    for job in &jobs {
        let parsed: serde_json::Value = serde_json::from_str(&json(job, &names())).unwrap();
        assert_eq!(parsed["version"], 2);
        for term in Term::ALL {
            let member = &parsed["terms"][term.letter()];
            assert_eq!(member["min_ns"].as_u64(), term.of(job).lo());
            assert_eq!(member["max_ns"].as_u64(), term.of(job).hi());
            assert_eq!(member["precision"], term.of(job).precision());
        }
        assert_eq!(parsed["segments"].as_array().unwrap().len(), job.segments.len());
    }
    let high: serde_json::Value = serde_json::from_str(&json(of(&jobs, 7)[0], &names())).unwrap();
    let wait = &high["blockings"][0];
    assert_eq!((wait["on"].as_str(), wait["address"].as_str()), (Some("futex"), Some("0x7ffe1000")));
    assert_eq!(wait["owners"][0], "log,\"ger\"/9");
    let preempted = wait["shares"].as_array().unwrap().iter().find(|share| share["by"] == "irq/24-eth0/24");
    assert_eq!(preempted.unwrap()["ns"], 310_000);
}

#[test]
fn keeps_worst_job_with_events() {
    let mut watch = Watch::new(Config::default(), 1);
    scene().events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let task = watch.tasks().iter().find(|task| task.summary(Term::Response).max == 2_034_000).unwrap();
    let retained = &task.worst()[0];
    assert_eq!((retained.job.blocking, retained.truncated), (Bounds::Exact(1_812_000), false));
    assert_eq!(retained.events.len(), scene().events.len() - 3);
    let parsed: serde_json::Value = serde_json::from_str(&captured_job(retained, &names())).unwrap();
    assert_eq!(parsed["events"].as_array().unwrap().len(), retained.events.len());
    assert_eq!(parsed["events"][0][0], 100_000);
}

/// A protobuf message, by field.
type Fields = BTreeMap<u64, Vec<Field>>;

#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(bytes) => panic!("{bytes:?} is no number"),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => panic!("{number} is no text"),
            Self::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        }
    }

    fn message(&self) -> Fields {
        match self {
            Self::Number(number) => panic!("{number} is no message"),
            Self::Bytes(bytes) => decode(bytes),
        }
    }
}

fn decode(mut bytes: &[u8]) -> Fields {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("the number goes on");
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
        }
        panic!("the number is too long")
    }
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            wire @ (1 | 2) => {
                let length = if wire == 1 { 8 } else { varint(&mut bytes) as usize };
                let (taken, rest) = bytes.split_at(length);
                bytes = rest;
                match wire {
                    1 => Field::Number(u64::from_le_bytes(taken.try_into().unwrap())),
                    _ => Field::Bytes(taken.to_vec()),
                }
            }
            wire => panic!("wire type {wire}"),
        };
        fields.entry(tag >> 3).or_default().push(field);
    }
    fields
}

#[test]
fn writes_perfetto_tracks_slices_and_flows() {
    let names = names();
    let mut perfetto = Perfetto::new(Vec::new()).unwrap();
    scene().events.iter().for_each(|event| perfetto.event(event, &names, |_| true).unwrap());
    let jobs = scene_jobs();
    jobs.iter().for_each(|job| perfetto.job(job, &names).unwrap());
    let bytes = perfetto.finish().unwrap();
    if let Some(path) = std::env::var_os("PERFETTO_OUT") {
        std::fs::write(path, &bytes).unwrap();
    }

    let mut packets: Vec<Fields> = decode(&bytes)[&1].iter().map(Field::message).collect();
    packets.sort_by_key(|packet| packet.get(&8).map_or(0, |time| time[0].number()));
    let mut tracks = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    let mut slices = Vec::new();
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for packet in &packets {
        if let Some(track) = packet.get(&60) {
            let track = track[0].message();
            let parent = track.get(&5).map(|parent| parent[0].number());
            tracks.insert(track[&1][0].number(), (track[&2][0].text(), parent));
        }
    }
    for packet in packets.iter().filter(|packet| packet.contains_key(&11)) {
        let time = packet[&8][0].number();
        let event = packet[&11][0].message();
        let track = event[&11][0].number();
        assert!(tracks.contains_key(&track), "the track is declared");
        begun.extend(event.get(&47).map(|flow| flow[0].number()));
        ended.extend(event.get(&48).map(|flow| flow[0].number()));
        match event[&9][0].number() {
            1 => open.entry(track).or_default().push((event[&23][0].text(), time)),
            2 => {
                let (name, start) = open.get_mut(&track).and_then(Vec::pop).expect("a slice is open");
                slices.push((tracks[&track].0.clone(), name, start, time));
            }
            3 => {}
            kind => panic!("type {kind}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    begun.sort_unstable();
    ended.sort_unstable();
    assert_eq!(begun, ended);
    assert_eq!(begun.len(), jobs.iter().filter(|job| job.waker.is_some()).count());

    let named: Vec<&str> = tracks.values().map(|(name, _)| name.as_str()).collect();
    for name in ["CPUs", "Tasks", "CPU 0", "control/7", "irq 30 on CPU 0"] {
        assert!(named.contains(&name), "{name} is missing from {named:?}");
    }
    let has = |track: &str, name: &str, start: u64, end: u64| {
        let slice = (track.to_owned(), name.to_owned(), start * 1_000, end * 1_000);
        assert!(slices.contains(&slice), "{slice:?} is missing from {slices:#?}");
    };
    has("CPU 0", "irq/24-eth0/24", 210, 520);
    has("CPU 0", "irq 30", 2_000, 2_020);
    has("control/7", "J", 100, 110);
    has("control/7", "B", 150, 1_962);
    has("control/7", "I", 2_000, 2_020);
    let number = of(&jobs, 7)[0].number;
    has("control/7", &format!("job {number}"), 100, 2_134);
}

/// Perfetto would show a thread as running until the next event of its CPU, even if others may have
/// taken over unseen.
#[test]
fn writes_perfetto_without_irrelevant_threads() {
    let mut s = Script::new();
    s.switch(10_000, 0, Runnable, HIGH).switch(20_000, 0, Sleeping, LOW);
    let mut switch = |time, by: Task, to| {
        s.events.push(Event {
            time,
            cpu: 0,
            by: by.id,
            kind: Kind::Switch { from: by, reason: Sleeping, to },
        });
    };
    switch(70_000, IRQ, HIGH);
    switch(90_000, HIGH, IDLE);
    let mut perfetto = Perfetto::new(Vec::new()).unwrap();
    s.events.iter().for_each(|event| perfetto.event(event, &names(), |tid| tid == 7).unwrap());
    let packets: Vec<Fields> = decode(&perfetto.finish().unwrap())[&1].iter().map(Field::message).collect();
    let slices = packets.iter().filter_map(|packet| packet.get(&11)).map(|event| event[0].message());
    let begun: Vec<_> = slices.filter_map(|event| event.get(&23).map(|name| name[0].text())).collect();
    assert_eq!(begun, ["control/7", "somebody unseen", "control/7", "somebody unseen"]);
    // The kernel events: both threads of each switch.
    let switches = packets.iter().filter_map(|packet| packet.get(&1)).flat_map(|bundle| {
        bundle[0].message()[&2].iter().map(|event| event.message()[&4][0].message()).collect::<Vec<_>>()
    });
    let pids: Vec<_> = switches.map(|switch| (switch[&2][0].number(), switch[&6][0].number())).collect();
    let unseen = u64::from(i32::MAX.cast_unsigned());
    assert_eq!(pids, [(unseen, 7), (7, unseen), (unseen, 7), (7, unseen)]);
}
