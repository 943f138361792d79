//! The timed queue under every interleaving: nothing is lost or late, order holds, and slots are
//! reused safely.
//!
//! The model's clock moves only when every thread sleeps, so an item received after its time means
//! a missing wake of the receiver.
//!
//! Bound: three preemptions; the merge gate explores two. A late item needs one preemption of the
//! receiver, between its check of the inbox and its sleep, and one of the sender, between the push
//! and its check of the receiver. A place is used twice if the list returns to its former head
//! between a sender's check and its change: one preemption, in which the receiver runs. The third
//! allows each order, regardless of the first thread.

use loom::sync::atomic::{AtomicU32, Ordering};
use punctual_sync::futex::model::{check, start};
use punctual_sync::{Instant, Item, TimedQueue, now};

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

fn on_time(item: &Item<u64>) {
    let due = item.due.map_or(0, |due| due.as_ticks());
    assert_eq!(now().as_ticks(), due, "an item is received at its time");
}

#[test]
fn wakes_for_first_item() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        let sender = start(2, || queue.send(7).unwrap());
        let item = queue.receiver().unwrap().recv();
        assert_eq!((item.value, item.due), (7, None));
        on_time(&item);
        sender.join();
    });
}

/// One of the two places is free throughout: first the one that was returned, and after the
/// receiver has returned the other and reused the first, that other. A sender finds it at any time.
///
/// Bound: three preemptions. A refusal needs one: all changes lie between two checks of the sender.
#[test]
fn sender_finds_a_place_while_one_is_free() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        let mut receiver = queue.receiver().unwrap();
        queue.send(0).unwrap();
        queue.send(1).unwrap();
        assert_eq!(receiver.try_recv().map(|item| item.value), Some(0));
        let sender = start(2, || queue.send(3).expect("a place is free"));
        assert_eq!(receiver.try_recv().map(|item| item.value), Some(1));
        queue.send(2).unwrap();
        sender.join();
        assert_eq!(receiver.len(), 2);
    });
}

/// A due item is taken out of the inbox at once, unless another has arrived by then.
#[test]
fn receives_due_item() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        let sender = start(2, || {
            queue.send_at(0, at(0)).unwrap();
            queue.send(1).unwrap();
        });
        let mut receiver = queue.receiver().unwrap();
        for expected in [(0, Some(at(0))), (1, None)] {
            let item = receiver.recv();
            assert_eq!((item.value, item.due), expected);
            on_time(&item);
        }
        sender.join();
        assert_eq!(receiver.len(), 0);
    });
}

#[test]
fn wakes_for_earlier_item() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        queue.send_at(20, at(20)).unwrap();
        let sender = start(2, || queue.send_at(15, at(15)).unwrap());
        let mut receiver = queue.receiver().unwrap();
        for due in [15, 20] {
            let item = receiver.recv();
            assert_eq!(item.value, due);
            on_time(&item);
        }
        sender.join();
    });
}

/// The receiver goes to sleep repeatedly while one thread sends an earlier item and another an
/// immediate one.
///
/// Bound: two preemptions. One stops the receiver between its check and its sleep, and one stops a
/// sender between its push and its check. The other sends where one of them waits or ends.
#[test]
fn keeps_items_of_two_senders() {
    check(2, |arena| {
        let queue = arena.put(TimedQueue::<u64, 3>::new());
        queue.send_at(9, at(9)).unwrap();
        let early = start(2, || queue.send_at(5, at(5)).unwrap());
        let at_once = start(3, || queue.send(0).unwrap());
        let mut receiver = queue.receiver().unwrap();
        for expected in [0, 5, 9] {
            let item = receiver.recv();
            assert_eq!(item.value, expected);
            on_time(&item);
        }
        early.join();
        at_once.join();
    });
}

/// Bound: two preemptions. One stops the receiver while it reverses the items, and one stops a
/// sender between its two items.
#[test]
fn each_senders_items_stay_in_order() {
    check(2, |arena| {
        let queue = arena.put(TimedQueue::<u64, 3>::new());
        let one = start(2, || {
            queue.send(1).unwrap();
            queue.send(2).unwrap();
        });
        let other = start(3, || queue.send(10).unwrap());
        let mut receiver = queue.receiver().unwrap();
        let received = [(); 3].map(|()| receiver.recv().value);
        let of_one: Vec<_> = received.into_iter().filter(|&value| value < 10).collect();
        assert_eq!(of_one, [1, 2]);
        one.join();
        other.join();
    });
}

