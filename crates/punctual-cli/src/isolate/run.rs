//! Runs a command on CPUs that are taken for the duration of the run.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use punctual_isolate::isolate::{Plan, take};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::CpuSet;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::beside::Beside;
use super::{BAD_INPUT, FAILED, Place};
use crate::output::say;

pub(super) fn run(plan: &Plan, command: &[OsString], record: bool, place: &mut Place) -> Result<u8, String> {
    let signals = Signals::catch().map_err(|error| format!("cannot handle signals: {error}"))?;
    // Dropped at the end: until then no other process gives the CPUs back.
    let (_journal, refused) =
        take(plan, &place.store, false, &mut place.settings).map_err(|error| error.to_string())?;
    for line in &refused {
        say!("{line}");
    }
    let beside = Beside::begin(plan, record);
    let status = start(plan, command, Stdio::inherit()).and_then(|child| signals.wait(child));
    let account = beside.end(plan);
    let given_back = place.give_back();
    let code = match status {
        Ok(status) => {
            say!("{account}");
            code_of(status)
        }
        Err(error) => {
            say!("error: {}: {error}", command[0].display());
            BAD_INPUT
        }
    };
    match given_back? {
        0 => Ok(code),
        failed => Ok(failed.max(code)),
    }
}

/// Returns the exit code as shells report it: for a signal, 128 plus its number.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(FAILED)
}

/// Starts a command that is on the plan's CPUs from its first instruction.
pub(super) fn start(plan: &Plan, command: &[OsString], output: Stdio) -> io::Result<Pid> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdout(output);
    enter(plan, &mut process)?;
    let child = process.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the kernel gave it no number"))
}

/// Makes a command start on the plan's CPUs.
pub(super) fn enter(plan: &Plan, command: &mut Command) -> io::Result<()> {
    let group: Option<OwnedFd> = match &plan.group {
        Some(group) => Some(OpenOptions::new().write(true).open(format!("{group}/cgroup.procs"))?.into()),
        None => None,
    };
    let mut cpus = CpuSet::new();
    plan.cpus.iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| cpus.set(cpu));
    let enter = move || {
        if let Some(group) = &group {
            rustix::io::write(group, b"0")?;
        }
        rustix::thread::sched_setaffinity(None, &cpus)?;
        // The process that took the CPU may be killed; nothing would give it back while the command
        // continues.
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        Ok(())
    };
    // SAFETY: in the child, before the command, it makes three system calls and neither allocates
    // nor locks.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Forwards signals to the command, which ends, so that the CPUs are given back.
pub(super) struct Signals {
    child: Arc<AtomicI32>,
    /// True after a signal.
    come: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        let signals = Self { child: Arc::default(), come: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let (child, come) = (Arc::clone(&signals.child), Arc::clone(&signals.come));
            let hand_on = move || {
                // Sequentially consistent, as in `wait`: either this sees the process ID, or `wait`
                // sees the flag.
                come.store(true, Ordering::SeqCst);
                end(child.load(Ordering::SeqCst));
            };
            // SAFETY: the handler uses atomics and sends a signal, both of which are
            // async-signal-safe.
            unsafe { signal_hook::low_level::register(signal, hand_on) }?;
        }
        Ok(signals)
    }

    /// Waits until the command has ended; after a signal has asked it to end, it is killed at a
    /// time limit.
    fn wait_for_end(&self, child: Pid) -> io::Result<()> {
        let descriptor = rustix::process::pidfd_open(child, PidfdFlags::empty())?;
        let mut asked = None;
        loop {
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&CHECK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.come.load(Ordering::SeqCst) {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since > 2 * END_TIMEOUT {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end at SIGKILL"));
                }
                if since > END_TIMEOUT {
                    let _ = rustix::process::kill_process(child, Signal::KILL);
                }
            }
        }
    }

    /// Waits until the command has ended.
    pub(super) fn wait(&self, child: Pid) -> io::Result<ExitStatus> {
        self.child.store(child.as_raw_nonzero().get(), Ordering::SeqCst);
        if self.come.load(Ordering::SeqCst) {
            end(child.as_raw_nonzero().get());
        }
        self.wait_for_end(child)?;
        // After the next call its ID may be reused by another process.
        self.child.store(0, Ordering::SeqCst);
        match rustix::process::waitpid(Some(child), WaitOptions::empty())? {
            Some((_, status)) => Ok(ExitStatus::from_raw(status.as_raw())),
            None => Err(io::Error::other("it has ended, but has no status")),
        }
    }
}

/// Time for the command to end after a signal.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval at which signals are checked.
const CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Asks a process to end, if there is one.
fn end(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = rustix::process::kill_process(process, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_status_is_that_of_a_shell() {
        assert_eq!(code_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
