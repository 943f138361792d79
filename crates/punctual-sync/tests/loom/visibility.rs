//! Models of visibility: every path through `Flag` and `Barrier` that ends a wait orders it after
//! the cause, including paths on which no thread actually waits; and a thread that takes over sees
//! the state that the dead one was given.
//!
//! Bound: two preemptions. A missing ordering needs none or one: loom returns older values, and
//! reports the access, in every execution in which the wait ends after its cause. One preemption
//! moves the cause to a given check of the waiting thread, and one returns to that thread before
//! the other has ended.

use crate::model::{Region, check, lend, polls, share};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{spawn, yield_now};
use punctual_sync::Instant;
use punctual_sync::shared::model as processes;
use punctual_sync::shared::{Barrier, BarrierError, Flag, Latest, Ring, Semaphore, asleep};

/// Enters after another thread that sets the flag, if `seen` reports the flag.
fn flag(seen: fn(&Flag) -> bool) {
    share(|| (Flag::new(), Region::new())).check(2, move |(flag, region)| {
        let setting = spawn(|| {
            region.enter();
            flag.set();
        });
        // loom runs no other thread before a plain load.
        yield_now();
        if seen(flag) {
            region.enter();
        }
        setting.join().unwrap();
    });
}

#[test]
fn set_flag_publishes_earlier_writes() {
    flag(Flag::is_set);
}

#[test]
fn set_flag_found_at_once_publishes_earlier_writes() {
    flag(|flag| flag.spin_while(polls(0)).is_ok());
}

#[test]
fn flag_without_sleeper_publishes_earlier_writes() {
    flag(|flag| {
        flag.wait();
        true
    });
}

/// Two threads arrive, and either may find that the phase is over at any of its checks.
#[test]
fn completed_phase_publishes_earlier_writes() {
    for turns in [0, 2] {
        share(|| (Barrier::new(2), Region::new())).check(2, move |(barrier, region)| {
            let other = spawn(move || {
                region.enter();
                // Regardless of the outcome: it has arrived before.
                let _ = barrier.spin_while(polls(0));
            });
            if barrier.spin_while(polls(turns)).is_ok() {
                region.enter();
            }
            other.join().unwrap();
        });
    }
}

/// A thread that repairs a barrier sees the writes of those that had arrived.
#[test]
fn repair_publishes_writes_before_break() {
    share(|| (Barrier::new(3), Region::new())).check(2, |(barrier, region)| {
        // So that no thread is a newcomer later, whose entry would be seen instead.
        for process in [1, 2, 3] {
            processes::begin(process);
            assert_eq!(barrier.spin_while(polls(0)), Err(BarrierError::TimedOut));
        }
        let other = spawn(|| {
            processes::begin(2);
            region.enter();
            let _ = barrier.spin_while(polls(1));
        });
        yield_now();
        if barrier.arrived() == 1 {
            processes::begin(1);
            processes::die();
            processes::begin(3);
            if barrier.repair() {
                region.enter();
            }
        }
        other.join().unwrap();
    });
}

/// A thread that passes a repaired barrier sees the writes made before the repair.
#[test]
fn repaired_barrier_publishes_writes_before_repair() {
    share(|| (Barrier::new(1), Region::new())).check(2, |(barrier, region)| {
        let broken = spawn(|| {
            processes::begin(1);
            let _ = barrier.spin_while(polls(0));
            processes::die();
        });
        broken.join().unwrap();
        let other = spawn(|| {
            processes::begin(2);
            // With a dead member registered, it arrives only after the repair.
            if barrier.spin_while(polls(0)).is_ok() {
                region.enter();
            }
        });
        processes::begin(3);
        region.enter();
        barrier.repair();
        other.join().unwrap();
    });
}

/// Bound: no preemption. The model has one thread.
#[test]
fn barrier_rejects_process_beyond_its_capacity() {
    // A model supports three processes.
    share(|| Barrier::new(9)).check(0, |barrier| {
        for process in 1..=3 {
            processes::begin(process);
            assert_eq!(barrier.spin_while(polls(0)), Err(BarrierError::TimedOut));
        }
        processes::begin(4);
        assert_eq!((barrier.spin_while(polls(0)), barrier.arrived()), (Err(BarrierError::Full), 0));
    });
}

