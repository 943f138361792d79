//! perf.data: events of `perf record` equal the output of `perf script`, regardless of other
//! content of the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::records;
use punctual_trace::event::{Comm, Event, Kind};
use punctual_trace::jobs::{Actor, Config, Decomposer, Job, Select};
use punctual_trace::read::{ReadError, Trace};

use crate::small_perf as small;
use test_skip::{Need, skip};

/// `perf record -a -k mono` of version 6.1 on Linux 6.18, with a deadline thread: 1 482 samples,
/// according to `perf script`. Without memory mappings, and without names of threads that have no
/// record.
fn recorded() -> Vec<u8> {
    miniz_oxide::inflate::decompress_to_vec_zlib(include_bytes!("../data/perf.data.z")).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Trace, ReadError> {
    Trace::from_bytes("perf.data", Arc::new(bytes))
}

fn events(bytes: Vec<u8>) -> Vec<Event> {
    records(&open(bytes).unwrap()).unwrap().map(Result::unwrap).collect()
}

#[test]
fn reads_as_many_events_as_perf_script_prints() {
    let trace = open(recorded()).unwrap();
    assert_eq!((trace.clock(), trace.cpus(), trace.damage()), ("mono", 2, &[][..]));
    assert!(trace.system().starts_with("Linux vm 6.18"), "{}", trace.system());
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let events: Vec<_> = records(&trace).unwrap().map(Result::unwrap).collect();
    for event in &events {
        *counts
            .entry(match event.kind {
                Kind::Switch { .. } => "switch",
                Kind::Waking { .. } => "waking",
                Kind::Wakeup { new: false, .. } => "wakeup",
                Kind::Wakeup { new: true, .. } => "new",
                Kind::Migrate { .. } => "migrate",
                Kind::TimerStart { .. } | Kind::TimerExpire { .. } | Kind::TimerExpired { .. } => "timer",
                Kind::YieldEnter | Kind::YieldExit => "yield",
                _ => "other",
            })
            .or_default() += 1;
    }
    let expected = [
        ("migrate", 62),
        ("new", 7),
        ("switch", 401),
        ("timer", 518),
        ("wakeup", 232),
        ("waking", 232),
        ("yield", 30),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let (first, last) = (events[0], events[events.len() - 1]);
    assert_eq!((first.time, first.cpu), (39_888_892_106_098, 0));
    assert_eq!((last.time, last.cpu), (39_889_060_053_060, 1));
}

#[test]
fn decomposes_jobs_of_perf_file() {
    let trace = open(recorded()).unwrap();
    // The thread has the name of its parent until it executes its program.
    let is_named = |event: Event| match event.kind {
        Kind::Named { thread, name } => (name == Comm::new("dls")).then_some(thread),
        _ => None,
    };
    let tids = trace.events().unwrap().map(Result::unwrap).filter_map(is_named).collect();
    let select = Select { tids, ..Select::default() };
    let recorded = trace.recorded().unwrap();
    let mut decomposer = Decomposer::new(Config { select, recorded, monotonic: true, ..Config::default() });
    let mut jobs: Vec<Job> = Vec::new();
    for event in trace.events().unwrap() {
        decomposer.feed(&event.unwrap(), &mut |job| jobs.push(job.clone()));
    }
    jobs.retain(|job| job.priority < 0);
    assert_eq!(jobs.len(), 14, "one for each yield, and the last");
    for (one, next) in jobs.iter().zip(&jobs[1..]).filter(|(_, next)| next.released.is_some()) {
        let Some(from) = one.released else { continue };
        let periods = (next.released.unwrap().0 - from.0 + 100_000) / 6_000_000;
        assert!((1..=6).contains(&periods), "{periods} {one:?} {next:?}");
    }
    assert!(jobs.iter().filter(|job| job.released.is_some()).count() >= 12);
    assert!(
        jobs.iter().any(|job| job.interference_causes.iter().any(|cause| cause.actor == Actor::Throttling))
    );
}

/// Records of both CPUs in rounds, out of order within them, in either byte order.
#[test]
fn orders_rounds_and_reports_losses() {
    for big in [false, true] {
        let events = events(small::perf_data(big));
        let expected = [
            (100, 0, Kind::SoftirqEntry { softirq: 1 }),
            (150, 1, Kind::SoftirqEntry { softirq: 3 }),
            (200, 0, Kind::SoftirqEntry { softirq: 2 }),
            (260, 1, Kind::SoftirqEntry { softirq: 5 }),
        ];
        let seen: Vec<_> = events.iter().filter(|event| !matches!(event.kind, Kind::Lost { .. })).collect();
        assert_eq!(seen.iter().map(|e| (e.time, e.cpu, e.kind)).collect::<Vec<_>>(), expected, "big: {big}");
        let lost: Vec<_> =
            events.iter().filter(|event| matches!(event.kind, Kind::Lost { count: 7 })).collect();
        assert_eq!((lost.len(), lost[0].cpu), (1, 1));
        let trace = open(small::perf_data(big)).unwrap();
        assert!(trace.recorder().more_room().contains("`perf record -m"));
        let mut events = trace.events().unwrap();
        assert!(events.next().is_some());
        assert_eq!(events.threads().get(17), Some(Comm::new("reader")));
        assert_eq!(
            trace.damage(),
            ["1 samples are left out, which are not whole or of an event that the file does not describe"]
        );
    }
}

/// Short rounds are sorted together: to sort each visits every CPU, for a record of eight bytes.
#[test]
fn sorts_short_rounds_together() {
    let file = small::perf_data(false);
    let (data, index) = (number(&file, 40), file.len() - 16);
    // The first sample of CPU 0, after the rounds that promise later ones.
    let more = [&record(68, &[])[..], &record(68, &[]), &file[data + 112..data + 168]].concat();
    let mut out = [&file[..index], &more, &file[index..]].concat();
    out[48..56].copy_from_slice(&((number(&file, 48) + more.len()) as u64).to_le_bytes());
    let trace = open(out.clone()).unwrap();
    assert_eq!(trace.damage(), open(file.clone()).unwrap().damage());
    assert_eq!(events(out).len(), events(file).len() + 1);
}

#[test]
fn uses_complete_records_of_truncated_data() {
    let mut bytes = small::perf_data(false);
    let all = events(bytes.clone()).len();
    // The last record claims to be longer than the data; the description of the events follows the
    // data.
    let last = bytes.len() - 16 - 8;
    bytes[last + 6] = 40;
    let trace = open(bytes).unwrap();
    assert!(trace.damage().iter().any(|damage| damage.contains("in a record")), "{:?}", trace.damage());
    assert_eq!(trace.events().unwrap().filter_map(Result::ok).count(), all);
}

#[test]
fn explains_how_to_make_readable_file() {
    let why = |bytes| open(bytes).err().unwrap().to_string();
    let mut without = small::perf_data(false);
    without[72..80].fill(0);
    assert!(why(without.clone()).contains("perf sched record"));
    // A record of the formats' type without formats.
    let first = number(&without, 40);
    without[first..first + 4].copy_from_slice(&66u32.to_le_bytes());
    assert!(why(without).contains("perf sched record"));
    let mut cut = recorded();
    cut.truncate(cut.len() / 2);
    assert!(matches!(open(cut).err(), Some(ReadError::Truncated { .. })), "the formats are at its end");
}

fn number(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

/// The same with the formats in a record before all others, as written by Android's simpleperf.
fn formats_among_records(file: &[u8]) -> Vec<u8> {
    let index = file.len() - 16;
    let formats = &file[number(file, index)..][..number(file, index + 8)];
    let data = &file[number(file, 40)..][..number(file, 48)];
    let mut out = file[..index].to_vec();
    out[72..80].fill(0);
    out.extend(66u32.to_le_bytes());
    out.extend([0, 0]);
    out.extend((12 + formats.len() as u16).to_le_bytes());
    out.extend((formats.len() as u32).to_le_bytes());
    out.extend([formats, data].concat());
    out[40..48].copy_from_slice(&(index as u64).to_le_bytes());
    out[48..56].copy_from_slice(&((12 + formats.len() + data.len()) as u64).to_le_bytes());
    out
}

#[test]
fn finds_formats_among_records() {
    let file = small::perf_data(false);
    let moved = formats_among_records(&file);
    assert_eq!(events(moved.clone()), events(file));
    // It ends in the formats.
    let mut cut = moved;
    let at = number(&cut, 40);
    cut[at + 6..at + 8].copy_from_slice(&100u16.to_le_bytes());
    cut[48..56].copy_from_slice(&100u64.to_le_bytes());
    assert!(matches!(open(cut).err(), Some(ReadError::Truncated { .. })));
}

/// Returns a record in little-endian order.
fn record(kind: u32, content: &[u8]) -> Vec<u8> {
    let size = 8 + content.len() as u16;
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), content].concat()
}

/// Returns parts of the small file: the description of its event, its ID, the formats and the
/// records.
fn parts(file: &[u8]) -> [&[u8]; 4] {
    let index = &file[file.len() - 16..];
    let formats = &file[number(index, 0)..][..number(index, 8)];
    let data = &file[number(file, 40)..][..number(file, 48)];
    [&file[112..112 + 112], &file[104..112], formats, data]
}

/// `perf record -o -` writes everything into records, and the formats after their record.
#[test]
fn round_trips_through_pipe() {
    let file = small::perf_data(false);
    let [attribute, id, formats, data] = parts(&file);
    let mut attribute = attribute.to_vec();
    attribute[4..8].copy_from_slice(&112_u32.to_le_bytes());
    let mut piped = [&file[..8], &16_u64.to_le_bytes()].concat();
    piped.extend(record(64, &[&attribute, id].concat()));
    // The release of the kernel.
    piped.extend(record(80, &[&4_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), b"6.12-rt\0"].concat()));
    // The length, and padding since perf 6.
    piped.extend(record(66, &(formats.len() as u64).to_le_bytes()));
    piped.extend(formats);
    piped.extend(&[0; 8][..formats.len().next_multiple_of(8) - formats.len()]);
    piped.extend(data);
    assert_eq!(events(piped.clone()), events(file));
    assert_eq!(open(piped).unwrap().system(), "Linux 6.12-rt");
}

