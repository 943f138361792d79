//! Models of messages from many senders, and of the doorbell that wakes the receiver. `cargo test`
//! without `--cfg loom` skips them.
//!
//! Bound: three preemptions; the merge gate explores two. A message is lost or torn if a drain
//! falls between two steps of a send, or a send between two steps of a drain: one preemption for
//! each. The doorbell stays silent if a message arrives between the receiver's check and its sleep,
//! and the sender checks for a sleeping receiver before: one preemption of the receiver and one of
//! the sender. The third allows each order with a second sender.

use crate::model::share;
use loom::thread::{spawn, yield_now};
use punctual_sync::shared::{Doorbell, Inbox};

/// Both need the only slot, so that one of them takes it again after a drain.
#[test]
fn inbox_gives_each_message_once_and_whole() {
    share(Inbox::<[u32; 2], 1>::new).check(3, |inbox| {
        let senders = [1, 2].map(|message| {
            spawn(move || {
                while inbox.send([message; 2]).is_err() {
                    yield_now();
                }
            })
        });
        let mut taken = Vec::new();
        while taken.len() < 2 {
            inbox.drain(|[one, other]| {
                assert_eq!(one, other);
                taken.push(one);
            });
            yield_now();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        assert!(inbox.is_empty());
    });
}

#[test]
fn inbox_keeps_order_of_each_sender() {
    share(Inbox::<u32, 2>::new).check(3, |inbox| {
        let sending = spawn(|| (0..3).filter(|message| inbox.send(*message).is_ok()).collect::<Vec<_>>());
        let mut taken = Vec::new();
        for _ in 0..2 {
            inbox.drain(|message| taken.push(message));
        }
        let sent = sending.join().unwrap();
        inbox.drain(|message| taken.push(message));
        assert_eq!(taken, sent);
    });
}

#[test]
fn doorbell_rings_for_missed_item() {
    share(|| (Inbox::<u32, 2>::new(), Doorbell::new())).check(3, |(inbox, bell)| {
        let sending = || {
            spawn(move || {
                inbox.send(1).unwrap();
                bell.is_to_ring()
            })
        };
        let senders = [sending(), sending()];
        let mut taken = inbox.drain(|_| ());
        bell.sleep();
        let sleeps = inbox.is_empty();
        if !sleeps {
            bell.stay();
            taken += inbox.drain(|_| ());
        }
        let rung = senders.into_iter().map(|sender| sender.join().unwrap());
        let rung = rung.filter(|rung| *rung).count();
        if sleeps && taken < 2 {
            assert_eq!(rung, 1, "it sleeps with a message queued and no doorbell rung");
        }
    });
}
