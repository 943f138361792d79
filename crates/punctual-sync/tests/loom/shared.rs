//! Models of the structures in `shared`, except for messages. `cargo test` without `--cfg loom`
//! skips them.
//!
//! Bound: three preemptions; the merge gate explores two. A wake is lost if the change falls
//! between a thread's check and its sleep: one preemption of the waiting thread, and one of the
//! other between the change and its check for sleeping threads. A torn value or a second owner
//! needs one of the reader or the taker in the middle, and one of the other before it has finished.
//! The third allows each order, regardless of the first thread.

use crate::model::{Region, check, lend, polls, share};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{JoinHandle, spawn, yield_now};
use punctual_sync::Instant;
use punctual_sync::shared::{
    AcquireError, Barrier, Flag, Latest, Ring, Semaphore, TicketLock, TicketLockError, asleep,
};

/// Waits for threads after which no wake is needed. loom would report a lost wake only as
/// "deadlock".
fn join_awake(threads: impl IntoIterator<Item = (JoinHandle<()>, &'static AtomicBool)>) {
    for (thread, has_ended) in threads {
        while !has_ended.load(Ordering::Acquire) {
            assert_eq!(asleep(), 0, "a thread sleeps, and none is left to wake it");
            yield_now();
        }
        thread.join().unwrap();
    }
}

#[test]
fn ring_one_by_one() {
    share(Ring::<u32, 2>::new).check(3, |ring| {
        let producing = spawn(|| {
            let mut producer = ring.producer().unwrap();
            for item in 0..3 {
                while producer.push(item).is_err() {
                    yield_now();
                }
            }
        });
        let mut consumer = ring.consumer().unwrap();
        for expected in 0..3 {
            let item = loop {
                match consumer.pop() {
                    Some(item) => break item,
                    None => yield_now(),
                }
            };
            assert_eq!(item, expected);
        }
        producing.join().unwrap();
        assert_eq!(consumer.pop(), None);
    });
}

#[test]
fn ring_in_batches() {
    share(Ring::<u32, 4>::new).check(3, |ring| {
        let producing = spawn(|| {
            let mut producer = ring.producer().unwrap();
            for batch in [[0, 1, 2], [3, 4, 5]] {
                while producer.room() < batch.len() {
                    yield_now();
                }
                batch.into_iter().for_each(|item| producer.stage(item).unwrap());
                producer.publish();
            }
        });
        let mut consumer = ring.consumer().unwrap();
        let mut expected = 0;
        while expected < 6 {
            let ready = consumer.ready();
            assert!(ready == 0 || ready == 3, "a batch is seen completely, not {ready} of it");
            for _ in 0..ready {
                assert_eq!(consumer.take(), Some(expected));
                expected += 1;
            }
            consumer.release();
            yield_now();
        }
        producing.join().unwrap();
    });
}

/// Slices as long as the room or the available items, and complete ones that request less than all.
#[test]
fn ring_in_slices() {
    share(Ring::<u32, 2>::new).check(3, |ring| {
        let producing = spawn(|| {
            let mut producer = ring.producer().unwrap();
            let items = [0, 1, 2, 3];
            let mut sent = 0;
            while sent < 3 {
                sent += producer.push_slice(&items[sent..3]);
                yield_now();
            }
            while !producer.has_room_for(1) {
                yield_now();
            }
            assert_eq!(producer.push_slice(&items[3..]), 1);
        });
        let mut consumer = ring.consumer().unwrap();
        while !consumer.has_ready(1) {
            yield_now();
        }
        let mut expected = 0;
        while expected < 4 {
            let mut items = [9; 2];
            let count = consumer.pop_slice(&mut items);
            for item in &items[..count] {
                assert_eq!(*item, expected);
                expected += 1;
            }
            yield_now();
        }
        producing.join().unwrap();
        assert_eq!(consumer.ready(), 0);
    });
}

#[test]
fn ring_changes_hands() {
    share(Ring::<u32, 2>::new).check(3, |ring| {
        let push = |item| ring.producer().is_ok_and(|mut producer| producer.push(item).is_ok());
        let pushing = spawn(move || push(1));
        let pushed = push(2);
        let both = pushing.join().unwrap() && pushed;
        let mut consumer = ring.consumer().unwrap();
        let items = std::iter::from_fn(|| consumer.pop()).count();
        assert_eq!(items, if both { 2 } else { 1 });
    });
}

/// Bound: three preemptions. A missing acquire in the reader, the seed `latest-read-relaxed`,
/// passes with two: the merge gate does not detect it in this model.
#[test]
fn latest_is_complete() {
    share(|| Latest::new([0_u32; 2])).check(3, |cell| {
        let writing = spawn(|| {
            let mut writer = cell.writer().unwrap();
            (1..4).for_each(|value| writer.write([value; 2]));
        });
        let mut reader = cell.reader().unwrap();
        let mut last = 0;
        for _ in 0..3 {
            let reading = reader.read();
            let [a, b] = reading.value;
            assert_eq!(a, b, "a value is not torn");
            assert!(if reading.is_new { a > last } else { a == last }, "only newer values are new");
            last = a;
        }
        writing.join().unwrap();
        assert_eq!(reader.read().value, [3; 2]);
        assert!(!reader.read().is_new);
    });
}

#[test]
fn flag_publishes_earlier_writes() {
    share(|| (Flag::new(), Region::new())).check(3, |(flag, region)| {
        let setting = spawn(|| {
            region.enter();
            flag.set();
        });
        if flag.spin_while(polls(2)).is_ok() {
            region.enter();
        }
        setting.join().unwrap();
    });
}

#[test]
fn flag_wakes_sleepers() {
    share(|| (Flag::new(), AtomicBool::new(false))).check(3, |(flag, has_ended)| {
        let waiting = spawn(|| {
            flag.wait();
            has_ended.store(true, Ordering::Release);
        });
        flag.set();
        join_awake([(waiting, has_ended)]);
    });
}

/// All waiters continue, although one was woken first.
///
/// Bound: two preemptions, one for each waiting thread: between its check and its sleep.
#[test]
fn flag_wakes_two_sleepers() {
    share(|| (Flag::new(), [AtomicBool::new(false), AtomicBool::new(false)])).check(
        2,
        |(flag, has_ended)| {
            let waiting = has_ended.each_ref().map(|has_ended| {
                let thread = spawn(move || {
                    flag.wait();
                    has_ended.store(true, Ordering::Release);
                });
                (thread, has_ended)
            });
            flag.set();
            join_awake(waiting);
        },
    );
}

#[test]
fn flag_wakes_all_sleepers() {
    share(Flag::new).check(3, |flag| {
        let waiting = [(); 2].map(|()| spawn(|| flag.wait()));
        flag.set();
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(flag.is_set());
    });
}

#[test]
fn flag_set_twice_and_cleared() {
    share(Flag::new).check(3, |flag| {
        let waiting = spawn(|| flag.wait());
        flag.set();
        flag.clear();
        flag.set();
        waiting.join().unwrap();
    });
}

#[test]
fn barrier_orders_earlier_writes() {
    share(|| (Barrier::new(2), Region::new(), Region::new())).check(3, |(barrier, mine, theirs)| {
        let other = spawn(|| {
            theirs.enter();
            let leads = barrier.wait().unwrap();
            mine.enter();
            leads
        });
        mine.enter();
        let leads = barrier.wait().unwrap();
        theirs.enter();
        assert_ne!(leads, other.join().unwrap(), "one of two leads");
    });
}

#[test]
fn barrier_phases() {
    share(|| (Barrier::new(2), Region::new())).check(3, |(barrier, region)| {
        let other = spawn(|| {
            barrier.wait().unwrap();
            region.enter();
            barrier.wait().unwrap();
        });
        barrier.wait().unwrap();
        barrier.wait().unwrap();
        region.enter();
        other.join().unwrap();
    });
}

#[test]
fn barrier_timeout_keeps_count() {
    share(|| Barrier::new(2)).check(3, |barrier| {
        let other = spawn(|| barrier.spin_while(polls(1)));
        let mine = barrier.spin_while(polls(1));
        let theirs = other.join().unwrap();
        assert_eq!(mine.is_ok(), theirs.is_ok(), "both arrived, or neither");
        assert_eq!(barrier.arrived(), 0);
    });
}

#[test]
fn ticket_lock_excludes() {
    share(|| TicketLock::<Region, 2>::with_slots(Region::new())).check(3, |lock| {
        let enter = || u32::from(lock.lock_while(polls(4)).map(|region| region.enter()).is_ok());
        let other = spawn(enter);
        let entered = enter() + other.join().unwrap();
        assert_eq!(lock.lock_while(polls(0)).unwrap().count(), entered);
    });
}

/// Bound: two preemptions. One stops a thread that gives up, between its last check and its
/// withdrawal, and one stops the holder between its check of the next ticket and the handover.
#[test]
fn ticket_lock_keeps_its_token() {
    share(|| TicketLock::<Region, 4>::with_slots(Region::new())).check(2, |lock| {
        let held = lock.lock_while(polls(0)).unwrap();
        let others = [(); 2].map(|()| spawn(|| lock.lock_while(polls(1)).map(|region| region.enter())));
        held.enter();
        drop(held);
        others.into_iter().for_each(|thread| assert_ne!(thread.join().unwrap(), Err(TicketLockError::Full)));
        let free = lock.lock_while(polls(0)).map(|region| region.enter());
        assert_eq!(free, Ok(()), "the lock is free once all users have gone");
    });
}

#[test]
fn ticket_try_lock_excludes() {
    share(|| TicketLock::<Region, 2>::with_slots(Region::new())).check(3, |lock| {
        let other = spawn(|| lock.try_lock().map(|region| region.enter()).is_some());
        let mine = lock.lock_while(polls(4)).map(|region| region.enter());
        let again = lock.try_lock().map(|region| region.enter()).is_some();
        let entered = u32::from(mine.is_ok()) + u32::from(again) + u32::from(other.join().unwrap());
        assert_eq!(lock.lock_while(polls(0)).unwrap().count(), entered);
    });
}

#[test]
fn semaphore_loses_no_wake() {
    check(3, || {
        let shared = (Semaphore::<2>::with_slots(0), Region::new(), AtomicBool::new(false));
        lend(shared, |(semaphore, region, has_ended)| {
            let waiting = spawn(|| {
                semaphore.acquire(1).unwrap();
                region.enter();
                has_ended.store(true, Ordering::Release);
            });
            region.enter();
            semaphore.signal(1).unwrap();
            join_awake([(waiting, has_ended)]);
            assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
        });
    });
}

/// A unit that its holder returns goes to a waiter.
#[test]
fn semaphore_passes_unit_on() {
    share(|| (Semaphore::<2>::with_slots(1), AtomicBool::new(false))).check(3, |(semaphore, has_ended)| {
        let unit = semaphore.hold(1).unwrap();
        let waiting = spawn(|| {
            semaphore.acquire(1).unwrap();
            has_ended.store(true, Ordering::Release);
        });
        drop(unit);
        join_awake([(waiting, has_ended)]);
        assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
    });
}

/// Bound: two preemptions. One stops a thread between its check and its claim of the unit, and one
/// stops the holder between the return and the wake. The third thread arrives where another waits
/// or ends.
#[test]
fn semaphore_excludes() {
    share(|| (Semaphore::<2>::with_slots(1), Region::new())).check(2, |(semaphore, region)| {
        let enter = |level| {
            semaphore.acquire(level).unwrap();
            region.enter();
            semaphore.signal(1).unwrap();
        };
        let others = [2, 3].map(|level| spawn(move || enter(level)));
        enter(1);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((semaphore.free(), semaphore.waiting()), (1, 0));
    });
}

/// A thread that was notified of a unit and has given up does not leave those behind it asleep.
///
/// Bound: two preemptions. One stops the thread that gives up, between its time-out and its
/// withdrawal, and one stops the signaler between its choice and the wake.
#[test]
fn semaphore_passes_wake_on() {
    share(|| (Semaphore::<2>::with_slots(0), AtomicBool::new(false))).check(2, |(semaphore, has_ended)| {
        let waiting = spawn(|| {
            semaphore.acquire(1).unwrap();
            has_ended.store(true, Ordering::Release);
        });
        let impatient = spawn(|| semaphore.acquire_until(2, Instant::from_ticks(1)).is_ok());
        semaphore.signal(1).unwrap();
        if impatient.join().unwrap() {
            semaphore.signal(1).unwrap();
        }
        join_awake([(waiting, has_ended)]);
        assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
    });
}

/// A unit that became free for a waiter is not stolen before the waiter runs.
#[test]
fn semaphore_serves_first_waiter() {
    share(|| Semaphore::<2>::with_slots(0)).check(3, |semaphore| {
        let high = spawn(|| semaphore.acquire(2).unwrap());
        while semaphore.waiting() == 0 {
            yield_now();
        }
        semaphore.signal(1).unwrap();
        assert_eq!(semaphore.acquire_until(1, Instant::from_ticks(1)), Err(AcquireError::TimedOut));
        high.join().unwrap();
        assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
    });
}

#[test]
fn semaphore_time_out_loses_no_unit() {
    share(|| Semaphore::<2>::with_slots(0)).check(3, |semaphore| {
        let impatient = spawn(|| semaphore.acquire_until(2, Instant::from_ticks(1)));
        semaphore.signal(1).unwrap();
        let left = match impatient.join().unwrap() {
            Ok(()) => 0,
            Err(AcquireError::TimedOut) => 1,
            Err(error) => panic!("there are two slots: {error}"),
        };
        assert_eq!((semaphore.free(), semaphore.waiting()), (left, 0));
    });
}

/// A new writer continues with the slot of the last one, while a value of that one may be being
/// read.
#[test]
fn latest_changes_hands() {
    share(|| Latest::new([0_u32; 2])).check(3, |cell| {
        let writing = spawn(|| {
            for value in 1..4 {
                cell.writer().unwrap().write([value; 2]);
            }
        });
        let mut reader = cell.reader().unwrap();
        let mut last = 0;
        for _ in 0..2 {
            let [a, b] = reader.read().value;
            assert!(a == b && a >= last, "a value is not torn, and no older one");
            last = a;
        }
        writing.join().unwrap();
        assert_eq!(reader.read().value, [3; 2]);
    });
}

/// A reader that a writer overtakes gets the next value, and does not retry forever.
#[test]
fn latest_reader_is_not_starved() {
    share(|| Latest::new([0_u32; 2])).check(3, |cell| {
        let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
        writer.write([1; 2]);
        let writing = spawn(move || (2..4).for_each(|value| writer.write([value; 2])));
        let [a, b] = reader.read().value;
        assert!(a == b && a >= 1, "a value is not torn");
        writing.join().unwrap();
        assert_eq!(reader.read().value, [3; 2]);
    });
}

/// A slot that a reader offered without having taken another is written only after the reader has
/// finished with it. Offering is cheap, so few preemptions lead there.
///
/// Bound: two preemptions. One stops the reader while it takes a slot, and one stops the writer
/// between two values. The yields cause the other switches.
#[test]
fn latest_slot_is_given_away_after_reading() {
    share(|| Latest::new([0_u32; 2])).check(2, |cell| {
        let writing = spawn(|| {
            let mut writer = cell.writer().unwrap();
            writer.write([1; 2]);
            yield_now();
            // Interferes when the reader takes the first.
            writer.write([2; 2]);
            yield_now();
            // Assigned to the reader; then its old slot is returned, and is written.
            (3..6).for_each(|value| writer.write([value; 2]));
        });
        let mut reader = cell.reader().unwrap();
        let mut last = 0;
        for _ in 0..2 {
            let [a, b] = reader.read().value;
            assert!(a == b && a >= last, "a value is not torn, and no older one");
            last = a;
            yield_now();
        }
        writing.join().unwrap();
        assert_eq!(reader.read().value, [5; 2]);
    });
}

/// All waiters continue, although one was woken first.
///
/// Bound: one preemption. It stops one waiting thread between its check and its sleep; the other
/// runs until it sleeps, while the last to arrive yields.
#[test]
fn barrier_wakes_all_sleepers() {
    check(1, || {
        let flags = [AtomicBool::new(false), AtomicBool::new(false)];
        lend((Barrier::new(3), flags), |(barrier, has_ended)| {
            let waiting = has_ended.each_ref().map(|has_ended| {
                let thread = spawn(move || {
                    barrier.wait().unwrap();
                    has_ended.store(true, Ordering::Release);
                });
                (thread, has_ended)
            });
            // The last to arrive: no other thread wakes them.
            while barrier.arrived() < 2 {
                yield_now();
            }
            barrier.wait().unwrap();
            join_awake(waiting);
        });
    });
}

/// A thread that gives up at the last moment, and finds that the others arrived, sees their writes.
#[test]
fn barrier_left_late_orders_earlier_writes() {
    share(|| (Barrier::new(2), Region::new())).check(3, |(barrier, region)| {
        let other = spawn(|| {
            region.enter();
            barrier.spin_while(polls(0)).is_ok()
        });
        let passed = barrier.spin_while(polls(0)).is_ok();
        if passed {
            region.enter();
        }
        assert_eq!(other.join().unwrap(), passed, "both arrived, or neither");
    });
}
