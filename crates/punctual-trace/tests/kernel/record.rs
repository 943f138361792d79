//! Recording on this machine, where tracefs can be used.

use crate::recording;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, TEST_LIMIT};

use crate::recording::{instances_of, play, whole};
use punctual_trace::event::{Comm, Kind, SwitchOut};
use punctual_trace::jobs::{self, Actor, Decomposer, Job, Select};
use punctual_trace::read::{ReadError, Trace, marker};
use punctual_trace::record::{Config, Filter, Group, Live, LiveError, RecordError, Recording};
use punctual_trace::write::dat;
use test_skip::{Need, skip};

/// Environment variable that makes a child record into this directory until it is killed.
const VICTIM: &str = "PUNCTUAL_TEST_RECORD_UNTIL_KILLED";

/// Starts to record, if tracefs is or can be mounted.
fn start(config: Config, directory: &Path) -> Option<Recording> {
    recording::enter();
    recording::start(config, directory)
}

/// Returns the threads of this process.
fn own_threads() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc/self/task").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn records_events_and_leaves_nothing_behind() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("raw");
    let filter = Filter { processes: vec![std::process::id()], ..Filter::default() };
    let groups = Group::ALL.to_vec();
    let Some(recording) = start(Config { filter, groups, ..Config::default() }, &directory) else { return };
    assert_eq!(instances_of(std::process::id()).len(), 2);
    let partner = play();
    let mut ours = own_threads();
    ours.insert(partner);
    recording.absent().iter().for_each(|absent| eprintln!("absent: {absent}"));
    let by_programs = !recording.absent().iter().any(|absent| absent.group == Group::Schedule);
    let summary = recording.stop().unwrap();
    assert_eq!(instances_of(std::process::id()), [""; 0]);
    eprintln!("{summary:?}");
    assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);

    let file = place.path().join("trace.dat");
    dat::write(&directory, &file).unwrap();
    for path in [&directory, &file] {
        let trace = Trace::open(path).unwrap();
        assert_eq!((trace.clock(), trace.buffers().len()), ("mono", 2 + usize::from(by_programs)));
        let mut events = trace.events().unwrap();
        let (mut callers, mut switched) = (BTreeSet::new(), BTreeSet::new());
        let (mut last, mut futexes) = (0, 0);
        let mut decomposer = Decomposer::new(jobs::Config::default());
        for event in events.by_ref() {
            let event = event.unwrap();
            decomposer.feed(&event, &mut |_| {});
            assert!(event.time >= last);
            last = event.time;
            match event.kind {
                Kind::FutexEnter { .. } => {
                    futexes += 1;
                    callers.insert(event.by);
                }
                Kind::Switch { to, .. } => drop(switched.insert(to.id)),
                Kind::Lost { .. } => panic!("nothing was lost"),
                _ => {}
            }
        }
        if !whole(decomposer.counters()) {
            return;
        }
        assert_eq!(events.threads().get(partner), Some(Comm::new("partner")));
        assert!(switched.contains(&partner));
        assert!(futexes > 100 && callers.contains(&partner), "{futexes} by {callers:?}");
        assert!(callers.is_subset(&ours), "{callers:?} called, and ours are {ours:?}");
        assert!(events.incomplete().is_empty());
    }
}

#[test]
fn reads_and_removes_leftovers_of_killed_recorder() {
    let _alone = test_skip::alone();
    if let Some(directory) = std::env::var_os(VICTIM) {
        let config = Config { buffer_kib: 512, ..Config::default() };
        let Some(_recording) = start(config, directory.as_ref()) else { return };
        loop {
            play();
        }
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("raw");
    let Some(probe) = start(Config::default(), &place.path().join("probe")) else { return };
    drop(probe);
    assert_eq!(instances_of(std::process::id()), [""; 0]);

    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "record::reads_and_removes_leftovers_of_killed_recorder", "--nocapture"]);
    let mut victim =
        victim.env(VICTIM, &directory).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let bytes = || {
        let entries = fs::read_dir(directory.join("per_cpu")).into_iter().flatten().flatten();
        entries
            .map(|entry| fs::metadata(entry.path().join("trace_pipe_raw")).map_or(0, |data| data.len()))
            .sum::<u64>()
    };
    // The loop ends with the victim's action, or with its failure.
    let end = Instant::now() + TEST_LIMIT;
    while bytes() <= 100_000 && victim.try_wait().unwrap().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    victim.kill().unwrap();
    victim.status_within(TEST_LIMIT).unwrap();
    assert!(bytes() > 100_000, "the victim recorded {} bytes", bytes());
    assert_eq!(instances_of(victim.id()).len(), 1);

    let recording = start(Config::default(), &place.path().join("next")).unwrap();
    assert!(recording.removed().iter().any(|name| name.starts_with(&format!("punctual-{}-", victim.id()))));
    assert_eq!(instances_of(victim.id()), [""; 0]);
    drop(recording);
    assert_eq!(instances_of(std::process::id()), [""; 0]);

    // The last page may be truncated; all others are there.
    let results: Vec<_> = Trace::open(&directory).unwrap().events().unwrap().collect();
    assert!(results.iter().filter(|result| result.is_ok()).count() > 1_000);
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(ReadError::Truncated { .. }))));
}

