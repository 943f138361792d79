//! A trace with the opposite byte order, and one with numbers of four bytes: version 6, built by
//! hand.

use std::sync::Arc;

use crate::support::{is_record, records};
use punctual_trace::event::{Comm, Event, Kind, SwitchOut, Task};
use punctual_trace::machines::{Relation, merge};
use punctual_trace::read::format::PageLayout;
use punctual_trace::read::{Order, ReadError, Recorder, Trace};
use punctual_trace::write::encode::Encoder;
use punctual_trace::write::formats;
use punctual_trace::write::page::PageWriter;

struct File {
    order: Order,
    bytes: Vec<u8>,
}

impl File {
    fn number(&mut self, value: u64, size: usize) {
        let bytes = match self.order {
            Order::Little => value.to_le_bytes()[..size].to_vec(),
            Order::Big => value.to_be_bytes()[8 - size..].to_vec(),
        };
        self.bytes.extend(bytes);
    }

    fn text(&mut self, text: &str, size: usize) {
        self.number(text.len() as u64, size);
        self.bytes.extend(text.as_bytes());
    }
}

/// Returns a file whose clock is `clocks`, with the factor and shift that convert its times to ns.
fn file_of(order: Order, long: usize, events: &[Event], clocks: &str, scale: Option<[u64; 3]>) -> Vec<u8> {
    let header_page = match long {
        8 => formats::HEADER_PAGE.to_owned(),
        _ => "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
              \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
              \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
              \tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n"
            .to_owned(),
    };
    let layout = PageLayout::parse(header_page.as_bytes(), order).unwrap();
    let encoder = Encoder::new(order, &formats::all());
    let mut pages = PageWriter::new(layout, Vec::new());
    let mut record = Vec::new();
    for event in events {
        match event.kind {
            Kind::Lost { count } => pages.missed(count).unwrap(),
            _ => {
                encoder.encode(event, |_| Some("a thread"), &mut record).unwrap();
                pages.push(event.time, &record).unwrap();
            }
        }
    }
    let pages = pages.finish().unwrap();

    let mut file = File { order, bytes: b"\x17\x08\x44tracing6\0".to_vec() };
    file.bytes.extend([u8::from(order == Order::Big), long as u8]);
    file.number(4096, 4);
    file.bytes.extend(b"header_page\0");
    file.text(&header_page, 8);
    file.bytes.extend(b"header_event\0");
    file.text(formats::HEADER_EVENT, 8);
    let (ftrace, others): (Vec<_>, Vec<_>) = formats::texts().partition(|(group, _)| *group == "ftrace");
    file.number(ftrace.len() as u64, 4);
    ftrace.iter().for_each(|(_, text)| file.text(text, 8));
    file.number(others.len() as u64, 4);
    for (group, text) in others {
        file.bytes.extend(group.as_bytes());
        file.bytes.push(0);
        file.number(1, 4);
        file.text(text, 8);
    }
    file.text("ffffffff81000000 T schedule\n", 4);
    file.text("", 4);
    file.text("17 level 4\n", 8);
    file.number(2, 4);
    file.bytes.extend(b"options  \0");
    file.number(4, 2);
    file.text(&format!("{clocks}\0"), 4);
    if let Some([factor, shift, offset]) = scale {
        file.number(14, 2);
        file.number(16, 4);
        file.number(factor, 4);
        file.number(shift, 4);
        file.number(offset, 8);
    }
    file.number(0, 2);
    file.bytes.extend(b"flyrecord\0");
    let start = (file.bytes.len() + 32).next_multiple_of(4096) as u64;
    // Everything belongs to CPU 1; CPU 0 has nothing.
    for number in [0, 0, start, pages.len() as u64] {
        file.number(number, 8);
    }
    file.bytes.resize(start as usize, 0);
    file.bytes.extend(pages);
    file.bytes
}

fn file(order: Order, long: usize, events: &[Event]) -> Vec<u8> {
    file_of(order, long, events, "local [mono]", None)
}

fn events() -> Vec<Event> {
    let (a, b) = (Task { id: 17, priority: -1 }, Task { id: 18, priority: 120 });
    let kinds = [
        Kind::Waking { task: a, cpu: 1 },
        Kind::Switch { from: b, reason: SwitchOut::Runnable, to: a },
        Kind::Inherit { task: 18, old: 120, new: 39 },
        Kind::TimerStart { timer: 0xffff_8880_1234_5678, expires: 1 << 40 },
        Kind::FutexExit { result: -11 },
        Kind::JobStart { task: 4, released: 1 << 50 },
        Kind::JobEnd { task: 4 },
        Kind::OfflineJob {
            task: 4,
            cpu: 2,
            started: 1 << 50,
            jitter: 1,
            window: 1 << 20,
            preempted: 1 << 10,
        },
        Kind::ScheduleEnter,
        Kind::Switch { from: a, reason: SwitchOut::Gone, to: b },
    ];
    let mut events = Vec::new();
    for n in 0..600 {
        let time = (1 << 45) + n * n * 1_000;
        if n == 300 {
            events.push(Event { time, cpu: 1, by: 0, kind: Kind::Lost { count: 77 } });
        }
        events.push(Event { time, cpu: 1, by: 18, kind: kinds[n as usize % kinds.len()] });
    }
    events
}

