use super::super::owner::Owner;
use super::*;

#[test]
fn rejects_corrupted_counters() {
    let ring = Ring::<u8, 4>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    ring.tail.0.store(100, Ordering::Relaxed);
    // The producer uses its own counter.
    assert_eq!((ring.len(), consumer.ready(), producer.room()), (4, 4, 4));
    ring.head.0.store(100, Ordering::Relaxed);
    assert_eq!((producer.room(), producer.has_room_for(1), producer.push(1)), (0, false, Err(1)));
}

#[test]
fn ends_report_exact_items_and_room() {
    let ring = Ring::<u8, 4>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    assert!(!consumer.has_ready(1));
    assert_eq!(producer.push_slice(&[1, 2, 3, 4]), 4);
    assert!(!producer.has_room_for(1));
    // Both cached their counters when there was less.
    assert!(consumer.has_ready(4) && !consumer.has_ready(5));
    (1..4).for_each(|item| assert_eq!(consumer.pop(), Some(item)));
    assert!(producer.has_room_for(3) && !producer.has_room_for(4));
}

#[test]
fn seized_end_belongs_to_new_owner() {
    let ring = Ring::<u8, 4>::new();
    let another = Owner::new(1, 1);
    for claim in [&ring.producer.0, &ring.consumer] {
        claim.give_to(another);
    }
    assert!(ring.split().is_err());
    // SAFETY: no thread uses the ends.
    drop(unsafe { (ring.take_over_producer_unchecked(), ring.take_over_consumer_unchecked()) });
    assert!(ring.split().is_ok(), "the ends were returned");
}

#[test]
fn capacity_is_power_of_two_below_counter_range() {
    let possible = [0, 1, 2, 3, 1 << 31, 1 << 32].map(is_possible);
    assert_eq!(possible, [false, true, true, false, true, false]);
}
