//! Hostile input: seeded mutations of real files through the fuzz targets, and single
//! inconsistencies with their errors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::records;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::read::{ReadError, Trace};
use punctual_trace::write::{dat, synthetic::Synthetic};

#[path = "../../fuzz/entry.rs"]
mod entry;
use crate::small_ctf;
use crate::small_perf;

use crate::random::inputs;

/// Mutations per reader: the same ones on every machine, so that a failure repeats. `cargo xtask
/// fuzz traces` searches further, guided by coverage.
const MUTATIONS: u64 = 1_000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn mutate(&mut self, input: &[u8]) -> Vec<u8> {
        const BAD: [u64; 10] =
            [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX, 1 << 63];
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << self.below(8)),
                2 => bytes.insert(at, self.below(256) as u8),
                3 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    bytes.drain(at..end);
                }
                4 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let number = BAD[self.below(BAD.len())].to_le_bytes();
                    let size = 1 << self.below(4);
                    bytes.iter_mut().skip(at).zip(&number[..size]).for_each(|(byte, new)| *byte = *new);
                }
            }
        }
        bytes
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there is no corpus in {}", path.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn attack(name: &str, seed: u64) {
    let corpus = corpus(name);
    corpus.iter().for_each(|input| entry::run(name, input));
    let mut random = Random(seed);
    for _ in 0..inputs(MUTATIONS) {
        let input = &corpus[random.below(corpus.len())];
        entry::run(name, &random.mutate(input));
    }
}

#[test]
fn never_panics_on_hostile_formats() {
    attack("format", 1);
}

#[test]
fn pages() {
    attack("page", 2);
}

#[test]
fn prints_names_of_hostile_threads_on_their_lines() {
    attack("names", 4);
}

#[test]
fn files() {
    attack("dat", 3);
}

#[test]
fn files_of_perf() {
    for big in [false, true] {
        let name = if big { "big" } else { "little" };
        let path = format!("{}/fuzz/corpus/perf/small_{name}", env!("CARGO_MANIFEST_DIR"));
        let file = small_perf::perf_data(big);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &file).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), file, "{path}; BLESS=1 rewrites it");
    }
    attack("perf", 5);
}

#[test]
fn traces_of_lttng() {
    for big in [false, true] {
        let name = if big { "big" } else { "little" };
        let path = format!("{}/fuzz/corpus/ctf/small_{name}", env!("CARGO_MANIFEST_DIR"));
        let input = small_ctf::input(big);
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
            fs::write(&path, &input).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), input, "{path}; BLESS=1 rewrites it");
    }
    attack("ctf", 6);
}

/// The first page declares that events were lost before it, at its time, and contains none; the
/// next one is blank.
#[test]
fn keeps_order_when_blank_page_follows_loss() {
    entry::run("dat", include_bytes!("../../fuzz/corpus/dat/blank_page_after_loss"));
}

/// A small trace of two CPUs.
fn small(directory: &Path) -> Vec<Event> {
    let mut synthetic = Synthetic::create(directory).unwrap();
    synthetic.name(17, "level 4");
    let (idle, task) = (Task { id: 0, priority: 120 }, Task { id: 17, priority: 60 });
    let kinds = [
        Kind::VectorEntry { vector: 236 },
        Kind::Waking { task, cpu: 1 },
        Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: task },
        Kind::Switch { from: task, reason: SwitchOut::Sleeping, to: idle },
    ];
    let mut events = Vec::new();
    for n in 0..40u64 {
        events.push(Event {
            time: 1_000 * n + 5,
            cpu: (n % 2) as u16,
            by: 1,
            kind: kinds[n as usize / 2 % 4],
        });
    }
    events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    events
}

fn small_file() -> (Vec<u8>, Vec<Event>) {
    let place = tempfile::tempdir().unwrap();
    let events = small(&place.path().join("raw"));
    dat::write(&place.path().join("raw"), &place.path().join("trace.dat")).unwrap();
    (fs::read(place.path().join("trace.dat")).unwrap(), events)
}

