//! Background load: threads that wake each other through pipes, and threads that sweep the caches.
//!
//! hackbench sends messages through pipes; the thesis that the latency suite follows writes at random to more memory than a
//! cache holds. The threads are ordinary ones, end on request, and end by themselves after a while.

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
use rustix::process::{Pid, Signal, kill_process_group};

/// The longest duration of a load, whatever happens.
const MAX_DURATION: Duration = Duration::from_secs(900);

/// What the own load sweeps: more than the last private cache of most CPUs.
const SWEPT_BYTES: usize = 4 << 20;
/// How much more than the last cache is swept to empty it, and at most.
const BEYOND: usize = 4;
const MAX_SWEPT_BYTES: usize = 128 << 20;

/// The source of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadKind {
    /// This crate.
    #[default]
    Own,
    /// The program `hackbench`, of the package rt-tests.
    Hackbench,
    /// The program `stress-ng`.
    StressNg,
}

impl LoadKind {
    /// Its name on the command line and in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Hackbench => "hackbench",
            Self::StressNg => "stress-ng",
        }
    }

    /// Whether it is available.
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

/// Whether a program of this name is in one of the directories for programs.
pub(crate) fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// A load, until dropped.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts one, for as many CPUs as this process may use.
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
            // A second or two of it, again and again: its processes do not end with the first of them, and so not with
            // this one if that is killed.
            LoadKind::Hackbench => load.program("hackbench", &["--pipe", "-g", "2", "-l", "1000"])?,
            LoadKind::StressNg => {
                let (cpus, seconds) = (cpus.to_string(), MAX_DURATION.as_secs().to_string());
                let arguments = ["--switch", &cpus, "--cache", &cpus, "--quiet", "--timeout", &seconds];
                load.program("stress-ng", &arguments)?;
            }
        }
        Ok(load)
    }

    /// So many pairs of threads for each CPU that send bytes back and forth, and nothing else.
    pub(crate) fn pairs(pairs: usize) -> std::io::Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut load = Self { stop: Arc::default(), threads: Vec::new() };
        (0..cpus * pairs).try_for_each(|_| load.messages())?;
        Ok(load)
    }

    /// Threads that write at random to more memory than `cpu` has caches for, and do nothing else: one for each CPU.
    pub(crate) fn thrash(cpu: usize) -> std::io::Result<Self> {
        let last = caches(cpu).last().map_or(SWEPT_BYTES, |cache| cache.size as usize);
        let mut load = Self { stop: Arc::default(), threads: Vec::new() };
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            load.sweep((last * BEYOND).min(MAX_SWEPT_BYTES))?;
        }
        Ok(load)
    }

    /// A thread that runs a program again and again.
    fn program(&mut self, name: &str, arguments: &[&str]) -> std::io::Result<()> {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: ended as a whole, and no part of it gets the terminal's Ctrl-C.
        command.process_group(0).default_signals();
        // SAFETY: between fork and exec this makes one system call that takes no pointers.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        // The first here, so that a program that cannot be run is an error of the caller. The signal for the death of the
        // parent comes when this thread ends, which is after the load.
        let first = command.spawn()?;
        let ends = self.ends();
        self.thread(move || {
            let mut child = first;
            loop {
                let ended = until(&mut child, &ends);
                end_group(&mut child);
                if !ended {
                    return;
                }
                // If the program cannot be run any more, the rows go on without load.
                let Ok(next) = command.spawn() else { return };
                child = next;
            }
        })
    }

    /// Two threads that send bytes back and forth.
    fn messages(&mut self) -> std::io::Result<()> {
        let (mut there_out, mut there_in) = std::io::pipe()?;
        let (mut back_out, mut back_in) = std::io::pipe()?;
        let message = [0_u8; 100];
        let ends = self.ends();
        self.thread(move || {
            let mut buffer = [0; 100];
            // The other end closes its pipe when it ends, which ends this one too.
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

    /// A thread that writes to so many bytes in no order.
    fn sweep(&mut self, bytes: usize) -> std::io::Result<()> {
        let ends = self.ends();
        self.thread(move || {
            let mut memory = vec![1_u64; bytes / size_of::<u64>()];
            let mut at = 0x9e37_79b9_7f4a_7c15_u64;
            while !ends() {
                for _ in 0..4096 {
                    // A linear congruential generator: its high bits are random enough to defeat the prefetcher.
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
            // Nothing there panics; if it did, the load is over all the same.
            let _ = thread.join();
        }
    }
}

/// Waits for the end of `child`, or until `ends`; whether it has ended.
fn until(child: &mut Child, ends: &impl Fn() -> bool) -> bool {
    while !ends() {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// How often a program is checked.
const LOOK: Duration = Duration::from_millis(2);

/// Ends a child with all the processes of its group, and waits until they are gone.
fn end_group(child: &mut Child) {
    let Some(group) = Pid::from_raw(child.id() as i32) else { return };
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.end_at_once();
    // They have the signal, but each takes its time to end; the next measurement must be without them.
    let patience = Instant::now() + Duration::from_secs(1);
    while lives(group) && Instant::now() < patience {
        std::thread::sleep(LOOK);
    }
}

/// Whether a process of the group is alive. One that has ended and was not waited for is not, and init may take its time.
fn lives(group: Pid) -> bool {
    let group = group.as_raw_nonzero().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    stats.any(|stat| {
        // Behind the name, which may hold anything: state, parent, group.
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
