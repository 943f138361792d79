//! Neither publishing, with or without a free slot, nor reading a received message allocates.
//!
//! The allocator counts the calls of the publishing thread.

#[path = "support/counted.rs"]
mod counted;

use counted::{calls, counted};
use punctual_bridge::message::Layout;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Csv, Incoming, Message, Topic};

#[derive(Clone, Copy, Message)]
struct State {
    values: [f64; 8],
}

static STATE: Topic<State, 16> = Topic::new("/state");

static WANTED: Incoming<Vector3> = Incoming::new("/wanted", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

#[test]
fn reads_without_allocating() {
    let (mut subscription, mut wanted) = (WANTED.subscribe().unwrap(), WANTED.reader().unwrap());
    let bytes = [&[0, 1, 0, 0], [0.5_f64; 3].map(f64::to_le_bytes).as_flattened()].concat();
    for _ in 0..100 {
        subscription.take(&bytes, Layout::Cdr, &"a test").expect("it is a message");
        let readings = counted(|| [wanted.read(), wanted.read()]);
        assert_eq!(readings.map(|reading| (reading.message.z, reading.is_new)), [(0.5, true), (0.5, false)]);
    }
    assert_eq!(calls(), 0);
}

#[test]
fn publishes_without_allocating() {
    let mut state = STATE.publisher().unwrap();
    let mut publish = |count| {
        counted(|| {
            for number in 0..count {
                state.publish(punctual::now(), State { values: [f64::from(number); 8] });
            }
        });
        assert_eq!(calls(), 0);
    };
    publish(100);
    assert_eq!(STATE.lost(), 84, "nobody makes room");
    let bridge = Bridge::new().topic(&STATE).sink(Csv::new("/state", std::io::sink())).start().unwrap();
    publish(10_000);
    let report = bridge.finish();
    let topic = report.topic("/state").unwrap();
    assert_eq!(topic.taken + topic.lost, 16 + 10_000);
    counted(|| drop(Box::new(1)));
    assert!(calls() > 0, "allocations are counted");
}
