//! Measuring threads: pinned, SCHED_FIFO, and bounded.
//!
//! All settings made here end with the thread, except for the limit on real-time CPU time, which
//! ends with the process. Refused settings are recorded, because they change the meaning of the
//! figures.

use std::io::{Error, Write};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual_process::limits::{Resource, soft_limit};
use punctual_process::scheduling;
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity, sched_setaffinity};

/// The kernel priority of the measured threads; related threads are at most a few levels above or
/// below. Punctual apps use the same priority for their lower levels.
pub(crate) const PRIORITY: i32 = 52;

/// The settings that a thread did not get.
pub(crate) type Lack = Vec<String>;

/// Pins the calling thread to `cpu`, gives it SCHED_FIFO at `priority`, and returns the refused
/// settings.
///
/// Threads that it starts are ordinary ones.
pub(crate) fn enter(cpu: usize, priority: i32) -> Lack {
    let mut lack = Lack::new();
    if let Err(error) = pin(cpu) {
        lack.push(format!("not pinned to CPU {cpu}: {error}"));
    }
    if let Err(error) = set_fifo(priority) {
        lack.push(no_fifo(&error));
    }
    // A real-time thread has no timer slack; an ordinary one in its place gets as little as
    // possible.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    lack
}

/// Panic payload of a measurement whose set-up failed, with the reason.
pub(crate) struct SetUpFailed(pub(crate) String);

impl SetUpFailed {
    /// The system starts no thread.
    pub(crate) fn no_thread(error: &Error) -> Self {
        Self(format!("no thread can be started: {error}; raise pids.max of the cgroup or `ulimit -u`"))
    }

    /// Ends the step, which is then not measured.
    pub(crate) fn end_step(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

/// Runs `body` on a new thread that has [entered](enter), and waits for it. Propagates its panic.
///
/// # Panics
/// With [`SetUpFailed`] if the system starts no thread.
pub(crate) fn on_thread<R: Send>(cpu: usize, priority: i32, body: impl FnOnce(&Lack) -> R + Send) -> R {
    try_on_thread(cpu, priority, body).unwrap_or_else(|error| SetUpFailed::no_thread(&error).end_step())
}

/// [`on_thread`] with the error of a system that starts no thread.
pub(crate) fn try_on_thread<R: Send>(
    cpu: usize,
    priority: i32,
    body: impl FnOnce(&Lack) -> R + Send,
) -> Result<R, Error> {
    let mut result = None;
    let mut body = Some(body);
    run_on_thread(cpu, priority, &mut |lack| result = body.take().map(|body| body(lack)))?;
    Ok(result.expect("the thread has returned"))
}

/// Not generic, because starting a thread is much code and there are many bodies.
fn run_on_thread(cpu: usize, priority: i32, body: &mut (dyn FnMut(&Lack) + Send)) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || body(&enter(cpu, priority)))?;
        join(thread);
        Ok(())
    })
}

/// Starts a thread in `scope`.
///
/// # Panics
/// With [`SetUpFailed`] if the system starts no thread.
pub(crate) fn spawn<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    spawn_boxed(scope, Box::new(body))
}

/// Not generic over the body, because starting a thread is much code.
fn spawn_boxed<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: Box<dyn FnOnce() -> R + Send + 'scope>,
) -> ScopedJoinHandle<'scope, R> {
    let started = std::thread::Builder::new().spawn_scoped(scope, body);
    started.unwrap_or_else(|error| SetUpFailed::no_thread(&error).end_step())
}

/// Starts `count` threads at once and ends them, to find out whether the system permits as many.
///
/// # Errors
/// The error of the first thread that is not started: a limit of the cgroup (`pids.max`) or of the
/// user (`ulimit -u`).
pub(crate) fn try_threads(count: usize) -> Result<(), Error> {
    let end = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        // Released when this closure returns, also early.
        let _held = end.lock();
        for _ in 0..count {
            std::thread::Builder::new().spawn_scoped(scope, || drop(end.lock()))?;
        }
        Ok(())
    })
}

/// Joins a thread and propagates its panic.
pub(crate) fn join<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    // `CpuSet::set` panics for a CPU number that is out of range.
    if cpu >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL);
    }
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// Gives the calling thread SCHED_FIFO at `priority`.
pub(crate) fn set_fifo(priority: i32) -> Result<(), Error> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// Gives the calling thread a policy and a priority. Threads that it starts do not inherit them.
pub(crate) fn set_policy(policy: libc::c_int, priority: i32) -> Result<(), Error> {
    scheduling::set_policy(policy | libc::SCHED_RESET_ON_FORK, priority)
}

