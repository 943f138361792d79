//! A broadcast between threads: complete messages in order, and a count of all others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;

use punctual_sync::Instant;
use punctual_sync::shared::{BroadcastLayout, BroadcastReader, BroadcastWriter};

const MESSAGES: u64 = 300_000;

/// Reads until `is_over`, with a pause of `spins` after each message, and checks every message.
fn read_all(mut reader: BroadcastReader<'_>, is_over: &AtomicBool, spins: u32) {
    let (mut buffer, mut count, mut last) = ([0; 8], 0, 0);
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        while let Some(message) = reader.read(&mut buffer) {
            let number = message.instant.as_ticks();
            assert!(number > last, "{number} after {last}");
            assert_eq!(message.sequence, number as u32);
            assert_eq!(message.bytes.len(), (number % 65) as usize);
            let expected = number.to_ne_bytes();
            let is_whole = message.bytes.chunks(8).all(|word| *word == expected[..word.len()]);
            assert!(is_whole, "torn: {number} has {:?}", message.bytes);
            (last, count) = (number, count + 1);
            (0..spins).for_each(|_| std::hint::spin_loop());
        }
        if was_over {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(count + reader.lost(), MESSAGES, "every message is read or counted");
    assert_eq!((last, reader.malformed()), (MESSAGES, 0));
}

#[test]
fn readers_get_complete_messages_and_count_losses() {
    for capacity in [2, 64, 4096] {
        let layout = BroadcastLayout::new(capacity, 64).unwrap();
        let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        let is_over = AtomicBool::new(false);
        scope(|scope| {
            for spins in [0, 100] {
                let reader = BroadcastReader::new(&memory, layout).unwrap();
                let is_over = &is_over;
                scope.spawn(move || read_all(reader, is_over, spins));
            }
            let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
            for number in 1..=MESSAGES {
                let bytes = [number.to_ne_bytes(); 8];
                let bytes = &bytes.as_flattened()[..(number % 65) as usize];
                writer.publish(Instant::from_ticks(number), number as u32, bytes).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
    }
}
