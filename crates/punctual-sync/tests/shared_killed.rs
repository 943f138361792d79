//! The state of the structures in `shared` when a process that uses them is killed, at any
//! instruction.
#![cfg(not(loom))]

mod support {
    pub(crate) mod polls;
    pub(crate) mod steps;
}

use std::thread::scope;

use punctual_sync::shared::{
    AcquireError, Barrier, BarrierError, Flag, Latest, Ring, Semaphore, TakeOverError, TicketLock,
    TicketLockError,
};
use punctual_sync::{Duration, Instant, now};
use support::polls::polls;
use support::steps::{Child, Killed, end_of, in_shared_memory, kill_at_every_step, start_asleep};

/// Long before.
const AT_ONCE: Instant = Instant::from_ticks(1);

/// The deadline of a waiter while another process is single-stepped, which is slow on a busy
/// machine.
fn late() -> Instant {
    now() + Duration::from_secs(36_000)
}

/// An event that happens at all has happened by then, on the slowest machine. With a seeded bug it
/// may never happen; the environment then sets a shorter wait.
fn soon() -> Instant {
    let timeout = std::env::var("PUNCTUAL_TEST_TIMEOUT").ok().and_then(|seconds| seconds.parse().ok());
    now() + Duration::from_secs(timeout.unwrap_or(60))
}

#[test]
fn ring_accepts_new_producer() {
    kill_at_every_step::<Ring<u64, 4>, _>(
        || (),
        |ring| {
            let mut consumer = ring.consumer().unwrap();
            ring.producer().unwrap().push_slice(&[1, 2]);
            assert_eq!(consumer.take(), Some(1));
            consumer
        },
        |ring| {
            let mut producer = ring.producer().unwrap();
            let _ = producer.push(3);
            let _ = producer.stage(4);
            drop(producer);
        },
        |ring, mut consumer, killed| {
            assert!(matches!(ring.take_over_consumer(), Err(TakeOverError::Alive(_))));
            let mut producer = ring.take_over_producer().unwrap();
            assert_eq!(consumer.take(), Some(2));
            consumer.release();
            producer.push(5).unwrap();
            let items: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
            assert!([&[5][..], &[3, 5], &[3, 4, 5]].contains(&&items[..]), "{killed:?}: {items:?}");
            assert!(killed != Killed::Done || items == [3, 4, 5]);
        },
    );
}

#[test]
fn ring_accepts_new_consumer() {
    kill_at_every_step::<Ring<u64, 4>, _>(
        || (),
        |ring| {
            let mut producer = ring.producer().unwrap();
            producer.push_slice(&[1, 2, 3]);
            producer
        },
        |ring| {
            let mut consumer = ring.consumer().unwrap();
            let _ = consumer.pop();
            let _ = consumer.take();
            drop(consumer);
        },
        |ring, mut producer, killed| {
            let mut consumer = ring.take_over_consumer().unwrap();
            producer.push(4).unwrap();
            let items: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
            assert!([1, 2, 3].contains(&items[0]) && items == (items[0]..5).collect::<Vec<_>>(), "{items:?}");
            assert!(killed != Killed::Done || items == [3, 4]);
        },
    );
}

#[test]
fn latest_accepts_new_writer() {
    kill_at_every_step::<Latest<[u64; 4]>, _>(
        || [0; 4],
        |cell| cell.reader().unwrap(),
        |cell| {
            let mut writer = cell.writer().unwrap();
            for value in 1..4 {
                writer.write([value; 4]);
            }
        },
        |cell, mut reader, killed| {
            let first = reader.read();
            assert_eq!(first.value, [first.value[0]; 4], "{killed:?}: a value is not torn");
            assert!(killed != Killed::Done || first.value[0] == 3);
            let mut writer = cell.take_over_writer().unwrap();
            assert_eq!(reader.read().value, first.value, "nothing was written");
            for value in 4..8 {
                writer.write([value; 4]);
                let reading = reader.read();
                assert!(reading.is_new && reading.value == [value; 4], "{killed:?}: {reading:?}");
            }
        },
    );
}

