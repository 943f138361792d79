//! Random events survive a round trip, as a directory and as files of either version and byte
//! order.

use std::fs;
use std::process::Command;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{is_record, records};
use punctual_trace::event::{Comm, Event, Kind, SwitchOut, Task};
use punctual_trace::read::{ReadError, Trace};
use punctual_trace::write::{WriteError, dat, synthetic::Synthetic};
use test_skip::{Need, skip};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn task(&mut self) -> Task {
        Task { id: self.below(1 << 22) as u32, priority: self.below(141) as i32 - 1 }
    }

    fn kind(&mut self) -> Kind {
        let (task, cpu) = (self.task(), self.below(300) as u16);
        let address = u64::MAX - self.below(1 << 40);
        match self.below(28) {
            0 => Kind::Waking { task, cpu },
            1 => Kind::Wakeup { task, cpu, new: false },
            2 => Kind::Wakeup { task, cpu, new: true },
            3 => Kind::Migrate { task, from: cpu, to: self.below(300) as u16 },
            4 => Kind::Inherit { task: task.id, old: task.priority, new: self.below(141) as i32 - 1 },
            5 => Kind::IrqEntry { irq: self.below(1000) as u32 },
            6 => Kind::IrqExit { irq: self.below(1000) as u32 },
            7 => Kind::VectorEntry { vector: self.below(256) as u16 },
            8 => Kind::VectorExit { vector: self.below(256) as u16 },
            9 => Kind::SoftirqEntry { softirq: self.below(10) as u8 },
            10 => Kind::SoftirqExit { softirq: self.below(10) as u8 },
            11 => Kind::TimerStart { timer: address, expires: self.below(u64::MAX) },
            12 => Kind::TimerExpire { timer: address, now: self.below(u64::MAX) },
            13 => Kind::TimerExpired { timer: address },
            14 => Kind::ContentionBegin { lock: address, flags: self.below(64) as u32 },
            15 => Kind::ContentionEnd { lock: address },
            16 => Kind::FutexEnter { word: address, operation: self.below(400) as u32, value: u32::MAX },
            17 => Kind::FutexExit { result: self.below(200) as i64 - 100 },
            18 => Kind::SyscallEnter { number: self.below(500) as u32 },
            19 => Kind::SyscallExit { number: self.below(500) as u32 },
            20 => Kind::ScheduleEnter,
            21 => Kind::ScheduleExit,
            22 => Kind::JobStart { task: self.below(1 << 16) as u16, released: self.below(u64::MAX) },
            23 => Kind::JobEnd { task: self.below(1 << 16) as u16 },
            24 => {
                let window = self.below(1 << 32) as u32;
                Kind::OfflineJob {
                    task: self.below(1 << 16) as u16,
                    cpu: self.below(256) as u8,
                    started: (1 << 32) + self.below(1 << 60),
                    jitter: self.below(1 << 32) as u32,
                    window,
                    preempted: self.below(u64::from(window) + 1) as u32,
                }
            }
            25 => Kind::OfflineLost { cpu: self.below(256) as u8, count: self.below(1 << 32) as u32 },
            _ => {
                let reasons =
                    [SwitchOut::Runnable, SwitchOut::Sleeping, SwitchOut::Uninterruptible, SwitchOut::Gone];
                Kind::Switch { from: task, reason: reasons[self.below(4) as usize], to: self.task() }
            }
        }
    }

    /// Returns the time to the next event: mostly little, sometimes more than any of the kernel's
    /// delta encodings.
    fn step(&mut self) -> u64 {
        match self.below(400) {
            0 => 1 << 27,
            1 => (1 << 27) + self.below(1 << 40),
            2 => 1 << 59,
            3..60 => 0,
            _ => self.below(5_000),
        }
    }

    fn events(&mut self, count: usize, cpus: u64) -> Vec<Event> {
        let mut time = self.below(1 << 50);
        let mut events = Vec::new();
        for _ in 0..count {
            // Six steps of the largest kind would overflow.
            time = time.checked_add(self.step()).filter(|&time| time < 1 << 62).unwrap_or(time);
            let cpu = self.below(cpus) as u16;
            events.push(Event { time, cpu, by: self.below(1 << 22) as u32, kind: self.kind() });
        }
        events.sort_by_key(|event| (event.time, event.cpu));
        events
    }
}

fn write(directory: &std::path::Path, events: &[Event]) {
    let mut synthetic = Synthetic::create(directory).unwrap();
    synthetic.name(17, "level 4");
    events.iter().for_each(|event| synthetic.push(event).unwrap());
    synthetic.finish().unwrap();
}

