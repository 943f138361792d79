//! The order of items, the capacity, and the fate of items that are never received. One thread, so
//! the only waits are for times that are microseconds away.

use std::rc::Rc;

use punctual_sync::{Duration, Full, Instant, Taken, TimedQueue, TimedReceiver, futex, now};

fn drain<const N: usize>(receiver: &mut TimedReceiver<'_, u32, N>) -> Vec<u32> {
    std::iter::from_fn(|| receiver.try_recv()).map(|item| item.value).collect()
}

/// Spins until `time` has passed.
fn pass(time: Instant) {
    while now() <= time {
        std::hint::spin_loop();
    }
}

/// futex-queue 0.1: immediate items come out 7 0 4 1 2 3 5 6.
#[test]
fn regression_immediate_items_come_out_in_order() {
    let queue = TimedQueue::<u32, 8>::new();
    let mut receiver = queue.receiver().unwrap();
    for round in 0..3 {
        (0..8).for_each(|i| queue.send(round * 10 + i).unwrap());
        assert_eq!(drain(&mut receiver), (0..8).map(|i| round * 10 + i).collect::<Vec<_>>());
    }
}

/// futex-queue 0.1: equal deadlines unordered.
#[test]
fn regression_equal_times_in_order_of_sending() {
    let queue = TimedQueue::<u32, 32>::new();
    let mut receiver = queue.receiver().unwrap();
    let due = now();
    (0..32).for_each(|i| queue.send_at(i, due).unwrap());
    assert_eq!(drain(&mut receiver), (0..32).collect::<Vec<_>>());
}

/// futex-queue 0.1: an overdue item waits behind every later immediate one.
#[test]
fn regression_overdue_item_keeps_position() {
    let queue = TimedQueue::<u32, 8>::new();
    let mut receiver = queue.receiver().unwrap();
    let due = now() + Duration::from_micros(200);
    queue.send_at(2, due).unwrap();
    queue.send(1).unwrap();
    // Only if the machine was not delayed for so long that the order of the first two is reversed.
    let early = now() < due;
    pass(due);
    queue.send(3).unwrap();
    queue.send(4).unwrap();
    let received = drain(&mut receiver);
    if early {
        assert_eq!(received, [1, 2, 3, 4]);
    }
    assert!(received.iter().position(|&i| i == 2) < received.iter().position(|&i| i == 3));
}

#[test]
fn scheduled_items_by_time() {
    let queue = TimedQueue::<u32, 8>::new();
    let mut receiver = queue.receiver().unwrap();
    let base = now() - Duration::from_millis(1);
    for i in [5, 1, 7, 3, 0, 6, 2, 4] {
        queue.send_at(i, base + Duration::from_nanos(i.into())).unwrap();
    }
    let item = receiver.try_recv().unwrap();
    assert_eq!((item.value, item.due), (0, Some(base)));
    assert_eq!(drain(&mut receiver), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn future_item_is_not_ready() {
    let queue = TimedQueue::<u32, 2>::new();
    let mut receiver = queue.receiver().unwrap();
    queue.send_at(1, now() + Duration::from_secs(3600)).unwrap();
    assert_eq!(receiver.try_recv(), None);
    assert_eq!(receiver.recv_deadline(now() - Duration::from_secs(1)), None);
    queue.send(2).unwrap();
    assert_eq!(receiver.recv_deadline(now() - Duration::from_secs(1)).unwrap().value, 2);
    assert_eq!((receiver.len(), receiver.is_empty()), (1, false));
}

#[test]
fn recv_returns_exactly_at_due_time() {
    let queue = TimedQueue::<u32, 2>::new();
    let mut receiver = queue.receiver().unwrap();
    queue.send_at(9, now() + Duration::from_secs(3600)).unwrap();
    let deadline = now() + Duration::from_micros(50);
    assert_eq!(receiver.recv_deadline(deadline), None);
    assert!(now() >= deadline);
    let due = now() + Duration::from_micros(50);
    queue.send_at(1, due).unwrap();
    assert_eq!(receiver.recv().due, Some(due));
    assert!(now() >= due);
}

#[test]
fn full_queue_returns_item() {
    let queue = TimedQueue::<Box<u32>, 3>::new();
    assert_eq!(queue.capacity(), 3);
    (0..3).for_each(|i| queue.send(Box::new(i)).unwrap());
    assert_eq!(queue.send(Box::new(3)), Err(Full(Box::new(3))));
    assert_eq!(queue.send_at(Box::new(4), now()), Err(Full(Box::new(4))));
    let mut receiver = queue.receiver().unwrap();
    assert_eq!(*receiver.recv().value, 0);
    queue.send(Box::new(5)).unwrap();
    assert_eq!((0..3).map(|_| *receiver.recv().value).collect::<Vec<_>>(), [1, 2, 5]);
}

#[test]
fn next_receiver_gets_remaining_items() {
    let queue = TimedQueue::<u32, 4>::new();
    let mut receiver = queue.receiver().unwrap();
    assert_eq!(queue.receiver().unwrap_err(), Taken);
    (0..3).for_each(|i| queue.send(i).unwrap());
    assert_eq!(receiver.recv().value, 0);
    drop(receiver);
    let mut receiver = queue.receiver().unwrap();
    assert_eq!(drain(&mut receiver), [1, 2]);
    std::mem::forget(receiver);
    assert_eq!(queue.receiver().unwrap_err(), Taken);
}

#[test]
fn drops_unreceived_items_with_the_queue() {
    let item = Rc::new(());
    let queue = TimedQueue::<Rc<()>, 4>::new();
    queue.send(item.clone()).unwrap();
    drop(queue.receiver().unwrap().try_recv());
    queue.send(item.clone()).unwrap();
    queue.send_at(item.clone(), now() + Duration::from_secs(3600)).unwrap();
    assert_eq!(queue.receiver().unwrap().len(), 2);
    queue.send(item.clone()).unwrap();
    assert_eq!(Rc::strong_count(&item), 4);
    drop(queue);
    assert_eq!(Rc::strong_count(&item), 1);
}

/// A queue used by a single thread never enters the kernel while items are ready.
#[test]
fn ready_items_need_no_system_call() {
    let queue = TimedQueue::<u32, 8>::new();
    let mut receiver = queue.receiver().unwrap();
    let before = futex::calls();
    for i in 0..1000 {
        queue.send(i).unwrap();
        queue.send_at(i, now()).unwrap();
        receiver.recv();
        receiver.recv();
    }
    assert_eq!(futex::calls() - before, 0);
}

/// The receiver has seen the scheduled item already when the immediate one is sent.
#[test]
fn single_scheduled_item_keeps_position() {
    let queue = TimedQueue::<u32, 2>::new();
    let mut receiver = queue.receiver().unwrap();
    queue.send_at(1, now()).unwrap();
    assert_eq!(receiver.len(), 1);
    queue.send(2).unwrap();
    assert_eq!(drain(&mut receiver), [1, 2]);
}
