//! Children that start with default signal dispositions, and waits for them that always end.
//!
//! A child that ignores SIGINT because its parent does would never end at that signal.
//! [`BoundedCommand::default_signals`] prevents that for children that a program ends itself. A
//! command that a program runs on behalf of its user, as `nice` and `strace` do, keeps the
//! dispositions, so that Ctrl-C does not reach a background job and a hang-up does not reach a
//! command under `nohup`. In either case, [`BoundedChild::end`] escalates from SIGINT to SIGTERM
//! and SIGKILL.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::signals;

/// The longest pause between two checks for the end of a child.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// The time limit for a child to disappear after SIGKILL. Only a system call that the kernel cannot
/// interrupt takes longer.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for a child that has exceeded its limit to end at SIGINT, and then at SIGTERM.
const END_GRACE: Duration = Duration::from_secs(2);

/// Limit for a child that a test starts: none takes longer than some seconds, except on a very busy
/// machine.
pub const TEST_LIMIT: Duration = Duration::from_secs(300);

/// Commands whose children end within a limit.
pub trait BoundedCommand {
    /// Makes the child start with the default action of every signal and with an empty signal mask.
    fn default_signals(&mut self) -> &mut Self;

    /// Runs the command without input, and captures standard output and standard error.
    ///
    /// # Errors
    /// The command cannot be started. `TimedOut` if the child has not ended within `limit`, or a
    /// descendant holds its output open; the child is ended first.
    fn output_within(&mut self, limit: Duration) -> io::Result<Output>;

    /// Runs the command without input, and captures standard output alone.
    ///
    /// # Errors
    /// As [`output_within`](Self::output_within).
    fn stdout_within(&mut self, limit: Duration) -> io::Result<Output>;

    /// Runs the command.
    ///
    /// # Errors
    /// The command cannot be started. `TimedOut` if the child has not ended within `limit`; it is
    /// ended first.
    fn status_within(&mut self, limit: Duration) -> io::Result<ExitStatus>;
}

impl BoundedCommand for Command {
    fn default_signals(&mut self) -> &mut Self {
        let reset = || {
            signals::reset_all();
            Ok(())
        };
        // SAFETY: between fork and exec the closure only makes system calls; it neither allocates
        // nor locks.
        unsafe { self.pre_exec(reset) }
    }

    fn output_within(&mut self, limit: Duration) -> io::Result<Output> {
        self.stderr(Stdio::piped()).stdout_within(limit)
    }

    fn stdout_within(&mut self, limit: Duration) -> io::Result<Output> {
        self.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?.output_within(limit)
    }

    fn status_within(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        self.spawn()?.status_within(limit)
    }
}

/// Children that end within a limit.
pub trait BoundedChild: Sized {
    /// Waits until the child has ended, for at most `limit`; `None` if it has not.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    fn wait_within(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>>;

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// `TimedOut` if the child has not ended within `limit`; it is ended first.
    fn status_within(&mut self, limit: Duration) -> io::Result<ExitStatus>;

    /// Reads the child's output and waits for its end, as [`Child::wait_with_output`].
    ///
    /// # Errors
    /// `TimedOut` if the child has not ended within `limit`, or a descendant holds its output open;
    /// the child is ended first.
    fn output_within(self, limit: Duration) -> io::Result<Output>;

    /// Ends the child: by SIGINT, after `grace` by SIGTERM, and after another `grace` by SIGKILL.
    /// `None` if the kernel has not removed the process within 10 s of SIGKILL.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    fn end(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>>;

    /// Ends the child as [`end`](Self::end), from SIGTERM on.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    fn terminate(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>>;

    /// Returns `true` if the child has ended, and does not remove it: its number, and that of the
    /// process group that it leads, remain reserved.
    ///
    /// # Errors
    /// The child has been waited for, or the kernel refuses the system call.
    fn has_ended(&mut self) -> io::Result<bool>;

    /// Ends the process group that the child leads, for which [`CommandExt::process_group`] with 0
    /// has started it: by `signal`, if any, and by SIGKILL after the child has ended or `grace` has
    /// passed. `None` if the kernel has not removed the child within 10 s of SIGKILL.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    fn end_group(&mut self, signal: Option<i32>, grace: Duration) -> io::Result<Option<ExitStatus>>;

    /// Ends the child by SIGKILL. `None` if the kernel has not removed the process within 10 s.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    fn end_at_once(&mut self) -> io::Result<Option<ExitStatus>>;
}