#[test]
fn latest_accepts_new_reader() {
    kill_at_every_step::<Latest<[u64; 4]>, _>(
        || [0; 4],
        |cell| {
            let mut writer = cell.writer().unwrap();
            writer.write([1; 4]);
            writer
        },
        |cell| {
            let mut reader = cell.reader().unwrap();
            let _ = reader.read();
            let _ = reader.read();
        },
        |cell, mut writer, killed| {
            // The writer notices nothing.
            for value in 2..4 {
                writer.write([value; 4]);
            }
            let mut reader = cell.take_over_reader().unwrap();
            let reading = reader.read();
            assert!(reading.is_new && reading.value == [3; 4], "{killed:?}: {reading:?}");
            for value in 4..8 {
                assert!(!reader.read().is_new);
                writer.write([value; 4]);
                assert_eq!(reader.read().value, [value; 4], "{killed:?}");
            }
        },
    );
}

/// The new reader checks before another value is written.
#[test]
fn value_being_read_is_not_lost() {
    kill_at_every_step::<Latest<[u64; 4]>, _>(
        || [0; 4],
        |cell| cell.writer().unwrap().write([1; 4]),
        |cell| {
            let _ = cell.reader().unwrap().read();
        },
        |cell, (), killed| {
            let mut reader = cell.take_over_reader().unwrap();
            assert_eq!(reader.read().value, [1; 4], "{killed:?}");
        },
    );
}

#[test]
fn set_flag_wakes_waiter() {
    kill_at_every_step::<Flag, _>(
        || (),
        |flag| start_asleep(|| flag.wait_until(late())),
        Flag::set,
        |flag, waiting, _| {
            if !flag.is_set() {
                flag.set();
            }
            assert_eq!(end_of(waiting), Ok(()));
            flag.clear();
            assert!(flag.spin_while(polls(0)).is_err());
        },
    );
}

/// The remaining process passes with the ones it finds after the repair, and not before with the
/// dead.
fn passes_after_repair(barrier: &'static Barrier) {
    assert_eq!(barrier.arrived(), 0);
    let leaders: u32 = scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| u32::from(barrier.wait_until(soon()).unwrap())));
        both.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(leaders, 1);
}

#[test]
fn barrier_reports_peer_killed_before_arrival() {
    kill_at_every_step::<Barrier, _>(
        || 2,
        // Arrives before, so that it is not a newcomer, which would check the peers at once.
        |barrier| assert_eq!(barrier.spin_while(polls(0)), Err(BarrierError::TimedOut)),
        |barrier| {
            let _ = barrier.wait();
        },
        |barrier, (), killed| {
            assert!(killed != Killed::Asleep || barrier.arrived() == 1);
            let passed = if barrier.arrived() == 1 {
                // It did arrive, so this phase is over. In the next one no other member arrives.
                assert_eq!(barrier.spin_while(polls(0)), Ok(true), "{killed:?}");
                assert_eq!(barrier.wait_until(soon()), Err(BarrierError::PeerDied), "{killed:?}");
                true
            } else {
                false
            };
            assert!(barrier.repair() || !passed, "{killed:?}");
            assert!(!barrier.repair());
            passes_after_repair(barrier);
        },
    );
}

#[test]
fn barrier_reports_peer_killed_after_arrival() {
    kill_at_every_step::<Barrier, _>(
        || 2,
        |barrier| start_asleep(|| barrier.wait_until(late())),
        |barrier| {
            let _ = barrier.wait();
            // Arrives again, and gives up this time.
            let _ = barrier.spin_while(polls(1));
        },
        |barrier, waiting, killed| {
            if killed == Killed::After(0) {
                // No process can know, and another takes its place.
                assert_eq!(barrier.spin_while(polls(0)), Ok(true));
            }
            let passed = end_of(waiting);
            assert!(matches!(passed, Ok(_) | Err(BarrierError::PeerDied)), "{killed:?}: {passed:?}");
            assert!(killed != Killed::Done || passed == Ok(false));
            barrier.repair();
            passes_after_repair(barrier);
        },
    );
}

/// The same program, started again, does not replace its predecessor without a repair.
#[test]
fn successor_finds_barrier_broken() {
    kill_at_every_step::<Barrier, _>(
        || 3,
        |barrier| {
            if let Some(first) = Child::fork(|| assert!(barrier.wait().is_ok())) {
                first.run();
                assert_eq!(barrier.arrived(), 1);
                first.kill();
            }
        },
        |barrier| {
            let _ = barrier.wait();
        },
        |barrier, (), killed| {
            assert!(barrier.arrived() <= 1, "{killed:?}: a dead process counts once at most");
            assert!(barrier.repair());
            assert_eq!(barrier.arrived(), 0);
        },
    );
}

