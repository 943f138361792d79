//! The structures in `asynch`, with tasks that are polled by hand, and with threads.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, scope};

use crate::support::tasks::{preempting, task};
use crate::support::until;
use punctual_sync::asynch::arbiter::Arbiter;
use punctual_sync::asynch::channel::{Channel, NoReceiver, ReceiveError, TrySendError};
use punctual_sync::asynch::signal::Signal;
use punctual_sync::asynch::watch::Watch;
use punctual_sync::{make_channel, make_signal, make_watch};

/// Runs a future to completion on this thread.
fn run<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn access_is_granted_in_order() {
    let arbiter = Arbiter::new(0);
    let held = arbiter.try_access().unwrap();
    let mut tasks = [(); 4].map(|()| task(arbiter.access()));
    tasks.iter_mut().for_each(|task| assert!(task.poll().is_none()));
    let [mut a, b, mut c, mut d] = tasks;
    drop(held);
    assert_eq!((a.wakes(), b.wakes(), c.wakes()), (1, 0, 0));
    assert!(c.poll().is_none() && arbiter.try_access().is_none(), "no task overtakes");
    let access = a.poll().expect("the access was handed over");
    drop(b);
    drop(access);
    assert_eq!((c.wakes(), d.wakes()), (1, 0), "a task that left is skipped");
    drop(c);
    assert_eq!(d.wakes(), 1, "a late notification is passed on");
    *d.poll().unwrap() += 1;
    assert_eq!(*arbiter.try_access().unwrap(), 1);
}

#[test]
fn panic_ends_access() {
    let arbiter = Arbiter::new(());
    let panics = std::panic::AssertUnwindSafe(|| {
        let _access = arbiter.try_access();
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(arbiter.try_access().is_some());
}

#[test]
fn leaked_future_is_sound() {
    let arbiter = Arbiter::<_, 3>::with_slots(String::from("a"));
    let held = arbiter.try_access().unwrap();
    let mut leaked = task(arbiter.access());
    assert!(leaked.poll().is_none());
    let mut other = task(arbiter.access());
    assert!(other.poll().is_none());
    leaked.leak();
    drop(held);
    assert!(other.poll().is_none() && arbiter.try_access().is_none(), "the leaked future has the access");
    // It retains its slot permanently, and the arbiter can be dropped.
}

#[test]
fn leaked_access_holds_arbiter_until_restored() {
    let mut arbiter = Arbiter::<_, 1>::with_slots(1);
    for _ in 0..2 {
        std::mem::forget(arbiter.try_access().unwrap());
        let mut leaked = task(arbiter.access());
        assert!(leaked.poll().is_none() && arbiter.try_access().is_none());
        leaked.leak();
        let mut another = task(arbiter.access());
        let poll = std::panic::AssertUnwindSafe(|| another.poll().is_none());
        assert!(std::panic::catch_unwind(poll).is_err(), "the only slot is taken");
        drop(another);
        *arbiter.get_mut() += 1;
        arbiter.restore();
        assert!(task(arbiter.access()).poll().is_some());
    }
    assert_eq!(*arbiter.get_mut(), 3);
}

#[test]
fn leaked_unpolled_future_holds_nothing() {
    let arbiter = Arbiter::<_, 1>::with_slots(());
    std::mem::forget(arbiter.access());
    let mut ready = Box::pin(arbiter.access());
    let mut context = Context::from_waker(Waker::noop());
    assert!(ready.as_mut().poll(&mut context).is_ready());
    std::mem::forget(ready);
    assert!(arbiter.try_access().is_some());
}

#[test]
fn more_tasks_than_places() {
    let arbiter = Arbiter::<_, 1>::with_slots(());
    let held = arbiter.try_access().unwrap();
    let mut first = task(arbiter.access());
    assert!(first.poll().is_none());
    let mut second = task(arbiter.access());
    let poll = std::panic::AssertUnwindSafe(|| second.poll().is_none());
    assert!(std::panic::catch_unwind(poll).is_err());
    drop(held);
    assert!(first.poll().is_some());
}

#[test]
fn access_between_threads() {
    let arbiter = Arbiter::<u32>::new(0);
    scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2_000 {
                    if round % 3 == 0 {
                        // Given up at once if it is not granted at once.
                        task(arbiter.access()).poll();
                    }
                    run(async { *arbiter.access().await += 1 });
                }
            });
        }
    });
    assert_eq!(*arbiter.try_access().unwrap(), 8_000);
}

