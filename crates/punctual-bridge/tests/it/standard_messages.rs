//! Joints, arrays and diagnostics in a recording, as readers from PyPI decode them by the schemas.

use std::process::Command;

use punctual_bridge::message::Text;
use punctual_bridge::messages::{
    DiagnosticArray, DiagnosticStatus, Float64MultiArray, JointState, KeyValue, MultiArrayDimension,
};
use punctual_bridge::{Bridge, Recording, Topic};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

static JOINTS: Topic<JointState<4>, 4> = Topic::new("/joint_states");
static NUMBERS: Topic<Float64MultiArray<8>, 4> = Topic::new("/numbers");
static DIAGNOSTICS: Topic<DiagnosticArray<2, 2>, 4> = Topic::new("/diagnostics");

/// Reads the recording as a viewer does: by its schemas.
const READER: &str = "
import sys
from mcap_ros2.reader import read_ros2_messages
for message in read_ros2_messages(sys.argv[1]):
    m = message.ros_msg
    if message.channel.topic == '/joint_states':
        stamp = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
        print(list(m.name), list(m.position), list(m.velocity), stamp == message.log_time_ns)
    elif message.channel.topic == '/numbers':
        print([(d.label, d.size, d.stride) for d in m.layout.dim], list(m.data))
    else:
        print([(s.level, s.name, s.message, [(v.key, v.value) for v in s.values]) for s in m.status])
";

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).expect("there is room")
}

fn publish() {
    let joints = JointState {
        name: [text("pan"), text("tilt")].into(),
        position: [0.5, -0.25].into(),
        ..JointState::default()
    };
    JOINTS.publisher().unwrap().publish(punctual::now(), joints);
    let mut numbers = Float64MultiArray { data: [1.0, 2.0].into(), ..Float64MultiArray::default() };
    numbers.layout.dim = [MultiArrayDimension { label: text("axes"), size: 2, stride: 2 }].into();
    NUMBERS.publisher().unwrap().publish(punctual::now(), numbers);
    let status = DiagnosticStatus {
        level: DiagnosticStatus::<2>::WARN,
        name: text("sample"),
        message: text("2 jobs were late"),
        values: [KeyValue { key: text("misses"), value: text("2") }].into(),
        ..DiagnosticStatus::default()
    };
    let diagnostics = DiagnosticArray { status: [status].into(), ..DiagnosticArray::default() };
    DIAGNOSTICS.publisher().unwrap().publish(punctual::now(), diagnostics);
}

#[test]
fn parameters_are_readable_by_others() {
    let place = tempfile::tempdir().expect("there is room");
    let path = place.path().join("standard.mcap");
    let recording = Recording::create(&path).expect("there is room");
    let bridge = Bridge::new().topic(&JOINTS).topic(&NUMBERS).topic(&DIAGNOSTICS).sink(recording).start();
    let bridge = bridge.expect("it can start");
    publish();
    let report = bridge.finish();
    assert_eq!((report.is_complete(), report.sinks[0].written), (true, 3), "{report}");

    let has_reader =
        Command::new("python3").args(["-c", "import mcap_ros2.reader"]).output_within(TEST_LIMIT);
    let is_read = has_reader.is_ok_and(|output| output.status.success());
    let output = Command::new("python3").args(["-c", READER]).arg(&path).output_within(TEST_LIMIT);
    if !is_read {
        return skip(Need::PythonModule("mcap_ros2"), "recordings read by their schemas");
    }
    let output = output.expect("the command was available before");
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = "['pan', 'tilt'] [0.5, -0.25] [] True\n\
                    [('axes', 2, 2)] [1.0, 2.0]\n\
                    [(1, 'sample', '2 jobs were late', [('misses', '2')])]\n";
    assert_eq!(printed, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
