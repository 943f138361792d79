//! The supervised process.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use punctual_core::heartbeat;
use punctual_process::child::BoundedChild;
use punctual_process::scheduling::without_real_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::CpuSet;

use crate::memory::Memory;

/// The maximum number of ancestors of a process below its supervisor.
const GENERATIONS: u32 = 64;

/// The started process. It gets SIGTERM if the supervisor dies.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    descriptor: OwnedFd,
}

impl Process {
    /// Starts the command, which inherits `memory`, on `cpus`.
    pub(crate) fn start(mut command: Command, memory: &Memory, cpus: CpuSet, oom: i32) -> io::Result<Self> {
        let descriptor = memory.descriptor();
        command.env(heartbeat::VARIABLE, descriptor.to_string());
        let (oom, parent) = (oom.to_string(), rustix::process::getpid());
        let prepare = move || {
            // SAFETY: the calls take integers only.
            unsafe {
                if libc::fcntl(descriptor, libc::F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            rustix::thread::sched_setaffinity(None, &cpus)?;
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            // The supervisor may have died before that took effect.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // The supervisor's protection from the OOM killer must not extend to the app.
            if let Ok(file) = rustix::fs::open(
                c"/proc/self/oom_score_adj",
                rustix::fs::OFlags::WRONLY,
                rustix::fs::Mode::empty(),
            ) {
                let _ = rustix::io::write(&file, oom.as_bytes());
            }
            Ok(())
        };
        // SAFETY: in the child, before `exec`, the closure makes system calls and neither allocates
        // nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { child, descriptor }),
            Err(error) => {
                let _ = without_real_time(|| child.end_at_once());
                Err(error.into())
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, for at most that long.
    pub(crate) fn wait(&mut self, longest: Duration) -> io::Result<Option<ExitStatus>> {
        let timeout =
            Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) as _ };
        match poll(&mut [PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => without_real_time(|| self.child.try_wait()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to the process and, if the app is another process, to `app`, a descendant.
    pub(crate) fn signal(&self, app: Option<i32>, signal: Signal) {
        // This process has not been waited for, so its number is not reused. The app may have
        // ended, and its number may be reused.
        let app = app.filter(|&app| app != self.id() as i32 && self.is_ancestor_of(app));
        for process in app.into_iter().chain([self.id() as i32]) {
            if let Some(process) = Pid::from_raw(process) {
                let _ = rustix::process::kill_process(process, signal);
            }
        }
    }

    /// Returns `true` if a process is this one or a descendant. An app can write any number to the
    /// memory.
    pub(crate) fn is_ancestor_of(&self, process: i32) -> bool {
        let mut process = process;
        for _ in 0..GENERATIONS {
            if process == self.id() as i32 {
                return true;
            }
            let Some(parent) = parent(process) else { return false };
            process = parent;
        }
        false
    }
}

/// Ends the process on drop.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = without_real_time(|| self.child.end_at_once());
    }
}

/// Returns the fields of `/proc/PID/stat` after the name, which may contain any character.
fn stat(process: i32) -> Option<Vec<String>> {
    if process <= 0 {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Returns the parent of a process.
pub(crate) fn parent(process: i32) -> Option<i32> {
    stat(process)?.get(1)?.parse().ok()
}

/// Returns `true` if a process is stopped.
pub(crate) fn is_stopped(process: i32) -> bool {
    stat(process).is_some_and(|fields| fields.first().is_some_and(|state| state == "T"))
}

/// Returns the number of processes that the kernel's OOM killer has killed, if known.
pub(crate) fn killed_for_memory() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