#[test]
fn messages_come_in_order() {
    let (mut sender, mut receiver) = make_channel!(u32, 3);
    let mut another = sender.clone();
    assert!(receiver.is_empty() && sender.is_empty() && !sender.is_full());
    sender.try_send(1).unwrap();
    another.try_send(2).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    sender.try_send(3).unwrap();
    another.try_send(4).unwrap();
    assert!(receiver.is_full() && sender.is_full());
    assert_eq!(sender.try_send(5), Err(TrySendError::Full(5)));
    assert_eq!([(); 3].map(|()| receiver.try_recv().unwrap()), [2, 3, 4]);
    assert_eq!(receiver.try_recv(), Err(ReceiveError::Empty));
}

#[test]
fn senders_get_room_in_order() {
    let mut channel = Channel::<u32, 1>::new();
    let (mut a, mut receiver) = channel.split();
    let (mut b, mut c) = (a.clone(), a.clone());
    a.try_send(0).unwrap();
    let (mut first, mut second) = (task(a.send(1)), task(b.send(2)));
    assert!(first.poll().is_none() && second.poll().is_none());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(c.try_send(3), Err(TrySendError::Full(3)), "the room belongs to the first");
    // It leaves, and its room goes to the second.
    drop(first);
    assert_eq!((second.wakes(), second.poll()), (1, Some(Ok(()))));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(c.try_send(3), Ok(()));
}

#[test]
fn a_receiver_waits() {
    let mut channel = Channel::<u32, 2>::new();
    let (mut sender, mut receiver) = channel.split();
    let mut receiving = task(receiver.recv());
    assert!(receiving.poll().is_none());
    sender.try_send(1).unwrap();
    assert_eq!((receiving.wakes(), receiving.poll()), (1, Some(Ok(1))));
    drop(receiving);
    let mut receiving = task(receiver.recv());
    assert!(receiving.poll().is_none());
    drop(sender);
    assert_eq!((receiving.wakes(), receiving.poll()), (1, Some(Err(ReceiveError::NoSender))));
}

#[test]
fn send_fails_without_receiver() {
    let item = Arc::new(());
    let mut channel = Channel::<Arc<()>, 1>::new();
    let (mut sender, receiver) = channel.split();
    sender.try_send(item.clone()).unwrap();
    let mut another = sender.clone();
    let mut sending = task(another.send(item.clone()));
    assert!(sending.poll().is_none());
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sending.wakes(), 1);
    assert!(matches!(sending.poll(), Some(Err(NoReceiver(_)))));
    assert!(matches!(sender.try_send(item.clone()), Err(TrySendError::NoReceiver(_))));
    assert!(matches!(run(sender.send(item.clone())), Err(NoReceiver(_))));
    drop(sending);
    drop((another, sender));
    assert_eq!(Arc::strong_count(&item), 1, "every message was dropped once");
}

#[test]
fn channel_splits_again_after_drop() {
    let item = Arc::new(());
    let mut channel = Channel::<Arc<()>, 2, 3>::with_slots();
    for _ in 0..3 {
        let (mut sender, mut receiver) = channel.split();
        sender.try_send(item.clone()).unwrap();
        sender.try_send(item.clone()).unwrap();
        let mut waiting = task(sender.send(item.clone()));
        assert!(waiting.poll().is_none());
        drop(receiver.try_recv().unwrap());
        // With all ends leaked, the next split drops their messages.
        waiting.leak();
        std::mem::forget((sender, receiver));
    }
    drop(channel);
    assert_eq!(Arc::strong_count(&item), 1 + 3, "only the messages of the leaked futures are left");
}