fn read(path: &std::path::Path) -> Vec<Event> {
    records(&Trace::open(path).unwrap()).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn round_trips_random_events() {
    let place = tempfile::tempdir().unwrap();
    for seed in 1..=30 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed));
        let (count, cpus) = (random.below(3_000) as usize + 1, random.below(5) + 1);
        let events = random.events(count, cpus);
        let (directory, file) = (place.path().join(format!("{seed}.raw")), place.path().join("trace.dat"));
        write(&directory, &events);
        dat::write(&directory, &file).unwrap();
        assert_eq!(read(&directory), events, "seed {seed}");
        assert_eq!(read(&file), events, "seed {seed}");
    }
}

#[test]
fn reports_lost_events_where_they_occurred() {
    let place = tempfile::tempdir().unwrap();
    let event = |time, cpu| Event { time, cpu, by: 1, kind: Kind::IrqEntry { irq: 1 } };
    let lost = |time, cpu, count| Event { time, cpu, by: 0, kind: Kind::Lost { count } };
    let mut synthetic = Synthetic::create(&place.path().join("raw")).unwrap();
    let given = [event(1, 0), lost(0, 0, 7), event(5, 0), lost(0, 0, 0), event(9, 0)];
    given.iter().chain(&[event(3, 1), event(7, 1)]).for_each(|event| match event.kind {
        // This event has no time: it is placed before the event that follows.
        Kind::Lost { .. } => synthetic.push(&Event { time: u64::MAX, ..*event }).unwrap(),
        _ => synthetic.push(event).unwrap(),
    });
    synthetic.finish().unwrap();
    let expected =
        [event(1, 0), event(3, 1), lost(5, 0, 7), event(5, 0), event(7, 1), lost(9, 0, 0), event(9, 0)];
    assert_eq!(read(&place.path().join("raw")), expected);
}

#[test]
fn names_threads_and_tasks() {
    let place = tempfile::tempdir().unwrap();
    let to = Task { id: 17, priority: 60 };
    let kind = Kind::Switch { from: Task { id: 0, priority: 120 }, reason: SwitchOut::Runnable, to };
    write(&place.path().join("raw"), &[Event { time: 1, cpu: 0, by: 0, kind }]);
    let trace = Trace::open(&place.path().join("raw")).unwrap();
    assert_eq!((trace.clock(), trace.cpus()), ("mono", 1));
    let mut events = trace.events().unwrap();
    assert_eq!(events.by_ref().map(Result::unwrap).filter(is_record).count(), 1);
    assert_eq!(events.threads().get(17), Some(Comm::new("level 4")));
    assert_eq!(events.threads().get(0), Some(Comm::new("idle")));
}

#[test]
fn reads_truncated_trace_up_to_reported_end() {
    let place = tempfile::tempdir().unwrap();
    let events = Random(5).events(4_000, 2);
    let (directory, file) = (place.path().join("raw"), place.path().join("trace.dat"));
    write(&directory, &events);
    dat::write(&directory, &file).unwrap();
    // The options are at the end of this writer's files, so the truncation affects the data of a
    // directory.
    let data = directory.join("per_cpu/cpu1/trace_pipe_raw");
    let bytes = fs::read(&data).unwrap();
    fs::write(&data, &bytes[..bytes.len() / 2 + 100]).unwrap();
    let results: Vec<_> = Trace::open(&directory).unwrap().events().unwrap().collect();
    let good: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    let of_zero = events.iter().filter(|event| event.cpu == 0).count();
    assert_eq!(good.iter().filter(|event| event.cpu == 0).count(), of_zero);
    assert!(good.len() > of_zero);
    assert!(
        events
            .iter()
            .filter(|event| event.cpu == 1)
            .zip(good.iter().filter(|event| event.cpu == 1))
            .all(|(a, b)| a == *b)
    );
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let [ReadError::Truncated { file, offset, .. }] = errors[..] else { panic!("{errors:?}") };
    assert!(file.ends_with("cpu1/trace_pipe_raw"));
    assert_eq!(*offset, bytes.len() as u64 / 2 + 100);
    // The writer drops the truncated page, and the file is complete.
    dat::write(&directory, &place.path().join("again.dat")).unwrap();
    assert!(read(&place.path().join("again.dat")).len() > of_zero);
}

