//! Nodes of ROS 2 behind a router with TLS: a router and a late node from PyPI.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Durability, Incoming, Qos, Topic, TransportServer};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip_any};

use super::transport::{LIMIT, Process};
use super::{UP, alone, program};

const LATCHED: Qos = Qos::DEFAULT.durability(Durability::TransientLocal).depth(2);
static HOME: Topic<Vector3, 16> = Topic::new("/home").qos(LATCHED);
static MODE: Incoming<Vector3> =
    Incoming::new("/mode", Vector3 { x: 0.0, y: 0.0, z: 0.0 }).qos(LATCHED.depth(1));

/// Makes an authority, and certificates of the router and of the nodes; `stranger` is signed by
/// itself.
const CERTIFICATES: &str = r#"
set -e
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
openssl req -x509 $new -subj /CN=authority -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem
openssl req -x509 $new -subj /CN=stranger -addext basicConstraints=critical,CA:TRUE -keyout stranger.key -out stranger.pem
echo subjectAltName=DNS:localhost > names
for name in router node; do
    openssl req $new -subj /CN=$name -keyout $name.key -out $name.csr
    openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out $name.pem
done
"#;

/// A router, which has published on a transient-local topic, or a node that joins later and prints
/// the messages of another one. Both require certificates, as with `enable_mtls`.
const PEER: &str = r#"
import json, struct, sys, zenoh
from zenoh.ext import CacheConfig, HistoryConfig, declare_advanced_publisher, declare_advanced_subscriber
role, directory = sys.argv[1:]
is_router = role == 'router'
side = 'listen' if is_router else 'connect'
config = zenoh.Config()
for key, value in {
    'mode': 'router' if is_router else 'client',
    'scouting/multicast/enabled': False,
    'listen/endpoints': ['tls/localhost:7447'] if is_router else [],
    'connect/endpoints': [] if is_router else ['tls/localhost:7447'],
    'timestamping/enabled': True,
    'transport/link/tls/enable_mtls': True,
    'transport/link/tls/root_ca_certificate': f'{directory}/ca.pem',
    f'transport/link/tls/{side}_certificate': f'{directory}/router.pem',
    f'transport/link/tls/{side}_private_key': f'{directory}/router.key',
}.items():
    config.insert_json5(key, json.dumps(value))
kind = 'geometry_msgs::msg::dds_::Vector3_/RIHS01_cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d'
with zenoh.open(config) as session:
    if is_router:
        mode = declare_advanced_publisher(
            session, f'7/mode/{kind}', cache=CacheConfig(max_samples=1), publisher_detection=True)
        mode.put(struct.pack('<4B3d', 0, 1, 0, 0, 4.0, 0.0, 0.0))
        print('listens', flush=True)
    else:
        history = HistoryConfig(detect_late_publishers=True, max_samples=2)
        home = declare_advanced_subscriber(session, f'7/home/{kind}', history=history)
        for sample in home:
            print(struct.unpack('<4x3d', bytes(sample.payload))[0], flush=True)
    sys.stdin.read()
"#;

