//! Background load: threads that wake each other through pipes, and threads that sweep the caches.
//!
//! hackbench sends messages through pipes; the thesis that the latency suite follows writes at
//! random to more memory than a cache holds. The threads are ordinary ones, end on request, and
//! have a time limit.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::machine::caches;
use punctual_process::child::{BoundedChild, BoundedCommand};
use rustix::process::Pid;

/// The time limit of a load.
const MAX_DURATION: Duration = Duration::from_secs(900);

/// The size of the buffer that the built-in load sweeps: more than the last private cache of most
/// CPUs.
const SWEPT_BYTES: usize = 4 << 20;
/// The factor by which a sweep exceeds the last-level cache, and its maximum.
const SWEEP_FACTOR: usize = 4;
const MAX_SWEPT_BYTES: usize = 128 << 20;

/// The source of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadKind {
    /// The load of this crate.
    #[default]
    Own,
    /// The program `hackbench`, of the package rt-tests.
    Hackbench,
    /// The program `stress-ng`.
    StressNg,
}

impl LoadKind {
    /// Returns the name on the command line and in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Hackbench => "hackbench",
            Self::StressNg => "stress-ng",
        }
    }

    /// Returns `true` if the program is available.
    pub(crate) fn is_installed(self) -> bool {
        self == Self::Own || installed(self.as_str())
    }
}

impl FromStr for LoadKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found =
            [Self::Own, Self::Hackbench, Self::StressNg].into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| format!("there is no load `{name}`; there are own, hackbench and stress-ng"))
    }
}

/// Returns `true` if a program of this name is in one of the program directories.
pub(crate) fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// A load, stopped on drop.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts a load for as many CPUs as this process may use.
    pub(crate) fn start(kind: LoadKind) -> std::io::Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut load = Self { stop: Arc::default(), threads: Vec::new() };
        match kind {
            LoadKind::Own => {
                for _ in 0..cpus {
                    load.messages()?;
                    load.sweep(SWEPT_BYTES)?;
                }
            }
            // Runs for a second or two, repeatedly: its processes do not end with the first of
            // them, nor with this process if that is killed.
            LoadKind::Hackbench => load.program("hackbench", &["--pipe", "-g", "2", "-l", "1000"])?,
            LoadKind::StressNg => {
                let (cpus, seconds) = (cpus.to_string(), MAX_DURATION.as_secs().to_string());
                let arguments = ["--switch", &cpus, "--cache", &cpus, "--quiet", "--timeout", &seconds];
                load.program("stress-ng", &arguments)?;
            }
        }
        Ok(load)
    }

    /// Starts this many pairs of threads per CPU, which only send bytes back and forth.
    pub(crate) fn pairs(pairs: usize) -> std::io::Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut load = Self { stop: Arc::default(), threads: Vec::new() };
        (0..cpus * pairs).try_for_each(|_| load.messages())?;
        Ok(load)
    }

    /// Starts one thread per CPU, which only writes at random to more memory than the caches of
    /// `cpu` hold.
    pub(crate) fn thrash(cpu: usize) -> std::io::Result<Self> {
        let last = caches(cpu).last().map_or(SWEPT_BYTES, |cache| cache.size as usize);
        let mut load = Self { stop: Arc::default(), threads: Vec::new() };
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            load.sweep((last * SWEEP_FACTOR).min(MAX_SWEPT_BYTES))?;
        }
        Ok(load)
    }

    /// Starts a thread that runs a program repeatedly.
    fn program(&mut self, name: &str, arguments: &[&str]) -> std::io::Result<()> {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A separate process group: it is ended as a whole, and receives no Ctrl-C from the
        // terminal.
        command.process_group(0).default_signals();
        // SAFETY: between fork and exec the closure makes one system call without pointers.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        // The first process is started here, so that the caller gets the error of a program that
        // cannot be run. The parent-death signal is sent when this thread ends, which is after the
        // load.
        let first = command.spawn()?;
        let ends = self.ends();
        self.thread(move || {
            let mut child = first;
            loop {
                let ended = until(&mut child, &ends);
                end_all(&mut child);
                if !ended {
                    return;
                }
                // If the program can no longer be run, the rows continue without load.
                let Ok(next) = command.spawn() else { return };
                child = next;
            }
        })
    }

    /// Starts two threads that send bytes back and forth.
    fn messages(&mut self) -> std::io::Result<()> {
        let (mut there_out, mut there_in) = std::io::pipe()?;
        let (mut back_out, mut back_in) = std::io::pipe()?;
        let message = [0_u8; 100];
        let ends = self.ends();
        self.thread(move || {
            let mut buffer = [0; 100];
            // The end of the other thread closes its pipe, which ends this thread as well.
            while !ends() && there_in.write_all(&message).is_ok() && back_out.read_exact(&mut buffer).is_ok()
            {
            }
        })?;
        let ends = self.ends();
        self.thread(move || {
            let mut buffer = [0; 100];
            while !ends() && there_out.read_exact(&mut buffer).is_ok() && back_in.write_all(&message).is_ok()
            {
            }
        })
    }

    /// Starts a thread that writes to this many bytes in random order.
    fn sweep(&mut self, bytes: usize) -> std::io::Result<()> {
        let ends = self.ends();
        self.thread(move || {
            let mut memory = vec![1_u64; bytes / size_of::<u64>()];
            let mut at = 0x9e37_79b9_7f4a_7c15_u64;
            while !ends() {
                for _ in 0..4096 {
                    // A linear congruential generator: its high bits are random enough to defeat
                    // the prefetcher.
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let index = (at >> 32) as usize % memory.len();
                    memory[index] = memory[index].wrapping_add(at);
                }
                std::hint::black_box(&mut memory);
            }
        })
    }

    fn ends(&self) -> impl Fn() -> bool + Send + 'static {
        let (stop, until) = (self.stop.clone(), Instant::now() + MAX_DURATION);
        move || stop.load(Ordering::Relaxed) || Instant::now() > until
    }

    fn thread(&mut self, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(std::thread::Builder::new().name("load".into()).spawn(body)?);
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The threads do not panic; if one did, the load has ended anyway.
            let _ = thread.join();
        }
    }
}

