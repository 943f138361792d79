//! Controls and observes the gimbal with eclipse-zenoh from PyPI in another process, on loopback in
//! a separate network namespace.
#![cfg(feature = "zenoh")]

#[path = "../../../demos/gimbal/tests/it/place/mod.rs"]
mod place;

use std::process::{Command, Stdio};

use place::Place;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip_any};

/// Publishes a setpoint, waits until the gimbal reports it as its target, and receives angles and
/// currents.
const PEER: &str = r#"
import json, queue, struct, sys, time, zenoh
config = zenoh.Config()
config.insert_json5('scouting/multicast/enabled', 'false')
config.insert_json5('listen/endpoints', '[]')
config.insert_json5('connect/endpoints', json.dumps([sys.argv[1]]))
with zenoh.open(config) as session:
    came = {name: queue.Queue() for name in ('target', 'angles', 'currents')}
    def take(name):
        return session.declare_subscriber(name, lambda sample: came[name].put(bytes(sample.payload)))
    subscribers = [take(name) for name in came]
    came['angles'].get(timeout=600)
    vector = lambda *values: struct.pack('<4B3d', 0, 1, 0, 0, *values)
    # Refused: beyond the range, and not whole.
    session.put('setpoint', vector(9.0, 0.0, 0.0))
    session.put('setpoint', vector(0.5, -0.25, 0.0)[:20])
    session.put('setpoint', vector(0.5, -0.25, 0.0))
    while came['target'].get(timeout=600) != vector(0.5, -0.25, 0.0):
        pass
    while True:
        x, y, _ = struct.unpack('<4x3d', came['angles'].get(timeout=600))
        if abs(x - 0.5) < 0.1 and abs(y + 0.25) < 0.1:
            break
    print('batch of', (len(came['currents'].get(timeout=600)) - 4) // 8, flush=True)
    print('there', flush=True)
    # Longer than the node takes to see who is connected.
    time.sleep(1)
"#;

/// Runs the gimbal and the peer, and ends the gimbal as Ctrl-C does when the peer has ended.
const SCRIPT: &str = r#"
ip link set lo up || exit 3
python3 -c 'import zenoh; zenoh.Config' 2>/dev/null || exit 3
"$1" --zenoh --seconds 3600 --report r.html > said 2>&1 &
gimbal=$!
until grep -q 0100007F:1D17 /proc/net/tcp; do
    kill -0 $gimbal || break
    sleep 0.05
done
python3 -c "$2" tcp/127.0.0.1:7447
peer=$?
for look in $(seq 1200); do
    grep -q 'no longer connected' said && break
    kill -0 $gimbal || break
    sleep 0.05
done
kill -INT $gimbal
wait $gimbal
cat said
exit $peer
"#;

#[test]
fn is_steered_and_watched_by_zenoh() {
    let place = Place::new("zenoh");
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", SCRIPT, "sh", env!("CARGO_BIN_EXE_gimbal-ros"), PEER]);
    command.current_dir(&place.0).stdin(Stdio::null());
    let output = command.output_within(TEST_LIMIT);
    let Some(output) = output
        .ok()
        .filter(|output| !matches!(output.status.code(), Some(1 | 3)) || !output.stdout.is_empty())
    else {
        return skip_any(
            &[Need::PythonModule("zenoh"), Need::System("a network namespace")],
            "the gimbal and Zenoh",
        );
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("batch of 100\nthere\n"), "{said}");
    assert!(said.contains("/setpoint: 1 messages accepted, 1 malformed, 1 refused"), "{said}");
    assert!(said.contains(" is no longer connected; messages in flight to it are lost"), "{said}");
    assert!(said.contains("Zenoh at tcp/127.0.0.1:7447: "), "{said}");
}

#[test]
fn does_not_start_on_used_port() {
    let place = Place::new("zenoh-taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let endpoint = format!("tcp/{}", taken.local_addr().expect("it has one"));
    let output = Command::new(env!("CARGO_BIN_EXE_gimbal-ros"))
        .args([&format!("--zenoh={endpoint}"), "--seconds", "3600"])
        .current_dir(&place.0)
        .stdin(Stdio::null())
        .output_within(TEST_LIMIT)
        .expect("it is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&endpoint) && said.contains("that is not in use"), "{said}");
}