/// Waits until the child `pid` of a raw `fork` has ended or, if this thread traces it, has stopped;
/// returns its status as waitpid(2) does.
///
/// # Errors
/// As waitpid(2). `TimedOut` if neither has happened within `limit`; the child is killed first.
pub fn wait_for_fork(pid: libc::pid_t, limit: Duration) -> io::Result<libc::c_int> {
    if let Some(status) = poll(limit, || try_wait_for_fork(pid))? {
        return Ok(status);
    }
    // SAFETY: the call takes integers. The child has not been waited for, so the number still
    // belongs to it.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let killed = poll(KILL_TIMEOUT, || try_wait_for_fork(pid))?;
    let fate = if killed.is_some() { "was killed" } else { "did not end at SIGKILL either" };
    let text = format!("process {pid} did not end within {} s; it {fate}", limit.as_secs_f64());
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

#[expect(clippy::disallowed_methods, reason = "it does not block, because of WNOHANG")]
fn try_wait_for_fork(pid: libc::pid_t) -> io::Result<Option<libc::c_int>> {
    let mut status = 0;
    // SAFETY: the pointer is valid for the call, which writes the status.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some(status)),
    }
}

/// Calls `attempt` until it returns a value, for at most `limit`.
fn poll<R>(limit: Duration, mut attempt: impl FnMut() -> io::Result<Option<R>>) -> io::Result<Option<R>> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(found) = attempt()? {
            return Ok(Some(found));
        }
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

impl BoundedChild for Child {
    fn wait_within(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        poll(limit, || self.try_wait())
    }

    fn status_within(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        match self.wait_within(limit)? {
            Some(status) => Ok(status),
            None => Err(end_late(self, limit)),
        }
    }

    fn output_within(mut self, limit: Duration) -> io::Result<Output> {
        drop(self.stdin.take());
        let begun = Instant::now();
        let (stdout, stderr) = (self.stdout.take().map(read), self.stderr.take().map(read));
        let status = self.status_within(limit)?;
        let collect = |pipe: Option<Receiver<Vec<u8>>>| {
            let Some(pipe) = pipe else { return Ok(Vec::new()) };
            // A descendant may hold the pipe open. The output of the child itself is read at once.
            let left = limit.saturating_sub(begun.elapsed()).max(Duration::from_secs(1));
            pipe.recv_timeout(left).map_err(|_| {
                let seconds = limit.as_secs_f64();
                let text = format!("the child left a process that holds its output open for {seconds} s");
                io::Error::new(io::ErrorKind::TimedOut, text)
            })
        };
        Ok(Output { status, stdout: collect(stdout)?, stderr: collect(stderr)? })
    }