/// With a single slot every item but the first is stored where another has been taken out.
#[test]
fn reuses_place() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<Box<u64>, 1>::new());
        queue.send(Box::new(0)).unwrap();
        let sender = start(2, || {
            let sent = queue.send(Box::new(1));
            assert!(sent.is_ok() || *sent.unwrap_err().0 == 1);
        });
        let mut receiver = queue.receiver().unwrap();
        assert_eq!(*receiver.try_recv().unwrap().value, 0);
        if let Some(item) = receiver.try_recv() {
            assert_eq!(*item.value, 1);
        }
        sender.join();
    });
}

/// Both slots are freed before an item is sent: one next to the free list, one in it.
#[test]
fn two_places_are_used_again() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<Box<u64>, 2>::new());
        (0..2).for_each(|value| queue.send(Box::new(value)).unwrap());
        let sent = arena.put(AtomicU32::new(0));
        let sender = start(2, || {
            let accepted = (2..4).filter(|&value| queue.send(Box::new(value)).is_ok()).count();
            sent.store(accepted as u32, Ordering::Relaxed);
        });
        let mut receiver = queue.receiver().unwrap();
        let before = (0..2).map(|_| *receiver.try_recv().unwrap().value);
        assert!(before.eq(0..2));
        sender.join();
        let after: Vec<_> = std::iter::from_fn(|| receiver.try_recv()).map(|item| *item.value).collect();
        assert_eq!(after.len() as u32, sent.load(Ordering::Relaxed), "an accepted item is received once");
        // All have been received, so there is room for two.
        (4..6).for_each(|value| queue.send(Box::new(value)).unwrap());
        assert_eq!(receiver.len(), 2);
    });
}

/// Two senders contend for the last slot: one gets it, the other gets its item back.
#[test]
fn claims_last_place() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        queue.send(0).unwrap();
        let other = start(2, || {
            let _ = queue.send(1);
        });
        let mine = queue.send(2);
        other.join();
        let mut receiver = queue.receiver().unwrap();
        assert_eq!(receiver.len(), 2);
        assert_eq!(receiver.recv().value, 0);
        assert_eq!(receiver.recv().value, if mine.is_ok() { 2 } else { 1 });
    });
}

/// A sender is preempted while it claims a slot, and then finds the same head of the list with a
/// different tail.
#[test]
fn survives_preempted_claim() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        let sender = start(2, || {
            let _ = queue.send(10);
        });
        let mut receiver = queue.receiver().unwrap();
        let (mut sent, mut received) = (vec![], vec![]);
        let send = |values: [u64; 2], sent: &mut Vec<u64>| {
            sent.extend(values.into_iter().filter(|&value| queue.send(value).is_ok()));
        };
        send([1, 2], &mut sent);
        // The first returned slot is next to the list; the third time it is the former head of the
        // list.
        received.extend(receiver.try_recv().map(|item| item.value));
        sent.extend(queue.send(3).ok().map(|()| 3));
        received.extend((0..2).filter_map(|_| receiver.try_recv()).map(|item| item.value));
        sender.join();
        send([4, 5], &mut sent);
        received.extend(std::iter::from_fn(|| receiver.try_recv()).map(|item| item.value));
        received.retain(|&value| value != 10);
        assert_eq!(received, sent, "accepted items are received once and in order");
    });
}

/// A receiver that gives up at its deadline loses no item.
#[test]
fn item_races_deadline() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 1>::new());
        let sender = start(2, || queue.send_at(3, at(3)).unwrap());
        let mut receiver = queue.receiver().unwrap();
        let first = receiver.recv_deadline(at(2));
        assert_eq!(first, None);
        assert_eq!(now(), at(2));
        on_time(&receiver.recv());
        sender.join();
    });
}

/// Bound: two preemptions, although the model has one thread and so none.
#[test]
fn receives_item_before_deadline() {
    check(2, |arena| {
        let queue = arena.put(TimedQueue::<u64, 1>::new());
        queue.send_at(3, at(3)).unwrap();
        let item = queue.receiver().unwrap().recv_deadline(at(9));
        on_time(&item.expect("the item is due earlier"));
    });
}

/// One thread gives up the receiving side, and another that gets it continues at that point.
#[test]
fn hands_over_receiver() {
    check(3, |arena| {
        let queue = arena.put(TimedQueue::<u64, 2>::new());
        // The second is scheduled, so the first receiver stores it in a different slot.
        queue.send(0).unwrap();
        queue.send_at(0, at(0)).unwrap();
        let first = queue.receiver().unwrap();
        let other = start(2, || {
            let mut first = first;
            assert_eq!(first.recv().value, 0);
        });
        if let Ok(mut second) = queue.receiver() {
            assert_eq!(second.recv().value, 0);
        }
        other.join();
        assert!(queue.receiver().is_ok(), "both have dropped the receiver");
    });
}
