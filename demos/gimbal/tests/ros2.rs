//! The gimbal steered and watched through ROS 2 by PyPI's cyclonedds, on loopback in a network namespace with nothing else.
#![cfg(feature = "ros2")]

mod place;

use std::process::{Command, Stdio};

use place::Place;

/// Publishes a setpoint when the gimbal has been found, and waits until the gimbal says that it goes there; then for its angles and its currents.
const PEER: &str = r#"
import sys, time
from dataclasses import dataclass
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64
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
class Currents(IdlStruct, typename='gimbal_msgs::msg::dds_::Currents_'):
    pan: array[float32, 100]
    tilt: array[float32, 100]

reliable = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepLast(64))
participant = DomainParticipant(0)
topic = lambda name, kind: Topic(participant, name, kind, qos=reliable)
writer = DataWriter(participant, topic('rt/setpoint', Vector3), qos=reliable)
while not writer.get_matched_subscriptions():
    time.sleep(0.02)
writer.write(Vector3(0.5, -0.25, 0.0))
reader = lambda name, kind: DataReader(participant, topic(name, kind), qos=reliable)
for target in reader('rt/target', Vector3).take_iter(timeout=duration(seconds=600)):
    if target == Vector3(0.5, -0.25, 0.0):
        break
for angles in reader('rt/angles', Vector3).take_iter(timeout=duration(seconds=600)):
    if abs(angles.x - 0.5) < 0.1 and abs(angles.y + 0.25) < 0.1:
        break
for currents in reader('rt/currents', Currents).take_iter(timeout=duration(seconds=600)):
    print('batch of', len(currents.pan), flush=True)
    break
print('there', flush=True)
"#;

/// Runs the gimbal and the peer, and ends the gimbal as Ctrl-C does when the peer has ended.
const SCRIPT: &str = r#"
ip link set lo up && ip link set lo multicast on || exit 3
python3 -c 'import cyclonedds.domain' 2>/dev/null || exit 3
"$1" --ros2 --seconds 3600 --report r.html > said 2>&1 &
gimbal=$!
python3 -c "$2"
peer=$?
kill -INT $gimbal
wait $gimbal
cat said
exit $peer
"#;

#[test]
fn is_steered_and_watched_through_ros_2() {
    let place = Place::new("ros2");
    let xml =
        "<General><Interfaces><NetworkInterface name=\"lo\" multicast=\"true\"/></Interfaces></General>";
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_gimbal"), PEER]);
    command.current_dir(&place.0).env("CYCLONEDDS_URI", xml).env_remove("ROS_DOMAIN_ID").stdin(Stdio::null());
    let output = command.output();
    let Some(output) = output
        .ok()
        .filter(|output| !matches!(output.status.code(), Some(1 | 3)) || !output.stdout.is_empty())
    else {
        return eprintln!(
            "*** SKIPPED: THE GIMBAL IS NOT STEERED BY ROS 2. It takes root or a user namespace, `unshare`, `ip`, and \
             `pip install cyclonedds` for python3 ***"
        );
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("batch of 100\nthere\n"), "{said}");
    assert!(said.contains("/setpoint: 1 messages taken") && said.contains("ROS 2 node gimbal: "), "{said}");
}
