//! The lock of MSRP under every interleaving: it has one holder at a time, whether threads spin for it or sleep; who
//! spins is served in order and stays out of the kernel; everybody who sleeps is woken.
//!
//! loom itself panics if two threads are in the region at once, or in turn without the second seeing what the first
//! did. The kernel's model panics if everybody sleeps.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::{Region, looks};
use loom::cell::Cell;
use loom::thread::yield_now;
use punctual_sync::MsrpLockError;
use punctual_sync::futex::{self, model::check, model::start};
use punctual_sync::{MsrpLock, MsrpThread};

/// Turns that are never used up between two threads: one that yields lets the other run. Of three, loom also explores
/// that two yield to each other until they give up.
const PATIENT: u32 = 100;

type Lock = MsrpLock<4>;

fn enter<const W: usize>(lock: &MsrpLock<W>, region: &Region, turns: u32) {
    let me = MsrpThread::current();
    let held = lock.lock_while(&me, looks(turns)).unwrap();
    region.enter();
    drop(held);
}

/// After all others have ended, the lock is free, nothing is left in the queue, and `expected` entered.
fn settled<const W: usize>(lock: &MsrpLock<W>, region: &Region, expected: u32) {
    assert_eq!(lock.queued(), 0, "every place was given back");
    let before = futex::calls();
    let me = MsrpThread::current();
    let held = lock.lock_while(&me, looks(0)).unwrap();
    assert_eq!(region.count(), expected);
    drop(held);
    assert_eq!(futex::calls() - before, 0, "the lock was free");
}

#[test]
fn spinning_threads_stay_out_of_the_kernel() {
    check(3, |arena| {
        let (lock, region) = (arena.put(Lock::with_places()), arena.put(Region::new()));
        let enter = || {
            enter(lock, region, PATIENT);
            assert_eq!(futex::calls(), 0, "who passes its turn on has let go of the lock before");
        };
        let other = start(2, enter);
        enter();
        other.join();
        settled(lock, region, 2);
    });
}

#[test]
fn one_spins_and_one_sleeps() {
    check(4, |arena| {
        let (lock, region) = (arena.put(Lock::with_places()), arena.put(Region::new()));
        let other = start(2, || enter(lock, region, 0));
        enter(lock, region, PATIENT);
        other.join();
        settled(lock, region, 2);
    });
}

/// While one holds the lock, one comes to sleep and one to spin.
#[test]
fn three_threads_take_turns() {
    check(1, |arena| {
        let (lock, region) = (arena.put(Lock::with_places()), arena.put(Region::new()));
        let me = MsrpThread::current();
        let held = lock.lock_while(&me, looks(0)).unwrap();
        let others = [(2, 0), (3, 2)];
        let others = others.map(|(thread, turns)| start(thread, move || enter(lock, region, turns)));
        region.enter();
        drop(held);
        others.into_iter().for_each(|other| other.join());
        settled(lock, region, 3);
    });
}

/// Who finds no place is not in the queue, and gets the lock all the same.
#[test]
fn more_threads_than_places() {
    check(3, |arena| {
        let (lock, region) = (arena.put(MsrpLock::<1>::with_places()), arena.put(Region::new()));
        let other = start(2, || enter(lock, region, 1));
        enter(lock, region, 1);
        other.join();
        settled(lock, region, 2);
    });
}

/// A thread that unlocks and locks again comes after the one that has waited meanwhile.
#[test]
fn spinning_threads_are_served_in_order() {
    check(4, |arena| {
        let lock = arena.put(Lock::with_places());
        // Of loom's cells: it panics if two threads are at this one without the lock between them.
        let entered = arena.put(Cell::new(0));
        let me = MsrpThread::current();
        let held = lock.lock_while(&me, looks(0)).unwrap();
        let other = start(2, || {
            let me = MsrpThread::current();
            let held = lock.lock_while(&me, looks(PATIENT)).unwrap();
            assert_eq!(entered.replace(1), 0, "it came first");
            drop(held);
        });
        while lock.queued() < 2 {
            yield_now();
        }
        drop(held);
        let held = lock.lock_while(&me, looks(PATIENT)).unwrap();
        assert_eq!(entered.get(), 1, "first come, first served");
        assert!(held.in_turn());
        drop(held);
        other.join();
    });
}

/// Locks that are nested in opposite orders: the kernel finds the circle, one thread is told, and both locks stay
/// usable.
#[test]
fn a_circle_is_an_error() {
    /// In any execution, so none of loom's.
    static FOUND: AtomicBool = AtomicBool::new(false);
    check(2, |arena| {
        let (a, b) = (arena.put(Lock::with_places()), arena.put(Lock::with_places()));
        let regions = (arena.put(Region::new()), arena.put(Region::new()));
        let nest = |outer: &Lock, inner: &Lock| {
            let me = MsrpThread::current();
            let held = outer.lock_while(&me, looks(1)).unwrap();
            let nested = inner.lock_while(&me, looks(1));
            if let Err(error) = nested.map(drop) {
                assert_eq!(error, MsrpLockError::Deadlock);
                FOUND.store(true, Ordering::Relaxed);
            }
            drop(held);
        };
        let other = start(2, move || nest(b, a));
        nest(a, b);
        other.join();
        settled(a, regions.0, 0);
        settled(b, regions.1, 0);
    });
    assert!(FOUND.load(Ordering::Relaxed), "there is a circle");
}
