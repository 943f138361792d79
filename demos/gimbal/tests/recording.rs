//! What `--mcap` records: every current, and the angles at 100 Hz.

mod place;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use mcap::MessageStream;
use place::Place;

fn gimbal(directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(["--virtual", "--seconds", "0.5", "--report", "r.html", "--mcap", "run.mcap"]);
    command.current_dir(directory).output().expect("it can be run")
}

#[test]
fn records_every_current_and_never_overwrites() {
    let place = Place::new("recording");
    let output = gimbal(&place.0);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains(
            "/angles: 50 messages, 0 lost\n/target: 50 messages, 0 lost\n/currents: 50 messages, 0 lost\nrun.mcap: 150 written\n"
        ),
        "{said}"
    );

    let bytes = fs::read(place.0.join("run.mcap")).unwrap();
    let messages: Vec<_> = MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
    let of = |topic| messages.iter().filter(move |message| message.channel.topic == topic);
    // A message of currents bears the time of the last of its 100 samples, one of angles that of the first.
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

    let again = gimbal(&place.0);
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(1));
    assert!(said.starts_with("gimbal: run.mcap: File exists"), "{said}");
    assert_eq!(fs::read(place.0.join("run.mcap")).unwrap(), bytes);
}