#[test]
fn rejects_unrecordable_events_with_remedy() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let Some(recording) = start(Config::default(), &place.path().join("a")) else { return };
    drop(recording);
    let refused = |config| match Recording::start(config, &place.path().join("b")) {
        Err(error) => error,
        Ok(_) => panic!("it records"),
    };
    let clock = refused(Config { clock: "sundial".into(), ..Config::default() });
    assert!(clock.to_string().contains("mono"), "{clock}");
    // The kernel offers them, but their times cannot be used.
    for name in ["counter", "uptime"] {
        let clock = refused(Config { clock: name.into(), ..Config::default() });
        assert!(matches!(clock, RecordError::NoTime { .. }), "{clock}");
        let offered = clock.to_string().split_once("choose one of: ").unwrap().1.to_owned();
        assert!(offered.contains("mono") && !offered.contains(name) && !offered.contains("tsc"), "{clock}");
    }
    assert!(matches!(
        refused(Config { cpus: vec![4_000], ..Config::default() }),
        RecordError::Cpu { cpu: 4_000 }
    ));
    let nobody = Filter { processes: vec![u32::MAX], ..Filter::default() };
    assert!(matches!(
        refused(Config { filter: nobody, ..Config::default() }),
        RecordError::UnknownProcess { .. }
    ));
    match Recording::start(Config::default(), Path::new("/proc/nowhere")) {
        Err(error) => assert!(error.to_string().contains("/proc/nowhere"), "{error}"),
        Ok(_) => panic!("it records"),
    }
    assert_eq!(instances_of(std::process::id()), [""; 0]);
}

/// Returns the jobs of all threads of a narrow recording, including unfinished ones.
fn all_jobs(trace: &Trace) -> Vec<Job> {
    let recorded = trace.recorded().unwrap();
    let missing = recorded.missing();
    assert!(
        missing
            .iter()
            .any(|missing| missing.what.contains("switches and wake-ups of threads that were not traced")),
        "{missing:?}"
    );
    let select = Select { priorities: Some(-1..=139), ..Select::default() };
    let mut decomposer = Decomposer::new(jobs::Config { select, recorded, ..jobs::Config::default() });
    let events = trace.events().unwrap();
    events.threads().iter().for_each(|(id, name)| decomposer.name(id, &name.text()));
    let mut found = Vec::new();
    for event in events {
        decomposer.feed(&event.unwrap(), &mut |job| found.push(job.clone()));
    }
    decomposer.finish(&mut |job| found.push(job.clone()));
    found
}