/// Gives the calling thread SCHED_DEADLINE with this runtime in each period. Threads that it starts
/// do not inherit it.
pub(crate) fn set_deadline(runtime_ns: u64, period_ns: u64) -> Result<(), Error> {
    // `struct sched_attr` in its first version (`sched_setattr(2)`), which libc does not define for
    // every target.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: 0,
        priority: 0,
        runtime_ns,
        deadline_ns: period_ns,
        period_ns,
    };
    // SAFETY: `attributes` is initialized, has the stated size, and outlives the call, which only
    // reads it; 0 names the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Sleeps for `duration`, or less if interrupted by a signal.
pub(crate) fn sleep(duration: Duration) {
    let request = rustix::time::Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    };
    let _ = rustix::thread::clock_nanosleep_relative(rustix::thread::ClockId::Monotonic, &request);
}

/// Returns the CPUs that the calling thread may run on.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None);
    allowed.map_or_else(|_| vec![0], |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Returns the reason if this process cannot use SCHED_FIFO, which only an attempt can determine.
pub(crate) fn fifo_refused() -> Option<String> {
    std::thread::scope(|scope| {
        match std::thread::Builder::new().spawn_scoped(scope, || set_fifo(PRIORITY).err()) {
            Ok(thread) => join(thread).map(|error| no_fifo(&error)),
            Err(error) => Some(format!("no SCHED_FIFO: no thread can be started: {error}")),
        }
    })
}

fn no_fifo(error: &Error) -> String {
    format!("no SCHED_FIFO: {}", scheduling::explain_refusal(error))
}

/// Ends the process if one of its real-time threads uses a CPU for `longest` without sleeping: that
/// is a defect, and on a small machine nothing else could stop it. A lower existing limit is kept.
/// The limit ends with the process.
pub(crate) fn limit_runaways(longest: Duration) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let us = longest.as_micros().try_into().unwrap_or(libc::RLIM_INFINITY);
    // SAFETY: `limit` is valid for writes, and then initialized for the read.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) == 0 && limit.rlim_cur > us {
            limit.rlim_cur = us;
            // If refused, the built-in bounds of the measuring loops remain.
            let _ = libc::setrlimit(libc::RLIMIT_RTTIME, &limit);
        }
    }
}

/// Keeps all memory of the process locked until dropped, as real-time programs do.
#[derive(Debug)]
pub(crate) struct LockedMemory(bool);

impl LockedMemory {
    pub(crate) fn new() -> Self {
        // With a limit in force, locking would make later allocations fail instead of this call. If
        // a sandbox refuses the query, a limit may be in force.
        let limited = !matches!(soft_limit(Resource::LockedMemory), Ok(None));
        if limited && !may_lock_memory() {
            return Self(false);
        }
        // SAFETY: the call takes no pointers.
        Self(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } == 0)
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: the call takes no pointers.
            unsafe { libc::munlockall() };
        }
    }
}

/// Keeps all CPUs out of idle states with a long exit latency, until dropped. cyclictest does the
/// same, so a comparison without it would be unfair.
#[derive(Debug)]
pub(crate) struct Awake(std::io::Result<std::fs::File>);

impl Awake {
    pub(crate) fn new() -> Self {
        // The bound, in µs, is in force while the file is open
        // (`Documentation/power/pm_qos_interface.rst`).
        let file = std::fs::File::options().write(true).open("/dev/cpu_dma_latency");
        Self(file.and_then(|mut file| file.write_all(&0_i32.to_ne_bytes()).map(|()| file)))
    }

    /// Returns a note on the effect on the figures.
    pub(crate) fn note(&self) -> String {
        match &self.0 {
            Ok(_) => {
                "Idle states with an exit latency are disabled (cpu_dma_latency is 0), as for an app with \
                      `wake_latency` 0."
                    .into()
            }
            Err(error) => format!("Idle CPUs may take long to wake up: /dev/cpu_dma_latency: {error}."),
        }
    }
}

/// Returns `true` if this process has no limit on locked memory.
fn may_lock_memory() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}
