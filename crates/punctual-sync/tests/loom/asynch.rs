//! Models of the structures in `asynch`. `cargo test` without `--cfg loom` skips them.
//!
//! Bound: three preemptions; the merge gate explores two. A wake is lost if a permit, a message or
//! a value arrives between a task's check and its registration, or if the notifier checks for
//! waiting tasks before that registration: one preemption of the task, and one of the notifier
//! between its change and its check. The same two let a writer reuse a node between a reader's two
//! checks. The third allows each order, regardless of the first thread.

use std::pin::pin;
use std::task::{Context, Waker};

use crate::model::{Region, share};
use loom::future::block_on;
use loom::thread::spawn;
use punctual_sync::asynch::arbiter::Arbiter;
use punctual_sync::asynch::channel::{Channel, NoReceiver, ReceiveError};
use punctual_sync::asynch::signal::Signal;
use punctual_sync::asynch::watch::Watch;

/// A waker that records wakes.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Woken {
    fn is_woken(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Polls a future, lets the others end, and polls it again if it was woken. loom would report a
/// lost wake only as "deadlock".
fn poll_twice<F: Future>(future: F, others: impl FnOnce()) -> F::Output {
    let woken = std::sync::Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut future = pin!(future);
    let mut poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
    let first = poll();
    others();
    if let std::task::Poll::Ready(output) = first {
        return output;
    }
    assert!(woken.is_woken(), "a waiting task was not woken");
    match poll() {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("spurious wake"),
    }
}

/// Polls a future once.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// The receiver leaves while one sender takes the only place, and another begins to wait for it.
///
/// Bound: two preemptions. The waiting sender is preempted once, after it has found the receiver,
/// and the other sender once, before it puts its message.
#[test]
fn waiting_sender_learns_that_the_receiver_has_left() {
    share(Channel::<u32, 1, 3>::with_slots).check(2, |channel| {
        let (mut sender, receiver) = channel.split_once().unwrap();
        let mut other = sender.clone();
        let sending = spawn(move || drop(other.try_send(1)));
        let leaving = spawn(move || drop(receiver));
        let _ = poll_twice(sender.send(2), || {
            sending.join().unwrap();
            leaving.join().unwrap();
        });
    });
}

#[test]
fn access_is_exclusive() {
    share(|| Arbiter::<Region, 2>::with_slots(Region::new())).check(3, |arbiter| {
        let enter = async || arbiter.access().await.enter();
        let other = spawn(move || block_on(enter()));
        block_on(enter());
        other.join().unwrap();
        assert_eq!(arbiter.try_access().expect("the arbiter is free").count(), 2);
    });
}

#[test]
fn release_is_not_lost() {
    share(|| Arbiter::<Region, 2>::with_slots(Region::new())).check(3, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let releasing = spawn(move || drop(held));
        let access = poll_twice(arbiter.access(), || releasing.join().unwrap());
        access.enter();
    });
}

/// A permit that is released while a task waits is that task's, though it may be free for a moment.
#[test]
fn waiting_task_is_not_overtaken() {
    share(|| Arbiter::<Region, 3>::with_slots(Region::new())).check(3, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let releasing = spawn(move || drop(held));
        let mut first = pin!(arbiter.access());
        let mut poll = || first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let begun = poll();
        if begun.is_pending() {
            assert!(arbiter.try_access().is_none(), "a task that came later has the permit");
            releasing.join().unwrap();
            assert!(poll().is_ready(), "the permit is the task's");
        } else {
            releasing.join().unwrap();
        }
    });
}

#[test]
fn send_is_not_lost() {
    share(Channel::<u32, 1, 2>::with_slots).check(3, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        let sending = spawn(move || sender.try_send(17).unwrap());
        assert_eq!(poll_twice(receiver.recv(), || sending.join().unwrap()), Ok(17));
    });
}

/// Bound: one preemption. It stops one task in its access or at its end; the other two run until
/// they wait, which costs none. The model of two tasks explores three.
#[test]
fn three_accesses_exclude_each_other() {
    share(|| Arbiter::<Region, 3>::with_slots(Region::new())).check(1, |arbiter| {
        let enter = async || arbiter.access().await.enter();
        let others = [(); 2].map(|()| spawn(move || block_on(enter())));
        block_on(enter());
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(arbiter.try_access().expect("the arbiter is free").count(), 3);
    });
}

#[test]
fn dropped_access_passes_permit_on() {
    share(|| Arbiter::<Region, 3>::with_slots(Region::new())).check(3, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let impatient = spawn(|| {
            if let Some(access) = poll_once(arbiter.access()) {
                access.enter();
            }
        });
        held.enter();
        drop(held);
        block_on(async { arbiter.access().await.enter() });
        impatient.join().unwrap();
        assert!(arbiter.try_access().is_some(), "free once all accesses have ended");
    });
}