#[test]
fn records_only_traced_threads_when_narrow() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let filter = Filter { names: vec!["partner".into()], priorities: Some(1..=99), ..Filter::default() };
    let groups = vec![Group::Sched, Group::Futex];
    let config = Config { filter, narrow: true, groups, ..Config::default() };
    let Some(recording) = start(config, &place.path().join("raw")) else { return };
    let partner = play();
    recording.stop().unwrap();
    let trace = Trace::open(&place.path().join("raw")).unwrap();
    let mut events = trace.events().unwrap();
    let all: Vec<_> = events.by_ref().collect::<Result<_, _>>().unwrap();
    // Partners in other tests have had the name too, and the kernel may still remember them.
    let named = |id| events.threads().get(id) == Some(Comm::new("partner"));
    let is_real_time = |priority: i32| (0..99).contains(&priority);
    let traced = |id, priority| named(id) || is_real_time(priority);
    assert!(named(partner) && all.len() > 500);
    // Those of other programs that run at the same time.
    let real_time = all.iter().flat_map(|event| match event.kind {
        Kind::Waking { task, .. } | Kind::Wakeup { task, .. } => vec![task],
        Kind::Switch { from, to, .. } => vec![from, to],
        _ => vec![],
    });
    let real_time = real_time.filter(|task| is_real_time(task.priority));
    let real_time: BTreeSet<_> = real_time.map(|task| task.id).collect();
    for event in all {
        let good = match event.kind {
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } => traced(task.id, task.priority),
            Kind::Migrate { task, .. } => traced(task.id, task.priority),
            Kind::Switch { from, to, .. } => traced(from.id, from.priority) || traced(to.id, to.priority),
            Kind::FutexEnter { .. } | Kind::FutexExit { .. } => {
                named(event.by) || real_time.contains(&event.by)
            }
            _ => true,
        };
        // A thread is woken for the first time before it has its name.
        assert!(good || own_threads().contains(&event.by), "{event:?}");
    }
    // Other threads do not appear either.
    let jobs = all_jobs(&trace);
    assert!(jobs.iter().any(|job| job.actor == Actor::Thread(partner)));
    for job in jobs {
        let Actor::Thread(id) = job.actor else { panic!("{job:?}") };
        assert!(traced(id, job.priority), "{job:?}");
    }
}

#[test]
fn follows_new_threads_when_narrow() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let filter = Filter { processes: vec![std::process::id()], ..Filter::default() };
    let groups = vec![Group::Sched];
    let config = Config { filter, narrow: true, groups, ..Config::default() };
    let Some(recording) = start(config.clone(), &place.path().join("raw")) else { return };
    // Switches of other threads are not recorded.
    let enabled = |instance: &str| {
        let path = format!("/sys/kernel/tracing/instances/{instance}/events/sched/sched_switch/enable");
        fs::read_to_string(path).unwrap().trim().to_owned()
    };
    let instances = instances_of(std::process::id());
    let mut enabled: Vec<String> = instances.iter().map(|name| enabled(name)).collect();
    enabled.sort();
    assert_eq!(enabled, ["0", "1"]);
    // Two threads that wake each other, both created after the recording started.
    let (player, partner) = std::thread::spawn(|| {
        let partner = play();
        (rustix::thread::gettid().as_raw_nonzero().get() as u32, partner)
    })
    .join()
    .unwrap();
    assert_eq!(recording.absent(), []);
    recording.stop().unwrap();
    let trace = Trace::open(&place.path().join("raw")).unwrap();
    let all: Vec<_> = trace.events().unwrap().collect::<Result<_, _>>().unwrap();
    let new = [player, partner];
    let woken = all.iter().filter(|event| {
        matches!(event.kind, Kind::Waking { task, .. } if new.contains(&task.id)) && new.contains(&event.by)
    });
    // They need not sleep each time.
    assert!(woken.count() > 10);
    let left = |event: &&punctual_trace::event::Event| matches!(event.kind, Kind::Switch { from, .. } if new.contains(&from.id));
    assert!(all.iter().filter(left).count() > 10);
    // Unselected threads have no jobs, and the selected ones have some.
    let jobs = all_jobs(&trace);
    let own = own_threads();
    for job in &jobs {
        let Actor::Thread(id) = job.actor else { panic!("{job:?}") };
        assert!(own.contains(&id) || !Path::new(&format!("/proc/{id}")).exists(), "{job:?}");
    }
    for id in new {
        let complete = jobs.iter().filter(|job| job.actor == Actor::Thread(id) && job.complete()).count();
        let count = |is: &dyn Fn(Kind) -> bool| all.iter().filter(|event| is(event.kind)).count();
        let wakings = count(&|kind| matches!(kind, Kind::Waking { task, .. } if task.id == id));
        let starts = count(&|kind| matches!(kind, Kind::Switch { to, .. } if to.id == id));
        // Some kernels trace no switch from an idle CPU for minutes; the jobs that start there are
        // flawed.
        let omits_starts = starts + 3 < wakings;
        assert!(complete > 3 || omits_starts, "{id}: {complete} jobs, {wakings} wakings, {starts} starts");
    }
    let mixed = Filter { names: vec!["partner".into()], ..config.filter.clone() };
    let recording = start(Config { filter: mixed, ..config }, &place.path().join("mixed")).unwrap();
    assert!(recording.absent()[0].to_string().contains("all are recorded"), "{:?}", recording.absent());
}

