//! Wait slots: no event is lost, regardless of concurrent actions of the owner, and the waker has
//! one user. loom checks the latter, since it monitors the waker's cell.
//!
//! Bound: three preemptions; the merge gate explores two. An event is lost, or the waker has two
//! users, if the reactor fires between the owner's check of the slot and its change, or the owner
//! ends the wait while the reactor uses the waker: one preemption of the first, and one of the
//! other before it has freed the slot. The third lets a third thread begin the next wait in
//! between.

use std::sync::{Mutex, PoisonError};

use crate::support::{Arena, Region, check, start};
use punctual_core::{Standing, Wait, WaitSlot};

type Slot = WaitSlot<&'static str>;

/// A slot with a wait in progress, whose waker is `"first"`.
fn waiting(arena: &Arena) -> (&'static Slot, Wait) {
    let slot: &Slot = arena.put(WaitSlot::new());
    (slot, slot.begin("first").expect("the slot is free"))
}

fn end(slot: &Slot, wait: Wait) -> bool {
    // SAFETY: the model's first thread is the owner, and no other thread calls this.
    unsafe { slot.end(wait) }
}

/// The reactor's thread: fires once. Returns the woken waker.
fn happens(arena: &Arena, slot: &'static Slot, wait: Wait) -> impl FnOnce() -> Option<&'static str> {
    let woken = arena.put(Mutex::new(None));
    let lock = move || woken.lock().unwrap_or_else(PoisonError::into_inner);
    let reactor = start(9, move || *lock() = slot.fire(wait));
    move || {
        reactor.join().unwrap();
        lock().take()
    }
}

/// The owner sets another waker while the event occurs: that waker is woken, or the owner sees the
/// event.
#[test]
fn event_happens_under_other_waker() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        // SAFETY: the model's first thread is the owner.
        let standing = unsafe { slot.renew(wait, "second") };
        let woken = woken();
        match standing {
            Standing::Waiting => assert_eq!(woken, Some("second"), "the event is lost"),
            Standing::Fired => assert_ne!(woken, Some("second"), "the waker was rejected"),
            Standing::Over => panic!("the owner has not ended it"),
        }
        assert_eq!(slot.standing(wait), Standing::Fired);
        assert!(end(slot, wait));
        assert!(slot.begin("third").is_ok(), "the slot is lost");
    });
}

/// The owner gives up while the event occurs, and a third thread begins a wait as soon as it can.
#[test]
fn abandons_wait_and_starts_another() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let begun = arena.put(Mutex::new(None));
        let lock = move || begun.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = happens(arena, slot, wait);
        let other = start(8, move || *lock() = slot.begin("second").ok());
        assert!(end(slot, wait), "the owner ends the wait");
        assert!(matches!(woken(), None | Some("first")));
        other.join().unwrap();
        // The last user has freed the slot.
        let next = lock().take().unwrap_or_else(|| slot.begin("second").expect("the slot is lost"));
        assert_eq!(slot.fire(wait), None, "the wait is over");
        assert_eq!(slot.fire(next), Some("second"));
    });
}

/// The owner ends the wait as soon as it sees the event, and begins the next.
#[test]
fn ends_fired_wait() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        let mut next = None;
        // Checks by setting another waker: loom does not run the reactor before a plain load.
        // SAFETY: the model's first thread is the owner.
        if unsafe { slot.renew(wait, "second") } == Standing::Fired {
            assert!(end(slot, wait));
            next = slot.begin("third").ok();
        }
        assert_ne!(woken(), Some("third"), "a stale wait must not fire the next");
        if let Some(next) = next {
            assert_eq!(slot.fire(next), Some("third"));
        }
    });
}

/// A reactor that guesses the number of a wait finds none, or the complete waker.
#[test]
fn announces_wait_with_waker() {
    check(3, |arena| {
        let slot: &Slot = arena.put(WaitSlot::new());
        let woken = happens(arena, slot, Wait::from_number(1));
        let wait = slot.begin("first").expect("the slot is free");
        assert_eq!(wait.number(), 1);
        assert!(matches!(woken(), None | Some("first")));
        assert!(end(slot, wait), "the owner ends the wait");
    });
}

/// The owner only checks the status. The reactor's earlier actions are complete and visible.
#[test]
fn owner_observes_writes_before_fire() {
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

/// The owner gives up while the reactor uses the waker, and begins the next wait as soon as it can.
#[test]
fn abandons_firing_wait() {
    check(3, |arena| {
        let (slot, wait) = waiting(arena);
        let woken = happens(arena, slot, wait);
        loom::thread::yield_now();
        assert!(end(slot, wait), "the owner ends the wait");
        loom::thread::yield_now();
        let next = slot.begin("second");
        assert!(matches!(woken(), None | Some("first")));
        let next = next.or_else(|waker| slot.begin(waker)).expect("the slot is lost");
        assert_eq!(slot.fire(next), Some("second"));
    });
}