fn open(bytes: &[u8]) -> Result<Trace, ReadError> {
    Trace::from_bytes("x.dat", Arc::new(bytes.to_vec()))
}

fn refused(bytes: &[u8]) -> ReadError {
    match open(bytes) {
        Err(error) => error,
        Ok(_) => panic!("it is a trace"),
    }
}

#[test]
fn rejects_files_of_other_kinds() {
    for bytes in [&b""[..], b"PERFILE3........", b"\x17\x08\x44tracin"] {
        let error = refused(bytes);
        assert!(
            matches!(error, ReadError::NotATrace { .. }) && error.to_string().contains("byte 0"),
            "{error}"
        );
    }
    assert!(matches!(refused(b"PERFILE2........"), ReadError::Truncated { .. }));
    let error = refused(b"\x17\x08\x44tracing8\0\0\x08\0\x10\0\0");
    assert!(matches!(&error, ReadError::Version { version, .. } if version == "8"), "{error}");
    assert!(error.to_string().contains("trace-cmd convert"));
    assert!(matches!(
        refused(b"\x17\x08\x44tracing7\0\x02\x08\0\x10\0\0"),
        ReadError::Corrupt { offset: 12, .. }
    ));
    assert!(matches!(
        refused(b"\x17\x08\x44tracing7\0\0\x05\0\x10\0\0"),
        ReadError::Corrupt { offset: 13, .. }
    ));
    assert!(matches!(refused(b"\x17\x08\x44tracing6\0\0\x08\0\x10"), ReadError::Truncated { .. }));
}

#[test]
fn reports_error_for_every_truncation() {
    let (bytes, events) = small_file();
    let (mut opened, mut most) = (0, 0);
    for length in (0..bytes.len() - 1).step_by(37) {
        match open(&bytes[..length]) {
            Err(error) => assert!(error.to_string().contains("x.dat: "), "{error}"),
            Ok(trace) => {
                let results: Vec<_> = records(&trace).unwrap().collect();
                let errors = results.iter().filter_map(|result| result.as_ref().err());
                let cut = errors.filter(|error| matches!(error, ReadError::Truncated { .. })).count();
                assert!((1..=2).contains(&cut), "{length}: {cut} CPUs are cut off");
                let found: Vec<_> = results.into_iter().flatten().collect();
                assert!(found.iter().all(|event| events.contains(event)), "{length}");
                (opened, most) = (opened + 1, most.max(found.len()));
            }
        }
    }
    // The part before the data of the second CPU is enough for the first's.
    assert!(opened > 50 && most >= events.len() / 2, "{opened} were opened, with up to {most} events");
}

#[test]
fn salvages_file_with_circular_options() {
    let (mut bytes, events) = small_file();
    let first = 24;
    let options = u64::from_le_bytes(bytes[first..first + 8].try_into().unwrap());
    // The last option of the only section contains the offset of the next one.
    let length = u64::from_le_bytes(bytes[options as usize + 8..options as usize + 16].try_into().unwrap());
    let last = (options + 16 + length - 8) as usize;
    bytes[last..last + 8].copy_from_slice(&options.to_le_bytes());
    let trace = open(&bytes).unwrap();
    assert!(trace.damage()[0].contains("refer to each other without end"), "{:?}", trace.damage());
    assert_eq!(records(&trace).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), events);
}

#[test]
fn salvages_file_whose_cpus_claim_same_data() {
    let (mut bytes, events) = small_file();
    let page = (4096..bytes.len()).step_by(4096).find(|&at| bytes[at..at + 8] == 5u64.to_le_bytes());
    let page = page.expect("the page that begins with the first event") as u64;
    let second = [(page + 4096).to_le_bytes(), 4096u64.to_le_bytes()].concat();
    let at = bytes.windows(16).position(|window| window == second).expect("the data of CPU 1");
    bytes[at..at + 8].copy_from_slice(&page.to_le_bytes());
    let trace = open(&bytes).unwrap();
    assert!(trace.damage()[0].contains("overlaps"), "{:?}", trace.damage());
    assert_eq!(records(&trace).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), events);
}

