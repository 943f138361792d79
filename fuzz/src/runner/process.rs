//! The process of a run: its privileges and limits, and the wait for its end, which takes longer on
//! a busy machine.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::BoundedChild;

/// Time after which a process counts as hanging: jobs take milliseconds, and the time limit of an
/// app is 5 s.
pub(super) const LIMIT: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_micros(500);
/// Interval between checks of its threads.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A process whose threads waited longer than this for a CPU may end late, if that was a large part
/// of its run: the shortest time limit of an app is 800 ms, part of which jobs need.
const MAX_WAIT: Duration = Duration::from_millis(100);
const GOOD_PART: u32 = 4;

/// End of a process.
pub(super) struct End {
    /// Exit status, or the states of its threads if it had to be killed.
    pub(super) status: Result<ExitStatus, String>,
    /// True if its threads waited so long for CPUs or memory that the end may be late.
    pub(super) was_hindered: bool,
}

/// Waits for the end of the child, with a time limit.
pub(super) fn wait(child: &mut Child) -> std::io::Result<End> {
    let (begun, stolen) = (Instant::now(), stolen());
    let directory = format!("/proc/{}/task", child.id());
    let mut waits = Waits::default();
    let (mut last, mut next) = (begun, begun + CHECK_INTERVAL);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        let now = Instant::now();
        if now >= next {
            waits.inspect(Path::new(&directory), now - last);
            (last, next) = (now, now + CHECK_INTERVAL);
        }
        if now >= begun + LIMIT {
            let threads = threads(Path::new(&directory));
            child.end_at_once()?;
            break Err(threads);
        }
        thread::sleep(TICK);
    };
    let waited = waits.sum() + self::stolen().saturating_sub(stolen);
    let was_hindered = waits.slept_badly || waited > MAX_WAIT.max(begun.elapsed() / GOOD_PART);
    Ok(End { status, was_hindered })
}

/// Times that the threads of a process waited for a CPU.
#[derive(Default)]
struct Waits {
    /// Time on a CPU and waiting for one, in ns, by thread, without the current wait.
    of_threads: HashMap<u32, (u64, u64)>,
    /// Total wait of all threads.
    starved: Duration,
    /// True if a thread waited for the disk, or the wait is unknown.
    slept_badly: bool,
}

impl Waits {
    /// Reads the state of all threads; `since` is the time since the previous call.
    fn inspect(&mut self, directory: &Path, since: Duration) {
        for task in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(number) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let read = |name| fs::read_to_string(task.path().join(name)).ok();
            // Fails if the thread has just ended.
            let Some(stat) = read("stat") else { continue };
            match read("schedstat").as_deref().and_then(times) {
                Some(times) => {
                    let before = self.of_threads.insert(number, times);
                    if state(&stat) == 'R' && before == Some(times) {
                        self.starved += since;
                    }
                }
                None => self.slept_badly |= task.path().join("stat").exists(),
            }
            self.slept_badly |= state(&stat) == 'D';
        }
    }

    fn sum(&self) -> Duration {
        self.starved + Duration::from_nanos(self.of_threads.values().map(|(_, waited)| waited).sum())
    }
}

/// Returns the time spent on a CPU and waiting for one, in ns, from a file `schedstat`.
fn times(schedstat: &str) -> Option<(u64, u64)> {
    let mut times = schedstat.split_whitespace().map(str::parse);
    Some((times.next()?.ok()?, times.next()?.ok()?))
}

/// Returns the state of a thread from a file `stat`, in which any characters may occur in the name.
fn state(stat: &str) -> char {
    stat.rsplit(") ").next().unwrap_or_default().chars().next().unwrap_or('?')
}

/// Returns the steal time of all CPUs.
fn stolen() -> Duration {
    /// Unit of this file.
    const HERTZ: u64 = 100;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse::<u64>().ok());
    Duration::from_millis(ticks.unwrap_or(0) * 1000 / HERTZ)
}

/// Returns the threads of a process, each with its state and its kernel function.
fn threads(directory: &Path) -> String {
    let each = fs::read_dir(directory).into_iter().flatten().flatten().map(|task| {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (name, call) = (read("comm"), read("syscall"));
        let call = call.split(' ').next().unwrap_or_default();
        format!("{} {} {}", name.trim(), state(&read("stat")), call.trim())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The unprivileged user and group.
const NOBODY: u32 = 65534;

/// The CPU time in µs after which a real-time thread that does not block gets SIGXCPU, and SIGKILL.
const RUNAWAY: (u64, u64) = (2_000_000, 3_000_000);

/// Returns whether this process is root.
pub(super) fn is_root() -> bool {
    // SAFETY: the call takes no pointers and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Makes the kernel end the process of `command` if one of its real-time threads does not block.
pub(super) fn no_runaways(command: &mut Command) {
    limit(command, libc::RLIMIT_RTTIME, RUNAWAY.0, RUNAWAY.1);
    limit(command, libc::RLIMIT_CORE, 0, 0);
}

/// Removes every privilege of root from the process of `command`.
pub(super) fn no_privileges(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY);
    limit(command, libc::RLIMIT_RTPRIO, 0, 0);
    limit(command, libc::RLIMIT_MEMLOCK, 0, 0);
}

/// Starts a process with the highest priority that this one may set; its children inherit it.
pub(super) fn before_others<R>(start: impl FnOnce() -> R) -> R {
    const FIRST: i32 = -20;
    // SAFETY: the call takes no pointers, and changes nothing.
    let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: the call takes no pointers; without permission it changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) };
    let started = start();
    // SAFETY: as above.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, before) };
    started
}

fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    let set = move || {
        // SAFETY: `limit` is a valid `rlimit`.
        match unsafe { libc::setrlimit(resource, &limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_schedstat_and_state() {
        assert_eq!(times("1219525 5461697 2\n"), Some((1_219_525, 5_461_697)));
        assert_eq!(times(""), None);
        assert_eq!(state("12 (level) 3) D 1 2"), 'D');
        let mut waits = Waits::default();
        waits.inspect(Path::new("/proc/self/task"), CHECK_INTERVAL);
        assert!(!waits.of_threads.is_empty());
    }
}