/// Returns the file with its records in an unfinished Zstandard frame, in two compressed records of
/// this type.
fn compressed(file: &[u8], kind: u32) -> Vec<u8> {
    let [.., formats, data] = parts(file);
    let pack = |content: &[u8], is_first: bool| {
        // A frame of raw blocks, with a window of 1 MiB.
        let mut packed = if is_first { vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x50] } else { Vec::new() };
        packed.extend(&(content.len() as u32 * 8).to_le_bytes()[..3]);
        packed.extend(content);
        match kind {
            81 => record(81, &packed),
            _ => record(83, &[&(packed.len() as u64).to_le_bytes()[..], &packed, &[0xee; 5]].concat()),
        }
    };
    let (first, second) = data.split_at(data.len() / 2 + 3);
    let data = [pack(first, true), record(68, &[]), pack(second, false)].concat();
    let start = file.len() - 16 - parts(file)[3].len();
    let mut out = file[..start].to_vec();
    out[48..56].copy_from_slice(&(data.len() as u64).to_le_bytes());
    out.extend(data);
    let place = number(&file[file.len() - 16..], 0) as u64;
    out.extend([place.to_le_bytes(), (formats.len() as u64).to_le_bytes()].concat());
    out
}

#[test]
fn reads_compressed_files() {
    let file = small::perf_data(false);
    for kind in [81, 83] {
        let packed = compressed(&file, kind);
        assert_eq!(events(packed), events(file.clone()), "{kind}");
    }
}

