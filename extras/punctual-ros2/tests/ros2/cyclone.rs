//! A peer with cyclonedds from PyPI, in isolation with a node.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use punctual_process::child::BoundedChild;

/// Longer than any machine takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A process that is killed at the end of the test.
pub(crate) struct Peer {
    child: Child,
    stdin: ChildStdin,
    /// Its output.
    pub(crate) lines: Receiver<String>,
}

impl Peer {
    pub(crate) fn start(script: &str, argument: &str) -> Self {
        let mut command = Command::new("python3");
        let xml =
            "<General><Interfaces><NetworkInterface name=\"lo\" multicast=\"true\"/></Interfaces></General>";
        command.args(["-c", script, argument]).env("CYCLONEDDS_URI", xml);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is there");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (tell, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| tell.send(line).is_ok()));
        Self { child, stdin, lines }
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("it reads");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}

/// Runs `test` of this program with loopback as the only interface; `None` if that, or cyclonedds,
/// is not available.
pub(crate) fn alone(test: &str) -> Option<bool> {
    let up = "ip link set lo up && ip link set lo multicast on";
    crate::alone::run(test, up, "python3 -c 'import cyclonedds.domain'")
}

/// Reports a skipped test.
pub(crate) fn skip(what: &str) {
    eprintln!(
        "*** SKIPPED: {what}. This requires root or a user namespace, `unshare`, `ip`, and `pip install cyclonedds` for python3 ***"
    );
}
