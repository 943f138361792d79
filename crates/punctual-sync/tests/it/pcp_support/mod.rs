//! The common parts of the tests on real threads: a watchdog, real-time threads on one CPU, and the
//! state of a thread.

#![allow(dead_code, reason = "every test uses its own part of this")]

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use test_skip::{Need, skip};

/// Ends the process if it is not dropped in time: a test that hangs at a real-time priority would
/// block a CPU.
pub(crate) struct Watchdog(#[allow(dead_code, reason = "dropping it is the signal")] Sender<()>);

pub(crate) fn watchdog(limit: Duration) -> Watchdog {
    let (alive, done) = mpsc::channel::<()>();
    thread::spawn(move || {
        // Above the threads that it monitors, if permitted.
        let _ = become_fifo(None, 90);
        if done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("watchdog: the test hangs, ending the process");
            std::process::abort();
        }
    });
    Watchdog(alive)
}

/// Returns the calling thread's TID.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Returns the state and current priority of a thread of this process. A real-time priority `p`,
/// including inherited ones, is `-1 - p`.
fn state(thread: u32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name may contain anything, including parentheses.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(14)?.parse().ok()?))
}

/// Yields until a thread of this process sleeps in the kernel.
pub(crate) fn await_asleep(thread: &AtomicU32) {
    loop {
        let id = thread.load(Ordering::Acquire);
        if id != 0 && state(id).is_some_and(|(state, _)| state == 'S') {
            return;
        }
        thread::yield_now();
    }
}

/// Returns the real-time priority at which the calling thread currently runs, including inherited
/// ones; 0 if it has none.
pub(crate) fn running_priority() -> i32 {
    state(thread_id()).map_or(0, |(_, priority)| (-1 - priority).max(0))
}

/// Pins the calling thread, if requested, and gives it `SCHED_FIFO`.
pub(crate) fn become_fifo(cpu: Option<usize>, priority: i32) -> io::Result<()> {
    if let Some(cpu) = cpu {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only)?;
    }
    punctual_process::scheduling::set_policy(libc::SCHED_FIFO, priority)
}

/// Limits how long a thread of this process may run at a real-time priority without sleeping: then
/// the kernel kills it.
fn limit_real_time() {
    const LIMIT: libc::rlim_t = 2_000_000;
    let limits = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: `limits` is initialized and outlives the call, which only reads it.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limits) };
    assert_eq!(set, 0, "a limit can be lowered: {}", io::Error::last_os_error());
}

/// The right to run `SCHED_FIFO` threads on one CPU, held by one test at a time.
pub(crate) struct RealTime {
    pub(crate) cpu: usize,
    _one: MutexGuard<'static, ()>,
    _alive: Watchdog,
}

/// Waits for the right to run real-time threads; prints a message instead if this process may not.
pub(crate) fn real_time(test: &str) -> Option<RealTime> {
    let one = test_skip::alone();
    limit_real_time();
    // A thread that sleeps in a page fault would let lower ones run.
    test_skip::lock_memory();
    let tried = thread::spawn(|| {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let cpu = cpus.next_back().expect("a running thread has a CPU");
        become_fifo(Some(cpu), 10).map(|()| cpu)
    });
    match tried.join().expect("trying does not panic") {
        Ok(cpu) => Some(RealTime { cpu, _one: one, _alive: watchdog(Duration::from_secs(120)) }),
        Err(error) => {
            skip(Need::RealTime, format_args!("{test}: {error}"));
            None
        }
    }
}

/// The events in order. Adding an event neither locks nor allocates.
pub(crate) struct Events {
    names: [OnceLock<&'static str>; 32],
    count: AtomicUsize,
}

impl Events {
    pub(crate) const fn new() -> Self {
        Self { names: [const { OnceLock::new() }; 32], count: AtomicUsize::new(0) }
    }

    pub(crate) fn add(&self, event: &'static str) {
        let place = self.count.fetch_add(1, Ordering::AcqRel);
        self.names[place].set(event).expect("every entry is used once");
    }

    /// Called after all threads have ended.
    pub(crate) fn list(&self) -> Vec<&'static str> {
        let count = self.count.load(Ordering::Acquire);
        self.names[..count].iter().map(|name| *name.get().expect("no thread is adding")).collect()
    }
}

/// A thread that sleeps until another one releases it.
#[derive(Default)]
pub(crate) struct Release {
    thread: AtomicU32,
    notified: AtomicBool,
    handle: OnceLock<thread::Thread>,
}

impl Release {
    /// Sleeps until released.
    pub(crate) fn wait(&self) {
        self.handle.set(thread::current()).expect("one thread waits");
        self.thread.store(thread_id(), Ordering::Release);
        while !self.notified.load(Ordering::Acquire) {
            thread::park();
        }
    }

    /// Waits until the thread sleeps.
    pub(crate) fn await_asleep(&self) {
        await_asleep(&self.thread);
    }

    /// Releases the thread, which sleeps already.
    pub(crate) fn release(&self) {
        self.notified.store(true, Ordering::Release);
        self.handle.get().expect("the thread sleeps").unpark();
    }
}
