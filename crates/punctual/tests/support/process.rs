//! Programs that tests run in separate processes: other tests of the same executable, marked
//! `#[ignore]`.
//!
//! The output of such a program is collected line by line, so that a test can wait for a line, send
//! a signal, and check how the process ended. Nothing is written to a file, and a program that
//! hangs is killed.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, TEST_LIMIT};
use rustix::process::{Pid, Signal, kill_process};

/// Returns the test `path` of this executable, to be run as a program.
pub(crate) fn program(path: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a process knows its executable"));
    command.args(["--ignored", "--exact", "--nocapture", path]);
    // Settings of the current test run are not meant for the program.
    [
        "PUNCTUAL_PORT",
        "PUNCTUAL_CPU",
        "PUNCTUAL_STACK",
        "PUNCTUAL_WAKE_LATENCY",
        "PUNCTUAL_STRICT",
        "PUNCTUAL_TRACE",
        "PUNCTUAL_REPORT",
        "PUNCTUAL_MODEL",
        "PUNCTUAL_PROFILE",
        "PUNCTUAL_METRICS",
        "PUNCTUAL_GUARD",
        "PUNCTUAL_RSEQ",
    ]
    .iter()
    .for_each(|name| {
        command.env_remove(name);
    });
    // A shell that starts the tests in the background lets them ignore this signal, and a program
    // keeps to that.
    // SAFETY: the closure makes one call, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

/// Returns the value of `list` whose name the test that runs this program has put into the
/// environment variable `name`.
pub(crate) fn chosen<T: std::fmt::Debug>(name: &str, list: impl IntoIterator<Item = T>) -> T {
    let wanted = std::env::var(name).expect("the test that runs this program sets it");
    let known = list.into_iter().find(|value| format!("{value:?}") == wanted);
    known.expect("programs and their tests know the same values")
}

/// Ends the program as a `main` that returns `code` would.
pub(crate) fn exit(code: ExitCode) -> ! {
    let number = (0..=u8::MAX).find(|&number| ExitCode::from(number) == code);
    std::process::exit(number.expect("exit codes are bytes").into())
}

/// A program in progress; killed on drop.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    output: String,
    deadline: Instant,
}

/// The end of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, or the negated number of the signal.
    pub(crate) code: i32,
    /// All of its standard output and standard error, interleaved in no particular order.
    pub(crate) output: String,
}

/// A program that takes longer hangs. None needs more than a few seconds, unless the machine is
/// very busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Starts `command`.
pub(crate) fn start(command: Command) -> Running {
    start_with(command, LIMIT, Stdio::piped())
}

/// [`start`] with this limit, and with this standard error, which is collected only if piped.
pub(crate) fn start_with(mut command: Command, limit: Duration, stderr: Stdio) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (sender, lines) = channel();
    pass_on(child.stdout.take(), sender.clone());
    if child.stderr.is_some() {
        pass_on(child.stderr.take(), sender);
    }
    Running { child, lines, output: String::new(), deadline: Instant::now() + limit }
}

impl Running {
    /// Waits until the program has printed a line that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.output.contains(text) {
            assert!(self.more(), "it ended without printing `{text}`:\n{}", self.output);
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = Pid::from_child(&self.child);
        kill_process(child, signal).expect("a child that has not been waited for can be sent signals");
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        while self.more() {}
        let status = self.child.status_within(TEST_LIMIT).expect("a child can be waited for");
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or_default());
        Ended { code, output: std::mem::take(&mut self.output) }
    }

    /// Waits for another line; returns `false` at the end of the output.
    fn more(&mut self) -> bool {
        match self.lines.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.output.push_str(&line);
                self.output.push('\n');
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("it hangs; it printed:\n{}", self.output),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If it has ended, there is nothing to kill.
        let _ = self.child.end_at_once();
    }
}

fn pass_on(pipe: Option<impl Read + Send + 'static>, lines: Sender<String>) {
    let pipe = BufReader::new(pipe.expect("the pipe was asked for"));
    std::thread::spawn(move || {
        for line in pipe.split(b'\n').map_while(Result::ok) {
            // There is no receiver once the test has failed.
            let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
}
