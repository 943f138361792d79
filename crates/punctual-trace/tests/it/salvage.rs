//! Truncated and unfinished files, and their recovery.

use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::records;
use punctual_trace::convert;
use punctual_trace::event::{Comm, Event, Kind, SwitchOut, Task};
use punctual_trace::read::{ReadError, Trace};
use punctual_trace::write::{WriteError, dat, synthetic::Synthetic};
use rustix::fs::{FallocateFlags, fallocate};
use test_skip::{Need, skip};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/dat").join(name)
}

fn events_of(trace: &Trace) -> Vec<Event> {
    records(trace).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Creates a directory with `switches` switches on each of two CPUs.
fn directory(path: &Path, switches: u64) -> Vec<Event> {
    let mut synthetic = Synthetic::create(path).unwrap();
    synthetic.name(17, "level 4");
    let (idle, task) = (Task { id: 0, priority: 120 }, Task { id: 17, priority: 60 });
    let mut events = Vec::new();
    for n in 0..switches {
        let (from, to) = if n % 2 == 0 { (idle, task) } else { (task, idle) };
        for cpu in 0..2 {
            let kind = Kind::Switch { from, reason: SwitchOut::Sleeping, to };
            events.push(Event { time: 1_000 * n + 5, cpu, by: from.id, kind });
        }
    }
    events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
    events
}

/// Like truncated files of `trace-cmd` and of earlier recorders: the index comes last.
#[test]
fn salvages_data_with_truncated_index() {
    let bytes = fs::read(corpus("seven")).unwrap();
    let whole = events_of(&Trace::from_bytes("whole", Arc::new(bytes.clone())).unwrap());
    let options = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
    let mut unfinished = bytes.clone();
    unfinished[24..32].fill(0);
    for cut in [bytes[..options].to_vec(), bytes[..options + 60].to_vec(), unfinished] {
        let trace = Trace::from_bytes("cut", Arc::new(cut)).unwrap();
        assert_eq!(events_of(&trace), whole);
        assert!(trace.damage()[0].contains("is guessed"), "{:?}", trace.damage());
    }
    // The data of the second CPU is incomplete.
    let trace = Trace::from_bytes("cut", Arc::new(bytes[..options - 4_000].to_vec())).unwrap();
    let results: Vec<_> = records(&trace).unwrap().collect();
    assert!(results.iter().flatten().count() >= whole.len() / 2);
    assert!(results.iter().any(|result| matches!(result, Err(ReadError::Truncated { .. }))), "{results:?}");
    // With neither pages nor formats there is nothing to recover.
    for length in [40, 400, 4_000] {
        assert!(Trace::from_bytes("cut", Arc::new(bytes[..length].to_vec())).is_err(), "{length}");
    }
}

/// Like compressed files of `trace-cmd`: the data of each CPU in chunks, with their index after it.
#[test]
fn salvages_compressed_data_with_truncated_index() {
    const INDEX: usize = 8_310;
    let bytes = fs::read(corpus("zstd")).unwrap();
    let whole = events_of(&Trace::from_bytes("whole", Arc::new(bytes.clone())).unwrap());
    for length in [INDEX, INDEX + 7, INDEX + 60] {
        let trace = Trace::from_bytes("cut", Arc::new(bytes[..length].to_vec())).unwrap();
        assert_eq!(events_of(&trace), whole, "{length}");
        assert!(trace.damage()[0].contains("is guessed"), "{:?}", trace.damage());
    }
    // It ends in the chunks of the second CPU, and in those of the first.
    let found = |length: usize| {
        let trace = Trace::from_bytes("cut", Arc::new(bytes[..length].to_vec())).ok()?;
        let results: Vec<_> = records(&trace).unwrap().collect();
        assert!(results.iter().any(|result| matches!(result, Err(ReadError::Truncated { .. }))), "{length}");
        Some(results.into_iter().flatten().collect::<Vec<_>>())
    };
    let first: Vec<_> = whole.iter().filter(|event| event.cpu == 0).copied().collect();
    assert_eq!(found(INDEX - 10).unwrap(), first);
    assert!(found(4_096 + 20).is_none_or(|events| events.len() < first.len()));
}

#[test]
fn reads_truncated_file_to_its_end() {
    let place = tempfile::tempdir().unwrap();
    let events = directory(&place.path().join("raw"), 2_000);
    dat::write(&place.path().join("raw"), &place.path().join("t.dat")).unwrap();
    let bytes = fs::read(place.path().join("t.dat")).unwrap();
    // A page before the end, which belongs to the second CPU.
    let cut = Trace::from_bytes("cut", Arc::new(bytes[..bytes.len() - 4_096].to_vec())).unwrap();
    assert_eq!(cut.damage(), [""; 0]);
    let results: Vec<_> = records(&cut).unwrap().collect();
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(matches!(errors[..], [ReadError::Truncated { .. }]), "{errors:?}");
    let found: Vec<_> = results.into_iter().flatten().collect();
    let first = |events: &[Event]| events.iter().filter(|event| event.cpu == 0).count();
    assert!(found.len() > events.len() * 9 / 10 && first(&found) == first(&events));
}

#[test]
fn converts_any_trace_to_complete_one() {
    let place = tempfile::tempdir().unwrap();
    let whole = events_of(&Trace::open(&corpus("seven")).unwrap());
    for name in ["seven", "six", "zstd"] {
        let out = place.path().join(name);
        assert_eq!(convert(&corpus(name), &out).unwrap(), [""; 0]);
        let (old, new) = (Trace::open(&corpus(name)).unwrap(), Trace::open(&out).unwrap());
        assert_eq!((events_of(&new), new.damage()), (whole.clone(), &[][..]), "{name}");
        assert_eq!((old.clock(), old.formats(), old.system()), (new.clock(), new.formats(), new.system()));
        assert_eq!(new.events().unwrap().threads().get(17), Some(Comm::new("level 4")));
    }
    let bytes = fs::read(corpus("seven")).unwrap();
    let options = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
    fs::write(place.path().join("cut"), &bytes[..options + 60]).unwrap();
    let damage = convert(&place.path().join("cut"), &place.path().join("repaired")).unwrap();
    assert!(damage[0].contains("is guessed"), "{damage:?}");
    let repaired = Trace::open(&place.path().join("repaired")).unwrap();
    assert_eq!((events_of(&repaired), repaired.damage()), (whole, &[][..]));
    fs::write(place.path().join("text"), "no trace").unwrap();
    let error = convert(&place.path().join("text"), &place.path().join("none")).unwrap_err();
    assert!(matches!(error, WriteError::Unreadable(_)) && !place.path().join("none").exists(), "{error}");
}

#[test]
fn replaces_files_and_links_only() {
    let place = tempfile::tempdir().unwrap();
    // As root, a device such as /dev/null would be removed, too.
    let socket = place.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let error = convert(&corpus("seven"), &socket).unwrap_err();
    assert!(
        matches!(error, WriteError::Output { .. }) && error.to_string().contains("not a regular file"),
        "{error}"
    );
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    let raw = place.path().join("raw");
    directory(&raw, 100);
    assert!(matches!(dat::finish(&raw, &socket), Err(WriteError::Output { .. })));
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket() && raw.exists());

    let (target, link) = (place.path().join("target"), place.path().join("link"));
    fs::write(&target, "old").unwrap();
    symlink(&target, &link).unwrap();
    dat::finish(&raw, &link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_file() && Trace::open(&link).is_ok());
    assert_eq!(fs::read(&target).unwrap(), b"old");
}

