//! The gimbal is controlled, observed and tuned through ROS 2 by cyclonedds from PyPI.

#[path = "../../../support/gimbal.rs"]
mod support;

use std::process::Command;

use super::cyclone::{XML_LOOPBACK, alone, script, skip};
use super::{program, transport};

/// Publishes a setpoint once the gimbal is discovered, waits until the gimbal reports it as its
/// target, receives angles and currents, and sets a parameter.
const PEER: &str = r#"
@dataclass
class Currents(IdlStruct, typename='gimbal_msgs::msg::dds_::Currents_'):
    pan: array[float32, 100]
    tilt: array[float32, 100]

@dataclass
class Value(IdlStruct, typename='rcl_interfaces::msg::dds_::ParameterValue_'):
    type: uint8
    bool_value: bool
    integer_value: int64
    double_value: float64
    string_value: str
    byte_array_value: sequence[uint8]
    bool_array_value: sequence[bool]
    integer_array_value: sequence[int64]
    double_array_value: sequence[float64]
    string_array_value: sequence[str]

@dataclass
class Parameter(IdlStruct, typename='rcl_interfaces::msg::dds_::Parameter_'):
    name: str
    value: Value

# With who asks and the number of the question before it, as rmw_cyclonedds_cpp has services.
@dataclass
class Request(IdlStruct, typename='rcl_interfaces::srv::dds_::SetParametersAtomically_Request_'):
    guid: uint64
    seq: int64
    parameters: sequence[Parameter]

@dataclass
class Response(IdlStruct, typename='rcl_interfaces::srv::dds_::SetParametersAtomically_Response_'):
    guid: uint64
    seq: int64
    successful: bool
    reason: str

@dataclass
class KeyValue(IdlStruct, typename='diagnostic_msgs::msg::dds_::KeyValue_'):
    key: str
    value: str

@dataclass
class Status(IdlStruct, typename='diagnostic_msgs::msg::dds_::DiagnosticStatus_'):
    level: uint8
    name: str
    message: str
    hardware_id: str
    values: sequence[KeyValue]

@dataclass
class Statuses(IdlStruct, typename='diagnostic_msgs::msg::dds_::DiagnosticArray_'):
    header: Header
    status: sequence[Status]

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
for statuses in reader('rt/diagnostics', Statuses).take_iter(timeout=duration(seconds=600)):
    print(sorted(status.name for status in statuses.status if 'task' not in status.name), flush=True)
    break
print('there', flush=True)
asks = DataWriter(participant, topic('rq/gimbal/set_parameters_atomicallyRequest', Request), qos=reliable)
answers = reader('rr/gimbal/set_parameters_atomicallyReply', Response)
while not asks.get_matched_subscriptions():
    time.sleep(0.02)
answer = None
while answer is None:
    # The first answer may be lost while the two find each other.
    asks.write(Request(7, 1, [Parameter('pan.derivative', Value(3, False, 0, 0.25, '', [], [], [], [], []))]))
    for answer in answers.take_iter(timeout=duration(seconds=1)):
        print('tuned', answer.successful, answer.reason, flush=True)
        break
"#;

#[test]
fn gimbal_is_controlled_observed_and_tuned() {
    match alone("gimbal::inside") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("the gimbal and ROS 2"),
    }
}

#[test]
#[ignore = "a separate process, started by another test"]
fn app() {
    support::app();
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let mut peer = Command::new("python3");
    script(&mut peer, PEER, XML_LOOPBACK);
    let mut transport = program(&["gimbal"]);
    let transport = transport.env("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp");
    let (peer, gimbal) = support::run("gimbal::app", transport, &mut peer, None);
    let expected = "batch of 100\n['gimbal: bridge', 'gimbal: real-time settings']\nthere\ntuned True";
    assert!(peer.starts_with(expected), "{peer}");
    assert!(gimbal.contains("/setpoint: 1 messages accepted, 0 malformed, 0 refused"), "{gimbal}");
    assert!(gimbal.contains("parameters: ") && gimbal.contains("requests granted, 0 refused"), "{gimbal}");
}