#[test]
fn accepts_changed_waker() {
    share(|| Arbiter::<Region, 2>::with_slots(Region::new())).check(3, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let waiting = spawn(|| {
            let mut access = arbiter.access();
            let first = std::pin::Pin::new(&mut access).poll(&mut Context::from_waker(Waker::noop()));
            match first {
                std::task::Poll::Ready(access) => access.enter(),
                std::task::Poll::Pending => block_on(access).enter(),
            }
        });
        held.enter();
        drop(held);
        waiting.join().unwrap();
        assert_eq!(arbiter.try_access().expect("the arbiter is free").count(), 2);
    });
}

#[test]
fn message_wakes_receiver() {
    share(Channel::<u32, 2, 2>::with_slots).check(3, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        let sending = spawn(move || sender.try_send(17).unwrap());
        assert_eq!(block_on(receiver.recv()), Ok(17));
        sending.join().unwrap();
        assert_eq!(receiver.try_recv(), Err(ReceiveError::NoSender));
    });
}

#[test]
fn last_sender_wakes_receiver() {
    share(Channel::<u32, 1, 3>::with_slots).check(3, |channel| {
        let (sender, mut receiver) = channel.split_once().unwrap();
        let mut another = sender.clone();
        let sending = spawn(move || another.try_send(17).unwrap());
        drop(sender);
        assert_eq!(block_on(receiver.recv()), Ok(17));
        assert_eq!(block_on(receiver.recv()), Err(ReceiveError::NoSender));
        sending.join().unwrap();
    });
}

#[test]
fn reuses_node() {
    share(Channel::<u32, 2, 2>::with_slots).check(3, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        sender.try_send(1).unwrap();
        // There is room for one more, but perhaps in the node that is just being emptied.
        let sending = spawn(move || sender.try_send(2).unwrap());
        assert_eq!(receiver.try_recv(), Ok(1));
        sending.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(2));
    });
}

/// Bound: two preemptions. One stops the receiver between the removal of the message and the
/// release of its node, and one stops the sender between its check and its sleep.
#[test]
fn reuses_only_node() {
    share(Channel::<u32, 1, 2>::with_slots).check(2, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        let sending = spawn(move || {
            block_on(async {
                sender.send(1).await.unwrap();
                sender.send(2).await.unwrap();
            });
        });
        assert_eq!(block_on(receiver.recv()), Ok(1));
        assert_eq!(block_on(receiver.recv()), Ok(2));
        sending.join().unwrap();
    });
}

/// Bound: two preemptions. One stops a sender between its claim of a node and its push, and one
/// stops the other in the same place.
#[test]
fn two_senders() {
    share(Channel::<u32, 3, 4>::with_slots).check(2, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        let mut another = sender.clone();
        let sending = spawn(move || {
            sender.try_send(1).unwrap();
            sender.try_send(2).unwrap();
        });
        another.try_send(10).unwrap();
        let received = [(); 3].map(|()| block_on(receiver.recv()).unwrap());
        let theirs: Vec<_> = received.into_iter().filter(|message| *message != 10).collect();
        assert_eq!(theirs, [1, 2], "each sender's messages in order");
        sending.join().unwrap();
    });
}

#[test]
fn dropped_receiver_releases_senders() {
    share(Channel::<u32, 1, 2>::with_slots).check(3, |channel| {
        let (mut sender, receiver) = channel.split_once().unwrap();
        sender.try_send(1).unwrap();
        let sending = spawn(move || block_on(sender.send(2)));
        drop(receiver);
        assert!(matches!(sending.join().unwrap(), Ok(()) | Err(NoReceiver(2))));
    });
}

/// Bound: two preemptions. One stops the task that gives up, between its registration and its
/// withdrawal, and one stops the receiver between the release of the permit and the wake.
#[test]
fn dropped_send_passes_permit_on() {
    share(Channel::<u32, 1, 3>::with_slots).check(2, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        let mut impatient = sender.clone();
        sender.try_send(1).unwrap();
        let dropping = spawn(move || poll_once(impatient.send(3)).is_some());
        assert_eq!(block_on(receiver.recv()), Ok(1));
        if dropping.join().unwrap() {
            assert_eq!(block_on(receiver.recv()), Ok(3));
        }
        assert_eq!(sender.try_send(2), Ok(()), "the channel has room");
        assert_eq!(block_on(receiver.recv()), Ok(2));
    });
}

#[test]
fn signal_wakes_reader() {
    share(Signal::<u32, 3>::with_slots).check(3, |signal| {
        let (mut writer, mut reader) = signal.split().unwrap();
        let writing = spawn(move || {
            writer.write(1);
            writer.write(2);
        });
        let first = block_on(reader.wait());
        let last = if first == 1 { block_on(reader.wait()) } else { first };
        assert_eq!((first == 1 || first == 2, last), (true, 2));
        writing.join().unwrap();
        assert_eq!(reader.try_read(), None, "the value was taken");
    });
}

