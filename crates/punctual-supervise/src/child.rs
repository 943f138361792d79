//! The supervised process.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::heartbeat;
use punctual_process::child::{BoundedChild, KILL_TIMEOUT};
use punctual_process::scheduling::without_real_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::CpuSet;

use crate::memory::Memory;

/// The maximum number of ancestors of a process below its supervisor.
const GENERATIONS: u32 = 64;

/// The state of a process after a wait for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Running,
    /// The process has ended, and its tracer has not collected the exit status.
    Held,
    Ended(ExitStatus),
}

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

    /// Waits for its end, for at most `longest`, or twice that if another process traces it.
    pub(crate) fn wait(&mut self, longest: Duration) -> io::Result<Waited> {
        let timeout =
            Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) as _ };
        match poll(&mut [PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Waited::Running),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = without_real_time(|| self.child.try_wait())? {
            return Ok(Waited::Ended(status));
        }
        // The descriptor remains readable, so the next call would not sleep either.
        thread::sleep(longest);
        Ok(Waited::Held)
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

/// The steps by which an app ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending {
    /// The time at which it was asked to stop.
    pub(crate) asked: Option<Instant>,
    /// The time at which it was first killed.
    pub(crate) killed: Option<Instant>,
    /// The time at which it was first found [held](Waited::Held).
    pub(crate) held: Option<Instant>,
}

/// A step that has not ended the app within its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    Request,
    Kill,
    Release,
}

impl Ending {
    /// Returns the step that has failed by now. Requests have the limit `grace`.
    pub(crate) fn failed(self, grace: Duration, now: Instant) -> Option<Failed> {
        let (since, limit, step) = match self {
            Self { held: Some(held), .. } => (held, KILL_TIMEOUT, Failed::Release),
            Self { killed: Some(killed), .. } => (killed, KILL_TIMEOUT, Failed::Kill),
            Self { asked: Some(asked), .. } => (asked, grace, Failed::Request),
            Self { asked: None, killed: None, held: None } => return None,
        };
        (now.saturating_duration_since(since) > limit).then_some(step)
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn every_step_to_end_app_has_limit() {
        let (start, grace) = (Instant::now(), Duration::from_secs(8));
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut ending = Ending::default();
        assert_eq!(ending.failed(grace, after(100_000)), None);
        ending.asked = Some(start);
        assert_eq!([8, 9].map(|now| ending.failed(grace, after(now))), [None, Some(Failed::Request)]);
        // After SIGKILL, the request no longer counts.
        ending.killed = Some(after(9));
        let expected = [None, None, Some(Failed::Kill)];
        assert_eq!([9, 19, 20].map(|now| ending.failed(grace, after(now))), expected);
        ending.asked = None;
        assert_eq!([9, 19, 20].map(|now| ending.failed(grace, after(now))), expected);
        // Of an ended process, only the tracer counts.
        ending.held = Some(after(10));
        assert_eq!([20, 21].map(|now| ending.failed(grace, after(now))), [None, Some(Failed::Release)]);
    }

    /// Forks a process that traces `process` until it is killed. `None` if the kernel forbids that.
    fn tracer_of(process: u32) -> Option<libc::pid_t> {
        let (mut reader, writer) = io::pipe().unwrap();
        // SAFETY: the child only makes system calls. The alarm ends it if the test fails.
        let tracer = unsafe { libc::fork() };
        if tracer == 0 {
            // SAFETY: as above; none of the calls uses memory of this process except for `seized`.
            unsafe {
                libc::alarm(60);
                let seized = libc::ptrace(libc::PTRACE_SEIZE, process as libc::pid_t, 0_usize, 0_usize) == 0;
                libc::write(writer.as_raw_fd(), (&raw const seized).cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        drop(writer);
        let mut seized = [0];
        io::Read::read_exact(&mut reader, &mut seized).unwrap();
        if seized == [1] {
            return Some(tracer);
        }
        end(tracer);
        None
    }

    fn end(tracer: libc::pid_t) {
        // SAFETY: the call takes integers, and nothing has waited for the process.
        unsafe { libc::kill(tracer, libc::SIGKILL) };
        punctual_process::child::wait_for_fork(tracer, KILL_TIMEOUT).unwrap();
    }

    #[test]
    fn sleeps_while_tracer_holds_ended_process() {
        let interval = Duration::from_millis(5);
        let mut command = Command::new("sleep");
        command.arg("60");
        // SAFETY: the closure makes one system call, with integers.
        unsafe {
            command.pre_exec(|| {
                // Yama may restrict tracing to ancestors. Without Yama the call fails.
                libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
                Ok(())
            });
        }
        let cpus = rustix::thread::sched_getaffinity(None).unwrap();
        let mut process = Process::start(command, &Memory::new().unwrap(), cpus, 0).unwrap();
        let Some(tracer) = tracer_of(process.id()) else {
            return test_skip::skip(test_skip::Need::System("ptrace"), "process held by a tracer");
        };
        assert_eq!(process.wait(Duration::ZERO).unwrap(), Waited::Running);
        process.signal(None, Signal::KILL);
        let descriptor = PollFd::new(&process.descriptor, PollFlags::IN);
        assert_eq!(poll(&mut [descriptor], None).unwrap(), 1);
        for _ in 0..2 {
            let begun = Instant::now();
            assert_eq!(process.wait(interval).unwrap(), Waited::Held);
            assert!(begun.elapsed() >= interval);
        }
        end(tracer);
        let begun = Instant::now();
        let status = loop {
            match process.wait(interval).unwrap() {
                Waited::Ended(status) => break status,
                state => assert!(begun.elapsed() < KILL_TIMEOUT, "{state:?}"),
            }
        };
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }
}
