//! What a program that is killed could leave to the system.
//!
//! Other programs, and other tests, go on meanwhile. So a process is known by a mark in its environment, which its children
//! inherit, and whatever else has a name by the number of the process in it, or by the name of the project. What is looked
//! at of others is the scheduling of those that nobody else changes.
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
/// Children need a moment to learn of the death of their parent. What is there after this stays.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many programs are to be killed: 50, or what `PUNCTUAL_KILLS` says.
pub(crate) fn rounds() -> u32 {
    number("PUNCTUAL_KILLS")
        .map_or(50, |rounds| u32::try_from(rounds).expect("PUNCTUAL_KILLS is a number of rounds"))
}

/// Moments to kill at.
pub(crate) struct Moments(Random);

impl Moments {
    /// New ones each time, unless `PUNCTUAL_KILL_SEED` has those of an earlier run; says how to see them again.
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        let seed = number("PUNCTUAL_KILL_SEED").unwrap_or(now);
        println!("PUNCTUAL_KILL_SEED={seed} kills at the same moments again");
        Self(Random::new(seed))
    }

    /// One in the first `longest`; every other one early, as there is more to be made at the start.
    pub(crate) fn next(&mut self, longest: Duration) -> Duration {
        let longest = if self.0.once_in(2) { longest / 8 } else { longest };
        Duration::from_micros(self.0.range(0, longest.as_micros() as u64))
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}

/// How the system was before a program was started.
pub(crate) struct Before {
    mark: String,
    cgroups: BTreeSet<PathBuf>,
    shared_memory: BTreeSet<PathBuf>,
    others: Vec<(u32, Option<Scheduling>)>,
}

impl Before {
    /// Looks, and marks what `command` will start.
    pub(crate) fn new(command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        command.env(MARK, &mark);
        Self { mark, cgroups: cgroups(), shared_memory: shared_memory(), others: others() }
    }

    /// What is left of the program that was started as this process and has been waited for; nothing is as it should be.
    pub(crate) fn left_by(&self, process: u32) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
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
            // Without `before` it was gone, and without `after` it is.
            if let (Some(before), Some(after)) = (before, after)
                && *before != after
            {
                left.push(format!("thread {id} had {before:?} and has {after:?}"));
            }
        }
        left
    }
}

/// The instances of the kernel's tracer that these processes have made, as far as this thread can see tracefs.
pub(crate) fn instances(processes: &[u32]) -> Vec<PathBuf> {
    let all = entries(&Path::new(tracefs::PLACE).join("instances"));
    all.into_iter().filter(|path| processes.iter().any(|&process| has_number(path, process))).collect()
}

/// The bound on idle states that applies, in µs, where the kernel tells.
pub(crate) fn wake_latency() -> Option<i32> {
    let mut bytes = [0; 4];
    File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// Processes that are marked so.
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

/// Whether the name says that this process, or somebody of this project, has made it.
fn is_of(path: &Path, process: u32) -> bool {
    has_number(path, process)
        || path.file_name().is_some_and(|name| name.to_string_lossy().contains("punctual"))
}

fn has_number(path: &Path, process: u32) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut numbers = name.split(|letter: char| !letter.is_ascii_digit());
    numbers.any(|number| number.parse() == Ok(process))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn cgroups() -> BTreeSet<PathBuf> {
    let (mut all, mut unseen) = (BTreeSet::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(directory) = unseen.pop() {
        // Of links, which controllers have as second names, no directory is found twice.
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

/// How threads are scheduled that nobody changes: the caller, what started the tests, and the first process.
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