#[test]
fn rejects_unwritable_values() {
    let place = tempfile::tempdir().unwrap();
    let event = |time| Event { time, cpu: 3, by: 1, kind: Kind::IrqEntry { irq: 1 } };
    let mut synthetic = Synthetic::create(&place.path().join("raw")).unwrap();
    synthetic.push(&event(5)).unwrap();
    let error = synthetic.push(&event(4)).unwrap_err();
    assert!(matches!(error, WriteError::Backwards { cpu: 3, time: 4, before: 5 }), "{error}");
    let error = dat::write(&place.path().join("nowhere"), &place.path().join("x.dat")).unwrap_err();
    assert!(matches!(&error, WriteError::Source { path, .. } if path.ends_with("nowhere")), "{error}");
    std::fs::create_dir(place.path().join("other")).unwrap();
    let error = dat::write(&place.path().join("other"), &place.path().join("x.dat")).unwrap_err();
    assert!(
        matches!(&error, WriteError::Source { path, .. } if path.ends_with("other/events/header_page")),
        "{error}"
    );
    Synthetic::create(&place.path().join("empty")).unwrap().finish().unwrap();
    let error = dat::write(&place.path().join("empty"), &place.path().join("x.dat")).unwrap_err();
    assert!(matches!(error, WriteError::Empty { .. }), "{error}");
    let files = std::fs::read_dir(place.path()).unwrap().flatten();
    assert!(!files.map(|file| file.file_name()).any(|name| name.to_string_lossy().contains("x.dat")));
    assert!(matches!(Trace::open(&place.path().join("empty")), Err(ReadError::Empty { .. })));
}

/// Runs `survives_full_disk` again in a mount namespace with a file system of 16 KiB at that path.
#[test]
fn keeps_raw_recording_when_disk_is_full() {
    let place = tempfile::tempdir().unwrap();
    write(&place.path().join("raw"), &Random(3).events(100, 1));
    std::fs::create_dir(place.path().join("disk")).unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-c"]).env("PUNCTUAL_TEST_FULL_DISK", place.path());
    shell
        .arg("mount -t tmpfs -o size=16k none \"$PUNCTUAL_TEST_FULL_DISK\"/disk || exit 77; exec \"$@\"")
        .arg("sh");
    shell.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "roundtrip::survives_full_disk",
        "--ignored",
    ]);
    let output = shell.output_within(TEST_LIMIT).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => assert!(printed.contains("1 passed"), "{printed}"),
        Some(1 | 77) => skip(Need::MountNamespace, "a full disk"),
        _ => panic!("{printed}"),
    }
}

#[test]
#[ignore = "runs in a namespace of its own"]
fn survives_full_disk() {
    let Some(place) = std::env::var_os("PUNCTUAL_TEST_FULL_DISK").map(std::path::PathBuf::from) else {
        return;
    };
    let file = place.join("disk/x.dat");
    let error = dat::write(&place.join("raw"), &file).unwrap_err();
    assert!(matches!(&error, WriteError::DiskFull { saved: Some(_), .. }), "{error}");
    assert!(error.to_string().contains("raw"), "{error}");
    assert_eq!(std::fs::read_dir(place.join("disk")).unwrap().count(), 0, "the incomplete file takes room");
    assert_eq!(read(&place.join("raw")).len(), 100);
}

#[test]
fn agrees_with_trace_cmd() {
    if !test_skip::is_installed("trace-cmd") {
        return skip(Need::Tool("trace-cmd"), "what it reads of our files");
    }
    let place = tempfile::tempdir().unwrap();
    let events = Random(11).events(2_000, 3);
    let file = place.path().join("trace.dat");
    write(&place.path().join("raw"), &events);
    dat::write(&place.path().join("raw"), &file).unwrap();
    let report = |file: &std::path::Path| {
        let output = Command::new("trace-cmd").arg("report").arg(file).output_within(TEST_LIMIT).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| line.contains(": ")).count()
    };
    assert_eq!(report(&file), events.len());
    for (name, arguments) in [
        ("six.dat", &["--file-version", "6"][..]),
        ("zstd.dat", &["--file-version", "7", "--compression", "zstd"]),
        ("zlib.dat", &["--file-version", "7", "--compression", "zlib"]),
    ] {
        let other = place.path().join(name);
        let mut convert = Command::new("trace-cmd");
        convert.arg("convert").arg("-i").arg(&file).arg("-o").arg(&other).args(arguments);
        if convert.output_within(TEST_LIMIT).unwrap().status.success() && other.exists() {
            assert_eq!(read(&other), events, "{name}");
        } else {
            skip(Need::System("a newer trace-cmd"), name);
        }
    }
}
