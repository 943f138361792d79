//! Runs a command on CPUs that are taken for the duration of the run.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use punctual_isolate::isolate::{Plan, take};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Access;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::CpuSet;

use super::Place;
use super::beside::Beside;
use crate::output::message;
use crate::status::{BAD_INPUT, FINDING};
use crate::trace::signals::{self, Notice};

pub(super) fn run(plan: &Plan, command: &[OsString], record: bool, place: &mut Place) -> Result<u8, String> {
    resolve(&command[0])?;
    let signals = Signals::catch().map_err(|error| format!("cannot handle signals: {error}"))?;
    // Dropped at the end: until then no other process gives the CPUs back.
    let (_journal, refused) =
        take(plan, &place.store, false, &mut place.settings).map_err(|error| error.to_string())?;
    for line in &refused {
        message!("{line}");
    }
    let beside = Beside::begin(plan, record);
    let status = start(plan, command, Stdio::inherit()).and_then(|child| signals.wait(child));
    let account = beside.end(plan);
    let given_back = place.give_back();
    let code = match status {
        Ok(status) => {
            message!("{account}");
            code_of(status)
        }
        Err(error) => {
            message!("error: {}: {error}", command[0].display());
            BAD_INPUT
        }
    };
    match given_back? {
        0 => Ok(code),
        failed => Ok(failed.max(code)),
    }
}

/// Returns the file that a command executes, so that nothing is changed for one that cannot be
/// executed.
pub(crate) fn resolve(command: &OsStr) -> Result<PathBuf, String> {
    resolve_in(command, std::env::var_os("PATH").as_deref())
}

fn resolve_in(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, String> {
    let is_executable = |file: &Path| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    let name = command.display();
    if command.as_bytes().contains(&b'/') {
        if is_executable(Path::new(command)) {
            return Ok(command.into());
        }
        return Err(format!("cannot run `{name}`: it is not an executable file; give the path of one"));
    }
    // As execvp(3) without PATH.
    let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    let mut files = std::env::split_paths(path).map(|directory| directory.join(command));
    files.find(|file| is_executable(file)).ok_or_else(|| {
        format!("cannot run `{name}`: PATH contains no executable file with that name; give its path")
    })
}

/// Describes why a command was not executed, with the remedy.
pub(crate) fn not_executed(command: &OsStr, error: &io::Error) -> String {
    format!("cannot run `{}`: {error}; give a command that can be executed", command.display())
}

/// Returns the exit code as shells report it: for a signal, 128 plus its number.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(FINDING)
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
    notices: signals::Signals,
    /// The last signal, which also ends commands that are started later.
    last: Cell<Option<Signal>>,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self { notices: signals::Signals::listen()?, last: Cell::new(None) })
    }

    /// Waits until the command has ended; after a signal has asked it to end, it is killed at a
    /// time limit.
    fn wait_for_end(&self, child: Pid) -> io::Result<()> {
        let descriptor = rustix::process::pidfd_open(child, PidfdFlags::empty())?;
        let mut asked = self.last.get().map(|signal| {
            let _ = rustix::process::kill_process(child, signal);
            Instant::now()
        });
        loop {
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&CHECK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            while let Some(notice) = self.notices.wait(Duration::ZERO) {
                let Notice::End { signal, from_terminal } = notice else { continue };
                asked.get_or_insert_with(Instant::now);
                self.last.set(Signal::from_named_raw(signal));
                // A terminal sends its signals to the command too.
                if let Some(signal) = self.last.get().filter(|_| !from_terminal) {
                    let _ = rustix::process::kill_process(child, signal);
                }
            }
            let since = asked.map_or(Duration::ZERO, |asked| asked.elapsed());
            if since > 2 * END_TIMEOUT {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end at SIGKILL"));
            }
            if since > END_TIMEOUT {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
        }
    }

    /// Waits until the command has ended.
    #[expect(clippy::disallowed_methods, reason = "the child has ended")]
    pub(super) fn wait(&self, child: Pid) -> io::Result<ExitStatus> {
        self.wait_for_end(child)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_commands_that_cannot_be_executed() {
        let path = Some(OsStr::new("/nonexistent:/bin"));
        let resolve = |command: &str, path| resolve_in(OsStr::new(command), path);
        for command in ["sh", "/bin/sh"] {
            assert!(resolve(command, path).is_ok(), "{command}");
        }
        assert!(resolve("sh", None).is_ok());
        for (command, why) in [
            ("no-such-command", "PATH contains no executable file"),
            ("sh/", "not an executable file"),
            ("/bin", "not an executable file"),
            ("/etc/passwd", "not an executable file"),
            ("", "PATH contains no executable file"),
        ] {
            let error = resolve(command, path).unwrap_err();
            assert!(error.contains(why), "{command}: {error}");
        }
        assert!(resolve("sh", Some(OsStr::new("/nonexistent"))).is_err());
    }

    #[test]
    fn exit_status_follows_shell_convention() {
        assert_eq!(code_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
