//! Models of the state that outlasts a user of the structures in `asynch` and `shared`: slots,
//! ends, peer numbers, and the order of waiters. `cargo test` without `--cfg loom` skips them.
//!
//! Bound: two preemptions. A slot leaks, a task is overtaken, or a value is taken twice if one
//! thread acts between the other's check of a state and its change: one preemption stops the first
//! thread there, and one stops the other before its action is complete.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::model::{Region, polls, share};
use loom::thread::{spawn, yield_now};
use punctual_sync::asynch::arbiter::{Access, Arbiter};
use punctual_sync::asynch::channel::{Channel, ReceiveError};
use punctual_sync::asynch::signal::Signal;
use punctual_sync::asynch::watch::Watch;
use punctual_sync::shared::model as processes;
use punctual_sync::shared::{TicketLock, TicketLockError};

type Waiting<'a, const W: usize> = Pin<Box<Access<'a, Region, W>>>;

/// Begins to wait, if it has to.
fn access<const W: usize>(arbiter: &'static Arbiter<Region, W>) -> Waiting<'static, W> {
    let mut access = Box::pin(arbiter.access());
    assert!(!poll(&mut access), "another task has the access");
    access
}

/// Enters and ends the access, if it is granted.
fn poll<const W: usize>(access: &mut Waiting<'_, W>) -> bool {
    match access.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(granted) => {
            granted.enter();
            true
        }
        Poll::Pending => false,
    }
}

#[test]
fn notifier_frees_abandoned_place() {
    share(|| Arbiter::<Region, 1>::with_slots(Region::new())).check(2, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let mut first = access(arbiter);
        let releasing = spawn(move || drop(held));
        let granted = poll(&mut first);
        releasing.join().unwrap();
        assert!(granted || poll(&mut first));
        let held = arbiter.try_access().unwrap();
        let mut second = access(arbiter);
        drop(held);
        assert!(poll(&mut second));
    });
}

#[test]
fn frees_place_abandoned_during_wake() {
    share(|| Arbiter::<Region, 1>::with_slots(Region::new())).check(2, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let first = access(arbiter);
        let releasing = spawn(move || drop(held));
        drop(first);
        releasing.join().unwrap();
        let held = arbiter.try_access().expect("the permit was passed on");
        let mut second = access(arbiter);
        drop(held);
        assert!(poll(&mut second));
    });
}

/// Two tasks begin to wait after the notifier has counted the waiters.
#[test]
fn late_comers_do_not_overtake() {
    share(|| Arbiter::<Region, 3>::with_slots(Region::new())).check(2, |arbiter| {
        let held = arbiter.try_access().unwrap();
        let mut first = access(arbiter);
        let releasing = spawn(move || drop(held));
        let mut late = [(); 2].map(|()| Box::pin(arbiter.access()));
        let granted = late.each_mut().map(poll);
        releasing.join().unwrap();
        assert_eq!(granted, [false; 2], "the first has it, or no task yet");
        assert!(poll(&mut first));
    });
}

#[test]
fn next_signal_reader_takes_nothing_twice() {
    share(Signal::<u32, 3>::with_slots).check(2, |signal| {
        let (mut writer, mut reader) = signal.split().unwrap();
        writer.write(17);
        let reading = spawn(move || assert_eq!(reader.try_read(), Some(17)));
        if let Ok(mut next) = signal.reader() {
            assert_eq!(next.try_read(), None);
        }
        reading.join().unwrap();
    });
}

/// The receiver finds no message, then no sender: it has to check for the last message of the last
/// sender.
#[test]
fn receives_last_message_of_last_sender() {
    share(Channel::<u32, 1, 2>::with_slots).check(2, |channel| {
        let (mut sender, mut receiver) = channel.split_once().unwrap();
        // The receiver may be gone already.
        let sending = spawn(move || sender.try_send(17).is_ok());
        // Not in this thread, which has seen the channel empty.
        let receiving = spawn(move || assert_ne!(receiver.try_recv(), Err(ReceiveError::NoSender)));
        sending.join().unwrap();
        receiving.join().unwrap();
    });
}

/// A second writer replaces the first one's value, and a third writes into that node without other
/// synchronization with the first.
#[test]
fn node_writes_are_ordered() {
    share(Watch::<[u32; 2], 4>::with_slots).check(2, |watch| {
        let mut third = watch.writer().unwrap();
        let others = [1, 2].map(|value| {
            let mut writer = watch.writer().unwrap();
            spawn(move || writer.write([value; 2]))
        });
        // loom runs no other thread before a plain load.
        yield_now();
        third.write([3; 2]);
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn lock(lock: &TicketLock<(), 2>, process: u32) -> Result<(), TicketLockError> {
    processes::begin(process);
    lock.lock_while(polls(0)).map(drop)
}

/// A model supports three processes.
///
/// Bound: no preemption. The model has one thread.
#[test]
fn reuses_numbers_of_dead_peers_after_last_reference() {
    share(|| TicketLock::<_, 2>::with_slots(())).check(0, |ticket_lock| {
        assert_eq!(lock(ticket_lock, 1), Ok(()));
        processes::die();
        assert_eq!((lock(ticket_lock, 2), lock(ticket_lock, 3)), (Ok(()), Ok(())));
        assert_eq!(lock(ticket_lock, 4), Ok(()), "the first process's number is free");
    });
}

/// Bound: no preemption. The model has one thread.
#[test]
fn dead_previous_owner_keeps_its_number() {
    share(|| TicketLock::<_, 2>::with_slots(())).check(0, |ticket_lock| {
        assert_eq!([1, 2, 3].map(|process| lock(ticket_lock, process)), [Ok(()); 3]);
        processes::die();
        assert_eq!(lock(ticket_lock, 4), Err(TicketLockError::Full));
        assert_eq!((lock(ticket_lock, 1), lock(ticket_lock, 4)), (Ok(()), Ok(())));
    });
}

/// Bound: no preemption. The model has one thread.
#[test]
fn dead_owner_keeps_its_number_until_handover() {
    share(|| TicketLock::<_, 2>::with_slots(())).check(0, |ticket_lock| {
        assert_eq!((lock(ticket_lock, 2), lock(ticket_lock, 3)), (Ok(()), Ok(())));
        processes::begin(1);
        std::mem::forget(ticket_lock.try_lock().unwrap());
        processes::die();
        assert_eq!(lock(ticket_lock, 4), Err(TicketLockError::Full));
        assert_eq!(lock(ticket_lock, 4), Err(TicketLockError::OwnerDied));
    });
}

/// One process died after it had passed the lock on, and another unlocks while a third checks for a
/// dead owner.
#[test]
fn does_not_hand_over_lock_twice_after_death() {
    share(|| TicketLock::<_, 2>::with_slots(())).check(2, |ticket_lock| {
        assert_eq!(lock(ticket_lock, 1), Ok(()));
        processes::die();
        let unlocking = spawn(|| assert_eq!(lock(ticket_lock, 2), Ok(())));
        let recovering = spawn(|| {
            processes::begin(3);
            ticket_lock.recover();
        });
        unlocking.join().unwrap();
        recovering.join().unwrap();
        processes::begin(2);
        let _held = ticket_lock.lock_while(polls(0)).unwrap();
        assert_eq!(lock(ticket_lock, 3), Err(TicketLockError::TimedOut));
    });
}
