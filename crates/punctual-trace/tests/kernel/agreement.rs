//! Comparison with other tools: `perf sched timehist` for J, and `trace-cmd report` for the number
//! of events.

use crate::recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};

use crate::trace_cmd::{is_recorded, printed};
use punctual_trace::event::Tid;
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Job, Release, Select};
use punctual_trace::read::Trace;
use punctual_trace::record;
use punctual_trace::write::dat;
use rustix::process::{Pid, Signal, kill_process};
use test_skip::{Need, skip};

/// Number of jobs, and their distance.
const JOBS: u32 = 200;
const PERIOD: Duration = Duration::from_millis(3);
/// perf records the same events a little earlier or later, and prints µs.
const APART: u64 = 10_000;

fn has_perf() -> bool {
    let is_installed = test_skip::is_installed("perf");
    if !is_installed {
        skip(Need::Tool("perf"), "comparison with its recordings");
    }
    is_installed
}

/// A thread that is released repeatedly, next to others that compete for the CPU.
fn play() -> Tid {
    let busy = std::thread::spawn(|| {
        let end = Instant::now() + PERIOD * JOBS;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    });
    let periodic = std::thread::spawn(|| {
        for _ in 0..JOBS {
            std::thread::sleep(PERIOD);
        }
        rustix::thread::gettid().as_raw_nonzero().get() as Tid
    });
    let thread = periodic.join().unwrap();
    busy.join().unwrap();
    thread
}

/// A running perf recorder.
struct Perf(Child);

impl Perf {
    /// Starts it and waits until it records.
    fn start(file: &Path) -> Option<Self> {
        let mut perf = Command::new("perf");
        perf.args(["sched", "record", "-k", "mono", "-o"]).arg(file).args(["--", "sleep", "60"]);
        let mut child = perf.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        // It starts its workload after its set-up.
        let children = PathBuf::from(format!("/proc/{0}/task/{0}/children", child.id()));
        let end = Instant::now() + TEST_LIMIT;
        while Instant::now() < end {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            let names = fs::read_to_string(&children).unwrap_or_default();
            let sleeps = |pid: &str| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
            };
            if names.split_whitespace().any(sleeps) {
                return Some(Self(child));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Self(child))
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.0.status_within(TEST_LIMIT).unwrap();
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// Returns for each run of the thread: its end, and the preceding wait for the CPU, in ns.
fn timehist(file: &Path, thread: Tid) -> Vec<(u64, u64)> {
    let mut perf = Command::new("perf");
    let output = perf
        .args(["sched", "timehist", "-i"])
        .arg(file)
        .args(["-t", &thread.to_string()])
        .output_within(TEST_LIMIT)
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ns = |text: &str| {
        let (whole, part) = text.split_once('.')?;
        let digits = 10_u64.pow(part.len() as u32);
        Some((whole.parse::<u64>().ok()? * digits + part.parse::<u64>().ok()?, digits))
    };
    let lines = text.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (seconds, per_second) = ns(words.first()?)?;
        let (delay, per_ms) = ns(words.get(words.len().checked_sub(2)?)?)?;
        Some((seconds * (1_000_000_000 / per_second), delay * (1_000_000 / per_ms)))
    });
    lines.collect()
}

#[test]
fn agrees_with_perf_on_jitter() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("perf.data");
    if !has_perf() {
        return;
    }
    let Some(recording) = recording::start(record::Config::default(), &place.path().join("raw")) else {
        return;
    };
    let Some(perf) = Perf::start(&file) else {
        return skip(Need::System("perf sched record"), "comparison with its recordings");
    };
    let thread = play();
    perf.stop();
    recording.stop().unwrap();
    let theirs = timehist(&file, thread);

    let trace = Trace::open(&place.path().join("raw")).unwrap();
    // perf ignores timers.
    let config = Config { select: Select::thread(thread), release: Release::Wake, ..Config::default() };
    let (mut decomposer, mut jobs) = (Decomposer::new(config), Vec::<Job>::new());
    for event in trace.events().unwrap() {
        decomposer.feed(&event.unwrap(), &mut |job| jobs.push(job.clone()));
    }
    if !recording::whole(decomposer.counters()) {
        return;
    }
    // A job whose switch from idle was not recorded has bounds only.
    jobs.retain(|job| job.complete() && job.bounded_switches == 0);
    jobs.retain(|job| job.actor == Actor::Thread(thread) && job.preemptions == 0);
    assert!(jobs.len() as u32 >= JOBS * 3 / 4, "{} jobs", jobs.len());
    let (mut compared, mut apart) = (0, Vec::new());
    for job in &jobs {
        let Bounds::Exact(jitter) = job.jitter else { panic!("{job:?}") };
        // perf's line is at the switch-out, which ends the job.
        let Some((_, delay)) = theirs.iter().find(|(end, _)| end.abs_diff(job.end) < 100_000) else {
            continue;
        };
        compared += 1;
        apart.push(jitter.abs_diff(*delay));
    }
    apart.sort_unstable();
    let agree = apart.iter().filter(|&&apart| apart <= APART).count();
    eprintln!(
        "of {} jobs perf has {compared}, and J of {agree} agrees within 10 µs: {} ns apart in the median, {:?} at most",
        jobs.len(),
        apart[apart.len() / 2],
        apart.last()
    );
    // Both record the time of an event separately, and the host may take the CPU in between.
    assert!(compared * 10 >= jobs.len() * 9 && agree * 20 >= compared * 19, "{apart:?}");
}

#[test]
fn writes_as_many_events_as_trace_cmd_reads() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let (directory, file) = (place.path().join("raw"), place.path().join("trace.dat"));
    let Some(recording) = recording::start(record::Config::default(), &directory) else { return };
    play();
    let summary = recording.stop().unwrap();
    assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);
    dat::write(&directory, &file).unwrap();
    let mut events = Trace::open(&file).unwrap().events().unwrap();
    let read = events.by_ref().filter(|event| is_recorded(event.as_ref().unwrap().kind)).count();
    let ours = read as u64 + events.skipped().map(|(_, count)| count).sum::<u64>();
    let Some(printed) = printed(&file) else { return };
    let theirs: u64 = printed.values().sum();
    eprintln!("{ours} events, and {theirs} by trace-cmd");
    assert!(ours > 1_000);
    assert_eq!(ours, theirs);
}
