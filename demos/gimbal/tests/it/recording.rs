//! The content of an `--mcap` recording: every current, and the angles at 100 Hz.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::live::Live;
use mcap::MessageStream;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

fn gimbal(directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args([
        "--virtual",
        "--seconds",
        "0.5",
        "--report",
        "r.html",
        "--json",
        "r.json",
        "--mcap",
        "run.mcap",
    ]);
    command.current_dir(directory).output_within(TEST_LIMIT).expect("it can be run")
}

#[test]
fn records_every_current_and_never_overwrites() {
    let place = tempfile::tempdir().unwrap();
    let output = gimbal(place.path());
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains(
            "/angles: 50 messages, 0 lost\n/target: 50 messages, 0 lost\n/currents: 50 messages, 0 lost\nrun.mcap: 150 written\n"
        ),
        "{printed}"
    );

    let bytes = fs::read(place.path().join("run.mcap")).unwrap();
    let messages: Vec<_> = MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
    let of = |topic| messages.iter().filter(move |message| message.channel.topic == topic);
    // A message of currents has the time of the last of its 100 samples, one of angles that of the
    // first.
    let begin = of("/angles").next().unwrap().log_time;
    for (number, (angles, currents)) in of("/angles").zip(of("/currents")).enumerate() {
        let number = number as u64;
        assert_eq!(angles.log_time, begin + number * 10_000_000);
        assert_eq!(currents.log_time, angles.log_time + 9_900_000);
        assert_eq!((angles.data.len(), currents.data.len()), (4 + 3 * 8, 4 + 200 * 4));
    }
    assert_eq!((of("/angles").count(), of("/currents").count()), (50, 50));
    let flows = |message: &mcap::Message<'_>| message.data[4..].iter().any(|byte| *byte != 0);
    assert!(of("/currents").any(flows), "the gimbal moves");

    read_by_others(place.path());

    let again = gimbal(place.path());
    let printed = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(1));
    assert!(printed.starts_with("gimbal: run.mcap: File exists"), "{printed}");
    assert_eq!(fs::read(place.path().join("run.mcap")).unwrap(), bytes);
}

/// Reads it as a viewer does: by the schemas in it.
const READER: &str = "
import sys
from mcap_ros2.reader import read_ros2_messages
counts = {}
for message in read_ros2_messages(sys.argv[1]):
    topic = message.channel.topic
    counts[topic] = counts.get(topic, 0) + (len(message.ros_msg.pan) if topic == '/currents' else 1)
    if topic == '/angles':
        angles = message.ros_msg
for topic in sorted(counts):
    print(topic, counts[topic])
print(angles.x, angles.y, angles.z)
";

/// Compares the results of PyPI's readers with the gimbal's report of its run.
fn read_by_others(directory: &Path) {
    let has_reader =
        Command::new("python3").args(["-c", "import mcap_ros2.reader"]).output_within(TEST_LIMIT);
    if !has_reader.is_ok_and(|output| output.status.success()) {
        return skip(Need::PythonModule("mcap_ros2"), "the recording read by its schemas");
    }
    let mut reader = Command::new("python3");
    let output =
        reader.args(["-c", READER, "run.mcap"]).current_dir(directory).output_within(TEST_LIMIT).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    let summary = fs::read(directory.join("r.json")).expect("it was written");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("it is JSON");
    let tasks = summary["tasks"].as_array().expect("there are tasks");
    let sample = tasks.iter().find(|task| task["name"] == "sample").expect("it is one");
    let expected = ["/angles 50", &format!("/currents {}", sample["jobs"]), "/target 50"];
    assert_eq!(lines.get(..3), Some(&expected[..]), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    // The example in the book.
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/read_mcap.py");
    let mut reader = Command::new("python3");
    let shown = reader.args([example, "run.mcap"]).current_dir(directory).output_within(TEST_LIMIT).unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let page = include_str!("../../../../docs/book/src/guides/gimbal.md");
    assert!(
        shown.ends_with(")\n") && page.contains(&format!("read_mcap.py run.mcap\n{shown}```\n")),
        "{shown}"
    );
    let angles = lines[3].split(' ').map(|number| number.parse().unwrap()).collect::<Vec<f64>>();
    assert!(angles[0].abs() < 2.5 && angles[1].abs() < 1.0 && angles[2] == 0.0, "{printed}");
}

/// Mounts a disk of 256 KiB, then runs a command.
const SMALL_DISK: &str = r#"mount -t tmpfs -o size=256k none small || exit 99; exec "$@""#;

/// A full disk ends the recording, not the control loop.
#[test]
fn continues_when_the_disk_is_full() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("small")).unwrap();
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        // Root has a mount namespace; other users have one in a user namespace, if that is allowed.
        command.args(["--map-root-user", "--mount", "sh", "-c", SMALL_DISK, "sh"]).args(arguments);
        command.current_dir(place.path()).stdin(Stdio::null());
        command
    };
    if !unshare(&["true"]).status_within(TEST_LIMIT).is_ok_and(|status| status.success()) {
        return skip(Need::MountNamespace, "a full disk");
    }
    let program = env!("CARGO_BIN_EXE_gimbal");
    let arguments = [
        "--seconds",
        "3600",
        "--stdin",
        "--mcap",
        "small/run.mcap",
        "--report",
        "r.html",
        "--json",
        "r.json",
    ];
    let mut command = unshare(&[&[program][..], &arguments].concat());
    let stderr = fs::File::create(place.path().join("said")).unwrap();
    let mut gimbal = Live::new(command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap());
    let printed = || fs::read_to_string(place.path().join("said")).unwrap();
    gimbal.wait_for(|| printed().contains("nothing more is written there").then_some(()));
    let full = printed();
    assert!(full.contains("small/run.mcap: No space left on device"), "{full}");
    assert!(full.contains("it can be read to its last chunk") && full.contains("make room"), "{full}");
    let output = gimbal.interrupt();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code().is_some_and(|code| code != 0), "a run that is not recorded is not complete");
    let line = report.lines().find(|line| line.starts_with("small/run.mcap: ")).expect("it is reported");
    assert!(line.contains("No space left on device"), "{report}");
    // The loop continued as before.
    assert!(report.contains("/angles: ") && report.contains(" 0 lost"), "{report}");
}

#[test]
fn rejects_unwritable_recording_before_any_motion() {
    let place = tempfile::tempdir().unwrap();
    for (file, why) in
        [("/sys/run.mcap", "that this user can write to"), ("no/run.mcap", "there is no directory")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
        command.args(["--mcap", file]).current_dir(place.path()).stdin(Stdio::null());
        let output = command.output_within(TEST_LIMIT).expect("it can be run");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some_and(|code| code != 0) && printed.contains(why),
            "{file}: {printed}"
        );
        assert!(!place.path().join("gimbal-report.html").exists());
    }
}
