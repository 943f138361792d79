//! LTTng traces: events equal the output of babeltrace2, and running threads follow from the
//! switches.

use crate::trace_cmd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::support::{is_record, records};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::{Comm, Event, Kind, SwitchOut, Task};
use punctual_trace::machines::{Relation, merge};
use punctual_trace::read::{Bytes, ReadError, Trace};
use punctual_trace::recorded::Source;

use crate::small_ctf as small;

use small::START;
use tempfile::TempDir;
use test_skip::{Need, skip};

fn open(metadata: &str, streams: &[Vec<u8>]) -> Result<Trace, ReadError> {
    let stream = |(number, bytes): (usize, &Vec<u8>)| -> (Arc<str>, Arc<dyn Bytes>) {
        (format!("channel0_{number}").into(), Arc::new(bytes.clone()))
    };
    Trace::from_ctf("kernel", metadata.as_bytes(), streams.iter().enumerate().map(stream).collect())
}

fn events(trace: &Trace) -> Vec<Event> {
    trace.events().unwrap().with_others().map(Result::unwrap).filter(is_record).collect()
}

#[test]
fn reads_packets_in_either_order_of_bytes() {
    let (idle, control) = (Task { id: 0, priority: 120 }, Task { id: 7, priority: 9 });
    let logger = Task { id: 9, priority: 120 };
    let switch = |from, reason, to| Kind::Switch { from, reason, to };
    for big in [false, true] {
        let (metadata, streams) = small::trace(big);
        let trace = open(&metadata, &streams).unwrap();
        assert_eq!((trace.clock(), trace.cpus(), trace.system()), ("mono", 2, "Linux vm 6.1.0-rt"));
        let known: Vec<_> = records(&trace).unwrap().map(Result::unwrap).collect();
        let known: Vec<_> = known.iter().map(|e| (e.time - START, e.cpu, e.by, e.kind)).collect();
        let expected = [
            (50, 1, 0, Kind::SoftirqEntry { softirq: 1 }),
            (60, 1, 0, Kind::SoftirqEntry { softirq: 7 }),
            (100, 0, 0, Kind::IrqEntry { irq: 24 }),
            (200, 0, 0, switch(idle, SwitchOut::Runnable, control)),
            (500, 0, 7, Kind::FutexEnter { word: 0x7ffe_1000, operation: 128, value: 2 }),
            (900, 0, 7, switch(control, SwitchOut::Sleeping, idle)),
            (2_000, 0, 0, Kind::SoftirqEntry { softirq: 3 }),
            (3_000, 0, 0, switch(idle, SwitchOut::Runnable, control)),
            (3_500, 0, 7, Kind::FutexExit { result: -11 }),
            (4_000, 0, 7, switch(control, SwitchOut::Runnable, logger)),
            (9_100, 0, 0, Kind::Lost { count: 5 }),
            (9_400, 0, 9, switch(logger, SwitchOut::Uninterruptible, idle)),
        ];
        let known: Vec<_> = known
            .into_iter()
            .map(|(time, cpu, by, kind)| match kind {
                // Its thread is meaningless.
                Kind::Lost { .. } => (time, cpu, 0, kind),
                _ => (time, cpu, by, kind),
            })
            .collect();
        assert_eq!(known, expected, "big: {big}");
        // Events unknown to the analysis: network transmissions, attributed to the thread that the
        // next switch switches out.
        let others = events(&trace).into_iter().filter(|event| matches!(event.kind, Kind::Other { .. }));
        let others: Vec<_> = others.map(|event| (event.time - START, event.by)).collect();
        assert_eq!(others, [(0, 0), (9_100, 9), (9_200, 9), (9_300, 9)]);
    }
}

#[test]
fn reports_names_and_unknowns() {
    let (metadata, streams) = small::trace(false);
    let trace = open(&metadata, &streams).unwrap();
    let mut events = trace.events().unwrap();
    events.by_ref().for_each(drop);
    assert_eq!(
        (events.threads().get(7), events.threads().get(9)),
        (Some(Comm::new("control")), Some(Comm::new("logger")))
    );
    assert_eq!(events.interrupts().irqs().collect::<Vec<_>>(), [(24, "eth0")]);
    let names: Vec<_> = trace.skipped(&events);
    let expected = [("lttng:lttng_statedump_process_state", 1), ("lttng:net_dev_queue", 3)];
    assert_eq!(names.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(), expected);
    assert!(trace.damage()[0].contains("2 events of CPU 1"), "{:?}", trace.damage());
    let recorded = trace.recorded().unwrap();
    assert!(recorded.has(Source::Switches) && recorded.has(Source::Futexes));
    assert!(!recorded.has(Source::Vectors) && !recorded.has(Source::Wakings));
}

/// Creates a trace directory.
fn directory(big: bool) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let kernel = place.path().join("kernel");
    fs::create_dir_all(kernel.join("index")).unwrap();
    let (metadata, [first, second]) = small::trace(big);
    fs::write(kernel.join("metadata"), metadata).unwrap();
    fs::write(kernel.join("channel0_0"), first).unwrap();
    fs::write(kernel.join("channel0_1"), second).unwrap();
    place
}

/// Time and CPU of an event, and for a switch both threads with their priorities.
type Seen = (u64, u16, Option<[i64; 4]>);