/// Each thread of perf writes its samples to a separate file.
#[test]
fn reads_directories_of_recorders_with_threads() {
    let file = small::perf_data(false);
    let [.., data] = parts(&file);
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut head = file.clone();
    let at = number(&file, 40);
    // The header locates no records.
    head[48..56].fill(0);
    let index = file.len() - 16;
    let features = head[index..].to_vec();
    head.truncate(at);
    head.extend(features);
    std::fs::write(place.join("data"), &head).unwrap();
    std::fs::write(place.join("data.0"), data).unwrap();
    let found: Vec<_> = records(&Trace::open(place).unwrap()).unwrap().map(Result::unwrap).collect();
    // A header that locates them beyond the end of the file.
    head[48..56].fill(0xff);
    head[72..104].fill(0);
    std::fs::write(place.join("data"), head).unwrap();
    let damage = Trace::open(place).map(|trace| trace.damage().to_vec());
    assert_eq!(found, events(file));
    assert!(damage.is_err());
}

/// The switch to a thread is an event of the previous thread.
#[test]
fn rejects_recordings_of_some_threads() {
    let file = small::perf_data(false);
    let with_threads = |thread: u64| {
        let map =
            [&1_u64.to_le_bytes()[..], &thread.to_le_bytes(), b"app\0\0\0\0\0\0\0\0\0\0\0\0\0"].concat();
        let map = record(73, &map);
        let (data, index) = (number(&file, 40), file.len() - 16);
        let mut out = [&file[..data], &map, &file[data..index], &file[index..]].concat();
        out[48..56].copy_from_slice(&((number(&file, 48) + map.len()) as u64).to_le_bytes());
        out
    };
    let error = open(with_threads(17)).err().unwrap().to_string();
    assert!(error.contains("recorded without -a") && error.contains("perf record -a"), "{error}");
    assert_eq!(events(with_threads(u64::MAX)), events(file.clone()), "all threads");
}

