//! A transport in another process.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use punctual_process::child::{BoundedChild, TEST_LIMIT};

/// Longer than any machine takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// A process that is killed at the end of the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The lines that it prints on standard error.
    lines: Receiver<String>,
}

impl Process {
    /// Starts a process, and shows its standard error, without lines that begin with `+`: answers
    /// to the test, several per second.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it can be run");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if !line.starts_with('+') {
                    let _ = writeln!(io::stderr(), "{line}");
                }
                // The test may not read the rest.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Starts a transport, and waits until it carries messages.
    pub(crate) fn start_transport(command: &mut Command) -> Self {
        let transport = Self::start(command);
        transport.wait_for("carries the topics of");
        transport
    }

    /// Waits for a line with this text, and returns it.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.find(text, LIMIT).unwrap_or_else(|| panic!("{text}: not printed"))
    }

    /// Returns the next line with this text, unless the process prints nothing for `limit`.
    pub(crate) fn find(&self, text: &str, limit: Duration) -> Option<String> {
        loop {
            let line = self.lines.recv_timeout(limit).ok()?;
            if line.contains(text) {
                return Some(line);
            }
        }
    }

    /// Waits for the end.
    pub(crate) fn status(mut self) -> ExitStatus {
        self.child.status_within(TEST_LIMIT).expect("it ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}

/// Returns the number of the process in which the network library of a transport runs; `None`
/// during a restart.
pub(crate) fn worker_of(transport: u32) -> Option<libc::pid_t> {
    let children = fs::read_to_string(format!("/proc/{transport}/task/{transport}/children")).ok()?;
    children.trim().parse().ok()
}

/// Sends a signal to a process that the test has started.
pub(crate) fn signal(process: libc::pid_t, signal: libc::c_int) {
    // SAFETY: the call takes integers.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0, "{}", io::Error::last_os_error());
}
