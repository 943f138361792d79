//! Real threads on this machine's kernel whose terms are known by construction.
//!
//! Each workload measures itself with `CLOCK_MONOTONIC`, which is also the trace's clock: these
//! values are compared with the decomposition of the same run, so any disturbance by the machine is
//! in both. Names and counts have to be right in every round, times within 5 % or 20 µs.
//!
//! Rounds with an event omitted by the kernel are identified by their flaw and do not count; three
//! quarters of the rounds have to be complete. One disturbance affects the measurement and not the
//! trace: a host that takes the CPU away between a reading of the clock and the event next to it.
//! So a quarter of the rounds may differ in time, and a workload is run up to three times. A
//! systematic error would show in every round and every run.
//!
//! Threads are real-time ones on one CPU, for milliseconds at a time, and the kernel ends this
//! process if one runs away.

mod inversion;
mod load;
mod priority_inheritance;
mod times;

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use punctual_process::scheduling::set_policy;
use punctual_trace::event::{Event, Tid};
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Job, Select};
use punctual_trace::read::Trace;
use punctual_trace::record;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use test_skip::{Need, skip};

use crate::recording;

/// Number of repetitions of each workload.
pub(crate) const ROUNDS: usize = 20;
/// Number of attempts of a workload.
const ATTEMPTS: usize = 3;
/// Priority of a [`waiter`].
pub(crate) const WAITER: i32 = 30;
pub(crate) const MS: u64 = 1_000_000;

/// In ns.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Keeps the CPU busy until `time`.
pub(crate) fn spin_until(time: u64) {
    while now() < time {
        std::hint::spin_loop();
    }
}

pub(crate) fn sleep_until(time: u64) {
    let time = libc::timespec { tv_sec: (time / 1_000_000_000) as _, tv_nsec: (time % 1_000_000_000) as _ };
    // SAFETY: `time` is a valid `timespec`, and the remainder is not requested. An interrupted
    // sleep is retried.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

pub(crate) fn me() -> Tid {
    rustix::thread::gettid().as_raw_nonzero().get() as Tid
}

/// An object to wait for that is not a lock.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> Self {
        Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE).unwrap())
    }

    pub(crate) fn ring(&self) {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).unwrap();
    }

    pub(crate) fn wait(&self) {
        while rustix::io::read(&self.0, &mut [0_u8; 8]) == Err(rustix::io::Errno::INTR) {}
    }
}

/// A mutex of the C library, with priority inheritance or plain.
pub(crate) struct PthreadMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex may be used by several threads, by its address, which the box keeps
// constant.
unsafe impl Sync for PthreadMutex {}
// SAFETY: it is not locked when it moves, and belongs to no thread.
unsafe impl Send for PthreadMutex {}

impl PthreadMutex {
    pub(crate) fn new(inherits: bool) -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = std::mem::MaybeUninit::uninit();
        let protocol = if inherits { libc::PTHREAD_PRIO_INHERIT } else { libc::PTHREAD_PRIO_NONE };
        // SAFETY: the attributes are initialized first and destroyed last, and no thread uses the
        // mutex yet.
        unsafe {
            assert_eq!(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), 0);
            assert_eq!(libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol), 0);
            assert_eq!(libc::pthread_mutex_init(mutex.get(), attributes.as_ptr()), 0);
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        }
        Self(mutex)
    }

    pub(crate) fn lock(&self) {
        // SAFETY: it has been initialized and stays at this address.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }

    pub(crate) fn unlock(&self) {
        // SAFETY: as for `lock`.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }

    /// Returns whether it contains this futex word, which glibc and musl store within the mutex.
    pub(crate) fn has(&self, word: u64) -> bool {
        let start = self.0.get() as u64;
        (start..start + size_of::<libc::pthread_mutex_t>() as u64).contains(&word)
    }
}

/// Starts a thread with this SCHED_FIFO priority on the CPU of the workloads, and waits until it
/// has both: threads started after that with a lower priority run only when this one sleeps.
pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    priority: i32,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let body = move || {
        // SAFETY: all-zero is an empty set of CPUs, which is passed with its size; 0 names the
        // calling thread.
        unsafe {
            let mut set = std::mem::zeroed::<libc::cpu_set_t>();
            libc::CPU_SET(cpu(), &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
        }
        set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority).unwrap();
        ready.send(()).unwrap();
        body()
    };
    let handle = Builder::new().name(name.into()).spawn(body).unwrap();
    is_ready.recv().expect("it gets its settings");
    handle
}

/// Starts a thread that locks the mutex whenever the bell rings, and unlocks it at once.
///
/// Returns for each round the times of the request and of the acquisition.
pub(crate) fn waiter(mutex: &Arc<PthreadMutex>, asks: &Arc<Bell>) -> JoinHandle<(Tid, Vec<(u64, u64)>)> {
    let (mutex, asks) = (Arc::clone(mutex), Arc::clone(asks));
    thread("waiter", WAITER, move || {
        let waits = (0..ROUNDS).map(|_| {
            asks.wait();
            let before = now();
            mutex.lock();
            let after = now();
            mutex.unlock();
            (before, after)
        });
        (me(), waits.collect())
    })
}

