//! Threads that measure: pinned, SCHED_FIFO, and bounded.
//!
//! All settings made here end with the thread, except for the limit on real-time CPU time, which ends with the process.
//! Refused settings are recorded, because the figures then mean something else.

use std::io::{Error, Write};
use std::time::Duration;

use punctual_process::limits::{Resource, soft_limit};
use punctual_process::scheduling;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The kernel priority of the threads that are measured; those above and below are at most a few away. The same that
/// an app of Punctual uses for its lower levels.
pub(crate) const PRIORITY: i32 = 52;

/// A setting that a thread did not get.
pub(crate) type Lack = Vec<String>;

/// Pins the calling thread to `cpu`, gives it SCHED_FIFO at `priority`, and says what was refused.
///
/// Threads that it starts are ordinary ones again.
pub(crate) fn enter(cpu: usize, priority: i32) -> Lack {
    let mut lack = Lack::new();
    if let Err(error) = pin(cpu) {
        lack.push(format!("not pinned to CPU {cpu}: {error}"));
    }
    if let Err(error) = set_fifo(priority) {
        lack.push(no_fifo(&error));
    }
    // A real-time thread has no timer slack; an ordinary one that stands in for it gets as little as possible.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    lack
}

/// Runs `body` on a thread of its own that has [entered](enter), and waits for it. Propagates its panic.
pub(crate) fn on_thread<R: Send>(cpu: usize, priority: i32, body: impl FnOnce(&Lack) -> R + Send) -> R {
    let mut result = None;
    let mut body = Some(body);
    run_on_thread(cpu, priority, &mut |lack| result = body.take().map(|body| body(lack)));
    result.expect("the thread has returned")
}

/// Not generic, for starting a thread is much code and there are many bodies.
fn run_on_thread(cpu: usize, priority: i32, body: &mut (dyn FnMut(&Lack) + Send)) {
    std::thread::scope(|scope| join(scope.spawn(|| body(&enter(cpu, priority)))));
}

/// Joins a thread and propagates its panic.
pub(crate) fn join<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    // `CpuSet::set` panics on what it has no bit for.
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

/// Gives the calling thread SCHED_DEADLINE: so much of a CPU in each period. Threads that it starts do not inherit that.
pub(crate) fn set_deadline(runtime_ns: u64, period_ns: u64) -> Result<(), Error> {
    // `struct sched_attr` in its first version (`sched_setattr(2)`), which libc has not on every target.
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
    // SAFETY: `attributes` is initialised, as long as it says, and outlives the call, which only reads it; 0 names the calling
    // thread.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Sleeps for `duration`, which a signal may shorten.
pub(crate) fn sleep(duration: Duration) {
    let request = rustix::time::Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    };
    let _ = rustix::thread::clock_nanosleep_relative(rustix::thread::ClockId::Monotonic, &request);
}

/// The CPUs that the calling thread may run on.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None);
    allowed.map_or_else(|_| vec![0], |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Why this process cannot have SCHED_FIFO, if it cannot. Trying is the only way to know.
pub(crate) fn fifo_refused() -> Option<String> {
    std::thread::scope(|scope| join(scope.spawn(|| set_fifo(PRIORITY).err()))).map(|error| no_fifo(&error))
}

fn no_fifo(error: &Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "no SCHED_FIFO: not permitted; run as root, grant CAP_SYS_NICE or raise \
                              RLIMIT_RTPRIO (`ulimit -r 99`), and if this is root, give the cpu cgroup a \
                              cpu.rt_runtime_us above 0"
            .into(),
        _ => format!("no SCHED_FIFO: {error}"),
    }
}

/// Ends the process if a real-time thread of it uses a CPU for `longest` without sleeping: that is a defect, and on a
/// small machine nothing else could end it. A limit that is lower already stays. It ends with the process.
pub(crate) fn limit_runaways(longest: Duration) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let us = longest.as_micros().try_into().unwrap_or(libc::RLIM_INFINITY);
    // SAFETY: `limit` is a valid place to write to and then to read from.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) == 0 && limit.rlim_cur > us {
            limit.rlim_cur = us;
            // Refused it leaves the bounds that every measuring loop has by itself.
            let _ = libc::setrlimit(libc::RLIMIT_RTTIME, &limit);
        }
    }
}

/// Keeps all memory of the process locked until dropped, as real-time programs do.
#[derive(Debug)]
pub(crate) struct LockedMemory(bool);

impl LockedMemory {
    pub(crate) fn new() -> Self {
        // With a limit in force a lock would make later allocations fail instead of this call.
        // If a sandbox refuses to tell, a limit may be in force.
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

/// Keeps all CPUs from idle states that take time to leave, until dropped. cyclictest does so, and whoever does not would be
/// measured on a different machine, as it were.
#[derive(Debug)]
pub(crate) struct Awake(std::io::Result<std::fs::File>);

impl Awake {
    pub(crate) fn new() -> Self {
        // The bound lasts for as long as the file is open (`Documentation/power/pm_qos_interface.rst`), in µs.
        let file = std::fs::File::options().write(true).open("/dev/cpu_dma_latency");
        Self(file.and_then(|mut file| file.write_all(&0_i32.to_ne_bytes()).map(|()| file)))
    }

    /// What that means for the figures.
    pub(crate) fn note(&self) -> String {
        match &self.0 {
            Ok(_) => "No CPU rests in an idle state that takes time to leave (cpu_dma_latency is 0), as an app with \
                      `wake_latency` 0 has it."
                .into(),
            Err(error) => format!("CPUs that are idle may take long to wake up: /dev/cpu_dma_latency: {error}."),
        }
    }
}

/// Whether no limit on locked memory binds this process.
fn may_lock_memory() -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let status = crate::machine::read("/proc/self/status");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|caps| u64::from_str_radix(caps.trim(), 16).ok());
    capabilities.is_some_and(|caps| caps & CAP_IPC_LOCK != 0)
}