/// A process of [`PEER`], killed at the end of the test.
struct Peer {
    child: Child,
    _stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Peer {
    fn start(role: &str, directory: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", PEER, role]).arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it is there");
        let stdin = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, _stdin: stdin, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the peer runs").expect("it prints text")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}

/// A directory with certificates, removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn with_certificates() -> Self {
        let directory = Self(std::env::temp_dir().join(format!("punctual-zenoh-tls-{}", std::process::id())));
        fs::create_dir_all(&directory.0).expect("there is room");
        let mut command = Command::new("sh");
        command.args(["-c", CERTIFICATES]).current_dir(&directory.0).stderr(Stdio::null());
        assert!(command.status_within(TEST_LIMIT).expect("it is there").success(), "openssl makes them");
        directory
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("it is text").to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn transient_local_messages_pass_a_router_with_tls() {
    match alone::run("router::inside", UP, "openssl version && python3 -c 'import zenoh.ext'") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip_any(
            &[Need::PythonModule("zenoh"), Need::Tool("openssl"), Need::System("a network namespace")],
            "a router of Zenoh with TLS",
        ),
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let directory = Directory::with_certificates();
    let mut router = Peer::start("router", &directory.0);
    assert_eq!(router.line(), "listens");
    let name = format!("zenoh-router-{}", std::process::id());
    let (seen, came) = channel();
    let mode = MODE.subscribe().expect("it is free").release(move |mode| seen.send(mode.x).is_ok());
    let bridge = Bridge::new().topic(&HOME).diagnostics(false);
    let bridge = bridge.transports(TransportServer::new(&name).subscribe(mode)).start();
    let bridge = bridge.expect("it can start");
    let mut home = HOME.publisher().expect("the publisher is free");
    let tls = |authority: &str, certificate: &str| {
        let mut command = program(&[&name, "--ros", "--connect", "tls/localhost:7447", "--tls-ca"]);
        command
            .arg(directory.path(authority))
            .arg("--tls-cert")
            .arg(directory.path(&format!("{certificate}.pem")));
        command.arg("--tls-key").arg(directory.path(&format!("{certificate}.key"))).env("ROS_DOMAIN_ID", "7");
        command
    };
    // Neither side trusts a certificate of an unknown authority.
    for (authority, certificate) in [("stranger.pem", "node"), ("ca.pem", "stranger")] {
        let output = tls(authority, certificate).output_within(TEST_LIMIT).expect("it ends");
        let error = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("punctual-zenoh: no connection to \"tls/localhost:7447\": "), "{error}");
        assert!(error.contains("a certificate for this host name"), "{error}");
    }

    let transport = Process::start_transport(&mut tls("ca.pem", "node"));
    assert_eq!(came.recv_timeout(LIMIT), Ok(4.0), "the message that was published before");
    for x in [1.0, 2.0, 3.0] {
        home.publish(punctual::now(), Vector3 { x, y: 0.0, z: 0.0 });
    }
    // The transport has passed the messages on when it has taken the last one.
    let mut early = Peer::start("late", &directory.0);
    while early.line() != "3.0" {}
    let mut late = Peer::start("late", &directory.0);
    assert_eq!([late.line(), late.line()], ["2.0", "3.0"], "as many as the depth");
    home.publish(punctual::now(), Vector3 { x: 4.0, y: 0.0, z: 0.0 });
    assert_eq!([late.line(), early.line()], ["4.0", "4.0"]);
    drop((early, late, bridge.finish()));
    assert!(transport.status().success());
}

#[test]
fn explains_unusable_certificates() {
    let name = format!("zenoh-files-{}", std::process::id());
    let server = TransportServer::new(&name);
    let _bridge = Bridge::new().transports(server).start().expect("it can start");
    let file = std::env::temp_dir().join(format!("{name}.pem"));
    fs::write(&file, "-----BEGIN CERTIFICATE-----\n").expect("there is room");
    let file = file.to_str().expect("it is text");
    let error = |arguments: &[&str]| {
        let output = program(&[&[name.as_str()], arguments].concat()).output_within(TEST_LIMIT);
        let output = output.expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("it is text")
    };
    let absent = error(&["--connect", "tls/localhost:7447", "--tls-ca", "/no/such.pem"]);
    assert!(absent.starts_with("punctual-zenoh: --tls-ca /no/such.pem: No such file"), "{absent}");
    let key = error(&["--listen", "tls/localhost:7447", "--tls-cert", file, "--tls-key", file]);
    assert!(
        key.contains(&format!("--tls-key {file}: it contains no private key; pass a file in PEM")),
        "{key}"
    );
    let plain = error(&["--connect", "tcp/localhost:7447", "--tls-ca", file]);
    assert!(plain.contains("has no encryption; use the endpoint tls/HOST:PORT"), "{plain}");
    let none = error(&["--listen", "tls/localhost:7447"]);
    assert!(none.contains("pass --tls-cert and --tls-key in PEM"), "{none}");
    fs::remove_file(file).expect("it was written");
}
