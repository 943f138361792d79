//! Slots of waits: whatever the owner does while it happens, nothing is lost and the waker has one user. That it has
//! is for loom to see, which watches the cell that the waker is in.
#![cfg(loom)]

mod loom_support;

use std::sync::{Mutex, PoisonError};

use loom_support::{Arena, Region, check, start};
use punctual_core::{Standing, Wait, WaitSlot};

type Slot = WaitSlot<&'static str>;

/// A slot in which somebody waits, with the waker `"first"`.
fn waiting(arena: &Arena) -> (&'static Slot, Wait) {
    let slot: &Slot = arena.put(WaitSlot::new());
    (slot, slot.begin("first").expect("it is free"))
}

fn end(slot: &Slot, wait: Wait) -> bool {
    // SAFETY: the model's first thread is the owner, and nobody else calls this.
    unsafe { slot.end(wait) }
}

/// The reactor's thread: it happens once. Gives what was woken.
fn happens(arena: &Arena, slot: &'static Slot, wait: Wait) -> impl FnOnce() -> Option<&'static str> {
    let woken = arena.put(Mutex::new(None));
    let lock = move || woken.lock().unwrap_or_else(PoisonError::into_inner);
    let reactor = start(9, move || *lock() = slot.fire(wait));
    move || {
        reactor.join().unwrap();
        lock().take()
    }
}

/// The owner sets another waker while it happens: that one is woken, or the owner sees it.
#[test]
fn it_happens_under_another_waker() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        // SAFETY: the model's first thread is the owner.
        let standing = unsafe { slot.renew(wait, "second") };
        let woken = woken();
        match standing {
            Standing::Waiting => assert_eq!(woken, Some("second"), "nobody is told"),
            Standing::Fired => assert_ne!(woken, Some("second"), "it was refused"),
            Standing::Over => panic!("the owner has not ended it"),
        }
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(slot, wait));
        assert!(slot.begin("third").is_ok(), "the slot is lost");
    });
}

/// The owner gives up while it happens, and a third thread begins a wait as soon as it can.
#[test]
fn a_wait_is_given_up_and_another_begun() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let begun = arena.put(Mutex::new(None));
        let lock = move || begun.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = happens(arena, slot, wait);
        let other = start(8, move || *lock() = slot.begin("second").ok());
        assert!(end(slot, wait), "it was the owner's to end");
        assert!(matches!(woken(), None | Some("first")));
        other.join().unwrap();
        // Whoever was last has freed the slot.
        let next = lock().take().unwrap_or_else(|| slot.begin("second").expect("the slot is lost"));
        assert_eq!(slot.fire(wait), None, "it is over");
        assert_eq!(slot.fire(next), Some("second"));
    });
}

/// The owner ends the wait as soon as it sees that it has happened, and begins the next.
#[test]
fn a_wait_that_fired_is_ended() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        let mut next = None;
        // Looks by setting another waker: loom does not run the reactor before a plain load.
        // SAFETY: the model's first thread is the owner.
        if unsafe { slot.renew(wait, "second") } == Standing::Fired {
            assert!(end(slot, wait));
            next = slot.begin("third").ok();
        }
        assert_ne!(woken(), Some("third"), "it is not about that wait");
        if let Some(next) = next {
            assert_eq!(slot.fire(next), Some("third"));
        }
    });
}

/// A reactor that guesses the number of a wait finds none, or the whole waker.
#[test]
fn a_wait_is_announced_with_its_waker() {
    check(3, |arena| {
        let slot: &Slot = arena.put(WaitSlot::new());
        let woken = happens(arena, slot, Wait::from_number(1));
        let wait = slot.begin("first").expect("it is free");
        assert_eq!(wait.number(), 1);
        assert!(matches!(woken(), None | Some("first")));
        assert!(end(slot, wait), "it was the owner's to end");
    });
}

/// The owner only asks. What the reactor did before it fired is over, and may be looked at.
#[test]
fn the_owner_sees_what_was_done_before_it_fired() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let region = arena.put(Region::new());
        let reactor = start(9, move || {
            region.enter();
            slot.fire(wait);
        });
        while slot.standing(wait) != Standing::Fired {
            loom::thread::yield_now();
        }
        assert_eq!(region.count(), 1);
        reactor.join().unwrap();
    });
}

/// The owner gives up while the reactor has the waker, and begins the next wait as soon as it can.
#[test]
fn a_wait_is_given_up_that_fires() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        loom::thread::yield_now();
        assert!(end(slot, wait), "it was the owner's to end");
        loom::thread::yield_now();
        let next = slot.begin("second");
        assert!(matches!(woken(), None | Some("first")));
        let next = next.or_else(|waker| slot.begin(waker)).expect("the slot is lost");
        assert_eq!(slot.fire(next), Some("second"));
    });
}