/// The reader's first look may find a node that is current again when it looks for the second time,
/// with another value.
#[test]
fn value_is_read_once() {
    share(Signal::<u32, 3>::with_slots).check(3, |signal| {
        let (mut writer, mut reader) = signal.split().unwrap();
        writer.write(1);
        let writing = spawn(move || (2..4).for_each(|value| writer.write(value)));
        let first = reader.try_read();
        writing.join().unwrap();
        let rest = if first == Some(3) { None } else { Some(3) };
        assert_eq!(reader.try_read(), rest, "after {first:?}");
        assert_eq!(reader.try_read(), None);
    });
}

#[test]
fn cleared_signal_is_not_read() {
    share(Signal::<u32, 3>::with_slots).check(3, |signal| {
        let (mut writer, mut reader) = signal.split().unwrap();
        writer.write(1);
        let clearing = spawn(move || {
            writer.clear();
            writer.write(2);
        });
        let first = reader.try_read();
        assert!(matches!(first, None | Some(1 | 2)));
        clearing.join().unwrap();
        assert_eq!(reader.try_read(), if first == Some(2) { None } else { Some(2) });
    });
}

#[test]
fn reader_sees_whole_values() {
    share(Watch::<[u32; 2], 3>::with_slots).check(3, |watch| {
        let (mut writer, mut reader) = watch.split().unwrap();
        writer.write([1; 2]);
        let writing = spawn(move || (2..4).for_each(|value| writer.write([value; 2])));
        let mut last = 1;
        for _ in 0..2 {
            let [a, b] = reader.try_get().expect("a value was written");
            assert_eq!(a, b, "a value is not torn");
            assert!(a >= last, "values get newer");
            last = a;
        }
        writing.join().unwrap();
        assert_eq!(reader.try_get(), Some([3; 2]));
    });
}

/// With the minimum number of nodes, a writer takes the one that another has just replaced, while a
/// reader may be about to register on it.
///
/// Bound: two preemptions. One stops the reader between its check and its registration, and one
/// stops a writer while it has a node.
#[test]
fn two_writers_use_nodes_again() {
    share(Watch::<[u32; 2], 4>::with_slots).check(2, |watch| {
        let (mut writer, mut reader) = watch.split().unwrap();
        let mut another = writer.clone();
        writer.write([1; 2]);
        let writing = spawn(move || {
            another.write([2; 2]);
            another.write([3; 2]);
        });
        let reading = spawn(move || {
            let [a, b] = reader.try_get().expect("a value was written");
            assert_eq!(a, b, "a value is not torn");
        });
        writer.write([4; 2]);
        writing.join().unwrap();
        reading.join().unwrap();
        let [a, b] = watch.reader().unwrap().try_get().expect("a value was written");
        assert!(a == b && (a == 3 || a == 4), "the last value of either writer");
    });
}

/// A notifier chooses the first task; that one leaves, and another begins to wait in its slot: it
/// does not overtake the second.
#[test]
fn new_waiter_does_not_overtake_the_second() {
    share(|| Arbiter::<Region, 3>::with_slots(Region::new())).check(3, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut begin = || {
            let mut access = Box::pin(arbiter.access());
            let granted = match access.as_mut().poll(&mut context) {
                std::task::Poll::Ready(granted) => Some(granted),
                std::task::Poll::Pending => None,
            };
            (access, granted)
        };
        let first = begin();
        let (mut second, _) = begin();
        let releasing = spawn(move || drop(held));
        drop(first);
        let (mut third, _) = begin();
        releasing.join().unwrap();
        let overtaken = poll_once(third.as_mut()).is_some();
        assert!(!overtaken && poll_once(second.as_mut()).is_some(), "first come, first served");
    });
}

/// A task that waits is polled again while a value is written.
#[test]
fn task_polled_during_write_sees_it_or_is_woken() {
    share(Watch::<u32, 3>::with_slots).check(3, |watch| {
        let (mut writer, mut reader) = watch.split().unwrap();
        let woken = std::sync::Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut changed = pin!(reader.changed());
        let mut is_seen = || changed.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        assert!(!is_seen());
        let writing = spawn(move || writer.write(1));
        let seen = is_seen();
        writing.join().unwrap();
        assert!(seen || woken.is_woken(), "a waiting task was not woken");
    });
}

/// Bound: two preemptions. One stops the reader between its check and its registration, and one
/// stops a writer between its change and its wakes.
#[test]
fn two_writers_wake_reader() {
    share(Watch::<u32, 5>::with_slots).check(2, |watch| {
        let (writer, mut reader) = watch.split().unwrap();
        let writing = [1, 2].map(|value| {
            let mut writer = writer.clone();
            spawn(move || writer.write(value))
        });
        let first = block_on(reader.changed());
        writing.into_iter().for_each(|thread| thread.join().unwrap());
        let last = reader.try_changed().unwrap_or(first);
        assert!(matches!((first, last), (1 | 2, 1 | 2)));
        drop(writer);
    });
}