#[test]
fn delivers_events_live() {
    let _alone = test_skip::alone();
    recording::enter();
    let config = Config {
        filter: Filter { processes: vec![std::process::id()], ..Filter::default() },
        ..Config::default()
    };
    let mut live = match Live::start(&config) {
        Err(LiveError::Start(error @ (RecordError::NoTracefs | RecordError::Permission { .. }))) => {
            skip(Need::Tracefs, error);
            return;
        }
        result => result.unwrap(),
    };
    let mut events = Vec::new();
    let mut partners = BTreeSet::new();
    for _ in 0..4 {
        partners.insert(play());
        live.take(&mut events).unwrap();
    }
    // An app's marks arrive through the buffer that every system has, if the kernel copies them and
    // that buffer is on.
    let markers =
        [marker::name(3, "sample").to_vec(), marker::start(3, 77).to_vec(), marker::end(3).to_vec()];
    for marker in markers {
        let mut file = fs::File::options().write(true).open("/sys/kernel/tracing/trace_marker_raw").unwrap();
        match (file.write_all(&marker), punctual_trace::record::refused_marks()) {
            (Ok(()), _) => {}
            (Err(error), refused) => assert!(refused.is_some(), "{error}"),
        }
    }
    eprintln!("{} late of {}", live.late(), events.len());
    let names: Vec<_> = partners.iter().map(|&id| live.threads().get(id)).collect();
    live.stop(&mut events).unwrap();
    let mut decomposer = Decomposer::new(jobs::Config::default());
    events.iter().for_each(|event| decomposer.feed(event, &mut |_| {}));
    // A switch to it carries its name.
    if whole(decomposer.counters()) {
        assert!(names.iter().any(|name| *name == Some(Comm::new("partner"))), "{names:?}");
    }
    assert!(events.is_sorted_by_key(|event| (event.time, event.cpu)));
    let futexes =
        |id| events.iter().any(|event| event.by == id && matches!(event.kind, Kind::FutexEnter { .. }));
    // A channel spins before it blocks.
    let blocks = |id| {
        let blocks =
            |kind| matches!(kind, Kind::Switch { from, reason: SwitchOut::Sleeping, .. } if from.id == id);
        events.iter().any(|event| blocks(event.kind))
    };
    for &id in &partners {
        assert!(futexes(id) || !blocks(id), "{id} blocks, and its calls of futex are not recorded");
    }
    let marks =
        events.iter().filter(|event| matches!(event.kind, Kind::JobStart { task: 3, released: 77 })).count();
    eprintln!("{marks} marks were copied");
    assert!(marks <= 1);
    assert_eq!(instances_of(std::process::id()), [""; 0]);
}

/// Returns the number of recorded returns from `read` of a thread that waits `rounds` times for
/// data from a pipe.
fn returns_recorded(filter: Filter, rounds: usize) -> Option<usize> {
    let place = tempfile::tempdir().unwrap();
    let recording = start(Config { filter, ..Config::default() }, &place.path().join("raw"))?;
    let (from, to) = rustix::pipe::pipe().unwrap();
    let (ready, turn) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for _ in 0..rounds {
            ready.send(()).unwrap();
            assert_eq!(rustix::io::read(&from, &mut [0; 1]), Ok(1));
        }
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    });
    for () in turn {
        assert_eq!(rustix::io::write(&to, &[1]), Ok(1));
    }
    let reader = reader.join().unwrap();
    let summary = recording.stop().unwrap();
    assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);
    let events = Trace::open(&place.path().join("raw")).unwrap().events().unwrap().map(Result::unwrap);
    let read = Kind::SyscallExit { number: libc::SYS_read as u32 };
    Some(events.filter(|event| event.by == reader && event.kind == read).count())
}

/// The return from the call in which a thread waited shows when it had left the scheduler, so the
/// bounds of SS are narrow. `read` is such a call, but recording it for all threads would be too
/// much.
#[test]
fn records_by_default_when_chosen_threads_return_from_waiting() {
    let _alone = test_skip::alone();
    let chosen = Filter { processes: vec![std::process::id()], ..Filter::default() };
    let Some(returns) = returns_recorded(chosen, 50) else { return };
    assert!(returns >= 50, "{returns}");
    assert_eq!(returns_recorded(Filter::default(), 50), Some(0));
}
