//! Slots, ends and wakes of the structures in `asynch`: returned slots, notified tasks, and the
//! actions that wakers may take. Tasks are polled by hand, so nothing waits.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use crate::support::tasks::{preempting, task};
use punctual_sync::Taken;
use punctual_sync::asynch::arbiter::Arbiter;
use punctual_sync::asynch::channel::{Channel, NoReceiver};
use punctual_sync::asynch::signal::Signal;
use punctual_sync::asynch::watch::Watch;

#[test]
fn dropped_access_returns_its_place() {
    let arbiter = Arbiter::<_, 1>::with_slots(());
    for _ in 0..3 {
        let held = arbiter.try_access().unwrap();
        assert!(task(arbiter.access()).poll().is_none());
        let mut granted = task(arbiter.access());
        assert!(granted.poll().is_none());
        drop(held);
        assert_eq!(granted.wakes(), 1);
        // Dropped before it saw that it has the access.
    }
    let held = arbiter.try_access().unwrap();
    let mut access = task(arbiter.access());
    assert!(access.poll().is_none());
    drop(held);
    assert!(access.poll().is_some() && arbiter.try_access().is_some());
}

#[test]
fn dropped_receive_returns_its_place() {
    let mut channel = Channel::<u32, 1, 2>::with_slots();
    let (mut sender, mut receiver) = channel.split();
    for message in 0..3 {
        assert!(task(receiver.recv()).poll().is_none());
        let mut receiving = task(receiver.recv());
        assert!(receiving.poll().is_none());
        sender.try_send(message).unwrap();
        assert_eq!((receiving.wakes(), receiving.poll()), (1, Some(Ok(message))));
    }
}

#[test]
#[should_panic(expected = "polled again")]
fn granted_access_is_not_polled_again() {
    let arbiter = Arbiter::new(());
    let mut access = task(arbiter.access());
    assert!(access.poll().is_some());
    access.poll();
}

#[test]
fn notifies_all_senders_of_closed_receiver() {
    let mut channel = Channel::<u32, 1, 4>::with_slots();
    let (mut sender, receiver) = channel.split();
    let (mut one, mut two) = (sender.clone(), sender.clone());
    sender.try_send(0).unwrap();
    let (mut first, mut second) = (task(one.send(1)), task(two.send(2)));
    assert!(first.poll().is_none() && second.poll().is_none());
    drop(receiver);
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert_eq!((first.poll(), second.poll()), (Some(Err(NoReceiver(1))), Some(Err(NoReceiver(2)))));
}

#[test]
fn channel_splits_once() {
    let channel = Channel::<u32, 1>::new();
    let ends = channel.split_once().unwrap();
    assert_eq!(channel.split_once().err(), Some(Taken));
    drop(ends);
    assert_eq!(channel.split_once().err(), Some(Taken), "its ends are taken permanently");
}

#[test]
fn channel_is_empty_after_last_message() {
    let mut channel = Channel::<u32, 2>::new();
    let (mut sender, mut receiver) = channel.split();
    // Two that the receiver has not seen, then one that it has.
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    for message in 1..=2 {
        assert!(!receiver.is_empty() && !sender.is_empty());
        assert_eq!(receiver.try_recv(), Ok(message));
    }
    assert!(receiver.is_empty() && sender.is_empty());
}

#[test]
fn dropped_ends_can_be_recreated() {
    let signal = Signal::<u8, 3>::with_slots();
    let watch = Watch::<u8, 2>::with_slots();
    for value in 1..4 {
        signal.writer().unwrap().write(value);
        watch.writer().unwrap().write(value);
        assert_eq!(signal.reader().unwrap().try_read(), Some(value));
        assert_eq!(watch.reader().unwrap().try_get(), Some(value));
    }
}

#[test]
fn watch_rejects_excess_ends() {
    let watch = Watch::<u8, 3>::with_slots();
    let _ends = watch.split().unwrap();
    assert!(watch.writer().is_err() && watch.reader().is_err());
}

#[test]
fn replaces_waker_whose_clone_panicked() {
    let arbiter = Arbiter::new(());
    let held = arbiter.try_access().unwrap();
    let mut access = task(arbiter.access());
    assert!(access.poll_with(Waker::noop()).is_none());
    let fragile = preempting(|at| assert_ne!(at, "clone", "on purpose"));
    let poll = AssertUnwindSafe(|| access.poll_with(&fragile).is_none());
    assert!(catch_unwind(poll).is_err());
    assert!(access.poll().is_none());
    drop(held);
    assert_eq!(access.wakes(), 1);
    assert!(access.poll().is_some());
}

#[test]
fn grant_during_waker_replacement_is_not_lost() {
    for panics_before in [false, true] {
        let arbiter: &'static Arbiter<()> = Box::leak(Box::new(Arbiter::new(())));
        let held = Mutex::new(arbiter.try_access());
        let mut access = task(arbiter.access());
        assert!(access.poll_with(Waker::noop()).is_none());
        if panics_before {
            let fragile = preempting(|at| assert_ne!(at, "clone", "on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(|| access.poll_with(&fragile).is_none())).is_err());
        }
        let releasing = preempting(move |_| drop(held.lock().unwrap().take()));
        assert!(access.poll_with(&releasing).is_some());
    }
}

/// Returns a waker that panics once, at an operation.
fn panicking(operation: &'static str, before: impl Fn() + Send + Sync + 'static) -> Waker {
    let panics = AtomicBool::new(true);
    preempting(move |at| {
        if at == "clone" {
            before();
        }
        if at == operation && panics.swap(false, Ordering::Relaxed) {
            resume_unwind(Box::new("on purpose"));
        }
    })
}

#[test]
fn panicking_waker_loses_no_permit() {
    // The permit comes while the task's waker is replaced, so no notifier takes a waker: the poll
    // drops the new waker, or the future's drop the old one.
    for (first, second) in [("none", "drop"), ("drop", "clone")] {
        let arbiter: &'static Arbiter<()> = Box::leak(Box::new(Arbiter::new(())));
        let held = Mutex::new(arbiter.try_access());
        let old = panicking(first, || ());
        let new = panicking(second, move || drop(held.lock().unwrap().take()));
        let mut access = task(arbiter.access());
        assert!(access.poll_with(&old).is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| access.poll_with(&new).is_some())).is_err());
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(access)));
        assert_eq!(dropped.is_err(), first == "drop");
        assert!(arbiter.try_access().is_some(), "{first}, {second}");
    }
}

#[test]
fn panicking_waker_loses_no_wake() {
    let watch = Watch::<u8, 4>::with_slots();
    let (mut writer, mut reader) = watch.split().unwrap();
    let mut another = reader.clone();
    let (mut first, mut second) = (task(reader.changed()), task(another.changed()));
    assert!(first.poll_with(&panicking("wake", || ())).is_none() && second.poll().is_none());
    assert!(catch_unwind(AssertUnwindSafe(|| writer.write(1))).is_err());
    assert_eq!((second.wakes(), second.poll(), first.poll()), (1, Some(1), Some(1)));
}
