//! The transport between an app and an independent peer with cyclonedds from PyPI: on loopback, in
//! a separate network namespace.

#[path = "../../../support/alone.rs"]
mod alone;
#[path = "../../../support/app.rs"]
mod app;
mod cyclone;
#[path = "../../../support/faults.rs"]
mod faults;
mod gimbal;
mod junk;
mod parameters;
mod qos;
mod sim_time;
#[path = "../../../../crates/punctual-bridge/tests/support/threads.rs"]
mod threads;
#[path = "../../../support/transport.rs"]
mod transport;

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use app::SETPOINT;
use cyclone::{Machine, Peer, alone, beside_another_machine};
use punctual_bridge::message::Text;
use punctual_bridge::messages::{JointState, Vector3};
use punctual_bridge::{Bridge, Running, Topic};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use transport::{LIMIT, Process};

static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
static JOINTS: Topic<JointState<4>, 64> = Topic::new("/joint_states").hz(100);

/// Prints received messages, and sends those given on its input to the discovered reader.
const PEER: &str = r#"
@dataclass
class Short(IdlStruct, typename='geometry_msgs::msg::dds_::Vector3_'):
    x: float64

@dataclass
class JointState(IdlStruct, typename='sensor_msgs::msg::dds_::JointState_'):
    header: Header
    name: sequence[str]
    position: sequence[float64]
    velocity: sequence[float64]
    effort: sequence[float64]

reliable = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepLast(64))
# As PX4 publishes.
sensor = Qos(Policy.Reliability.BestEffort, Policy.Durability.TransientLocal, Policy.History.KeepLast(64))
participant = DomainParticipant(0)
is_short = sys.argv[1] == 'short'
is_sensor = sys.argv[1] == 'sensor'
offered = sensor if is_sensor else reliable
kind = Short if is_short else Vector3
writer = DataWriter(participant, Topic(participant, 'rt/setpoint', kind, qos=offered), qos=offered)
while not writer.get_matched_subscriptions():
    time.sleep(0.02)
if sys.argv[1] == 'whole':
    def take(name, kind):
        reader = DataReader(participant, Topic(participant, name, kind, qos=reliable), qos=reliable)
        for number, message in enumerate(reader.take_iter(timeout=duration(seconds=600))):
            print(message if kind is Vector3 else (message.name, message.position, message.velocity, message.header.stamp.sec > 1600000000), flush=True)
            if number == 2:
                return
    take('rt/angles', Vector3)
    take('rt/joint_states', JointState)
for line in sys.stdin:
    writer.write(kind(*map(float, line.split())))
"#;

#[test]
fn exchanges_messages_with_cyclonedds() {
    match alone("inside") {
        Some(went_well) => assert!(went_well, "see above"),
        None => cyclone::skip("messages of ROS 2"),
    }
}

