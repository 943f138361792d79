//! The state that an app publishes about its jobs, in memory shared with a supervisor process.
//!
//! The supervisor creates a zeroed [`Region`] and passes it to the app. The app describes itself
//! ([`App`]) and its tasks ([`Task`]) there and publishes, for each level, the running job and its
//! start time ([`Beat`]). Neither process ever waits for the other, so the last state of an app
//! that is stuck, stopped or dead remains readable. A job costs two sequences of plain stores, with
//! no read-modify-write operation and no system call. A job with a budget also reads the CPU time
//! of its thread at its start.
//!
//! The kernel lets only threads of the same process read the CPU time of a running thread. So the
//! supervisor requests it through [`Clock`], and an otherwise idle thread of the app answers.
//!
//! All fields are atomic and every value is valid, so a reader need not trust the writer.
//!
//! ```
//! use punctual_core::heartbeat::{Beat, Running};
//!
//! let beat = Beat::default();
//! beat.begin(3, 4711, 1_000, 50, Some(700));
//! let cpu = Some(700);
//! let running = Running { task: 3, thread: 4711, since: 1_000, executed: 50, number: 1, cpu, called: 0 };
//! assert_eq!(beat.running(), Some(running));
//! beat.end(90);
//! assert_eq!((beat.running(), beat.executed()), (None, 90));
//! ```

mod beat;

// Atomics from `core`, not loom: only `beat` has a protocol to model.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

pub use beat::{Beat, Running};

/// The value of [`App::magic`]. Changes with each change of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PUNCBT\0\x02");
/// The environment variable with the number of the region's file descriptor.
pub const VARIABLE: &str = "PUNCTUAL_SUPERVISE";
/// The environment variable that names the directory of the state an app saves for its successor.
pub const STATE_DIRECTORY: &str = "PUNCTUAL_STATE_DIRECTORY";
/// The maximum number of levels, over all partitions.
pub const LEVELS: usize = 128;
/// The maximum number of tasks.
pub const TASKS: usize = 256;
/// The maximum number of CPUs.
const CPUS: usize = 1024;

/// No app has claimed the region yet.
pub const UNCLAIMED: u32 = 0;
/// An app has claimed the region and is writing its description.
pub const CLAIMED: u32 = 1;
/// The app's description can be read.
pub const RUNNING: u32 = 2;
/// The app's run is over.
pub const OVER: u32 = 3;

/// The shared memory. All zeros is valid and means that no app has claimed it.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// The app.
    pub app: App,
    /// A signal that ends the app.
    pub fault: Fault,
    /// Requests for the CPU time of the threads that run jobs.
    pub clock: Clock,
    /// The first [`App::levels`] entries are used, one for each level of each partition.
    pub beats: [Beat; LEVELS],
    /// The first [`App::tasks`] entries are used.
    pub tasks: [Task; TASKS],
}

/// The description of an app.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct App {
    /// [`MAGIC`], written by the supervisor.
    pub magic: AtomicU64,
    /// [`UNCLAIMED`], [`CLAIMED`], [`RUNNING`] or [`OVER`].
    pub state: AtomicU32,
    /// The process.
    pub process: AtomicU32,
    /// The highest kernel priority of its threads; 0 if no thread is real-time.
    pub priority: AtomicU32,
    /// The number of used [`Region::beats`].
    pub levels: AtomicU32,
    /// The number of used [`Region::tasks`].
    pub tasks: AtomicU32,
    /// The CPUs of its partitions.
    pub cpus: [AtomicU64; CPUS / 64],
    /// Its name.
    pub name: Name,
}

/// A task of the app.
#[derive(Debug)]
#[repr(C)]
pub struct Task {
    /// The CPU time limit of a job, in ns; 0 if the task has no budget.
    pub budget: AtomicU64,
    /// The policy for a job that exceeds its budget: [`REPORT`], [`STOP`] or [`KILL`].
    pub policy: AtomicU32,
    /// Its level.
    pub level: AtomicU32,
    /// Its name.
    pub name: Name,
}

/// A job that exceeds its budget is reported.
pub const REPORT: u32 = 0;
/// The app is asked to stop.
pub const STOP: u32 = 1;
/// The process is killed.
pub const KILL: u32 = 2;

/// A signal that ends the app. The thread that received it waits for a while, so that its stack can
/// be read.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fault {
    /// [`NO_FAULT`], [`REPORTING`], [`WAITING`] or [`SEEN`].
    pub state: AtomicU32,
    /// The signal.
    pub signal: AtomicU32,
    /// The thread.
    pub thread: AtomicU32,
    /// The address of the faulting access, if the signal has one.
    pub address: AtomicU64,
    /// The address of a `ucontext_t` in the app, with the thread's registers.
    pub context: AtomicU64,
}

/// The supervisor's requests for the CPU time of the threads that run jobs. Both words are futexes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Clock {
    /// The number of the last request.
    pub requests: AtomicU32,
    /// The number of the request answered last, through [`Beat::set_clock`] of each level with a
    /// job.
    pub answers: AtomicU32,
}

/// No such signal was received.
pub const NO_FAULT: u32 = 0;
/// The thread is writing its report.
pub const REPORTING: u32 = 1;
/// The thread waits.
pub const WAITING: u32 = 2;
/// The supervisor has seen the report; the thread continues, and the process ends.
pub const SEEN: u32 = 3;

/// A name, truncated to the available space.
#[derive(Debug)]
#[repr(transparent)]
pub struct Name([AtomicU8; 64]);

impl Name {
    /// Writes the name.
    pub fn set(&self, name: &str) {
        let bytes = name.bytes().chain(core::iter::repeat(0));
        self.0.iter().zip(bytes).for_each(|(place, byte)| place.store(byte, Ordering::Relaxed));
    }

    /// Returns the bytes of the name, which are arbitrary.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|&byte| byte != 0)
    }
}

impl App {
    /// Records a CPU. Ignores numbers above the maximum.
    pub fn add_cpu(&self, cpu: usize) {
        if let Some(word) = self.cpus.get(cpu / 64) {
            let bits = word.load(Ordering::Relaxed);
            word.store(bits | 1 << (cpu % 64), Ordering::Relaxed);
        }
    }

    /// Returns the recorded CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        let has = |cpu: &usize| self.cpus[cpu / 64].load(Ordering::Relaxed) >> (cpu % 64) & 1 == 1;
        (0..CPUS).filter(has)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn truncates_names_and_keeps_cpus() {
        // SAFETY: every field is an atomic integer, for which all zero bytes are a valid value.
        let region: Region = unsafe { core::mem::zeroed() };
        region.app.name.set(&"x".repeat(100));
        assert_eq!(region.app.name.bytes().count(), 64);
        region.app.name.set("short");
        assert!(region.app.name.bytes().eq(*b"short"));
        [0, 65, 1023, 1024].into_iter().for_each(|cpu| region.app.add_cpu(cpu));
        assert!(region.app.cpus().eq([0, 65, 1023]));
    }
}
