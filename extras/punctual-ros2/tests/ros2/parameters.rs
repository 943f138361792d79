//! Parameters of a node: listed, read, described and set by cyclonedds from PyPI, with the services
//! of rmw_cyclonedds_cpp; and by the client of ros2-client, with those of rmw_fastrtps_cpp.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_bridge::{Bridge, Parameters, Running, Topic, TransportServer, Tunable, Tuning, TuningServer};
use ros2_client::dds::{Context, Node, ServiceMapping};
use ros2_client::parameters::ParameterValue;
use ros2_client::parameters::raw::{Parameter, ParameterEvent};
use ros2_client::qos::{History, QosProfile, Reliability, WhenFull};
use ros2_client::rcl_interfaces::{
    ListParametersRequest, ListParametersResponse, SetParametersAtomicallyResponse, SetParametersRequest,
};
use ros2_client::{Message, MessageTypeName, Name, NodeName, NodeOptions, ServiceTypeName};

use super::cyclone::{Machine, Peer, alone, beside_another_machine, skip};
use super::program;
use super::transport::{LIMIT, Process};

#[derive(Debug, Clone, Copy, PartialEq, Parameters)]
struct Axis {
    #[parameter(default = 1.25, range = 0.0..=10.0, unit = "A/rad")]
    kp: f64,
    #[parameter(default = 2.5, range = 0.0..=2.5, unit = "A")]
    limit: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Parameters)]
struct Gains {
    #[parameter(nested)]
    pan: Axis,
    #[parameter(default = 8, range = 1..=64)]
    window: u16,
    #[parameter(default = true)]
    enabled: bool,
}

static GAINS: Tunable<Gains> = Tunable::new();
static CHANGES: Topic<Gains, 16> = Topic::new("/gains");
/// The values that the arguments of the transport set.
const INITIAL: Gains = Gains { window: 16, ..Gains::DEFAULT };
/// The number of value sets that the app's check has seen.
static CHECKED: AtomicUsize = AtomicUsize::new(0);

/// Calls each service and prints the result.
const PEER: &str = r#"
import types

def kind(full, /, **fields):
    fill = lambda space: space.update(__annotations__=fields, __module__=__name__)
    return dataclass(types.new_class(full.replace(':', '_'), (IdlStruct,), {'typename': 'rcl_interfaces::' + full}, fill))

Value = kind('msg::dds_::ParameterValue_', type=uint8, bool_value=bool, integer_value=int64, double_value=float64,
    string_value=str, byte_array_value=sequence[uint8], bool_array_value=sequence[bool],
    integer_array_value=sequence[int64], double_array_value=sequence[float64], string_array_value=sequence[str])
Parameter = kind('msg::dds_::Parameter_', name=str, value=Value)
Result = kind('msg::dds_::SetParametersResult_', successful=bool, reason=str)
Listed = kind('msg::dds_::ListParametersResult_', names=sequence[str], prefixes=sequence[str])
Doubles = kind('msg::dds_::FloatingPointRange_', from_value=float64, to_value=float64, step=float64)
Integers = kind('msg::dds_::IntegerRange_', from_value=int64, to_value=int64, step=uint64)
Descriptor = kind('msg::dds_::ParameterDescriptor_', name=str, type=uint8, description=str, additional_constraints=str,
    read_only=bool, dynamic_typing=bool, floating_point_range=sequence[Doubles], integer_range=sequence[Integers])

def value(of):
    given = {bool: (1, 'bool_value'), int: (2, 'integer_value'), float: (3, 'double_value'), type(None): (0, None)}[type(of)]
    fields = dict(bool_value=False, integer_value=0, double_value=0.0)
    if given[1]:
        fields[given[1]] = of
    return Value(given[0], *fields.values(), '', [], [], [], [], [])

def plain(value):
    return [None, value.bool_value, value.integer_value, value.double_value][value.type]

reliable = Qos(Policy.Reliability.Reliable(duration(seconds=10)), Policy.History.KeepLast(64))
participant = DomainParticipant(0)
GUID = 0x0123456789abcdef
last = 0

