//! What the tests on real threads share: a watchdog, real-time threads on one CPU, and a look at what a thread does.

#![allow(dead_code, reason = "every test uses its own part of this")]

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Ends the process if it is not dropped in time: a test that hangs at a real-time priority would take a CPU along.
pub(crate) struct Watchdog(#[allow(dead_code, reason = "dropping it is the signal")] Sender<()>);

pub(crate) fn watchdog(limit: Duration) -> Watchdog {
    let (alive, done) = mpsc::channel::<()>();
    thread::spawn(move || {
        // Above the threads that it watches, where it may be.
        let _ = become_fifo(None, 90);
        if done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("watchdog: nothing happens any more, ending the process");
            std::process::abort();
        }
    });
    Watchdog(alive)
}

/// The calling thread as the kernel knows it.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// State and current priority of a thread of this process. A real-time priority `p`, lent ones included, is `-1 - p`.
fn state(thread: u32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name may contain anything, also parentheses.
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

/// The real-time priority at which the calling thread runs right now, lent ones included; 0 if it has none.
pub(crate) fn running_priority() -> i32 {
    state(thread_id()).map_or(0, |(_, priority)| (-1 - priority).max(0))
}

/// Pins the calling thread, if asked to, and gives it `SCHED_FIFO`.
pub(crate) fn become_fifo(cpu: Option<usize>, priority: i32) -> io::Result<()> {
    if let Some(cpu) = cpu {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only)?;
    }
    punctual_process::scheduling::set_policy(libc::SCHED_FIFO, priority)
}

/// Limits how long a thread of this process may run at a real-time priority without sleeping: then the kernel ends it.
fn limit_real_time() {
    const LIMIT: libc::rlim_t = 2_000_000;
    let limits = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: `limits` is initialised and outlives the call, which only reads it.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limits) };
    assert_eq!(set, 0, "a limit can be lowered: {}", io::Error::last_os_error());
}

/// The right to run `SCHED_FIFO` threads on one CPU, which one test at a time has.
pub(crate) struct RealTime {
    pub(crate) cpu: usize,
    _one: MutexGuard<'static, ()>,
    _alive: Watchdog,
}

/// Waits for its turn to run real-time threads; gives a loud line instead if this process may not.
pub(crate) fn real_time(test: &str) -> Option<RealTime> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    limit_real_time();
    let tried = thread::spawn(|| {
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let cpu = cpus.next_back().expect("a running thread has a CPU");
        become_fifo(Some(cpu), 10).map(|()| cpu)
    });
    match tried.join().expect("trying does not panic") {
        Ok(cpu) => Some(RealTime { cpu, _one: one, _alive: watchdog(Duration::from_secs(120)) }),
        Err(error) => {
            eprintln!(
                "SKIPPED {test}: SCHED_FIFO is refused ({error}), so the order of threads is not checked"
            );
            None
        }
    }
}

/// What happened, in order. Adding to it neither locks nor allocates.
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
        self.names[place].set(event).expect("every place is used once");
    }

    /// After all threads have ended.
    pub(crate) fn list(&self) -> Vec<&'static str> {
        let count = self.count.load(Ordering::Acquire);
        self.names[..count].iter().map(|name| *name.get().expect("nobody is adding")).collect()
    }
}

/// A thread that sleeps until another tells it to go on.
#[derive(Default)]
pub(crate) struct Release {
    thread: AtomicU32,
    told: AtomicBool,
    handle: OnceLock<thread::Thread>,
}

impl Release {
    /// Sleeps until released.
    pub(crate) fn wait(&self) {
        self.handle.set(thread::current()).expect("one thread waits");
        self.thread.store(thread_id(), Ordering::Release);
        while !self.told.load(Ordering::Acquire) {
            thread::park();
        }
    }

    /// Waits until the thread sleeps.
    pub(crate) fn await_asleep(&self) {
        await_asleep(&self.thread);
    }

    /// Lets it go on. It sleeps already.
    pub(crate) fn release(&self) {
        self.told.store(true, Ordering::Release);
        self.handle.get().expect("it sleeps").unpark();
    }
}