#[test]
fn counts_samples_that_are_not_tracepoints() {
    let mut file = small::perf_data(false);
    // The type of the event: PERF_TYPE_SOFTWARE.
    file[112..116].copy_from_slice(&1_u32.to_le_bytes());
    let trace = open(file).unwrap();
    let mut events = trace.events().unwrap();
    events.by_ref().for_each(drop);
    assert_eq!(trace.skipped(&events), [("no tracepoint".to_owned(), 4)]);
}

/// Published files, with the results of decoding their records by hand: events by name, and samples
/// without a tracepoint. `perf script` prints the third, and rejects those of Android.
#[test]
#[ignore = "needs recordings; `cargo xtask check recordings` fetches them"]
fn reads_foreign_files() {
    let place = std::path::PathBuf::from(
        std::env::var_os("PUNCTUAL_TRACES").expect("PUNCTUAL_TRACES has recordings"),
    );
    let expected = [
        ("bb64546ac7d4", 31, vec![("no tracepoint".to_owned(), 14)]),
        ("0587765669c8", 0, vec![("sched:sched_stat_runtime".to_owned(), 2_430)]),
        ("7d56e639ea83", 0, vec![("probe_untitled1:main".to_owned(), 1)]),
    ];
    let mut read = 0;
    for (name, switches, skipped) in expected {
        let file = place.join("perf").join(name).with_extension("data");
        if !file.exists() {
            // The chore names it, and fails in the end.
            skip(Need::System("recordings of perf"), file.display());
            continue;
        }
        read += 1;
        let trace = Trace::open(&file).unwrap();
        assert_eq!(trace.damage(), [""; 0], "{name}");
        let mut events = trace.events().unwrap();
        let mut found: Vec<Event> = events.by_ref().map(Result::unwrap).collect();
        found.retain(|event| !matches!(event.kind, Kind::Named { .. }));
        assert!(found.iter().all(|event| matches!(event.kind, Kind::Switch { .. })), "{name}");
        assert_eq!((found.len(), trace.skipped(&events)), (switches, skipped), "{name}");
        let missing = trace.recorded().unwrap().missing();
        let is_reported = |what| missing.iter().any(|missing| missing.what == what);
        assert_eq!(
            (is_reported("context switches"), is_reported("wake-ups")),
            (switches == 0, true),
            "{name}"
        );
    }
    assert!(read > 0, "none of the files is in {}", place.display());
}