class Service:
    # The middleware of ROS puts who asks and the number of the question before each message.
    def __init__(self, name, full, request, reply, empty):
        header = dict(guid=uint64, seq=int64)
        self.Request = kind(f'srv::dds_::{full}_Request_', **header, **request)
        Reply = kind(f'srv::dds_::{full}_Response_', **header, **reply)
        self.topic = lambda kind: Topic(participant, f'rq/gimbal/{name}Request', kind)
        self.writer = DataWriter(participant, self.topic(self.Request), qos=reliable)
        self.reader = DataReader(participant, Topic(participant, f'rr/gimbal/{name}Reply', Reply), qos=reliable)
        while self.call(*empty, seconds=0.5) is None:
            pass

    def call(self, *values, seconds=600):
        global last
        last += 1
        self.writer.write(self.Request(GUID, last, *values))
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for reply in self.reader.take_iter(timeout=duration(seconds=left)):
                if (reply.guid, reply.seq) == (GUID, last):
                    return reply
        return None

names = dict(names=sequence[str])
assignments = dict(parameters=sequence[Parameter])
lists = Service('list_parameters', 'ListParameters', dict(prefixes=sequence[str], depth=uint64), dict(result=Listed), ([], 0))
gets = Service('get_parameters', 'GetParameters', names, dict(values=sequence[Value]), ([],))
kinds = Service('get_parameter_types', 'GetParameterTypes', names, dict(types=sequence[uint8]), ([],))
describes = Service('describe_parameters', 'DescribeParameters', names, dict(descriptors=sequence[Descriptor]), ([],))
sets = Service('set_parameters', 'SetParameters', assignments, dict(results=sequence[Result]), ([],))
sets_all = Service('set_parameters_atomically', 'SetParametersAtomically', assignments, dict(result=Result), ([],))

ALL = ['pan.kp', 'pan.limit', 'window', 'enabled']
def say(*what):
    print(*what, flush=True)
def given(**values):
    return [Parameter(name.replace('__', '.'), value(of)) for name, of in values.items()]
def show():
    say([plain(value) for value in gets.call(ALL).values])
def each(**values):
    say([(result.successful, result.reason) for result in sets.call(given(**values)).results])
def together(**values):
    result = sets_all.call(given(**values)).result
    say(result.successful, result.reason)

listed = lists.call([], 0).result
say(listed.names, listed.prefixes)
say(lists.call(['pan'], 0).result.names, lists.call([], 1).result.names)
say(list(kinds.call(ALL + ['nothing']).types), [plain(value) for value in gets.call(['nothing']).values])
for it in describes.call(ALL + ['nothing']).descriptors:
    ranges = [(it.from_value, it.to_value, it.step) for it in it.floating_point_range + it.integer_range]
    say(it.name, it.type, repr(it.description), ranges)
show()
each(pan__kp=2.0, window=100, enabled=False)
show()
together(pan__kp=3.0, pan__limit=0.1, window=65)
show()
together(pan__kp=3.0, pan__limit=0.1, window=9)
show()
together(pan__kp=4.0, nothing=1.0)
each(pan__kp=float('nan'), pan__limit=True, window=None, pan__typo=1.0)
together(pan__kp=7.0, enabled=False)
each(pan__kp=4)
show()
# What is too short, and what says that more follows than does.
Short = kind('srv::dds_::SetParameters_Request_', guid=uint64)
Long = kind('srv::dds_::SetParameters_Request_', guid=uint64, seq=int64, count=uint32)
for kind, wrong in ((Short, Short(GUID)), (Long, Long(GUID, 0, 0xffffffff))):
    writer = DataWriter(participant, sets.topic(kind), qos=reliable)
    while not writer.get_matched_subscriptions():
        time.sleep(0.02)
    writer.write(wrong)
show()
sys.stdin.readline()
each(pan__kp=5.0)
"#;

