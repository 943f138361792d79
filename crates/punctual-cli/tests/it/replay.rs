//! `punctual replay`: an app in real time, its recording, and replays of it; `punctual recover`: a
//! recording without its index.

#[path = "../support/replayed.rs"]
mod replayed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Recording, Topic};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};
use punctual::Instant;
use replayed::{CHANGE, RECORDING};

#[test]
#[ignore = "a program of other tests"]
fn replayed_program() {
    replayed::run();
}

/// The arguments that make this program the app.
const PROGRAM: [&str; 4] = ["--ignored", "--exact", "--nocapture", "replay::replayed_program"];

fn executable() -> PathBuf {
    std::env::current_exe().expect("a process knows its executable")
}

/// Runs the app in real time, and records it.
fn record(path: &Path) {
    let mut command = Command::new(executable());
    command.args(PROGRAM).env(RECORDING, path).env_remove("PUNCTUAL_PORT");
    let output = command.output_within(TEST_LIMIT).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Replays a recording; returns the exit status, and the standard output followed by the errors.
fn replay(path: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let executable = executable();
    let mut arguments = vec!["replay", path.to_str().unwrap(), "--", executable.to_str().unwrap()];
    arguments.extend(PROGRAM);
    let mut command = punctual(&arguments);
    command.envs(variables.iter().copied());
    let output = command.output_within(TEST_LIMIT).unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Records a run in real time, and its replay, which is reproducible.
fn recorded(scratch: &Scratch) -> [PathBuf; 2] {
    let paths = ["field.mcap", "replay.mcap"].map(|name| scratch.file(name));
    record(&paths[0]);
    // A message that arrives while a job starts may be read by that job or the next.
    let (status, output) = replay(&paths[0], &[(RECORDING, paths[1].to_str().unwrap())]);
    assert!(matches!(status, Some(0 | 1)), "{output}");
    assert!(output.contains(": 27 inputs replayed in 0."), "20 setpoints, 5 pulses, 2 gains: {output}");
    paths
}

#[test]
fn replay_of_real_time_run_is_reproducible_bit_for_bit() {
    let scratch = Scratch::new("replay");
    let [_, replayed] = recorded(&scratch);
    for name in ["once", "twice"] {
        let again = scratch.file(&format!("{name}.mcap"));
        let (status, output) = replay(&replayed, &[(RECORDING, again.to_str().unwrap())]);
        assert_eq!(status, Some(0), "{output}");
        assert!(output.contains("messages of 2 topics are equal"), "{output}");
        // The inputs have arrived: without them, the effort and the numbers are 0.
        let values = last_output(&again);
        assert_eq!((values.1, values.2), (5, 20), "pulses and events");
        assert!((values.0 - 3.5 * 19.0 / 4.0).abs() < 1e-9, "gain and setpoint: {values:?}");
        assert!(messages(&again) == messages(&replayed), "{name}");
    }
}

#[test]
fn changed_app_reports_first_difference() {
    let scratch = Scratch::new("changed");
    let [_, replayed] = recorded(&scratch);
    let change = |change| replay(&replayed, &[(CHANGE, change)]);
    let (status, output) = change("effort");
    assert_eq!(status, Some(1), "{output}");
    let first = output.lines().find(|line| line.starts_with("first difference: ")).expect(&output);
    assert!(first.starts_with("first difference: /output at 0."), "{first}");
    assert!(first.contains("effort: recorded ") && first.contains("(from byte "), "{first}");
    let (status, output) = change("extra");
    assert_eq!(status, Some(1), "{output}");
    assert!(
        output.contains("/extra at 0.") && output.contains("published that was not recorded"),
        "{output}"
    );
    let (status, output) = change("unpublished");
    assert_eq!(status, Some(1), "{output}");
    assert!(output.contains("/extra: the app no longer publishes it (0 messages recorded)"), "{output}");
    let (status, output) = change("panic");
    assert_eq!(status, Some(1), "{output}");
    assert!(output.contains("the recorded message is not published in the replay"), "{output}");
}

#[test]
fn truncated_recording_is_replayed_up_to_its_end() {
    let scratch = Scratch::new("truncated");
    let [_, replayed] = recorded(&scratch);
    let bytes = fs::read(&replayed).unwrap();
    // Without its index, whose length is that of the file in a killed program.
    let data_end = bytes.windows(9).rposition(|window| window == [0x0f, 4, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    fs::write(&replayed, &bytes[..data_end]).unwrap();
    let (status, output) = replay(&replayed, &[]);
    assert_eq!(status, Some(0), "{output}");
    assert!(output.contains("the recording ends without its index"), "{output}");
}

#[test]
fn rejects_recordings_that_cannot_be_replayed() {
    static FOREIGN: Topic<Vector3, 64> = Topic::new("/foreign");
    let scratch = Scratch::new("unfit");
    let rejected = |path: &Path, reason: &str| {
        let (status, output) = replay(path, &[]);
        assert_eq!(status, Some(2), "{output}");
        assert!(output.contains(reason), "{output}");
    };
    let path = scratch.file("bad.mcap");
    fs::write(&path, "text").unwrap();
    rejected(&path, "is not an MCAP file; give a recording of an app");
    fs::write(&path, "").unwrap();
    rejected(&path, "is not an MCAP file");
    rejected(&scratch.0, "it is not a file; give the path of a recording");
    let outside = scratch.file("outside.mcap");
    let bridge = Bridge::new().topic(&FOREIGN).sink(Recording::create(&outside).unwrap()).start().unwrap();
    FOREIGN.publisher().unwrap().publish(punctual::now(), Vector3::default());
    assert!(bridge.finish().is_complete());
    rejected(&outside, "does not state the start of an app");
    let field = scratch.file("field.mcap");
    record(&field);
    let mut bytes = fs::read(&field).unwrap();
    // The first chunk, which follows the header and the clock.
    bytes[300] ^= 1;
    fs::write(&field, &bytes).unwrap();
    rejected(&field, "contains no messages");
    record(&scratch.file("other.mcap"));
    let mut command = punctual(&["replay", scratch.file("other.mcap").to_str().unwrap(), "--", "true"]);
    let output = command.output_within(TEST_LIMIT).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("true has not replayed the recording"), "{}", text(&output.stderr));
}

/// Returns topics, sequence numbers, instants and bytes.
fn messages(path: &Path) -> Vec<(String, u32, u64, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let stream = mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap);
    let mut messages: Vec<_> = stream
        .map(|it| (it.channel.topic.clone(), it.sequence, it.publish_time, it.data.into_owned()))
        .collect();
    messages.sort();
    messages
}

/// Returns the fields of the last output.
fn last_output(path: &Path) -> (f64, u32, u32) {
    let messages = messages(path);
    let (.., data) = messages.iter().rfind(|(topic, ..)| topic == "/output").unwrap();
    let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    (f64::from_le_bytes(data[4..12].try_into().unwrap()), number(12), number(16))
}

#[test]
fn recovers_recording_without_index_to_new_file() {
    static ANGLES: Topic<Vector3, 64> = Topic::new("/angles");
    let scratch = Scratch::new("recover");
    let path = scratch.file("run.mcap");
    let bridge = Bridge::new().topic(&ANGLES).sink(Recording::create(&path).unwrap()).start().unwrap();
    let mut angles = ANGLES.publisher().unwrap();
    for number in 0..50_u32 {
        angles.publish(Instant::from_ticks(0), Vector3 { x: number.into(), ..Vector3::default() });
    }
    assert!(bridge.finish().is_complete());
    let recover = |more: &[&str]| {
        let arguments = [&["recover", path.to_str().unwrap()], more].concat();
        let output = punctual(&arguments).output_within(TEST_LIMIT).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, _, error) = recover(&[]);
    assert!(status == Some(2) && error.contains("is complete"), "{error}");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 8);
    fs::write(&path, &bytes).unwrap();
    let (status, output, error) = recover(&[]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    assert!(output.contains("run-recovered.mcap: 50 messages; "), "{output}");
    let (status, _, error) = recover(&[]);
    assert!(status == Some(1) && error.contains("recordings are not overwritten"), "{error}");
    let whole = scratch.file("whole.mcap");
    assert_eq!(recover(&[whole.to_str().unwrap()]).0, Some(0));
    let recovered = [scratch.file("run-recovered.mcap"), whole].map(|path| fs::read(path).unwrap());
    assert!(recovered[0] == recovered[1] && recovered[0].len() > bytes.len() / 2);
}