    fn end(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>> {
        match ask(self, libc::SIGINT, grace)? {
            Some(status) => Ok(Some(status)),
            None => self.terminate(grace),
        }
    }

    fn terminate(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>> {
        match ask(self, libc::SIGTERM, grace)? {
            Some(status) => Ok(Some(status)),
            None => self.end_at_once(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "it does not block, because of WNOHANG")]
    fn has_ended(&mut self) -> io::Result<bool> {
        // SAFETY: all-zero is a valid value.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the pointer is valid for the call, which writes the structure.
        match unsafe { libc::waitid(libc::P_PID, self.id(), &raw mut information, options) } {
            // SAFETY: the kernel sets the number of an ended child, and leaves it zero otherwise.
            0 => Ok(unsafe { information.si_pid() } != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn end_group(&mut self, signal: Option<i32>, grace: Duration) -> io::Result<Option<ExitStatus>> {
        let has_been_removed = self.has_ended().is_err();
        if has_been_removed {
            // The number of the group may already belong to other processes.
            return self.try_wait();
        }
        let group = self.id().cast_signed();
        // SAFETY: the call takes integers. The child has not been waited for, so the number still
        // belongs to its group.
        let send = |signal| unsafe { libc::killpg(group, signal) };
        if let Some(signal) = signal {
            send(signal);
        }
        poll(grace, || self.has_ended().map(|ended| ended.then_some(())))?;
        send(libc::SIGKILL);
        self.wait_within(KILL_TIMEOUT)
    }

    fn end_at_once(&mut self) -> io::Result<Option<ExitStatus>> {
        ask(self, libc::SIGKILL, KILL_TIMEOUT)
    }
}

/// Sends a signal to a child and waits for its end.
fn ask(child: &mut Child, signal: i32, grace: Duration) -> io::Result<Option<ExitStatus>> {
    // After `try_wait` has returned a status, the kernel may reuse the number for another process.
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    // SAFETY: the call takes integers. The child has not been waited for, so the number still
    // belongs to it.
    unsafe { libc::kill(child.id().cast_signed(), signal) };
    child.wait_within(grace)
}

/// Ends a child that has not ended within `limit`, and returns an error that reports this.
fn end_late(child: &mut Child, limit: Duration) -> io::Error {
    let ended = match child.end(END_GRACE) {
        Ok(Some(status)) => format!("it was ended ({status})"),
        Ok(None) => "it did not end at SIGKILL either".to_owned(),
        Err(error) => error.to_string(),
    };
    let text = format!("process {} did not end within {} s; {ended}", child.id(), limit.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Reads a pipe to its end on a separate thread, so that a full pipe never blocks the child.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the output, as the end of the file does.
        let _ = pipe.read_to_end(&mut bytes);
        // The receiver is gone if the caller has timed out.
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    /// A shell with default signals, even if the parent of the tests ignores SIGINT.
    fn shell(script: &str) -> Command {
        let mut command = inheriting_shell(script);
        command.default_signals();
        command
    }

    fn inheriting_shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Starts a shell that runs until a signal ends it, and waits until it has set its traps.
    fn started(script: &str) -> Child {
        let mut command = shell(&format!("{script}; echo; while :; do sleep 0.01; done"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        child
    }

    #[test]
    fn captures_output_and_status() {
        let output = shell("echo out; echo err >&2; exit 3").output_within(LONG).unwrap();
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn ends_child_that_exceeds_limit() {
        let error = shell("exec sleep 60").output_within(SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("SIGINT"), "{error}");
        assert_eq!(shell("exec sleep 60").status_within(SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut child = shell("exec sleep 60").spawn().unwrap();
        assert_eq!(child.status_within(SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(2));
    }

    #[test]
    fn kills_fork_that_exceeds_limit() {
        let fork = |code: Option<i32>| {
            // SAFETY: the child only makes system calls, and ends.
            match unsafe { libc::fork() } {
                // SAFETY: as above. The alarm ends the child if the test fails.
                0 => unsafe {
                    libc::alarm(60);
                    while code.is_none() {
                        libc::pause();
                    }
                    libc::_exit(code.unwrap_or_default())
                },
                child => child,
            }
        };
        let status = wait_for_fork(fork(Some(3)), LONG).unwrap();
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 3));
        let child = fork(None);
        let error = wait_for_fork(child, SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().ends_with("was killed"), "{error}");
        assert_eq!(wait_for_fork(child, SHORT).unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }

    #[test]
    fn reports_descendant_that_holds_output_open() {
        let error = shell("sleep 5 & echo done").output_within(SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn escalates_from_sigint_over_sigterm_to_sigkill() {
        for (script, signal) in [(":", 2), ("trap '' INT", 15), ("trap '' INT TERM", 9)] {
            let status = started(script).end(SHORT * 4).unwrap().unwrap();
            assert_eq!(status.signal(), Some(signal), "{script}");
        }
    }

    #[test]
    fn ends_group_with_descendants_after_grace() {
        for (script, signal, expected) in
            [(":", Some(libc::SIGTERM), 15), ("trap '' TERM", Some(libc::SIGTERM), 9), (":", None, 9)]
        {
            let script = format!("{script}; sleep 60 & echo $!; while :; do sleep 0.01; done");
            let mut command = shell(&script);
            let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
            let mut line = String::new();
            io::BufRead::read_line(&mut io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
                .unwrap();
            assert!(!child.has_ended().unwrap());
            let status = child.end_group(signal, SHORT * 4).unwrap().unwrap();
            assert_eq!(status.signal(), Some(expected), "{script}");
            let descendant = format!("/proc/{}/stat", line.trim());
            let has_ended = || match std::fs::read_to_string(&descendant) {
                // Its new parent may not have waited for it.
                Ok(stat) => stat.contains(") Z ").then_some(()),
                Err(_) => Some(()),
            };
            assert_eq!(poll(LONG, || Ok(has_ended())).unwrap(), Some(()), "{script}");
            assert!(child.has_ended().is_err());
            assert_eq!(child.end_group(signal, SHORT).unwrap(), Some(status));
        }
    }

    #[test]
    fn returns_status_of_ended_child() {
        let mut child = shell("exit 4").spawn().unwrap();
        child.wait_within(LONG).unwrap().unwrap();
        assert_eq!(child.end(SHORT).unwrap().unwrap().code(), Some(4));
    }

    #[test]
    fn starts_children_with_default_dispositions_and_empty_mask() {
        // The outer shell ignores three signals, as a parent may.
        let status = "grep -E '^Sig(Ign|Blk)' /proc/self/status";
        let exe = std::env::current_exe().unwrap();
        if std::env::var_os("PUNCTUAL_TEST_IGNORES").is_some() {
            let inherited = inheriting_shell(status).output_within(LONG).unwrap();
            let reset = shell(status).output_within(LONG).unwrap();
            let ignored = |output: &Output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let of =
                    |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
                (of("SigIgn:"), of("SigBlk:"))
            };
            let zero = "0".repeat(16);
            assert_ne!(ignored(&inherited).0, zero);
            assert_eq!(ignored(&reset), (zero.clone(), zero));
            return;
        }
        let test = "child::tests::starts_children_with_default_dispositions_and_empty_mask";
        let mut command = shell(&format!("trap '' INT TERM HUP; exec \"{}\" --exact {test}", exe.display()));
        let output = command.env("PUNCTUAL_TEST_IGNORES", "1").output_within(LONG).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
