//! Quality of service, names and type hashes, as an independent peer sees them.

use std::time::Duration;

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Durability, Qos, Topic};

use super::cyclone::{Peer, alone, skip};
use super::transport::{LIMIT, Process};
use super::{SETPOINT, app, program};

/// The number of peers that publish once.
const ONCE: u32 = 20;

static ANGLES: Topic<Vector3, 16> = Topic::new("/angles");
static HOME: Topic<Vector3, 16> =
    Topic::new("/home").qos(Qos::DEFAULT.durability(Durability::TransientLocal).depth(1));

/// What all peers share.
const PRELUDE: &str = r#"
reliable = Policy.Reliability.Reliable(duration(seconds=10))
volatile, latched = Policy.Durability.Volatile, Policy.Durability.TransientLocal
participant = DomainParticipant(0)
def topic(name, *policies):
    qos = Qos(*policies, Policy.History.KeepLast(10))
    return Topic(participant, name, Vector3, qos=qos), qos
def reader(name, *policies):
    kind, qos = topic(name, *policies)
    return DataReader(participant, kind, qos=qos)
def writer(name, *policies):
    kind, qos = topic(name, *policies)
    return DataWriter(participant, kind, qos=qos)
"#;

/// Receives a latched message, prints the type hash of its topic, and creates incompatible peers.
const PEER: &str = r#"
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
print(next(reader('rt/home', reliable, latched).take_iter(timeout=duration(seconds=600))), flush=True)
found = {}
publications = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
while 'rt/home' not in found:
    found.update((sample.topic_name, sample.qos) for sample in publications.take(N=100))
    time.sleep(0.02)
print(bytes(found['rt/home'][Policy.Userdata].data).decode(), flush=True)
incompatible = [
    reader('rt/left/pose', reliable, latched),
    writer('rt/setpoint', Policy.Reliability.BestEffort, volatile),
]
sys.stdin.read()
"#;

/// Publishes one message as `ros2 topic pub -1` does: after the discovery of a subscriber, and
/// 0.1 s before the end.
const PUBLISH_ONCE: &str = r#"
setpoint = writer('rt/setpoint', reliable, volatile)
while not setpoint.get_matched_subscriptions():
    time.sleep(0.1)
setpoint.write(Vector3(float(sys.argv[1]), 0.0, 0.0))
time.sleep(0.1)
print('published', flush=True)
"#;

fn peer(script: &str, argument: &str) -> Peer {
    Peer::start(&format!("{PRELUDE}{script}"), argument)
}

#[test]
fn follows_quality_of_service_and_names() {
    match alone("qos::inside") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("quality of service in ROS 2"),
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let name = format!("ros2-qos-{}", std::process::id());
    let (bridge, came) = app::start(&name, Bridge::new().topic(&ANGLES).topic(&HOME));
    let names = ["--ros-args", "-r", "__ns:=/left", "-r", "/angles:=pose"];
    let override_ = ["-p", "qos_overrides./setpoint.subscription.reliability:=reliable"];
    let mut command = program(&[&name, "gimbal"]);
    let transport = Process::start_transport(command.args(names).args(override_));
    let home = Vector3 { x: 0.5, y: 0.25, z: 0.0 };
    HOME.publisher().expect("the publisher is free").publish(punctual::now(), home);

    let joined_later = peer(PEER, "");
    let line = || joined_later.lines.recv_timeout(LIMIT).expect("the peer runs");
    assert_eq!(line(), "Vector3(x=0.5, y=0.25, z=0.0)");
    let hash = "RIHS01_cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d";
    assert_eq!(line(), format!("typehash={hash};"));
    let reported = [transport.wait_for("; change the "), transport.wait_for("; change the ")];
    for part in [
        "a subscriber receives nothing: it requests reliable, transient local, and this node offers \
         reliable, volatile; change the durability of one of them",
        "nothing is received from a publisher: it offers best effort, volatile, and this node requests \
         reliable, volatile; change the reliability of one of them",
    ] {
        assert!(reported.iter().any(|line| line.contains(part)), "{reported:?} {part}");
    }
    assert_eq!(transport.find("; change the ", Duration::from_secs(3)), None, "each is reported once");

    for number in 0..ONCE {
        let x = f64::from(number) / 16.0;
        let once = peer(PUBLISH_ONCE, &x.to_string());
        assert_eq!(once.lines.recv_timeout(LIMIT).as_deref(), Ok("published"));
        assert_eq!(came.recv_timeout(Duration::from_secs(5)).map(|wanted| wanted.x), Ok(x));
    }
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused), (u64::from(ONCE), 0, 0));
    drop((joined_later, bridge.finish()));
    assert!(transport.status().success());
}