#[test]
fn reports_unknown_compression() {
    let (bytes, _) = small_file();
    // The name is that of the compression, and the section of the headers claims to be compressed.
    let mut lie = bytes.clone();
    let section = 32;
    assert_eq!(lie[section..section + 2], [16, 0]);
    lie[section + 2] = 1;
    let error = refused(&lie);
    assert!(
        matches!(
            &error,
            ReadError::Corrupt { .. } | ReadError::Unsupported { .. } | ReadError::Truncated { .. }
        ),
        "{error}"
    );
    lie[section + 16..section + 20].copy_from_slice(&8u32.to_le_bytes());
    let error = refused(&lie);
    assert!(matches!(&error, ReadError::Unsupported { offset: 32, .. }), "{error}");
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn ends_only_cpu_of_corrupt_page() {
    let (mut bytes, events) = small_file();
    let of_one = events.iter().filter(|event| event.cpu == 1).count();
    // Pages are at multiples of their size; the first one after the formats belongs to CPU 0.
    let page = (4096..bytes.len())
        .step_by(4096)
        .find(|&at| bytes[at..at + 8] == 5u64.to_le_bytes())
        .expect("the page that begins with the first event");
    bytes[page + 8..page + 10].copy_from_slice(&0xffffu16.to_le_bytes());
    let results: Vec<_> = records(&open(&bytes).unwrap()).unwrap().collect();
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let [ReadError::Page { place, .. }] = errors[..] else { panic!("{errors:?}") };
    assert_eq!((place.cpu, place.offset), (0, page as u64 + 8));
    assert_eq!(results.len(), 1 + of_one);
}

#[test]
fn rejects_time_going_backwards() {
    let place = tempfile::tempdir().unwrap();
    small(&place.path().join("raw"));
    let data = place.path().join("raw/per_cpu/cpu1/trace_pipe_raw");
    let page = fs::read(&data).unwrap();
    fs::write(&data, [&page[..], &page[..]].concat()).unwrap();
    let trace = Trace::open(&place.path().join("raw")).unwrap();
    let errors: Vec<_> = trace.events().unwrap().filter_map(Result::err).collect();
    let [ReadError::Backwards { place, time: 1005, .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((place.cpu, place.offset), (1, 4096 + 20));
}

/// Regenerates the corpora; `trace-cmd` writes the versions that this crate does not write.
#[test]
#[ignore = "it changes files of the repository"]
fn writes_corpus() {
    let place = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    small(&place.path().join("raw"));
    // Few formats, so that mutations hit relevant parts.
    for group in fs::read_dir(place.path().join("raw/events")).unwrap().map(|entry| entry.unwrap().path()) {
        for event in fs::read_dir(&group).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let name = event.file_name().unwrap().to_str().unwrap();
            if !["sched_switch", "sched_waking", "local_timer_entry", "raw_data"].contains(&name) {
                fs::remove_dir_all(&event).unwrap();
            } else {
                fs::copy(event.join("format"), root.join("format").join(name)).unwrap();
            }
        }
        if group.is_file() {
            let name = group.file_name().unwrap();
            fs::copy(&group, root.join("format").join(name)).unwrap();
        }
    }
    fs::copy(place.path().join("raw/per_cpu/cpu0/trace_pipe_raw"), root.join("page/small")).unwrap();
    let seven = root.join("dat/seven");
    dat::write(&place.path().join("raw"), &seven).unwrap();
    for (name, arguments) in
        [("six", &["--file-version", "6"][..]), ("zstd", &["--file-version", "7", "--compression", "zstd"])]
    {
        let mut convert = std::process::Command::new("trace-cmd");
        convert
            .arg("convert")
            .arg("-i")
            .arg(&seven)
            .arg("-o")
            .arg(root.join("dat").join(name))
            .args(arguments);
        assert!(convert.output_within(TEST_LIMIT).unwrap().status.success(), "{name}");
    }
}