#[test]
fn loads_both_byte_orders_and_all_widths() {
    for (order, long) in [(Order::Little, 8), (Order::Big, 8), (Order::Little, 4), (Order::Big, 4)] {
        let bytes = file(order, long, &events());
        let trace = Trace::from_bytes("made.dat", Arc::new(bytes)).unwrap();
        assert_eq!((trace.clock(), trace.cpus()), ("mono", 1));
        let mut read = trace.events().unwrap();
        let found: Vec<_> = read.by_ref().map(Result::unwrap).filter(is_record).collect();
        assert_eq!(found, events(), "{order:?}, {long}");
        assert_eq!(read.threads().get(17), Some(Comm::new("a thread")));
    }
}

#[test]
fn reports_wrong_order() {
    let mut bytes = file(Order::Big, 8, &events());
    bytes[12] = 0;
    let error = match Trace::from_bytes("made.dat", Arc::new(bytes)) {
        Err(error) => error,
        Ok(_) => panic!("it is a trace"),
    };
    assert!(
        matches!(error, ReadError::Corrupt { .. }) && error.to_string().contains("made.dat: byte "),
        "{error}"
    );
}

/// Cycle counts and other counts are not ns.
#[test]
fn converts_counts_by_recorded_scale_or_rejects_them() {
    let times = |clocks: &str, scale| {
        let trace = Trace::from_bytes("made.dat", Arc::new(file_of(Order::Big, 8, &events(), clocks, scale)))
            .unwrap();
        let events = records(&trace)?;
        Ok::<_, ReadError>(events.map(|event| event.unwrap().time).collect::<Vec<_>>())
    };
    let counts: Vec<_> = events().iter().map(|event| event.time).collect();
    let third = Some([1 << 30, 31, 1_000]);
    let halves: Vec<_> = counts.iter().map(|count| count / 2 + 1_000).collect();
    assert_eq!(times("local [x86-tsc]", third).unwrap(), halves);
    assert_eq!(times("[mono] x86-tsc", third).unwrap(), counts, "the scale is not that of this clock");
    for (clock, scale, why) in [
        ("x86-tsc", None, "counts cycles of the processor, and how long one takes was not recorded"),
        ("ppc-tb", None, "ticks of the time base"),
        ("counter", None, "counts events"),
        ("counter", third, "counts events"),
        ("uptime", third, "ticks of the kernel's timer"),
        ("lunar", None, "no kernel has a clock of that name"),
    ] {
        let error = times(&format!("local [{clock}] mono"), scale).unwrap_err();
        assert!(matches!(&error, ReadError::Clock { clock: found, .. } if found == clock), "{error}");
        let message = error.to_string();
        assert!(message.contains(why) && message.contains("with the clock `mono`"), "{message}");
    }
}

/// Advice against losses names an option of the recorder that made the file.
#[test]
fn advises_in_terms_of_recorder() {
    let by_trace_cmd = Arc::new(file_of(Order::Little, 8, &events(), "[local]", None));
    let trace = Trace::from_bytes("made.dat", by_trace_cmd).unwrap();
    assert!(trace.recorder().more_room().contains("`trace-cmd record -b"));
    for (recorder, option) in [
        (Recorder::Punctual, "--buffer"),
        (Recorder::Perf, "`perf record -m"),
        (Recorder::Lttng, "`lttng enable-channel"),
    ] {
        assert!(recorder.more_room().contains(option), "{recorder:?}");
    }
}

/// Records of several files are merged by their times.
#[test]
fn merges_counts_by_recorded_scale() {
    let scale = Some([1 << 30, 31, 1_000]);
    let open = || {
        let bytes = file_of(Order::Little, 8, &events(), "local [x86-tsc]", scale);
        Trace::from_bytes("made.dat", Arc::new(bytes)).unwrap()
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    merge(&[open(), open()], Relation::Shared(0), file.path()).unwrap();
    let merged = Trace::open(file.path()).unwrap();
    let found: Vec<_> = records(&merged).unwrap().map(|event| event.unwrap().time).collect();
    let mut expected: Vec<_> = events().iter().flat_map(|event| [event.time / 2 + 1_000; 2]).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