/// The expected output of the peer.
const SAID: [&str; 20] = [
    "['use_sim_time', 'pan.kp', 'pan.limit', 'window', 'enabled'] ['pan']",
    "['pan.kp', 'pan.limit'] ['use_sim_time', 'window', 'enabled']",
    "[3, 3, 2, 1, 0] [None]",
    "pan.kp 3 'f64, 1.25 A/rad by default' [(0.0, 10.0, 0.0)]",
    "pan.limit 3 'f32, 2.5 A by default' [(0.0, 2.5, 0.0)]",
    "window 2 'u16, 8 by default' [(1, 64, 1)]",
    "enabled 1 'bool, true by default' []",
    "nothing 0 '' []",
    "[1.25, 2.5, 16, True]",
    "[(True, ''), (False, 'window: 100 is out of range; it takes 1 to 64'), (True, '')]",
    "[2.0, 2.5, 16, False]",
    "False window: 65 is out of range; it takes 1 to 64",
    "[2.0, 2.5, 16, False]",
    "True ",
    "[3.0, 0.1, 9, False]",
    "False there is no parameter nothing; there are pan.kp, pan.limit, window, enabled",
    "[(False, 'pan.kp: \"NaN\" is not a number; it takes 0.0 to 10.0 A/rad'), \
     (False, 'pan.limit: its type is f32, and not bool'), (False, 'window: a parameter cannot be removed'), \
     (False, 'there is no parameter pan.typo; there are pan.kp, pan.limit, window, enabled')]",
    "False a gain of 7 is too much while it is disabled",
    "[(True, '')]",
    "[4.0, 0.1, 9, False]",
];

#[test]
fn are_set_by_cyclonedds_all_or_none() {
    match alone("parameters::inside") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("parameters through ROS 2"),
    }
}

#[test]
fn are_set_as_fast_dds_has_services() {
    match alone("parameters::inside_enhanced") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("parameters through ROS 2"),
    }
}

#[test]
fn are_served_on_later_interfaces() {
    match beside_another_machine("parameters::with_another_machine") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip("parameters on another interface"),
    }
}

