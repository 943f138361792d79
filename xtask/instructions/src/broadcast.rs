//! Messages of 64 bytes in a broadcast.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use punctual::Instant;
use punctual_sync::shared::{BroadcastLayout, BroadcastReader, BroadcastWriter};

/// Publishes this many messages. The time is unknown.
pub(crate) fn publish(times: u64) -> Duration {
    broadcast(times, false)
}

/// Publishes this many messages, and reads each.
pub(crate) fn publish_and_read(times: u64) -> Duration {
    broadcast(times, true)
}

// Always: the two callers are the two loops.
#[inline(always)]
fn broadcast(times: u64, is_read: bool) -> Duration {
    let layout = BroadcastLayout::new(black_box(1024), black_box(64)).expect("1024 is a power of two");
    let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
    let writer = BroadcastWriter::new(&memory, layout).expect("the memory is long enough");
    let reader = BroadcastReader::new(&memory, layout).expect("the memory is long enough");
    let mut ends = (writer, [7; 64], reader, [0; 8]);
    for number in 0..times {
        // In memory, as the ends of an app are.
        let (writer, bytes, reader, buffer) = black_box(&mut ends);
        writer.publish(Instant::from_ticks(number), number as u32, bytes).expect("it is short enough");
        if is_read {
            black_box(reader.read(buffer));
        }
    }
    Duration::ZERO
}
