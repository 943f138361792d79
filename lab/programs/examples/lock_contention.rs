//! Two threads contend for a kernel lock; prints the attribution of the time in a trace.
//!
//!     lock_contention DEVICE CPU MS
//!
//! DEVICE belongs to the lab's module `punctual_locks`. On CPU 0 a thread of priority 10 holds its
//! lock for MS milliseconds. After a third of that, a thread of priority 30 on CPU, which may also
//! be 0, locks it. All events are recorded, and the job of the high thread is decomposed.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use punctual_process::scheduling::set_policy;
use punctual_trace::event::Tid;
use punctual_trace::jobs::{Config, Decomposer, Job, Select, WaitTarget};
use punctual_trace::read::Trace;
use punctual_trace::record::{self, Recording};
use rustix::thread::{CpuSet, clock_nanosleep_absolute, gettid, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

use punctual_lab::{Result, end, word};

const USAGE: &str = "DEVICE CPU MS, as in /dev/punctual-mutex 0 6";

/// The names of the lock kinds in `contention_begin`, by bit (`include/trace/events/lock.h`).
const KINDS: [&str; 6] = ["spinning", "read", "write", "rt", "percpu", "mutex"];

fn main() -> Result {
    let mut words = env::args().skip(1);
    let device: String = word(USAGE, &mut words)?;
    let (cpu, hold_ms): (usize, u16) = (word(USAGE, &mut words)?, word(USAGE, &mut words)?);
    end(USAGE, words)?;
    let directory = env::temp_dir().join(format!("lock_contention-{}", std::process::id()));
    let outcome = contend(Path::new(&device), cpu, hold_ms, &directory);
    // It does not exist if the recording did not start.
    let _ = std::fs::remove_dir_all(&directory);
    outcome
}

fn contend(device: &Path, cpu: usize, hold_ms: u16, directory: &Path) -> Result {
    let open = |us: u32| -> Result<File> {
        let mut file = File::options().read(true).write(true).open(device)?;
        file.write_all(us.to_string().as_bytes())?;
        Ok(file)
    };
    let (low, high) = (open(u32::from(hold_ms) * 1000)?, open(0)?);
    let recording = Recording::start(record::Config::default(), directory)?;
    let base = clock_gettime(ClockId::Monotonic);
    let low = contender("low", 10, 0, later(base, 100), low)?;
    let high = contender("high", 30, cpu, later(base, 100 + i64::from(hold_ms) / 3), high)?;
    let (low, high) = (low.join()?, high.join()?);
    let summary = recording.stop()?;
    if summary.losses.iter().any(|cpu| cpu.lost > 0) {
        return Err("the kernel lost events".into());
    }

    let job = last_job(directory, high)?;
    let us = |ns: Option<u64>| ns.map_or("?".to_owned(), |ns| (ns / 1000).to_string());
    println!("late {} us, blocked {} us", us(job.jitter.hi()), us(job.blocking.hi()));
    for wait in &job.blockings {
        let WaitTarget::Lock { flags, .. } = wait.target else { continue };
        let kinds = KINDS.iter().enumerate().filter(|(bit, _)| flags & 1 << bit != 0);
        let kinds: Vec<&str> = kinds.map(|(_, kind)| *kind).collect();
        let holder = match wait.owners.first() {
            Some(&tid) if tid == low => "low",
            Some(_) => "somebody else",
            None => "nobody known",
        };
        println!(
            "{} us for a lock ({}) held by {holder}, {}",
            wait.ns() / 1000,
            kinds.join(" "),
            if wait.slept { "asleep" } else { "spinning" }
        );
    }
    Ok(())
}

/// A running contender.
struct Contender {
    thread: thread::JoinHandle<std::io::Result<()>>,
    tid: Tid,
}

impl Contender {
    fn join(self) -> Result<Tid> {
        self.thread.join().map_err(|_| "a contender panicked")??;
        Ok(self.tid)
    }
}

/// Starts a thread that takes the lock of `device` at the instant `at`.
fn contender(name: &str, priority: i32, cpu: usize, at: Timespec, mut device: File) -> Result<Contender> {
    let (sender, ready) = mpsc::channel();
    let run = move || {
        let ready = real_time(priority, cpu).map(|()| u32::try_from(gettid().as_raw_nonzero().get()));
        let failed = ready.is_err();
        // The thread that started it waits for this.
        let _ = sender.send(ready);
        if failed {
            return Ok(());
        }
        while clock_nanosleep_absolute(ClockId::Monotonic, &at) == Err(rustix::io::Errno::INTR) {}
        device.read(&mut [0]).map(drop)
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
    let tid = ready.recv()???;
    Ok(Contender { thread, tid })
}

fn real_time(priority: i32, cpu: usize) -> std::io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus)?;
    set_policy(libc::SCHED_FIFO, priority)
}

fn later(time: Timespec, ms: i64) -> Timespec {
    let ns = time.tv_nsec + ms * 1_000_000;
    Timespec { tv_sec: time.tv_sec + ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

/// Returns the last job of a thread in a recording that was blocked or late; its other jobs only
/// set it up.
fn last_job(directory: &Path, tid: Tid) -> Result<Job> {
    let config = Config { select: Select::thread(tid), monotonic: true, ..Config::default() };
    let mut decomposer = Decomposer::new(config);
    let mut jobs = Vec::new();
    let mut sink = |job: &Job| jobs.push(job.clone());
    for event in Trace::open(directory)?.events()? {
        decomposer.feed(&event?, &mut sink);
    }
    decomposer.finish(&mut sink);
    jobs.pop().ok_or_else(|| "the recording has no job of the thread".into())
}
