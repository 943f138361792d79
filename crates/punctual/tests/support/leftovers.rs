//! Leftovers of a killed program in the system.
//!
//! Other programs and other tests run at the same time. So a process is identified by a mark in its
//! environment, which its children inherit, and other objects by the process ID in their name, or
//! by the name of the project unless they belong to a running process. Of other processes, only the
//! scheduling of those that no other program changes is checked.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[path = "../../../punctual-trace/tests/it/random/mod.rs"]
mod random;

use self::random::Random;
use super::tracefs;

/// The variable that marks processes.
const MARK: &str = "PUNCTUAL_TEST_KILLED";
/// Children take a moment to notice the death of their parent. Anything left after this time is
/// permanent.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the number of programs to be killed: 16, each at another random moment, or
/// `PUNCTUAL_KILLS`.
pub(crate) fn rounds() -> u32 {
    number("PUNCTUAL_KILLS")
        .map_or(16, |rounds| u32::try_from(rounds).expect("PUNCTUAL_KILLS is a number of rounds"))
}

/// Random times at which to kill.
pub(crate) struct Moments(Random);

impl Moments {
    /// Creates a new sequence, or that of `PUNCTUAL_KILL_SEED`; prints how to repeat it.
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        let seed = number("PUNCTUAL_KILL_SEED").unwrap_or(now);
        println!("PUNCTUAL_KILL_SEED={seed} kills at the same moments again");
        Self(Random::new(seed))
    }

    /// Returns a time within the first `longest`; every other one early, because more is created at
    /// the start.
    pub(crate) fn next(&mut self, longest: Duration) -> Duration {
        let longest = if self.0.once_in(2) { longest / 8 } else { longest };
        Duration::from_micros(self.0.range(0, longest.as_micros() as u64))
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}

/// State of the system before a program was started.
pub(crate) struct Before {
    mark: String,
    cgroups: BTreeSet<PathBuf>,
    shared_memory: BTreeSet<PathBuf>,
    others: Vec<(u32, Option<Scheduling>)>,
}

impl Before {
    /// Records the state, and marks the processes that `command` will start.
    pub(crate) fn new(command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        command.env(MARK, &mark);
        Self { mark, cgroups: cgroups(), shared_memory: shared_memory(), others: others() }
    }

    /// Returns the leftovers of a program that was started as this process and has been waited for;
    /// empty if correct.
    pub(crate) fn left_by(&self, process: u32) -> Vec<String> {
        let end = Instant::now() + EXIT_TIMEOUT;
        loop {
            let left = self.left_now(process);
            if left.is_empty() || Instant::now() > end {
                return left;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// The same without waiting.
    pub(crate) fn left_now(&self, process: u32) -> Vec<String> {
        let mut left = marked(&self.mark);
        let made = |path: &&PathBuf| is_of(path, process);
        left.extend(cgroups().difference(&self.cgroups).filter(made).map(|path| format!("cgroup {path:?}")));
        let files = shared_memory();
        left.extend(files.difference(&self.shared_memory).filter(made).map(|path| format!("file {path:?}")));
        for ((id, before), (_, after)) in self.others.iter().zip(others()) {
            // Without `before` it did not exist, and without `after` it no longer does.
            if let (Some(before), Some(after)) = (before, after)
                && *before != after
            {
                left.push(format!("thread {id} had {before:?} and has {after:?}"));
            }
        }
        left
    }
}

/// Returns the instances of the kernel's tracer that these processes have created, as far as this
/// thread can see tracefs.
pub(crate) fn instances(processes: &[u32]) -> Vec<PathBuf> {
    let all = entries(&Path::new(tracefs::PLACE).join("instances"));
    all.into_iter().filter(|path| processes.iter().any(|&process| has_number(path, process))).collect()
}

/// Returns the bound on idle states in force, in µs, if the kernel reports it.
pub(crate) fn wake_latency() -> Option<i32> {
    let mut bytes = [0; 4];
    File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// Returns the processes with this mark.
fn marked(mark: &str) -> Vec<String> {
    let mark = format!("{MARK}={mark}");
    let is_marked = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let processes = entries(Path::new("/proc"));
    let name = |path: &Path| fs::read_to_string(path.join("comm")).unwrap_or_default().trim_end().to_owned();
    let is_left = processes.into_iter().filter(|path| is_marked(path));
    is_left.map(|path| format!("process {} ({})", path.display(), name(&path))).collect()
}

/// Returns whether the name shows that this process has created it, or one of this project that has
/// ended: other tests may run programs of this project.
fn is_of(path: &Path, process: u32) -> bool {
    let is_running = |number: u32| Path::new("/proc").join(number.to_string()).exists();
    has_number(path, process)
        || path.file_name().is_some_and(|name| name.to_string_lossy().contains("punctual"))
            && !numbers(path).into_iter().any(is_running)
}

fn has_number(path: &Path, process: u32) -> bool {
    numbers(path).contains(&process)
}

/// Returns the numbers in a file name.
fn numbers(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn cgroups() -> BTreeSet<PathBuf> {
    let (mut all, mut unseen) = (BTreeSet::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(directory) = unseen.pop() {
        // Links, which controllers have as aliases, are skipped, so that no directory is found
        // twice.
        unseen.extend(entries(&directory).into_iter().filter(|path| path.is_dir() && !path.is_symlink()));
        all.insert(directory);
    }
    all
}

fn shared_memory() -> BTreeSet<PathBuf> {
    entries(Path::new("/dev/shm")).into_iter().collect()
}

/// Policy, priority and CPUs.
#[derive(Debug, PartialEq, Eq)]
struct Scheduling {
    policy: i32,
    priority: i32,
    cpus: Vec<usize>,
}

/// Returns the scheduling of threads that nothing changes: the caller, the test runner, and the
/// first process.
fn others() -> Vec<(u32, Option<Scheduling>)> {
    // SAFETY: the call takes no pointers and cannot fail.
    let this = unsafe { libc::gettid() }.unsigned_abs();
    [this, parent_id(), 1].map(|thread| (thread, scheduling(thread))).into()
}

fn scheduling(thread: u32) -> Option<Scheduling> {
    let thread = libc::pid_t::try_from(thread).ok()?;
    let scheduling = punctual_process::scheduling::Scheduling::of(thread).ok()?;
    let cpus = rustix::thread::sched_getaffinity(rustix::thread::Pid::from_raw(thread)).ok()?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu)).collect();
    Some(Scheduling { policy: scheduling.policy(), priority: scheduling.priority(), cpus })
}