/// Starts an app with parameters and its transport; `middleware` selects the service mapping.
fn start(middleware: &str) -> (TuningServer<Gains>, Running, Process) {
    let check = |gains: &Gains| {
        CHECKED.fetch_add(1, Ordering::Relaxed);
        match gains.enabled || gains.pan.kp < 6.0 {
            true => Ok(()),
            false => Err(format!("a gain of {} is too much while it is disabled", gains.pan.kp)),
        }
    };
    let name = format!("ros2-parameters-{}", std::process::id());
    let server = Tuning::new(&GAINS).check(check).record(&CHANGES).start(&name);
    let bridge = Bridge::new().topic(&CHANGES).transports(TransportServer::new(&name));
    let bridge = bridge.start().expect("it can start");
    let mut command = program(&[&name, "gimbal", "--ros-args", "-p", "window:=16"]);
    let transport = Process::start_transport(command.env("RMW_IMPLEMENTATION", middleware));
    let server = server.expect("not yet served");
    assert_eq!(server.parameters(), INITIAL);
    (server, bridge, transport)
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let (server, bridge, transport) = start("rmw_cyclonedds_cpp");
    let mut gains = GAINS.reader().expect("the reader is free");
    let mut peer = Peer::start(PEER, "");
    for expected in SAID {
        assert_eq!(peer.lines.recv_timeout(LIMIT).as_deref(), Ok(expected));
    }
    let now = gains.read().value;
    assert_eq!(now, Gains { pan: Axis { kp: 4.0, limit: 0.1 }, window: 9, enabled: false });

    // After the invalid requests another one was answered, and nothing has changed.
    assert_eq!(peer.lines.recv_timeout(LIMIT).as_deref(), Ok("[4.0, 0.1, 9, False]"));
    transport.wait_for("a request is malformed");
    let report = server.finish();
    // The transport itself refuses two values of a wrong type.
    assert_eq!((report.accepted, report.refused, report.malformed), (5, 6, 0), "{report}");
    // Granted changes, and changes that the check itself refused; and the default values.
    assert_eq!(CHECKED.load(Ordering::Relaxed), 5 + 1 + 1);

    // The values do not change when the server has ended, and clients get an error.
    peer.send("go on");
    let last = peer.lines.recv_timeout(LIMIT);
    let last = last.expect("it is answered");
    assert!(last.contains("has ended, or no longer serves its parameters"), "{last}");
    assert_eq!(gains.read().value, now);
    // The default values, the initial values, and each change.
    let report = bridge.finish();
    assert_eq!((report.topics[0].taken, report.topics[0].lost), (6, 0), "{report}");
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn with_another_machine() {
    let machine = Machine::start();
    let (server, bridge, transport) = start("rmw_cyclonedds_cpp");
    machine.connect();
    let peer = machine.start_peer(PEER, "");
    assert_eq!(peer.lines.recv_timeout(LIMIT).as_deref(), Ok(SAID[0]));
    drop((peer, server, bridge.finish(), transport));
}

/// Returns a node that sends requests.
pub(crate) fn asking_node() -> Node {
    let context = Context::new().unwrap();
    let options = NodeOptions::new().enable_rosout(false).start_parameter_services(false);
    context.new_node(NodeName::new("/", "asks").unwrap(), options).unwrap()
}

/// Repeats the request until an answer arrives: discovery may not have completed.
pub(crate) fn ask<Q, A>(node: &mut Node, name: &str, kind: &str, request: &Q) -> A
where
    Q: Message + Clone + 'static,
    A: Message + 'static,
{
    let qos = QosProfile {
        reliability: Reliability::Reliable { when_full: WhenFull::Fail },
        history: History::KeepLast { depth: 64 },
        ..QosProfile::publisher_default()
    };
    let name = Name::new("/gimbal", name).unwrap();
    let kind = ServiceTypeName::new("rcl_interfaces", kind);
    let client =
        node.create_client::<Q, A>(ServiceMapping::Enhanced, &name, &kind, qos.clone(), qos).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let asked = client.send_request(request.clone()).unwrap();
        for _ in 0..50 {
            if let Some((answered, answer)) = client.receive_response().unwrap()
                && answered == asked
            {
                return answer;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("{name} does not answer");
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside_enhanced() {
    let (server, bridge, _transport) = start("rmw_fastrtps_cpp");
    let mut node = asking_node();

    let wanted = ListParametersRequest { prefixes: vec!["pan".into()], depth: 0 };
    let listed: ListParametersResponse = ask(&mut node, "list_parameters", "ListParameters", &wanted);
    assert_eq!(listed.result.names, ["pan.kp", "pan.limit"]);

    let set = |kp: f64, window: i64| SetParametersRequest {
        parameter: [("pan.kp", ParameterValue::Double(kp)), ("window", ParameterValue::Integer(window))]
            .map(|(name, value)| Parameter { name: name.into(), value: value.into() })
            .into(),
    };
    let service = ("set_parameters_atomically", "SetParametersAtomically");
    let refused: SetParametersAtomicallyResponse = ask(&mut node, service.0, service.1, &set(2.0, 65));
    let reason = "window: 65 is out of range; it takes 1 to 64";
    assert_eq!((refused.result.successful, refused.result.reason.as_str()), (false, reason));
    assert_eq!(server.parameters(), INITIAL);
    let granted: SetParametersAtomicallyResponse = ask(&mut node, service.0, service.1, &set(2.0, 64));
    assert!(granted.result.successful, "{}", granted.result.reason);
    assert_eq!((server.parameters().pan.kp, server.parameters().window), (2.0, 64));

    let topic = MessageTypeName::new("rcl_interfaces", "ParameterEvent");
    let name = Name::parse("/parameter_events").unwrap();
    let qos = QosProfile::publisher_default();
    let topic = node.create_topic(&name, topic, &qos).unwrap();
    let events = node.create_subscription::<ParameterEvent>(&topic, Some(qos)).unwrap();
    let mut kp = 0.0;
    let begun = Instant::now();
    let event = loop {
        // Discovery takes time, so earlier changes may not be received.
        kp += 0.125;
        let granted: SetParametersAtomicallyResponse = ask(&mut node, service.0, service.1, &set(kp, 32));
        assert!(granted.result.successful && begun.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(700));
        if let Some((event, _)) = events.take().unwrap() {
            break event;
        }
    };
    let names: Vec<&str> = event.changed_parameters.iter().map(|changed| changed.name.as_str()).collect();
    assert_eq!((event.node.as_str(), names[0]), ("/gimbal", "pan.kp"));
    assert!(event.new_parameters.is_empty() && event.deleted_parameters.is_empty());
    drop(bridge.finish());
}
