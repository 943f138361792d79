//! What an app tells of its jobs, in memory that it shares with a process which supervises it.
//!
//! The supervisor makes a [`Region`] of zeros and hands it to the app. The app writes there what it is ([`App`]) and which tasks
//! it has ([`Task`]), and at each level which job runs, and since when ([`Beat`]). Neither ever waits for the other, so an app
//! that is stuck, stopped or dead leaves what it was doing to be read. A job costs two sequences of plain stores: no
//! read-modify-write operation, no system call. A job with a budget also reads the CPU time of its thread at its start.
//!
//! The kernel lets only threads of the same process read the CPU time of a thread that is running. So the supervisor asks for it by
//! [`Clock`], and a thread of the app that has nothing else to do answers.
//!
//! Everything is atomic and every value is valid, so a reader need not trust the writer.
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

// Those of loom only where a protocol is: the rest is plain words.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

pub use beat::{Beat, Running};

/// What [`App::magic`] holds. Grows with each change of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PUNCBT\0\x02");
/// The environment variable that gives the app the number of the descriptor.
pub const VARIABLE: &str = "PUNCTUAL_SUPERVISE";
/// The environment variable that names the directory with what an app keeps for the process after it.
pub const KEPT: &str = "PUNCTUAL_KEPT";
/// How many levels of all partitions there is room for.
pub const LEVELS: usize = 128;
/// How many tasks there is room for.
pub const TASKS: usize = 256;
/// How many CPUs there is room for.
const CPUS: usize = 1024;

/// The app has not come to this region yet.
pub const NOBODY: u32 = 0;
/// An app has claimed the region and is writing what it is.
pub const CLAIMED: u32 = 1;
/// What the app is can be read.
pub const RUNNING: u32 = 2;
/// The app's run is over.
pub const OVER: u32 = 3;

/// All of the shared memory. Zeros are valid, and say that nobody is there.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// The app.
    pub app: App,
    /// A signal that ends the app.
    pub fault: Fault,
    /// Requests for the CPU time of the threads that run jobs.
    pub clock: Clock,
    /// One for each level of each partition, [`App::levels`] of them.
    pub beats: [Beat; LEVELS],
    /// [`App::tasks`] of them.
    pub tasks: [Task; TASKS],
}

/// What an app is.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct App {
    /// [`MAGIC`], written by the supervisor.
    pub magic: AtomicU64,
    /// [`NOBODY`], [`CLAIMED`], [`RUNNING`] or [`OVER`].
    pub state: AtomicU32,
    /// The process.
    pub process: AtomicU32,
    /// The highest kernel priority of its threads; 0 if none is real time.
    pub priority: AtomicU32,
    /// How many [`Region::beats`] are used.
    pub levels: AtomicU32,
    /// How many [`Region::tasks`] are used.
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
    /// The most CPU time that a job may use, in ns; 0 if it has no budget.
    pub budget: AtomicU64,
    /// What is done about a job beyond it: [`REPORT`], [`STOP`] or [`KILL`].
    pub policy: AtomicU32,
    /// Its level.
    pub level: AtomicU32,
    /// Its name.
    pub name: Name,
}

/// A job beyond its budget is reported.
pub const REPORT: u32 = 0;
/// The app is asked to stop.
pub const STOP: u32 = 1;
/// The process is killed.
pub const KILL: u32 = 2;

/// A signal that ends the app. The thread that got it waits for a while, so that its stack can be read.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Fault {
    /// [`NO_FAULT`], [`REPORTING`], [`WAITING`] or [`SEEN`].
    pub state: AtomicU32,
    /// The signal.
    pub signal: AtomicU32,
    /// The thread.
    pub thread: AtomicU32,
    /// The address that was accessed, if it is about one.
    pub address: AtomicU64,
    /// Where the thread's registers are: the address of a `ucontext_t` in the app.
    pub context: AtomicU64,
}

/// Requests of the supervisor for the CPU time of the threads that run jobs. Both words are futexes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Clock {
    /// The number of the last request.
    pub requests: AtomicU32,
    /// The number of the request that was answered last, by [`Beat::set_clock`] of each level with a job.
    pub answers: AtomicU32,
}

/// There was no such signal.
pub const NO_FAULT: u32 = 0;
/// The thread is writing what it was.
pub const REPORTING: u32 = 1;
/// The thread waits.
pub const WAITING: u32 = 2;
/// The supervisor has seen it; the thread goes on, and the process ends.
pub const SEEN: u32 = 3;

/// A name; what is longer than there is room for is cut off.
#[derive(Debug)]
#[repr(transparent)]
pub struct Name([AtomicU8; 64]);

impl Name {
    /// Writes the name.
    pub fn set(&self, name: &str) {
        let bytes = name.bytes().chain(core::iter::repeat(0));
        self.0.iter().zip(bytes).for_each(|(place, byte)| place.store(byte, Ordering::Relaxed));
    }

    /// The bytes of the name, which may be anything.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|&byte| byte != 0)
    }
}

impl App {
    /// Notes a CPU. Of numbers beyond those there is room for, none is.
    pub fn add_cpu(&self, cpu: usize) {
        if let Some(word) = self.cpus.get(cpu / 64) {
            let bits = word.load(Ordering::Relaxed);
            word.store(bits | 1 << (cpu % 64), Ordering::Relaxed);
        }
    }

    /// The CPUs that were noted.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        let has = |cpu: &usize| self.cpus[cpu / 64].load(Ordering::Relaxed) >> (cpu % 64) & 1 == 1;
        (0..CPUS).filter(has)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_cpus_kept() {
        // SAFETY: every field is an atomic integer, of which all bytes zero is a valid value.
        let region: Region = unsafe { core::mem::zeroed() };
        region.app.name.set(&"x".repeat(100));
        assert_eq!(region.app.name.bytes().count(), 64);
        region.app.name.set("short");
        assert!(region.app.name.bytes().eq(*b"short"));
        [0, 65, 1023, 1024].into_iter().for_each(|cpu| region.app.add_cpu(cpu));
        assert!(region.app.cpus().eq([0, 65, 1023]));
    }
}