/// Two words that must be equal.
type Pair = [u64; 2];

/// Takes the lock more often than it has slots.
fn lock_still_works(lock: &TicketLock<Pair, 2>, killed: Killed) {
    match lock.lock_while(polls(10_000)) {
        Ok(pair) => assert_eq!(pair[0], pair[1], "{killed:?}: half changed"),
        Err(TicketLockError::OwnerDied) => {
            assert!(lock.try_lock().is_none(), "{killed:?}: the value has not been repaired");
            let mut pair = lock.take_over_while(polls(10_000)).unwrap();
            pair[1] = pair[0];
        }
        Err(error) => panic!("{killed:?}: {error}"),
    }
    for _ in 0..5 {
        let mut pair = lock.lock_while(polls(10_000)).unwrap_or_else(|error| panic!("{killed:?}: {error}"));
        *pair = pair.map(|word| word + 1);
    }
    assert!(lock.try_lock().is_some(), "{killed:?}");
}

fn change(lock: &TicketLock<Pair, 2>, turns: u32) {
    if let Ok(mut pair) = lock.lock_while(polls(turns)) {
        pair[0] += 1;
        pair[1] += 1;
    }
}

#[test]
fn lock_is_reacquired() {
    kill_at_every_step::<TicketLock<Pair, 2>, _>(
        || [0; 2],
        |_| (),
        |lock| {
            change(lock, 10);
            change(lock, 10);
        },
        |lock, (), killed| lock_still_works(lock, killed),
    );
}

/// The place of the dead holder's ticket is free before the token is passed on: another takes it
/// for its own ticket.
#[test]
fn ticket_drawn_before_recovery_is_kept() {
    kill_at_every_step::<TicketLock<Pair, 2>, _>(
        || [0; 2],
        |_| (),
        |lock| {
            let held = lock.lock_while(polls(0)).unwrap();
            // Gives up.
            let _ = lock.lock_while(polls(1)).map(drop);
            drop(held);
        },
        |lock, (), killed| {
            let locked = match lock.lock_while(polls(1_000)) {
                Err(TicketLockError::OwnerDied) => lock.take_over_while(polls(1_000)),
                locked => locked,
            };
            let locked = locked.unwrap_or_else(|error| panic!("{killed:?}: {error}"));
            assert!(lock.try_lock().is_none(), "{killed:?}: two have the lock");
            drop(locked);
            lock_still_works(lock, killed);
        },
    );
}

#[test]
fn skips_dead_ticket() {
    kill_at_every_step::<TicketLock<Pair, 2>, _>(
        || [0; 2],
        |lock| lock.lock_while(polls(0)).unwrap(),
        // Gives up.
        |lock| change(lock, 3),
        |lock, held, killed| {
            drop(held);
            lock_still_works(lock, killed);
        },
    );
}

/// The killed process has to skip a ticket that was abandoned, and one of a dead process.
#[test]
fn hands_lock_past_dead_waiters() {
    kill_at_every_step::<TicketLock<Pair, 4>, _>(
        || [0; 2],
        |_| (),
        |lock| {
            let held = lock.lock_while(polls(0)).unwrap();
            let _ = lock.lock_while(polls(1)).map(drop);
            let _ = lock.lock_while(polls(1)).map(drop);
            drop(held);
        },
        |lock, (), killed| {
            for _ in 0..6 {
                match lock.lock_while(polls(1_000)) {
                    Err(TicketLockError::OwnerDied) => drop(lock.take_over_while(polls(1_000)).unwrap()),
                    locked => drop(locked.unwrap_or_else(|error| panic!("{killed:?}: {error}"))),
                }
            }
        },
    );
}

/// Dies while it completes the operation of another dead process.
#[test]
fn lock_survives_death_during_recovery() {
    kill_at_every_step::<TicketLock<Pair, 2>, _>(
        || [0; 2],
        |lock| {
            let holder = Child::fork(|| std::mem::forget(lock.lock_while(polls(0))));
            let Some(holder) = holder else { return };
            holder.run();
            // It waits behind the holder, and dies as well.
            let waiter = Child::fork(|| {
                let _ = lock.lock_while(polls(u32::MAX));
            });
            let waiter = waiter.expect("the first process could be traced");
            waiter.start();
            while !format!("{lock:?}").contains("tickets: 2") {
                std::thread::yield_now();
            }
            holder.kill();
            waiter.kill();
        },
        |lock| {
            let _ = lock.take_over_while(polls(1)).map(|mut pair| {
                pair[0] += 1;
                pair[1] += 1;
            });
        },
        |lock, (), killed| lock_still_works(lock, killed),
    );
}