#[test]
fn leaked_send_occupies_one_slot() {
    let mut channel = Channel::<u32, 2, 4>::with_slots();
    let (mut sender, mut receiver) = channel.split();
    let mut another = sender.clone();
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    let mut leaked = task(another.send(3));
    assert!(leaked.poll().is_none());
    leaked.leak();
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
    assert_eq!((sender.try_send(4), sender.try_send(5)), (Ok(()), Err(TrySendError::Full(5))));
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(4), Err(ReceiveError::Empty)));
}

#[test]
fn leaked_ends_stay_occupied() {
    let signal = Signal::<u32, 3>::with_slots();
    let (mut writer, reader) = signal.split().unwrap();
    std::mem::forget(reader);
    writer.write(1);
    assert!(signal.reader().is_err());
    let watch = Watch::<u32, 4>::with_slots();
    let (mut writer, mut reader) = watch.split().unwrap();
    std::mem::forget(writer.clone());
    assert!(watch.reader().is_err());
    writer.write(1);
    assert_eq!(reader.try_changed(), Some(1), "the other ends still work");
    let mut leaked = task(reader.changed());
    assert!(leaked.poll().is_none());
    leaked.leak();
    writer.write(2);
    assert_eq!(reader.try_changed(), Some(2));
}

#[test]
#[should_panic = "raise `W`"]
fn channel_limits_its_senders() {
    let (sender, _receiver) = make_channel!(u32, 1, 2);
    let _ = sender.clone();
}

#[test]
fn leaked_receive_does_not_consume_wakes() {
    let mut channel = Channel::<u32, 2>::new();
    let (mut sender, mut receiver) = channel.split();
    let mut leaked = task(receiver.recv());
    assert!(leaked.poll().is_none());
    leaked.leak();
    let mut receiving = task(receiver.recv());
    assert!(receiving.poll().is_none());
    sender.try_send(1).unwrap();
    assert_eq!((receiving.wakes(), receiving.poll()), (1, Some(Ok(1))));
}

#[test]
fn messages_between_threads() {
    const EACH: u32 = 5_000;
    let mut channel = Channel::<u32, 8>::new();
    let (sender, mut receiver) = channel.split();
    scope(|scope| {
        for thread in 0..3 {
            let mut sender = sender.clone();
            scope.spawn(move || {
                for message in 0..EACH {
                    let message = thread * EACH + message;
                    if message.is_multiple_of(2) {
                        run(sender.send(message)).unwrap();
                    } else {
                        until("room", || sender.try_send(message).ok());
                    }
                }
            });
        }
        drop(sender);
        let mut next = [0, EACH, 2 * EACH];
        while let Ok(message) = run(receiver.recv()) {
            let next = &mut next[(message / EACH) as usize];
            assert_eq!(message, *next, "each sender's messages in order");
            *next += 1;
        }
        assert_eq!(next, [EACH, 2 * EACH, 3 * EACH]);
    });
}

#[test]
fn signal_is_taken_once() {
    let (mut writer, mut reader) = make_signal!(u32);
    assert_eq!(reader.try_read(), None);
    writer.write(1);
    writer.clone().write(2);
    assert_eq!((reader.try_read(), reader.try_read()), (Some(2), None));
    writer.write(3);
    writer.clear();
    assert_eq!(reader.try_read(), None);
    writer.write(4);
    let mut fresh = task(reader.wait_fresh());
    assert!(fresh.poll().is_none(), "4 is not fresh");
    writer.write(5);
    assert_eq!((fresh.wakes(), fresh.poll()), (1, Some(5)));
}

#[test]
fn signal_has_one_reader() {
    let signal = Signal::<u8, 3>::with_slots();
    let reader = signal.reader().unwrap();
    assert!(signal.reader().is_err());
    let mut writer = signal.writer().unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.clone())).is_err());
    writer.write(1);
    drop(reader);
    assert_eq!(signal.reader().unwrap().try_read(), Some(1));
    assert_eq!(signal.reader().unwrap().try_read(), None, "the next reader does not take it again");
}