/// A slot assigned to a dead reader just before belongs to the new reader, with the value that the
/// writer put there.
#[test]
fn new_reader_sees_value_of_dead_one() {
    share(|| Latest::new([0_u32; 2])).check(2, |cell| {
        processes::die_wanting(cell);
        let mut writer = cell.writer().unwrap();
        let writing = spawn(move || writer.write([1; 2]));
        yield_now();
        let [a, b] = cell.reader().unwrap().read().value;
        assert_eq!(a, b);
        writing.join().unwrap();
    });
}

/// A new producer writes where the consumer has read, unknown to the old producer.
#[test]
fn new_producer_observes_reads_of_the_consumer() {
    share(Ring::<u32, 2>::new).check(2, |ring| {
        let (mut producer, mut consumer) = ring.split().unwrap();
        assert_eq!(producer.push_slice(&[1, 2]), 2);
        drop(producer);
        let consuming = spawn(move || assert_eq!(consumer.pop(), Some(1)));
        yield_now();
        let _ = ring.producer().unwrap().push(3);
        consuming.join().unwrap();
    });
}

#[test]
fn new_consumer_observes_writes_of_the_producer() {
    share(Ring::<u32, 2>::new).check(2, |ring| {
        let mut producer = ring.producer().unwrap();
        let producing = spawn(move || producer.push(1).unwrap());
        yield_now();
        assert!(matches!(ring.consumer().unwrap().pop(), None | Some(1)));
        producing.join().unwrap();
    });
}

/// Items come and go between the loads of the two counters.
#[test]
fn ring_length_never_exceeds_capacity() {
    share(Ring::<u32, 2>::new).check(2, |ring| {
        let passing = spawn(|| {
            let (mut producer, mut consumer) = ring.split().unwrap();
            for item in 0..3 {
                producer.push(item).unwrap();
                assert_eq!(consumer.pop(), Some(item));
            }
        });
        yield_now();
        assert!(ring.len() <= 2);
        passing.join().unwrap();
    });
}

/// One item comes and goes: there are never two.
#[test]
fn ring_length_never_exceeds_one_item() {
    share(Ring::<u32, 4>::new).check(2, |ring| {
        let passing = spawn(|| {
            let (mut producer, mut consumer) = ring.split().unwrap();
            producer.push(1).unwrap();
            assert_eq!(consumer.pop(), Some(1));
        });
        // Not this thread, which has created the ring: after a yield loom shows no other thread
        // an older value.
        let looking = spawn(|| assert!(ring.len() <= 1));
        passing.join().unwrap();
        looking.join().unwrap();
    });
}

/// The slot of the thread that waits at a low level was last used at a high one. The signaler has
/// to see the new level with the bit, or it notifies the wrong thread, which leaves the unit to the
/// other, which sleeps.
#[test]
fn signal_reaches_highest_waiter() {
    check(2, || {
        let ended = || AtomicBool::new(false);
        lend((Semaphore::<2>::with_slots(0), ended(), ended()), |(semaphore, low, high)| {
            assert!(semaphore.acquire_until(9, Instant::from_ticks(1)).is_err());
            let wait = |level, has_ended: &'static AtomicBool| {
                semaphore.acquire(level).unwrap();
                has_ended.store(true, Ordering::Release);
            };
            let waiting = [(1, low), (5, high)].map(|(level, ended)| spawn(move || wait(level, ended)));
            spawn(|| semaphore.signal(1).unwrap()).join().unwrap();
            let one_has_ended = || low.load(Ordering::Acquire) || high.load(Ordering::Acquire);
            while !one_has_ended() {
                assert!(asleep() < 2, "a unit is free for one of them");
                yield_now();
            }
            semaphore.signal(1).unwrap();
            waiting.into_iter().for_each(|thread| thread.join().unwrap());
        });
    });
}