/// Waits for the end of `child`, or until `ends`; returns `true` if it has ended.
fn until(child: &mut Child, ends: &impl Fn() -> bool) -> bool {
    while !ends() {
        if !matches!(child.has_ended(), Ok(false)) {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// The interval between checks of a program.
const LOOK: Duration = Duration::from_millis(2);

/// Kills a child with all processes of its group, and waits until they are gone.
fn end_all(child: &mut Child) {
    let Some(group) = Pid::from_raw(child.id() as i32) else { return };
    let _ = child.end_group(None, Duration::ZERO);
    // The processes take time to end after the signal; the next measurement must run without them.
    let deadline = Instant::now() + Duration::from_secs(1);
    while lives(group) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

/// Returns `true` if a process of the group is alive. A zombie does not count, since init may reap
/// it late.
fn lives(group: Pid) -> bool {
    let group = group.as_raw_nonzero().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    stats.any(|stat| {
        // After the name, which may contain any character: state, parent, group.
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().take(3).collect();
        matches!(fields[..], [state, _, of] if of == group && !matches!(state, "Z" | "X"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_load_on_drop() {
        let load = Load::start(LoadKind::Own).unwrap();
        let stop = load.stop.clone();
        drop(load);
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn ends_program_with_its_group() {
        let mut load = Load { stop: Arc::default(), threads: Vec::new() };
        load.program("sh", &["-c", "while :; do sleep 1000; done & sleep 1000"]).unwrap();
        drop(load);
        assert!(Load { stop: Arc::default(), threads: Vec::new() }.program("no such program", &[]).is_err());
        let own = Pid::from_raw(std::process::id() as i32).unwrap();
        assert!(lives(rustix::process::getpgid(Some(own)).unwrap()));
        assert!(!lives(Pid::from_raw(i32::MAX).unwrap()));
    }

    #[test]
    fn parses_and_prints_names_of_loads() {
        assert_eq!("stress-ng".parse(), Ok(LoadKind::StressNg));
        assert!("none".parse::<LoadKind>().is_err());
        assert!(LoadKind::Own.is_installed() && !installed("no such program"));
    }
}