#[test]
fn watch_notifies_every_reader() {
    let (mut writer, mut reader) = make_watch!(u32);
    let mut another = reader.clone();
    assert_eq!((reader.try_get(), another.try_changed()), (None, None));
    let (mut changed, mut first) = (task(reader.changed()), task(another.get()));
    assert!(changed.poll().is_none() && first.poll().is_none());
    writer.write(1);
    assert_eq!((changed.wakes(), first.wakes()), (1, 1));
    writer.write(2);
    assert_eq!((changed.poll(), first.poll()), (Some(2), Some(2)));
    drop((changed, first));
    assert_eq!((reader.try_get(), another.try_get()), (Some(2), Some(2)), "a value remains");
    assert!(task(reader.changed()).poll().is_none());
    assert_eq!((another.try_changed(), run(another.get())), (None, 2));
    writer.write(2);
    assert_eq!(run(reader.changed()), 2, "a write is a change");
    assert_eq!(reader.clone().try_changed(), None, "a clone has seen the reader's value");
}

#[test]
fn watch_limits_its_ends() {
    let watch = Watch::<u8, 3>::with_slots();
    let (_writer, reader) = watch.split().unwrap();
    assert!(watch.reader().is_err());
    drop(reader);
    assert!(watch.reader().is_ok());
}

#[test]
fn values_between_threads_are_whole() {
    const LAST: u64 = 20_000;
    let watch = Watch::<[u64; 8], 5>::with_slots();
    scope(|scope| {
        for _ in 0..2 {
            let mut reader = watch.reader().unwrap();
            scope.spawn(move || {
                let mut last = 0;
                while last < LAST {
                    let value = run(reader.changed());
                    assert!(value.iter().all(|part| *part == value[0]), "a value is not torn");
                    assert!(value[0] > last, "values get newer");
                    last = value[0];
                }
            });
        }
        let mut writer = watch.writer().unwrap();
        scope.spawn(move || (1..=LAST).for_each(|value| writer.write([value; 8])));
    });
}

#[test]
fn task_preempts_access() {
    let channel: &'static Channel<u32, 4> = Box::leak(Box::new(Channel::new()));
    let (mut sender, mut receiver) = channel.split_once().unwrap();
    let other = Mutex::new(sender.clone());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let waker = {
        let seen = seen.clone();
        preempting(move |at| {
            seen.lock().unwrap().push(at);
            // This send completes regardless of the interrupted operation.
            other.lock().unwrap().try_send(100).unwrap();
        })
    };
    let mut context = Context::from_waker(&waker);
    let mut receiving = Box::pin(receiver.recv());
    // Beginning to wait clones the waker, and a message sent at that point is not missed.
    assert_eq!(receiving.as_mut().poll(&mut context), Poll::Ready(Ok(100)));
    drop(receiving);
    while receiver.try_recv().is_ok() {}
    sender.try_send(1).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(seen.lock().unwrap().contains(&"clone"));
    std::mem::forget(waker);
}

#[test]
fn task_preempts_wake() {
    let arbiter: &'static Arbiter<u32> = Box::leak(Box::new(Arbiter::new(0)));
    let waker = preempting(|at| {
        if at == "wake" {
            // The access is handed over already, and nothing is locked.
            assert!(arbiter.try_access().is_none());
            let mut late = task(arbiter.access());
            assert!(late.poll().is_none());
        }
    });
    let held = arbiter.try_access().unwrap();
    let mut access = arbiter.access();
    assert!(Pin::new(&mut access).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(held);
    assert!(Pin::new(&mut access).poll(&mut Context::from_waker(&waker)).is_ready());
    assert!(arbiter.try_access().is_some());
}

#[test]
fn futures_cross_threads() {
    fn is_send<T: Send>(_: &T) {}
    let arbiter = Arbiter::new(0);
    is_send(&arbiter.access());
    let (mut sender, mut receiver) = make_channel!(u32, 1);
    is_send(&sender.send(1));
    is_send(&receiver.recv());
    let (_writer, mut reader) = make_signal!(u32);
    is_send(&reader.wait());
}
