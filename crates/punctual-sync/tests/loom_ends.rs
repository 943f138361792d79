//! Models of what outlasts a user of the structures in `asynch`: places, ends, and the order of those who wait.
//! `cargo test` without `--cfg loom` skips them.
#![cfg(loom)]

mod model;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use loom::thread::{spawn, yield_now};
use model::{Region, check, lend};
use punctual_sync::asynch::arbiter::{Access, Arbiter};
use punctual_sync::asynch::channel::{Channel, ReceiveError};
use punctual_sync::asynch::signal::Signal;
use punctual_sync::asynch::watch::Watch;

type Waiting<'a, const W: usize> = Pin<Box<Access<'a, Region, W>>>;

/// Begins to wait, if it has to.
fn access<const W: usize>(arbiter: &'static Arbiter<Region, W>) -> Waiting<'static, W> {
    let mut access = Box::pin(arbiter.access());
    assert!(!poll(&mut access), "somebody has the access");
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
fn a_place_left_to_its_notifier_is_free_again() {
    check(2, || {
        lend(Arbiter::<Region, 1>::with_places(Region::new()), |arbiter| {
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
    });
}

#[test]
fn a_place_given_up_while_its_task_is_woken_is_free_again() {
    check(2, || {
        lend(Arbiter::<Region, 1>::with_places(Region::new()), |arbiter| {
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
    });
}

/// Two begin to wait after the notifier has looked how many did.
#[test]
fn late_comers_do_not_overtake() {
    check(2, || {
        lend(Arbiter::<Region, 3>::with_places(Region::new()), |arbiter| {
            let held = arbiter.try_access().unwrap();
            let mut first = access(arbiter);
            let releasing = spawn(move || drop(held));
            let mut late = [(); 2].map(|()| Box::pin(arbiter.access()));
            let granted = late.each_mut().map(poll);
            releasing.join().unwrap();
            assert_eq!(granted, [false; 2], "the first has it, or nobody yet");
            assert!(poll(&mut first));
        });
    });
}

#[test]
fn the_next_reader_of_a_signal_takes_nothing_twice() {
    check(2, || {
        lend(Signal::<u32, 3>::with_places(), |signal| {
            let (mut writer, mut reader) = signal.split().unwrap();
            writer.write(17);
            let reading = spawn(move || assert_eq!(reader.try_read(), Some(17)));
            if let Ok(mut next) = signal.reader() {
                assert_eq!(next.try_read(), None);
            }
            reading.join().unwrap();
        });
    });
}

/// The receiver finds no message, then no sender: it has to look for the last message of the last one.
#[test]
fn the_last_message_of_the_last_sender_is_received() {
    check(2, || {
        lend(Channel::<u32, 1, 2>::with_places(), |channel| {
            let (mut sender, mut receiver) = channel.split_once().unwrap();
            // The receiver may be gone already.
            let sending = spawn(move || sender.try_send(17).is_ok());
            // Not in this thread, which has seen the channel empty.
            let receiving = spawn(move || assert_ne!(receiver.try_recv(), Err(ReceiveError::NoSender)));
            sending.join().unwrap();
            receiving.join().unwrap();
        });
    });
}

/// A second writer replaces the first one's value, and a third writes into that node, which has not seen the first otherwise.
#[test]
fn a_node_is_written_after_its_last_writer() {
    check(2, || {
        lend(Watch::<[u32; 2], 4>::with_places(), |watch| {
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
    });
}
