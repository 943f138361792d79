//! The command to trace: a child process whose PID is known before it runs.
//!
//! It waits between `fork` and `exec` until recording is on, so that nothing is missed.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use crate::isolate::run::not_executed;

/// Environment variable: makes the runtime of a Punctual app mark its jobs in the trace.
pub(crate) const MARKS: &str = "PUNCTUAL_TRACE";

/// A waiting child.
pub(crate) struct HeldChild {
    name: OsString,
    pid: u32,
    go: PipeWriter,
    /// `Command::spawn` returns only when the command runs, or fails.
    spawning: JoinHandle<io::Result<Child>>,
}

impl HeldChild {
    /// Creates a child that waits before it executes this command, which must not be empty. Its
    /// output goes to `output`; `marks` is the destination of its marks.
    pub(crate) fn new(command: &[OsString], output: Stdio, marks: &str) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot create a process for the command: {error}");
        let (name, arguments) = command.split_first().ok_or("there is no command")?;
        let (mut number, started) = io::pipe().map_err(failed)?;
        let (wait, go) = io::pipe().map_err(failed)?;
        let mut process = Command::new(name);
        process.args(arguments).env(MARKS, marks).stdout(output);
        let parents_end = go.as_raw_fd();
        let prepare = move || {
            // SAFETY: this is the child, in which no other code uses its copy of the parent's
            // descriptor, and which leaves by exec or exit without dropping the owner. If it stayed
            // open, the child would not see the parent die.
            unsafe { libc::close(parents_end) };
            hold(&started, &wait)
        };
        // SAFETY: between fork and exec the closure makes system calls only: close, getpid, write,
        // read, sched_setscheduler. It allocates nothing, takes no lock, and an error made of a
        // number needs no memory.
        unsafe { process.pre_exec(prepare) };
        let spawning = std::thread::Builder::new()
            .name("punctual-spawn".into())
            .spawn(move || process.spawn())
            .map_err(failed)?;
        let mut pid = [0; 4];
        if number.read_exact(&mut pid).is_err() {
            // The child ended before it could report its PID.
            let error = spawning.join().map(|result| result.err()).ok().flatten();
            return Err(failed(error.unwrap_or_else(|| io::ErrorKind::Other.into())));
        }
        Ok(Self { name: name.clone(), pid: u32::from_ne_bytes(pid), go, spawning })
    }

    /// Returns its PID, which does not change when it executes the command.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it execute the command.
    pub(crate) fn go(mut self) -> Result<Running, String> {
        // If the child has ended, `spawn` returns the reason.
        let _ = self.go.write_all(&[1]);
        match self.spawning.join() {
            Ok(Ok(child)) => Ok(Running { child, status: None, signalled: Vec::new() }),
            Ok(Err(error)) => Err(not_executed(&self.name, &error)),
            Err(_) => Err("the thread that starts the command panicked".into()),
        }
    }
}

/// Runs in the child before it executes the command. An error ends it.
fn hold(mut started: &PipeWriter, mut wait: &PipeReader) -> io::Result<()> {
    // A real-time policy is for the recorder. If the kernel refuses the change, the child keeps the
    // policy.
    let _ = punctual_process::scheduling::set_policy(libc::SCHED_OTHER, 0);
    // SAFETY: getpid has no preconditions.
    let pid = unsafe { libc::getpid() };
    started.write_all(&pid.to_ne_bytes())?;
    let mut go = [0];
    loop {
        return match wait.read(&mut go) {
            // The recorder does not record, or has ended.
            Ok(0) => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

/// The command, running or ended.
pub(crate) struct Running {
    child: Child,
    status: Option<ExitStatus>,
    /// Signals sent to it.
    signalled: Vec<i32>,
}

impl Running {
    /// Returns its status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Sends it a signal, unless it has ended.
    pub(crate) fn signal(&mut self, signal: i32) {
        // Its PID is not reused before `ended` has reaped it.
        if self.ended().is_none()
            && let Some(signal) = rustix::process::Signal::from_named_raw(signal)
        {
            self.signalled.push(signal.as_raw());
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal);
        }
    }

    /// Returns whether it died of a signal that [`Running::signal`] sent.
    pub(crate) fn was_ended(&mut self) -> bool {
        let signal = self.ended().and_then(|status| status.signal());
        signal.is_some_and(|signal| self.signalled.contains(&signal))
    }
}

/// Returns the exit status as shells report it: 128 plus the signal number for a command killed by
/// a signal.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use punctual_process::child::{BoundedChild, TEST_LIMIT};

    use super::*;

    fn command(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn reports_pid_before_command_runs() {
        let line = [OsString::from("sh"), "-c".into(), "kill -TERM $$".into()];
        let held = HeldChild::new(&line, Stdio::inherit(), "1").unwrap();
        let exe = std::fs::read_link(format!("/proc/{}/exe", held.pid())).unwrap();
        assert_eq!(exe, std::env::current_exe().unwrap(), "it is still a copy of this process");
        let mut running = held.go().unwrap();
        assert_eq!(code(running.child.status_within(TEST_LIMIT).unwrap()), 128 + 15);
    }

    #[test]
    fn reports_command_that_cannot_run() {
        let held = HeldChild::new(&command("/no/such/program"), Stdio::inherit(), "1").unwrap();
        let error = held.go().err().unwrap();
        assert!(error.contains("cannot run `/no/such/program`: No such file"), "{error}");
        assert!(HeldChild::new(&[], Stdio::inherit(), "1").is_err());
    }

    #[test]
    fn ends_held_child_when_recorder_goes_away() {
        let HeldChild { spawning, go, .. } =
            HeldChild::new(&command("touch /no/such/directory/file"), Stdio::inherit(), "1").unwrap();
        drop(go);
        assert_eq!(spawning.join().unwrap().unwrap_err().raw_os_error(), Some(libc::ECANCELED));
    }
}