#[test]
fn reaches_later_interfaces() {
    match beside_another_machine("with_another_machine") {
        Some(went_well) => assert!(went_well, "see above"),
        None => cyclone::skip("interfaces that come up later"),
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn with_another_machine() {
    let machine = Machine::start();
    let (bridge, came, transport) = start();
    machine.connect();
    transport.wait_for("reconnects, to use the new address 10.9.0.1");

    let mut peer = machine.start_peer(PEER, "whole");
    let line = || match peer.lines.try_recv() {
        Ok(line) => Some(line),
        Err(error) => {
            assert_eq!(error, TryRecvError::Empty, "the peer has ended");
            None
        }
    };
    assert_eq!(publish_until(line), "Vector3(x=0.25, y=-0.125, z=0.0)");
    peer.send("0.5 -0.25 0");
    publish_until(|| came.try_recv().ok());
    drop(peer);
    let report = bridge.finish();
    assert_eq!(report.transports[0].attached, 1, "{report}");
    assert!(transport.status().success());
}

#[test]
fn faults_are_counted_and_cost_the_app_nothing() {
    match alone("inside_with_faults") {
        Some(went_well) => assert!(went_well, "see above"),
        None => cyclone::skip("faults of a transport of ROS 2"),
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside_with_faults() {
    let command = |app: &str| program(&[app, "node"]);
    let case = faults::Case {
        restarts_after_stop: true,
        max_growth_kib: Some(16 << 10),
        exhaust: Some(&junk::exhaust),
        ..faults::Case::new(&command, &junk::flood)
    };
    faults::check("app_with_faults", &case);
}

#[test]
#[ignore = "a separate process, started by another test"]
fn app_with_faults() {
    faults::app();
}

#[test]
fn rejects_invalid_names_and_settings() {
    let (_bridge, _) = app::start("ros2-rejects", Bridge::new());
    let error = |node: &str, variable: (&str, &str)| {
        let mut command = program(&["ros2-rejects", node]);
        let output = command.env(variable.0, variable.1).output_within(TEST_LIMIT).expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("it is text")
    };
    let name = error("two words", ("ROS_DOMAIN_ID", "0"));
    assert!(name.starts_with("punctual-ros2: \"two words\" is not a valid node name: "), "{name}");
    let domain = error("node", ("ROS_DOMAIN_ID", "233"));
    assert_eq!(domain, "punctual-ros2: ROS_DOMAIN_ID is \"233\"; it must be a number from 0 to 232\n");
    let middleware = error("node", ("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"));
    assert!(middleware.contains("RMW_IMPLEMENTATION is \"rmw_zenoh_cpp\": "), "{middleware}");
}

/// Returns a command for the transport.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-ros2"));
    command.args(arguments);
    command
}

/// Starts an app and its transport; returns the received messages.
fn start() -> (Running, Receiver<Vector3>, Process) {
    let name = format!("ros2-test-{}", std::process::id());
    let (bridge, came) = app::start(&name, Bridge::new().topic(&ANGLES).topic(&JOINTS));
    (bridge, came, Process::start_transport(&mut program(&[&name, "gimbal"])))
}

/// Publishes like a controller until `line` returns a value.
fn publish_until<R>(mut line: impl FnMut() -> Option<R>) -> R {
    let mut angles = ANGLES.publisher().expect("the publisher is free");
    let mut joints = JOINTS.publisher().expect("the publisher is free");
    let names = ["pan", "tilt"].map(|name| Text::new(name).expect("there is room"));
    let state = JointState { name: names.into(), position: [0.25, -0.125].into(), ..JointState::default() };
    loop {
        angles.publish(punctual::now(), Vector3 { x: 0.25, y: -0.125, z: 0.0 });
        joints.publish(punctual::now(), state);
        if let Some(line) = line() {
            return line;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let (bridge, came, transport) = start();
    let mut peer = Peer::start(PEER, "whole");
    let next = |peer: &Peer| match peer.lines.try_recv() {
        Ok(line) => Some(line),
        Err(error) => {
            assert_eq!(error, TryRecvError::Empty, "the peer has ended");
            None
        }
    };
    for _ in 0..3 {
        assert_eq!(publish_until(|| next(&peer)), "Vector3(x=0.25, y=-0.125, z=0.0)");
    }
    for _ in 0..3 {
        assert_eq!(publish_until(|| next(&peer)), "(['pan', 'tilt'], [0.25, -0.125], [], True)");
    }

    let wanted = Vector3 { x: 0.5, y: -0.25, z: 0.0 };
    peer.send("0.5 -0.25 0");
    assert_eq!(came.recv_timeout(LIMIT), Ok(wanted));
    // With NaN, and out of range.
    peer.send("nan 0 0");
    peer.send("3 0 0");
    peer.send("0.5 -0.25 0");
    assert_eq!(came.recv_timeout(LIMIT), Ok(wanted), "nothing else was taken");
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused), (2, 1, 1));

    // With another length under the same name.
    let mut short = Peer::start(PEER, "short");
    short.send("1");
    while SETPOINT.report().malformed < 2 {
        assert_eq!(came.recv_timeout(Duration::from_millis(20)), Err(RecvTimeoutError::Timeout));
    }
    assert_eq!(SETPOINT.report().accepted, 2);

    // Best effort: messages lost before discovery completes are not repeated.
    let mut sensor = Peer::start(PEER, "sensor");
    let seen = Vector3 { x: 0.25, y: 0.125, z: 0.0 };
    loop {
        sensor.send("0.25 0.125 0");
        match came.recv_timeout(Duration::from_millis(100)) {
            Ok(message) => break assert_eq!(message, seen),
            Err(error) => assert_eq!(error, RecvTimeoutError::Timeout),
        }
    }
    drop((peer, short, sensor));

    let report = bridge.finish();
    let published: u64 = report.topics.iter().map(|topic| topic.taken).sum();
    let carried = &report.transports[0];
    assert!(carried.taken > 0 && carried.taken + carried.lost <= published, "{report}");
    assert!(transport.status().success());
}