/// Returns the last CPU that this process may use.
fn cpu() -> usize {
    // SAFETY: all-zero is a valid set, whose size is given.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(libc::getpid(), size_of_val(&set), &mut set), 0);
        (0..1024).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap()
    }
}

/// Returns whether threads of this process get SCHED_FIFO, and are ended if they run away.
fn real_time() -> bool {
    let attempt = std::thread::spawn(|| {
        let limit = libc::rlimit { rlim_cur: 2_000_000, rlim_max: 3_000_000 };
        // SAFETY: the kernel reads `limit`.
        let is_limited = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) } == 0;
        is_limited && set_policy(libc::SCHED_FIFO, 1).is_ok()
    });
    attempt.join().unwrap()
}

/// The events of a run, and the jobs of some of its threads.
pub(crate) struct Played {
    pub(crate) events: Vec<Event>,
    pub(crate) jobs: Vec<Job>,
}

impl Played {
    /// Returns the job of a thread that was in progress at that time, or `None` if part of it is
    /// missing from the trace.
    ///
    /// Kernel 6.18 omits about one switch in a thousand, directly after an interrupt, without
    /// counting it as lost.
    pub(crate) fn job(&self, thread: Tid, time: u64) -> Option<&Job> {
        let during = |job: &&Job| job.actor == Actor::Thread(thread) && (job.start..=job.end).contains(&time);
        // A job without its first and its last switch does not appear, and one without another
        // switch has bounds instead of times.
        let job = self.jobs.iter().find(during)?;
        (job.complete() && job.bounded_switches == 0).then(|| {
            assert_eq!(job.check(), Ok(()), "{job:?}");
            job
        })
    }
}

/// Runs a workload in a recording and checks the result; repeats it, up to three times, if times
/// differ or rounds are incomplete.
pub(crate) fn perform<T>(
    name: &str,
    play: impl Fn() -> (Vec<Tid>, T),
    check: impl Fn(&Played, &T) -> Vec<Measured>,
) {
    let _alone = test_skip::alone();
    if !real_time() {
        return skip(Need::RealTime, name);
    }
    for attempt in 1..=ATTEMPTS {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("raw");
        let Some(recording) = recording::start(record::Config::default(), &directory) else { return };
        let (tids, truth) = play();
        let summary = recording.stop().unwrap();
        assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);
        let trace = Trace::open(&directory).unwrap();
        let select = Select { tids, ..Select::default() };
        let config = Config { select, monotonic: trace.clock() == "mono", ..Config::default() };
        let events: Vec<Event> = trace.events().unwrap().collect::<Result<_, _>>().unwrap();
        let (mut decomposer, mut jobs) = (Decomposer::new(config), Vec::new());
        events.iter().for_each(|event| decomposer.feed(event, &mut |job: &Job| jobs.push(job.clone())));
        if !recording::whole(decomposer.counters()) {
            return;
        }
        let measured = check(&Played { events, jobs }, &truth);
        let good = measured.iter().filter(|measured| measured.agrees()).count();
        let first = measured.first().map(|measured| measured.what);
        let rounds = measured.iter().filter(|measured| Some(measured.what) == first).count();
        report(name, &measured);
        if good * 4 >= measured.len() * 3 && rounds * 4 >= ROUNDS * 3 {
            return;
        }
        let all = measured.len();
        eprintln!("{name}: attempt {attempt}: of {rounds} complete rounds {good} of {all} times agree");
    }
    panic!("{name}: the times do not agree");
}

/// A time, as recorded in the trace and as measured by the program.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) what: &'static str,
    pub(crate) trace: u64,
    pub(crate) truth: u64,
}

impl Measured {
    pub(crate) fn exact(what: &'static str, trace: Bounds, truth: u64) -> Self {
        match trace {
            Bounds::Exact(trace) => Self { what, trace, truth },
            other => panic!("{what} is {other:?}"),
        }
    }

    pub(crate) fn agrees(&self) -> bool {
        self.trace.abs_diff(self.truth) <= (self.truth / 20).max(20_000)
    }
}

fn report(name: &str, measured: &[Measured]) {
    let mut kinds: Vec<_> = measured.iter().map(|one| one.what).collect();
    kinds.dedup();
    kinds.sort_unstable();
    kinds.dedup();
    for what in kinds {
        let mut errors: Vec<(u64, u64)> = measured
            .iter()
            .filter(|one| one.what == what)
            .map(|one| (one.trace.abs_diff(one.truth), one.truth))
            .collect();
        errors.sort_unstable();
        let percent = |(error, truth): (u64, u64)| 100.0 * error as f64 / truth.max(1) as f64;
        let (max, median) = (errors[errors.len() - 1], errors[errors.len() / 2]);
        eprintln!(
            "{name}: {what}: off by at most {} ns ({:.2} %), in the median {} ns ({:.2} %), of {} rounds",
            max.0,
            percent(max),
            median.0,
            percent(median),
            errors.len()
        );
    }
}