/// A lock supports 32 processes; dead ones do not count.
#[test]
fn lock_survives_many_processes() {
    let lock = in_shared_memory::<TicketLock<Pair, 2>>([0; 2]);
    for _ in 0..40 {
        let Some(child) = Child::fork(|| change(lock, 10)) else { return };
        child.run();
        child.kill();
    }
    assert_eq!(*lock.lock_while(polls(10)).unwrap(), [40; 2]);
}

/// Checks that all units of a semaphore with one unit are accounted for: it can be acquired once,
/// and not twice.
fn one_unit(semaphore: &Semaphore<2>, killed: Killed) {
    semaphore.recover();
    assert_eq!((semaphore.free(), semaphore.waiting()), (1, 0), "{killed:?}");
    let units = [(); 3].map(|()| semaphore.hold_until(1, AT_ONCE));
    let had = units.iter().filter(|unit| unit.is_ok()).count();
    assert_eq!(had, 1, "{killed:?}");
    drop(units);
    assert_eq!(semaphore.free(), 1);
}

#[test]
fn recovers_unit_of_dead_process() {
    kill_at_every_step::<Semaphore<2>, _>(
        || 1,
        |_| (),
        |semaphore| {
            drop(semaphore.hold(1));
            drop(semaphore.hold(1));
        },
        |semaphore, (), killed| {
            // A waiter detects the death itself.
            drop(semaphore.hold_until(1, soon()).unwrap());
            one_unit(semaphore, killed);
        },
    );
}

#[test]
fn recovers_place_of_dead_process() {
    kill_at_every_step::<Semaphore<2>, _>(
        || 0,
        |_| (),
        |semaphore| drop(semaphore.hold(9)),
        |semaphore, (), killed| {
            semaphore.signal(1).unwrap();
            // The dead process came first and has the higher level.
            drop(semaphore.hold_until(1, soon()).unwrap());
            one_unit(semaphore, killed);
        },
    );
}

#[test]
fn four_kills_do_not_fill_a_semaphore() {
    kill_at_every_step::<Semaphore<4>, _>(
        || 0,
        |semaphore| {
            for _ in 0..4 {
                let Some(child) = Child::fork(|| semaphore.acquire(5).unwrap()) else { return };
                child.run();
                child.kill();
            }
        },
        |semaphore| semaphore.signal(1).unwrap(),
        |semaphore, (), killed| {
            if semaphore.free() == 0 {
                semaphore.signal(1).unwrap();
            }
            assert_eq!(semaphore.acquire_until(1, soon()), Ok(()), "{killed:?}");
            assert_eq!(semaphore.acquire_until(1, AT_ONCE), Err(AcquireError::TimedOut));
            assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
        },
    );
}

/// A process that frees a unit dies while another one waits.
#[test]
fn signal_of_dead_process_is_delivered() {
    kill_at_every_step::<Semaphore<2>, _>(
        || 0,
        |semaphore| start_asleep(|| semaphore.acquire_until(1, late())),
        |semaphore| semaphore.signal(1).unwrap(),
        |semaphore, waiting, killed| {
            if killed == Killed::After(0) {
                semaphore.signal(1).unwrap();
            }
            assert_eq!(end_of(waiting), Ok(()), "{killed:?}");
            assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0), "{killed:?}");
        },
    );
}

/// Dies while it completes the operation of another dead process.
#[test]
fn semaphore_survives_death_during_recovery() {
    kill_at_every_step::<Semaphore<2>, _>(
        || 1,
        |semaphore| {
            let Some(holder) = Child::fork(|| std::mem::forget(semaphore.hold(1))) else { return };
            holder.run();
            let waiter = Child::fork(|| drop(semaphore.hold(2))).expect("the first process could be traced");
            waiter.run();
            assert_eq!((semaphore.free(), semaphore.waiting()), (0, 1));
            holder.kill();
            waiter.kill();
        },
        Semaphore::recover,
        |semaphore, (), killed| one_unit(semaphore, killed),
    );
}