/// As if the recorder had been killed while it moved pages.
#[test]
fn finishes_recording_with_half_moved_pages() {
    const MOVED: u64 = 4 << 20;
    let place = tempfile::tempdir().unwrap();
    let (raw, out, part) =
        (place.path().join("raw"), place.path().join("t.dat"), place.path().join("t.dat.part"));
    let events = directory(&raw, 150_000);
    dat::write(&raw, &out).unwrap();
    fs::rename(&out, &part).unwrap();
    // The copy contains only moved pages, and the original contains the rest.
    let pages = raw.join("per_cpu/cpu0/trace_pipe_raw");
    let bytes = fs::read(&part).unwrap();
    let start = fs::read(&pages).unwrap()[..4_096].to_vec();
    let start = (0..).step_by(4_096).find(|&at| bytes[at..].starts_with(&start)).unwrap() as u64;
    fs::File::options().write(true).open(&part).unwrap().set_len(start + MOVED).unwrap();
    let file = fs::File::options().write(true).open(&pages).unwrap();
    assert!(file.metadata().unwrap().len() > MOVED);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if let Err(error) = fallocate(&file, punch, 0, MOVED) {
        return skip(Need::System("files with holes"), error);
    }
    let found = events_of(&Trace::open(&raw).unwrap());
    assert!(matches!(found[0].kind, Kind::Lost { .. }), "what is missing is told");
    assert!(matches!(dat::write(&raw, &out), Err(WriteError::Moved { .. })));
    assert!(matches!(dat::finish(&raw, &place.path().join("other.dat")), Err(WriteError::Moved { .. })));

    dat::finish(&raw, &out).unwrap();
    assert!(!raw.exists() && !part.exists());
    assert!(events_of(&Trace::open(&out).unwrap()) == events);
    let mut last = [0; 1];
    assert_eq!(fs::File::open(&out).unwrap().read_at(&mut last, bytes.len() as u64).unwrap(), 0);
}
