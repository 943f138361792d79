//! `punctual recover`: a recording without its index.

use std::fs;

use punctual::Instant;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Recording, Topic};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};

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
