//! Models of the recovery after processes that die while using a structure in `shared`. `cargo
//! test` without `--cfg loom` skips them.
//!
//! Bound: two preemptions. A token, unit or end is recovered twice if one process does so between
//! the check and the change of the other: one preemption stops the first process there, and one
//! stops the other before its recovery is complete. The death itself costs none: it precedes the
//! recovery, or falls where its thread ends.

use crate::model::{Region, check, lend, polls, share};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread::spawn;
use punctual_sync::Instant;
use punctual_sync::shared::model as processes;
use punctual_sync::shared::{Barrier, BarrierError, Latest, Semaphore, TicketLock, TicketLockError};

/// One process dies holding the lock, or while it waits for it. Two others pass the token on, each
/// as if it were alone.
///
/// Bound: one preemption. It stops one process between its check of the dead owner and its
/// recovery; the other recovers the lock in between.
#[test]
fn recovers_ticket_lock_of_dead_process_once() {
    share(|| TicketLock::<Region, 4>::with_slots(Region::new())).check(1, |lock| {
        let dead = spawn(|| {
            processes::begin(1);
            let held = lock.lock_while(polls(0)).unwrap();
            held.enter();
            std::mem::forget(held);
            processes::die();
        });
        dead.join().unwrap();
        let enter = |process| {
            processes::begin(process);
            match lock.lock_while(polls(0)) {
                Ok(region) => region.enter(),
                Err(TicketLockError::OwnerDied) => {
                    if let Ok(region) = lock.take_over_while(polls(2)) {
                        region.enter();
                    }
                }
                Err(_) => {}
            }
        };
        let other = spawn(move || enter(2));
        enter(3);
        other.join().unwrap();
        let free = lock.take_over_while(polls(0)).map(|region| region.enter());
        assert_eq!(free, Ok(()), "the lock is free once all users have gone");
    });
}

/// No thread uses the value that a dead process left, even if it dies while the others wait
/// already.
#[test]
fn ticket_lock_reports_dead_owner() {
    check(2, || {
        lend(
            (TicketLock::<Region, 2>::with_slots(Region::new()), AtomicBool::new(false)),
            |(lock, is_dead)| {
                let dying = spawn(|| {
                    processes::begin(1);
                    let held = lock.lock_while(polls(0));
                    if let Ok(held) = held {
                        held.enter();
                        std::mem::forget(held);
                        is_dead.store(true, Ordering::Release);
                        processes::die();
                    }
                });
                processes::begin(2);
                let first = lock.lock_while(polls(1)).map(|region| region.enter());
                dying.join().unwrap();
                // Its process has died with the lock, unless this one held it then.
                if is_dead.load(Ordering::Acquire) {
                    let second = lock.lock_while(polls(0)).map(|region| region.enter());
                    assert_eq!(second, Err(TicketLockError::OwnerDied), "after {first:?}");
                    lock.take_over_while(polls(0)).unwrap().enter();
                }
                lock.lock_while(polls(0)).unwrap().enter();
            },
        );
    });
}

/// A unit of a dead process is returned once, although two threads recover it.
#[test]
fn recovers_semaphore_unit_of_dead_process_once() {
    share(|| (Semaphore::<3>::with_slots(1), Region::new())).check(2, |(semaphore, region)| {
        let dead = spawn(|| {
            processes::begin(1);
            std::mem::forget(semaphore.hold(1).unwrap());
            processes::die();
        });
        dead.join().unwrap();
        let enter = |process| {
            processes::begin(process);
            semaphore.recover();
            if let Ok(unit) = semaphore.hold_until(1, Instant::from_ticks(1)) {
                region.enter();
                drop(unit);
            }
        };
        let other = spawn(move || enter(2));
        enter(3);
        other.join().unwrap();
        assert_eq!((semaphore.free(), semaphore.waiting()), (1, 0));
    });
}

/// Process 1 arrives at the barrier, and dies.
fn die_at(barrier: &'static Barrier) {
    let dead = spawn(|| {
        processes::begin(1);
        assert_eq!(barrier.spin_while(polls(0)), Err(BarrierError::TimedOut));
        processes::die();
    });
    dead.join().unwrap();
}

/// No thread considers a phase complete in which a process died.
#[test]
fn barrier_breaks_once_for_all() {
    share(|| Barrier::new(2)).check(2, |barrier| {
        die_at(barrier);
        let arrive = |process| {
            processes::begin(process);
            let first = barrier.spin_while(polls(0));
            barrier.repair();
            first
        };
        let other = spawn(move || arrive(2));
        let mine = arrive(3);
        let theirs = other.join().unwrap();
        let passed = (mine.is_ok(), theirs.is_ok());
        assert!(passed.0 == passed.1, "both arrived, or neither: {mine:?}, {theirs:?}");
        assert_eq!((barrier.arrived(), barrier.repair()), (0, false));
    });
}

/// A repaired barrier stays whole, although another thread detected the same death before the
/// repair: no thread would repair it again.
#[test]
fn detected_death_breaks_no_repaired_barrier() {
    share(|| Barrier::new(2)).check(2, |barrier| {
        die_at(barrier);
        let other = spawn(|| {
            processes::begin(2);
            let _ = barrier.spin_while(polls(0));
        });
        processes::begin(3);
        assert!(barrier.repair());
        other.join().unwrap();
        assert_eq!(barrier.spin_while(polls(0)), Err(BarrierError::TimedOut));
    });
}

/// An end is taken over once, and its successor sees the dead process's writes.
///
/// Bound: three preemptions; the merge gate explores two. The third lets the dead process act
/// between the two that take over.
#[test]
fn latest_writer_is_taken_over_once() {
    share(|| (Latest::new([0_u32; 2]), AtomicU32::new(0))).check(3, |(cell, taken)| {
        let dead = spawn(|| {
            processes::begin(1);
            let Ok(mut writer) = cell.writer() else { return };
            writer.write([1; 2]);
            std::mem::forget(writer);
            processes::die();
        });
        let take_over = |process| {
            processes::begin(process);
            let writer = cell.take_over_writer();
            if let Ok(mut writer) = writer {
                writer.write([2; 2]);
                taken.fetch_add(1, Ordering::Relaxed);
                std::mem::forget(writer);
            }
        };
        let other = spawn(move || take_over(2));
        take_over(3);
        other.join().unwrap();
        dead.join().unwrap();
        assert!(taken.load(Ordering::Relaxed) <= 1, "the first new owner is alive");
        let [a, b] = cell.reader().unwrap().read().value;
        assert_eq!(a, b, "a value is not torn");
    });
}
