//! Publishing allocates nothing, whether there is room or not.
//!
//! The allocator counts what the thread that publishes asks of it.

#[path = "support/counted.rs"]
mod counted;

use counted::{calls, counted};
use punctual_bridge::{Bridge, Csv, Message, Topic};

#[derive(Clone, Copy, Message)]
struct State {
    values: [f64; 8],
}

static STATE: Topic<State, 16> = Topic::new("/state");

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