/// Returns each event that babeltrace2 prints, and whether it reached the end.
fn printed(directory: &Path) -> Option<(Vec<Seen>, bool)> {
    let mut command = Command::new("babeltrace2");
    let output =
        command.args(["--clock-cycles", "--no-delta"]).arg(directory).output_within(TEST_LIMIT).ok()?;
    let event = |line: &str| {
        let field = |name: &str| {
            let value = line.split(&format!(" {name} = ")).nth(1)?;
            value.split([' ', ',']).next()?.parse::<i64>().ok()
        };
        let time = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
        let is_switch = line.contains(" sched_switch: ");
        let fields = ["prev_tid", "prev_prio", "next_tid", "next_prio"];
        let switch = is_switch.then(|| fields.map(|name| field(name).expect("a switch has all of them")));
        Some((time, field("cpu_id")? as u16, switch))
    };
    let text = String::from_utf8_lossy(&output.stdout);
    Some((text.lines().filter_map(event).collect(), output.status.success()))
}

/// Compares all events with those that babeltrace2 prints, as far as it gets; returns their number.
fn compare(directory: &Path) -> Option<usize> {
    let (mut expected, complete) = printed(directory)?;
    let trace = Trace::open(directory).unwrap();
    let seen = |event: Event| match event.kind {
        Kind::Lost { .. } => None,
        Kind::Switch { from, to, .. } => {
            // LTTng counts from the start of ordinary priorities.
            let priority = |task: Task| i64::from(task.priority) - 100;
            let switch = [from.id.into(), priority(from), to.id.into(), priority(to)];
            Some((event.time, event.cpu, Some(switch)))
        }
        _ => Some((event.time, event.cpu, None)),
    };
    let mut found: Vec<Seen> = events(&trace).into_iter().filter_map(seen).collect();
    // The order of CPUs at the same time is unspecified.
    expected.sort_unstable();
    found.sort_unstable();
    assert!(!expected.is_empty(), "{}: babeltrace2 prints nothing", directory.display());
    if !complete {
        println!("{}: babeltrace2 gives up at a time that goes back", directory.display());
        found.truncate(expected.len());
    }
    assert_eq!(found.len(), expected.len(), "{}", directory.display());
    let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert_eq!(differs, None, "{}", directory.display());
    Some(found.len())
}

#[test]
fn reads_same_events_as_babeltrace2() {
    for big in [false, true] {
        let place = directory(big);
        match compare(&place.path().join("kernel")) {
            Some(count) => assert_eq!(count, 15),
            None => {
                return skip(Need::Tool("babeltrace2"), "comparison with what it reads");
            }
        }
        assert_eq!(Trace::open(place.path()).unwrap().cpus(), 2, "the directory above will do");
    }
}

/// Its pages are larger than the kernel's, and some of its events have no specific fields.
#[test]
fn trace_cmd_reads_merged_recording() {
    let place = directory(false);
    let traces = [(); 2].map(|()| Trace::open(place.path()).unwrap());
    let file = place.path().join("merged.dat");
    merge(&traces, Relation::Shared(0), &file).unwrap();
    let Some(printed) = trace_cmd::printed(&file) else { return };
    let events = events(&traces[0]).into_iter().filter(|event| !matches!(event.kind, Kind::Lost { .. }));
    assert_eq!(printed.values().sum::<u64>(), 2 * events.count() as u64, "{printed:?}");
}

#[test]
#[ignore = "needs babeltrace2 and recordings; `cargo xtask check recordings` fetches them"]
fn reads_foreign_traces_like_babeltrace2() {
    let place = PathBuf::from(std::env::var_os("PUNCTUAL_TRACES").expect("PUNCTUAL_TRACES has recordings"))
        .join("ctf");
    let mut directories: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.sort();
    assert!(!directories.is_empty());
    for directory in directories {
        let count = compare(&directory).expect("babeltrace2 is installed");
        println!("{}: {count} events", directory.display());
    }
}

#[test]
fn error_names_unreadable_part_and_remedy() {
    let (metadata, streams) = small::trace(false);
    let why = |metadata: &str| open(metadata, &streams).err().unwrap().to_string();
    assert!(why("[{\"type\": \"preamble\"}]").contains("babeltrace2 --output-format=ctf"));
    assert!(why(&metadata.replace("\"kernel\"", "\"ust\"")).contains("events of `ust`"));
    let line = metadata.lines().position(|line| line.contains("packet_context {")).unwrap() + 1;
    let wrong = metadata.replace("packet_context {", "packet_context ; {");
    assert!(why(&wrong).contains(&format!("line {line}: ")), "{}", why(&wrong));
    let unknown = metadata.replace("uint32_t cpu_id", "uint33_t cpu_id");
    assert!(why(&unknown).contains("`uint33_t` has not been declared"));
}

#[test]
fn reads_events_of_a_truncated_stream() {
    let (metadata, streams) = small::trace(false);
    let whole = events(&open(&metadata, &streams).unwrap()).len();
    for length in 0..streams[0].len() {
        let cut = [streams[0][..length].to_vec(), streams[1].clone()];
        let trace = open(&metadata, &cut).unwrap();
        let found = events(&trace);
        assert!(found.len() <= whole && found.is_sorted_by_key(|event| event.time));
        // Whole packets, and none, are intact.
        let error_text = trace.damage().iter().any(|damage| damage.starts_with("channel0_0"));
        assert_eq!(
            error_text,
            ![0, packet_end(&streams[0])].contains(&length),
            "{length}: {:?}",
            trace.damage()
        );
    }
}

/// Returns the end of the first packet.
fn packet_end(stream: &[u8]) -> usize {
    u64::from_le_bytes(stream[32..40].try_into().unwrap()) as usize / 8
}
