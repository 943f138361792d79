//! A peer with cyclonedds from PyPI, in isolation with a node.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::Need;

/// A process that is killed at the end of the test.
pub(crate) struct Peer {
    child: Child,
    stdin: ChildStdin,
    /// Its output.
    pub(crate) lines: Receiver<String>,
}

/// The configuration of a peer on loopback.
pub(crate) const XML_LOOPBACK: &str =
    "<General><Interfaces><NetworkInterface name=\"lo\" multicast=\"true\"/></Interfaces></General>";

/// The beginning of each script: imports, and messages of several.
const PRELUDE: &str = r#"
import sys, time
from dataclasses import dataclass
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64, int32, int64, sequence, uint8, uint32, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

@dataclass
class Vector3(IdlStruct, typename='geometry_msgs::msg::dds_::Vector3_'):
    x: float64
    y: float64
    z: float64

@dataclass
class Time(IdlStruct, typename='builtin_interfaces::msg::dds_::Time_'):
    sec: int32
    nanosec: uint32

@dataclass
class Header(IdlStruct, typename='std_msgs::msg::dds_::Header_'):
    stamp: Time
    frame_id: str
"#;

/// Makes `command` run a script.
pub(crate) fn script<'a>(command: &'a mut Command, script: &str, xml: &str) -> &'a mut Command {
    command.args(["-c", &format!("{PRELUDE}{script}")]).env("CYCLONEDDS_URI", xml)
}

impl Peer {
    /// Starts a peer on loopback.
    pub(crate) fn start(script: &str, argument: &str) -> Self {
        Self::start_by(Command::new("python3"), XML_LOOPBACK, script, argument)
    }

    fn start_by(mut command: Command, xml: &str, script: &str, argument: &str) -> Self {
        self::script(&mut command, script, xml).arg(argument);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is there");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
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

/// Another machine: a network namespace, as long as its process lives.
pub(crate) struct Machine(Child);

impl Machine {
    pub(crate) fn start() -> Self {
        let mut command = Command::new("unshare");
        // It prints a byte once it is in its namespace.
        command.args(["-n", "sh", "-c", "echo && exec sleep 3600"]).stdout(Stdio::piped());
        let mut machine = Self(command.spawn().expect("it is there"));
        let stdout = machine.0.stdout.as_mut().expect("it is piped");
        stdout.read_exact(&mut [0]).expect("it has a namespace");
        machine
    }

    /// Connects the two machines by a cable: brings an interface up on each.
    pub(crate) fn connect(&self) {
        let up = "ip link add here type veth peer name there && ip link set there netns $1 && \
                  nsenter -t $1 -n ip addr add 10.9.0.2/24 dev there && \
                  nsenter -t $1 -n ip link set there up && \
                  ip addr add 10.9.0.1/24 dev here && ip link set here up";
        let mut command = Command::new("sh");
        command.args(["-c", up, "sh", &self.0.id().to_string()]);
        let status = command.status_within(TEST_LIMIT).expect("it is there");
        assert!(status.success(), "see above");
    }

    /// Starts a peer on that machine.
    pub(crate) fn start_peer(&self, script: &str, argument: &str) -> Peer {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.0.id().to_string(), "-n", "python3"]);
        Peer::start_by(command, &XML_LOOPBACK.replace("\"lo\"", "\"there\""), script, argument)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// Sets loopback up.
const UP: &str = "ip link set lo up && ip link set lo multicast on";

/// Runs `test` of this program with loopback as the only interface; `None` if that, or cyclonedds,
/// is not available.
pub(crate) fn alone(test: &str) -> Option<bool> {
    crate::alone::run(test, UP, "python3 -c 'import cyclonedds.domain'")
}

/// Runs `test` as [`alone`] does; `None` also if there are no cables to another [`Machine`].
pub(crate) fn beside_another_machine(test: &str) -> Option<bool> {
    let cable = "ip link add cable type veth && ip link delete cable";
    crate::alone::run(test, UP, &format!("python3 -c 'import cyclonedds.domain' && nsenter -V && {cable}"))
}

/// Reports a test that cannot run.
pub(crate) fn skip(unchecked: &str) {
    test_skip::skip_any(&[Need::PythonModule("cyclonedds"), Need::System("a network namespace")], unchecked);
}
