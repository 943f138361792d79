//! The MSRP lock on real threads: its number of system calls, its order of service, and its errors.
//!
//! Threads that must not reach their bound check 2³² times, which takes many seconds.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::{self, scope};
use std::time::Duration;

use crate::pcp_support::{
    Release, await_asleep, become_fifo, real_time, running_priority, thread_id, watchdog,
};
use crate::support::{polls, until};
use punctual_sync::MsrpLockError;
use punctual_sync::{MsrpLock, MsrpThread, futex};

const PATIENT: u32 = u32::MAX;
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the number of futex calls that the calling thread makes in `f`.
fn calls<R>(f: impl FnOnce() -> R) -> u64 {
    let before = futex::calls();
    f();
    futex::calls() - before
}

fn await_queued<const W: usize>(lock: &MsrpLock<W>, threads: u32) {
    until("a slot to be taken", || (lock.queued() == threads).then_some(()));
}

#[test]
fn free_lock_needs_no_system_call() {
    static LOCK: MsrpLock = MsrpLock::new();
    let me = MsrpThread::current();
    let all = calls(|| {
        for turns in 0..1000 {
            drop(LOCK.lock_while(&me, polls(turns)).unwrap());
        }
    });
    assert_eq!(all, 0);
    assert_eq!(LOCK.queued(), 0);
}

#[test]
fn spinning_no_call_and_first_come_first_served() {
    let _alive = watchdog(LIMIT);
    let lock = MsrpLock::new();
    let order = Mutex::new(Vec::new());
    let holding = calls(|| {
        let me = MsrpThread::current();
        scope(|scope| {
            let held = lock.lock_while(&me, polls(0)).unwrap();
            let others = [1, 2, 3].map(|place| {
                let (lock, order) = (&lock, &order);
                let other = scope.spawn(move || {
                    let me = MsrpThread::current();
                    calls(|| {
                        let held = lock.lock_while(&me, polls(PATIENT)).unwrap();
                        assert!(held.in_turn());
                        order.lock().unwrap().push(place);
                        drop(held);
                    })
                });
                await_queued(lock, place + 1);
                other
            });
            drop(held);
            others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 0));
        });
    });
    assert_eq!(holding, 0);
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}

/// A thread that has reached its bound makes one call, and the thread that unlocks for it another;
/// so does the first, since the kernel has marked the lock when it handed it over. Then everything
/// is as before.
#[test]
fn wait_above_limit_costs_one_call_each_side() {
    let _alive = watchdog(LIMIT);
    let lock = MsrpLock::new();
    let waiter = AtomicU32::new(0);
    let me = MsrpThread::current();
    let held = lock.lock_while(&me, polls(0)).unwrap();
    scope(|scope| {
        let other = scope.spawn(|| {
            let me = MsrpThread::current();
            waiter.store(thread_id(), Ordering::Release);
            let mut held = None;
            let locking = calls(|| held = Some(lock.lock_while(&me, polls(10)).unwrap()));
            assert!(held.as_ref().is_some_and(|held| !held.in_turn()));
            let again = calls(|| {
                assert_eq!(lock.lock_while(&me, polls(PATIENT)).unwrap_err(), MsrpLockError::Reentrant)
            });
            (locking, again, calls(|| drop(held)))
        });
        await_asleep(&waiter);
        assert_eq!(calls(|| drop(held)), 1);
        assert_eq!(other.join().unwrap(), (1, 0, 1));
    });
    assert_eq!(calls(|| drop(lock.lock_while(&me, polls(0)).unwrap())), 0);
    assert_eq!(lock.queued(), 0);
}

#[test]
fn sleeps_at_once_without_place() {
    let _alive = watchdog(LIMIT);
    let lock = MsrpLock::<2>::with_slots();
    let waiter = AtomicU32::new(0);
    let me = MsrpThread::current();
    scope(|scope| {
        let held = lock.lock_while(&me, polls(0)).unwrap();
        let spins = scope.spawn(|| drop(lock.lock_while(&MsrpThread::current(), polls(PATIENT)).unwrap()));
        await_queued(&lock, 2);
        let sleeps = scope.spawn(|| {
            let me = MsrpThread::current();
            waiter.store(thread_id(), Ordering::Release);
            drop(lock.lock_while(&me, polls(PATIENT)).unwrap());
            futex::calls()
        });
        await_asleep(&waiter);
        drop(held);
        assert_eq!(sleeps.join().unwrap(), 2, "lock; unlock");
        spins.join().unwrap();
    });
    assert_eq!(lock.queued(), 0);
}

