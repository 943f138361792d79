//! Simulated time of an independent peer.

use std::time::{Duration, Instant};

use punctual_bridge::messages::Header;
use punctual_bridge::{Bridge, Topic, TransportServer};
use ros2_client::parameters::ParameterValue;
use ros2_client::parameters::raw::Parameter;
use ros2_client::rcl_interfaces::{SetParametersAtomicallyResponse, SetParametersRequest};

use super::cyclone::{Peer, alone, skip};
use super::parameters::{ask, asking_node};
use super::program;
use super::transport::{LIMIT, Process};

static HEADERS: Topic<Header<32>, 16> = Topic::new("/headers");

/// Prints whether the subscriber of `/clock` requests best effort, and each new time in a header.
/// Publishes the times given on its input.
const PEER: &str = r#"
import threading
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsSubscription

@dataclass
class Clock(IdlStruct, typename='rosgraph_msgs::msg::dds_::Clock_'):
    clock: Time

participant = DomainParticipant(0)
found = {}
subscriptions = BuiltinDataReader(participant, BuiltinTopicDcpsSubscription)
while 'rt/clock' not in found:
    found.update((sample.topic_name, sample.qos) for sample in subscriptions.take(N=100))
    time.sleep(0.02)
print(found['rt/clock'][Policy.Reliability] == Policy.Reliability.BestEffort, flush=True)
best_effort = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
clock = DataWriter(participant, Topic(participant, 'rt/clock', Clock, qos=best_effort), qos=best_effort)
while not clock.get_matched_subscriptions():
    time.sleep(0.02)

def send():
    for line in sys.stdin:
        clock.write(Clock(Time(*map(int, line.split()))))

threading.Thread(target=send, daemon=True).start()
reliable = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepLast(10))
headers = DataReader(participant, Topic(participant, 'rt/headers', Header, qos=reliable), qos=reliable)
last = None
for header in headers.take_iter(timeout=duration(seconds=600)):
    sec, nanosec = header.stamp.sec, header.stamp.nanosec
    stamp = 'system' if sec > 1600000000 else f'{sec} {nanosec}'
    if stamp != last:
        print(stamp, flush=True)
    last = stamp
"#;

#[test]
fn follows_clock_of_simulator() {
    match alone("sim_time::inside") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("simulated time"),
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let name = format!("ros2-time-{}", std::process::id());
    let server = TransportServer::new(&name);
    let bridge = Bridge::new().topic(&HEADERS).diagnostics(false).transports(server).start();
    let bridge = bridge.expect("it can start");
    let mut command = program(&[&name, "gimbal", "--ros-args", "-p", "use_sim_time:=True"]);
    let transport = Process::start_transport(command.env("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"));
    let mut peer = Peer::start(PEER, "");
    assert_eq!(peer.lines.recv_timeout(LIMIT).as_deref(), Ok("True"), "the quality of service of rclcpp");

    let mut headers = HEADERS.publisher().expect("the publisher is free");
    // Best effort: a single message may be lost.
    let mut expect = |time: Option<&str>, stamp: &str| {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "no header has the time {stamp}");
            if let Some(time) = time {
                peer.send(time);
            }
            headers.publish(punctual::now(), Header::default());
            if peer.lines.recv_timeout(Duration::from_millis(50)).as_deref() == Ok(stamp) {
                return;
            }
        }
    };
    expect(None, "0 0");
    expect(Some("5 7"), "5 7");
    expect(Some("2 0"), "2 0");
    transport.wait_for("the simulated time was reset from 5.000 s to 2.000 s");

    let mut node = asking_node();
    let mut set = |wanted: bool| {
        let value = ParameterValue::Boolean(wanted).into();
        let parameter = vec![Parameter { name: "use_sim_time".into(), value }];
        let request = SetParametersRequest { parameter };
        let (name, kind) = ("set_parameters_atomically", "SetParametersAtomically");
        let set: SetParametersAtomicallyResponse = ask(&mut node, name, kind, &request);
        assert!(set.result.successful, "{}", set.result.reason);
    };
    set(false);
    expect(Some("9 0"), "system");
    set(true);
    expect(Some("3 4"), "3 4");
    drop((peer, bridge.finish()));
    assert!(transport.status().success());
}
