//! The MSRP lock under every interleaving: it has one holder at a time, whether threads spin for it
//! or sleep; spinning threads are served in order and stay out of the kernel; every sleeping thread
//! is woken.
//!
//! loom panics if two threads are in the region at once, or in turn without the second seeing the
//! first one's writes. The kernel's model panics if every thread sleeps.
//!
//! Bound: three preemptions; the merge gate explores two. A second holder needs one preemption,
//! between a thread's check of the owner and its change. A lost wake needs one of the waiting
//! thread, between its registration and its sleep, and one of the owner, between the unlock and the
//! check for waiting threads. The third lets the owner lock again in between.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::{Region, polls};
use loom::cell::Cell;
use loom::thread::yield_now;
use punctual_sync::MsrpLockError;
use punctual_sync::futex::{self, model::check, model::start};
use punctual_sync::{MsrpLock, MsrpThread};

/// A number of turns that two threads never use up: a yield lets the other run. With three threads,
/// loom also explores executions in which two yield to each other until they give up.
const PATIENT: u32 = 100;

type Lock = MsrpLock<4>;

fn enter<const W: usize>(lock: &MsrpLock<W>, region: &Region, turns: u32) {
    let me = MsrpThread::current();
    let held = lock.lock_while(&me, polls(turns)).unwrap();
    region.enter();
    drop(held);
}

/// Checks that after all others have ended the lock is free, the queue is empty, and `expected`
/// threads entered.
fn settled<const W: usize>(lock: &MsrpLock<W>, region: &Region, expected: u32) {
    assert_eq!(lock.queued(), 0, "every slot was returned");
    let before = futex::calls();
    let me = MsrpThread::current();
    let held = lock.lock_while(&me, polls(0)).unwrap();
    assert_eq!(region.count(), expected);
    drop(held);
    assert_eq!(futex::calls() - before, 0, "the lock was free");
}

#[test]
fn spinning_threads_enter_no_kernel() {
    check(3, |arena| {
        let (lock, region) = (arena.put(Lock::with_slots()), arena.put(Region::new()));
        let enter = || {
            enter(lock, region, PATIENT);
            assert_eq!(futex::calls(), 0, "a thread releases the lock before it passes its turn on");
        };
        let other = start(2, enter);
        enter();
        other.join();
        settled(lock, region, 2);
    });
}

/// Bound: four preemptions; the nightly run explores three, and the merge gate two. Either thread
/// may be stopped between its arrival and its wait, and between its unlock and its next check.
#[test]
fn one_spins_and_one_sleeps() {
    check(4, |arena| {
        let (lock, region) = (arena.put(Lock::with_slots()), arena.put(Region::new()));
        let other = start(2, || enter(lock, region, 0));
        enter(lock, region, PATIENT);
        other.join();
        settled(lock, region, 2);
    });
}

/// While one thread holds the lock, one arrives to sleep and one to spin.
///
/// Bound: one preemption. It stops one thread between its check and its wait; the others run until
/// they wait, which costs none. The models of two threads explore more.
#[test]
fn three_threads_take_turns() {
    check(1, |arena| {
        let (lock, region) = (arena.put(Lock::with_slots()), arena.put(Region::new()));
        let me = MsrpThread::current();
        let held = lock.lock_while(&me, polls(0)).unwrap();
        let others = [(2, 0), (3, 2)];
        let others = others.map(|(thread, turns)| start(thread, move || enter(lock, region, turns)));
        region.enter();
        drop(held);
        others.into_iter().for_each(|other| other.join());
        settled(lock, region, 3);
    });
}

/// A thread that finds no slot is not in the queue, and still gets the lock.
#[test]
fn more_threads_than_places() {
    check(3, |arena| {
        let (lock, region) = (arena.put(MsrpLock::<1>::with_slots()), arena.put(Region::new()));
        let other = start(2, || enter(lock, region, 1));
        enter(lock, region, 1);
        other.join();
        settled(lock, region, 2);
    });
}

/// A thread that unlocks and locks again comes after the one that has been waiting.
///
/// Bound: four preemptions; the nightly run explores three, and the merge gate two. Barging needs
/// one: the owner unlocks and locks again between two checks of the waiting thread. The others stop
/// each thread once more.
#[test]
fn spinning_threads_are_served_in_order() {
    check(4, |arena| {
        let lock = arena.put(Lock::with_slots());
        // One of loom's cells: it panics if two threads access it without the lock in between.
        let entered = arena.put(Cell::new(0));
        let me = MsrpThread::current();
        let held = lock.lock_while(&me, polls(0)).unwrap();
        let other = start(2, || {
            let me = MsrpThread::current();
            let held = lock.lock_while(&me, polls(PATIENT)).unwrap();
            assert_eq!(entered.replace(1), 0, "this thread came first");
            drop(held);
        });
        while lock.queued() < 2 {
            yield_now();
        }
        drop(held);
        let held = lock.lock_while(&me, polls(PATIENT)).unwrap();
        assert_eq!(entered.get(), 1, "first come, first served");
        assert!(held.in_turn());
        drop(held);
        other.join();
    });
}

/// Locks that are nested in opposite orders: the kernel detects the cycle, one thread gets an
/// error, and both locks stay usable.
///
/// Bound: two preemptions. The cycle needs one, after the first thread has locked its outer lock.
/// One more stops the second thread before it waits.
#[test]
fn deadlock_is_an_error() {
    /// Across executions, so not one of loom's.
    static FOUND: AtomicBool = AtomicBool::new(false);
    check(2, |arena| {
        let (a, b) = (arena.put(Lock::with_slots()), arena.put(Lock::with_slots()));
        let regions = (arena.put(Region::new()), arena.put(Region::new()));
        let nest = |outer: &Lock, inner: &Lock| {
            let me = MsrpThread::current();
            let held = outer.lock_while(&me, polls(1)).unwrap();
            let nested = inner.lock_while(&me, polls(1));
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
    assert!(FOUND.load(Ordering::Relaxed), "a cycle was found");
}