#[test]
fn error_explains_nested_lock() {
    let lock = MsrpLock::new();
    let (me, again) = (MsrpThread::current(), MsrpThread::current());
    let held = lock.lock_while(&me, polls(0)).unwrap();
    for me in [&me, &again] {
        let error = lock.lock_while(me, polls(PATIENT)).unwrap_err();
        assert_eq!(error, MsrpLockError::Reentrant);
        assert!(error.to_string().contains("lock once"), "{error}");
    }
    drop(held);
    assert!(lock.lock_while(&again, polls(0)).is_ok());
}

#[test]
fn a_panic_unlocks() {
    let lock = MsrpLock::new();
    let panics = catch_unwind(|| {
        let me = MsrpThread::current();
        let _held = lock.lock_while(&me, polls(0)).unwrap();
        panic!("in a critical section");
    });
    assert!(panics.is_err());
    let other =
        scope(|scope| scope.spawn(|| lock.lock_while(&MsrpThread::current(), polls(0)).is_ok()).join());
    assert!(other.unwrap(), "{lock:?}");
}

/// Each has one lock and needs the other's: both spin, both give up, and the kernel returns an
/// error to one, or to both if they ask at once.
#[test]
fn reports_deadlock() {
    let _alive = watchdog(LIMIT);
    let (a, b) = (MsrpLock::new(), MsrpLock::new());
    let both = Barrier::new(2);
    let nest = |outer: &MsrpLock, inner: &MsrpLock| {
        let me = MsrpThread::current();
        let _held = outer.lock_while(&me, polls(PATIENT)).unwrap();
        both.wait();
        inner.lock_while(&me, polls(100)).map(drop)
    };
    let ends = scope(|scope| {
        let other = scope.spawn(|| nest(&b, &a));
        [nest(&a, &b), other.join().unwrap()]
    });
    assert!(ends.contains(&Err(MsrpLockError::Deadlock)), "{ends:?}");
    assert!(ends.iter().all(|end| matches!(end, Ok(()) | Err(MsrpLockError::Deadlock))), "{ends:?}");
    assert_eq!((a.queued(), b.queued()), (0, 0));
}

/// Bounds of every length together; the count is read and written separately.
#[test]
fn loses_no_update_among_many_threads() {
    const ROUNDS: u64 = 5_000;
    let _alive = watchdog(LIMIT);
    let lock = MsrpLock::<4>::with_slots();
    let count = AtomicU64::new(0);
    let bounds = [0, 1, 30, 1_000, 100_000];
    scope(|scope| {
        for turns in bounds {
            let (lock, count) = (&lock, &count);
            scope.spawn(move || {
                let me = MsrpThread::current();
                for round in 0..ROUNDS {
                    let held = lock.lock_while(&me, polls(turns)).unwrap();
                    let before = count.load(Ordering::Relaxed);
                    if round % 64 == 0 {
                        thread::yield_now();
                    }
                    count.store(before + 1, Ordering::Relaxed);
                    drop(held);
                }
            });
        }
    });
    assert_eq!(count.into_inner(), ROUNDS * bounds.len() as u64);
    assert_eq!(lock.queued(), 0);
}

/// The purpose of the bound: the holder does not run, because a higher thread on its CPU does. That
/// thread needs the lock, and with spinning alone neither would ever continue.
#[test]
fn holder_inherits_priority_after_spin_limit() {
    const LOW: i32 = 11;
    const HIGH: i32 = 13;
    let Some(rt) = real_time("holder_inherits_priority_after_spin_limit") else { return };
    let lock = MsrpLock::new();
    let (low, high, has_run) = (Release::default(), Release::default(), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            become_fifo(Some(rt.cpu), HIGH).expect("allowed before");
            let me = MsrpThread::current();
            high.wait();
            drop(lock.lock_while(&me, polls(1_000)).unwrap());
            has_run.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            become_fifo(Some(rt.cpu), LOW).expect("allowed before");
            let me = MsrpThread::current();
            low.wait();
            let held = lock.lock_while(&me, polls(0)).unwrap();
            high.release();
            assert_eq!(running_priority(), HIGH, "inherited");
            drop(held);
            assert!(has_run.load(Ordering::Acquire), "handed over");
            assert_eq!(running_priority(), LOW, "priority restored");
        });
        [&low, &high].into_iter().for_each(Release::await_asleep);
        low.release();
    });
}
