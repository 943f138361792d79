//! The structures in `shared`, used by one thread and by several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::thread::scope;

use crate::support::{polls, until};
use punctual_sync::shared::{
    AcquireError, Barrier, BarrierError, Flag, Latest, Ring, Semaphore, TicketLock, TicketLockError, TimedOut,
};
use punctual_sync::{Duration, Instant};

const LONG_AGO: Instant = Instant::from_ticks(1);

#[test]
fn full_ring_returns_item() {
    let ring = Ring::<String, 2>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    producer.push("a".into()).unwrap();
    producer.push("b".into()).unwrap();
    assert_eq!(producer.push("c".into()), Err("c".into()));
    assert_eq!(consumer.pop().as_deref(), Some("a"));
    producer.push("c".into()).unwrap();
    assert_eq!((consumer.pop().as_deref(), consumer.pop().as_deref()), (Some("b"), Some("c")));
    assert_eq!(consumer.pop(), None);
}

#[test]
fn ring_shows_batches_at_once() {
    let ring = Ring::<u8, 4>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    (0..4).for_each(|item| producer.stage(item).unwrap());
    assert_eq!((producer.stage(4), consumer.ready(), ring.len()), (Err(4), 0, 0));
    producer.publish();
    assert_eq!((consumer.ready(), producer.room()), (4, 0));
    assert_eq!((consumer.take(), consumer.take()), (Some(0), Some(1)));
    assert_eq!(producer.room(), 0, "not released yet");
    consumer.release();
    assert_eq!(producer.push_slice(&[4, 5, 6]), 2);
    let mut items = [0; 8];
    assert_eq!(consumer.pop_slice(&mut items), 4);
    assert_eq!(items[..4], [2, 3, 4, 5]);
    assert_eq!((consumer.pop_slice(&mut items), ring.is_empty()), (0, true));
}

#[test]
fn ring_has_one_of_each_end() {
    let ring = Ring::<u8, 2>::new();
    let producer = ring.producer().unwrap();
    assert!(ring.producer().is_err() && ring.split().is_err());
    let consumer = ring.consumer().expect("`split` returned the end it could not use");
    assert!(ring.consumer().is_err());
    drop((producer, consumer));
    assert!(ring.split().is_ok());
}

#[test]
fn ring_ends_publish_and_release_when_dropped() {
    let ring = Ring::<u8, 2>::new();
    ring.producer().unwrap().stage(1).unwrap();
    assert_eq!(ring.len(), 1);
    assert_eq!(ring.consumer().unwrap().take(), Some(1));
    assert_eq!(ring.len(), 0);
}

#[test]
fn ring_drops_remaining_items_once() {
    let item = Rc::new(());
    let ring = Ring::<Rc<()>, 4>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    (0..3).for_each(|_| producer.push(item.clone()).unwrap());
    drop(consumer.pop());
    drop((producer, consumer));
    assert_eq!(Rc::strong_count(&item), 3);
    drop(ring);
    assert_eq!(Rc::strong_count(&item), 1);
}

#[test]
fn ring_with_leaked_consumer_drops_once() {
    let item = Rc::new(());
    let ring = Ring::<Rc<()>, 4>::new();
    ring.producer().unwrap().push(item.clone()).unwrap();
    let mut consumer = ring.consumer().unwrap();
    drop(consumer.take());
    std::mem::forget(consumer);
    drop(ring);
    assert_eq!(Rc::strong_count(&item), 1, "dropped once, after it was taken");
}

#[test]
fn ring_survives_counter_wrap() {
    // 2³² items would take too long; a ring of two wraps often enough to show that counters are
    // masked.
    let ring = Ring::<u32, 2>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    for item in 0..100_000 {
        producer.push(item).unwrap();
        assert_eq!(consumer.pop(), Some(item));
    }
}

#[test]
fn ring_between_threads() {
    let ring = Ring::<u64, 64>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    scope(|scope| {
        scope.spawn(move || {
            for item in (0..60_000).step_by(3) {
                until("room for a batch", || (producer.room() >= 3).then_some(()));
                (item..item + 3).for_each(|item| producer.stage(item).unwrap());
                producer.publish();
            }
        });
        for item in 0..60_000 {
            assert_eq!(until("an item", || consumer.pop()), item);
        }
    });
}

#[test]
fn latest_reports_new_values() {
    let cell = Latest::new(0);
    let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    assert!(cell.writer().is_err() && cell.reader().is_err());
    assert_eq!((reader.read().value, reader.read().is_new), (0, false));
    writer.write(1);
    writer.write(2);
    assert!(matches!(reader.read(), r if r.is_new && r.value == 2));
    assert!(matches!(reader.read(), r if !r.is_new && r.value == 2));
    writer.write_with(|value| *value = 3);
    drop((writer, reader));
    assert!(matches!(cell.reader().unwrap().read(), r if r.is_new && r.value == 3), "ends may come and go");
    cell.writer().unwrap().write(4);
    assert_eq!(cell.reader().unwrap().read_with(|value, is_new| (*value, is_new)), (4, true));
}

#[test]
fn latest_publishes_nothing_after_panic() {
    let cell = Latest::new(1);
    let mut writer = cell.writer().unwrap();
    let write = AssertUnwindSafe(|| writer.write_with(|_| panic!("on purpose")));
    assert!(catch_unwind(write).is_err());
    assert!(!cell.reader().unwrap().read().is_new);
}

#[test]
fn latest_between_threads() {
    let cell = Latest::new([0_u64; 16]);
    let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    scope(|scope| {
        scope.spawn(move || (1..=50_000).for_each(|value| writer.write([value; 16])));
        let mut last = 0;
        until("the last value", || {
            let reading = reader.read();
            assert!(reading.value.iter().all(|value| *value == reading.value[0]), "a value is not torn");
            assert!(if reading.is_new { reading.value[0] > last } else { reading.value[0] == last });
            last = reading.value[0];
            (last == 50_000).then_some(())
        });
    });
}

#[test]
fn flag_is_set_and_cleared() {
    let flag = Flag::new();
    assert_eq!((flag.spin_while(polls(3)), flag.wait_until(LONG_AGO)), (Err(TimedOut), Err(TimedOut)));
    flag.set();
    flag.set();
    flag.wait();
    assert_eq!((flag.spin_while(polls(0)), flag.wait_until(LONG_AGO)), (Ok(()), Ok(())));
    flag.clear();
    assert!(!flag.is_set());
    assert_eq!(flag.spin_while(polls(3)), Err(TimedOut));
}

#[test]
fn flag_lets_all_go() {
    let flag = Flag::new();
    scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| flag.wait())));
        flag.set();
    });
}

#[test]
fn barrier_keeps_threads_together() {
    const PHASES: usize = 300;
    let (barrier, arrivals) = (Barrier::new(3), Mutex::new(vec![0; PHASES]));
    let leaders: usize = scope(|scope| {
        let member = || {
            let mut led = 0;
            for phase in 0..PHASES {
                arrivals.lock().unwrap()[phase] += 1;
                led += usize::from(barrier.wait().unwrap());
                assert_eq!(arrivals.lock().unwrap()[phase], 3, "every member has arrived");
            }
            led
        };
        let members = [(); 3].map(|()| scope.spawn(member));
        members.into_iter().map(|member| member.join().unwrap()).sum()
    });
    assert_eq!(leaders, PHASES);
}

#[test]
fn barrier_forgets_peer_that_gives_up() {
    let barrier = Barrier::new(2);
    let timed_out = Err(BarrierError::TimedOut);
    assert_eq!((barrier.spin_while(polls(2)), barrier.wait_until(LONG_AGO)), (timed_out, timed_out));
    assert_eq!(barrier.arrived(), 0);
    assert_eq!(Barrier::new(1).spin_while(polls(0)), Ok(true));
}

#[test]
#[should_panic = "1 to 32767 members"]
fn barrier_has_members() {
    let _ = Barrier::new(0);
}

#[test]
fn ticket_lock_times_out_and_passes_over() {
    let lock = TicketLock::<u32, 4>::with_slots(0);
    let held = lock.lock_while(polls(0)).unwrap();
    for _ in 0..3 {
        assert_eq!(lock.lock_while(polls(2)).map(|_| ()), Err(TicketLockError::TimedOut));
    }
    assert_eq!(lock.lock_while(polls(2)).map(|_| ()), Err(TicketLockError::Full), "one holds, three gave up");
    assert!(lock.try_lock().is_none());
    drop(held);
    for _ in 0..10 {
        *lock.lock_while(polls(0)).unwrap() += 1;
        *lock.try_lock().unwrap() += 1;
    }
    assert_eq!(*lock.lock_while(polls(0)).unwrap(), 20);
}

#[test]
fn ticket_lock_unlocks_on_panic() {
    let lock = TicketLock::new(1);
    let panics = AssertUnwindSafe(|| {
        *lock.lock_while(polls(0)).unwrap() = 2;
        let _guard = lock.lock_while(polls(0)).unwrap();
        panic!("on purpose");
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(*lock.lock_while(polls(0)).unwrap(), 2);
}

#[test]
fn ticket_lock_between_threads() {
    let lock = TicketLock::new(0_u32);
    let gave_up: u32 = scope(|scope| {
        let add = || {
            // Gives up now and then, so that marks are skipped.
            (0..5_000)
                .map(|i| u32::from(lock.lock_while(polls(i % 50)).map(|mut sum| *sum += 1).is_err()))
                .sum::<u32>()
        };
        let threads = [(); 3].map(|()| scope.spawn(add));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(*lock.lock_while(polls(0)).unwrap() + gave_up, 15_000);
}

#[test]
fn semaphore_counts() {
    let semaphore = Semaphore::<1>::with_slots(1);
    assert!(semaphore.try_acquire() && !semaphore.try_acquire());
    assert_eq!(semaphore.acquire_until(1, LONG_AGO), Err(AcquireError::TimedOut));
    semaphore.signal(2).unwrap();
    assert_eq!((semaphore.acquire(1), semaphore.acquire_until(1, LONG_AGO)), (Ok(()), Ok(())));
    assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
    let most = Semaphore::<1>::MAX;
    semaphore.signal(most).unwrap();
    for added in [1, u32::MAX] {
        let error = semaphore.signal(added).expect_err("the maximum is exceeded");
        assert_eq!((error.added, error.free), (added, most));
    }
}

#[test]
fn semaphore_serves_highest_level_then_arrival_order() {
    let semaphore = Semaphore::<8>::with_slots(0);
    let served = Mutex::new(Vec::new());
    scope(|scope| {
        let (semaphore, served) = (&semaphore, &served);
        for (index, level) in [1, 3, 2, 3, 2].into_iter().enumerate() {
            scope.spawn(move || {
                semaphore.acquire(level).unwrap();
                served.lock().unwrap().push((level, index));
            });
            until("the thread to wait", || (semaphore.waiting() == index + 1).then_some(()));
        }
        for count in 1..=5 {
            semaphore.signal(1).unwrap();
            until("one thread to be served", || (served.lock().unwrap().len() == count).then_some(()));
        }
    });
    assert_eq!(*served.lock().unwrap(), [(3, 1), (3, 3), (2, 2), (2, 4), (1, 0)]);
}

#[test]
fn semaphore_signals_several_and_is_full() {
    let semaphore = Semaphore::<2>::with_slots(0);
    scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(|| semaphore.acquire(1).unwrap())));
        until("both to wait", || (semaphore.waiting() == 2).then_some(()));
        assert_eq!(semaphore.acquire_until(9, LONG_AGO), Err(AcquireError::Full));
        semaphore.signal(3).unwrap();
    });
    assert_eq!(semaphore.free(), 1);
}

#[test]
fn semaphore_units_come_back() {
    let semaphore = Semaphore::<2>::with_slots(1);
    let unit = semaphore.hold(1).unwrap();
    assert_eq!((semaphore.free(), semaphore.try_acquire()), (0, false));
    assert_eq!(semaphore.hold_until(1, LONG_AGO).map(drop), Err(AcquireError::TimedOut));
    scope(|scope| {
        let waiting = scope.spawn(|| semaphore.hold(1).map(drop));
        until("the thread to wait", || (semaphore.waiting() == 1).then_some(()));
        drop(unit);
        waiting.join().unwrap().unwrap();
    });
    let panics = AssertUnwindSafe(|| {
        let _unit = semaphore.hold(1).unwrap();
        panic!("on purpose");
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!((semaphore.free(), semaphore.waiting()), (1, 0));
    semaphore.signal(2).unwrap();
    let units = [semaphore.hold(1).unwrap(), semaphore.hold(1).unwrap()];
    assert_eq!(semaphore.hold(1).map(drop), Err(AcquireError::Full), "a held unit occupies a slot");
    drop(units);
    assert_eq!(semaphore.free(), 3);
}

/// A waiter that has not run yet is not overtaken by a lower one, and of two units both waiters get
/// one at once.
#[test]
fn semaphore_units_are_not_snatched() {
    let semaphore = Semaphore::<4>::with_slots(0);
    scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| semaphore.acquire(2).unwrap()));
        until("both to wait", || (semaphore.waiting() == 2).then_some(()));
        semaphore.signal(2).unwrap();
        assert_eq!(semaphore.acquire_until(1, LONG_AGO), Err(AcquireError::TimedOut));
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!((semaphore.free(), semaphore.waiting()), (0, 0));
}

#[test]
fn semaphore_loses_no_unit_between_threads() {
    let semaphore = Semaphore::<8>::with_slots(2);
    let acquired: u32 = scope(|scope| {
        let threads = [0, 1, 2, 3].map(|level| {
            let semaphore = &semaphore;
            scope.spawn(move || {
                let mut count = 0;
                for round in 0..2_000 {
                    // One in four gives up at once.
                    let result = if round % 4 == 0 {
                        semaphore.acquire_until(level, LONG_AGO)
                    } else {
                        semaphore.acquire(level)
                    };
                    if result.is_ok() {
                        count += 1;
                        semaphore.signal(1).unwrap();
                    }
                }
                count
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(acquired >= 4 * 1_500);
    assert_eq!((semaphore.free(), semaphore.waiting()), (2, 0));
}

#[test]
fn spinning_ends_exactly_after_limit() {
    let limit = Duration::from_micros(200);
    let takes = |spin: &dyn Fn()| {
        let begin = punctual_sync::now();
        spin();
        assert!(punctual_sync::now() - begin >= limit);
    };
    takes(&|| assert_eq!(Flag::new().spin(limit), Err(TimedOut)));
    takes(&|| assert_eq!(Barrier::new(2).spin(limit), Err(BarrierError::TimedOut)));
    let lock = TicketLock::new(());
    let _held = lock.try_lock().unwrap();
    takes(&|| assert_eq!(lock.lock(limit).map(drop), Err(TicketLockError::TimedOut)));
    takes(&|| assert_eq!(lock.take_over(limit).map(drop), Err(TicketLockError::TimedOut)));
}

/// A broadcast between threads: complete messages in order, and a count of all others.
mod broadcast {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread::scope;

    use punctual_sync::Instant;
    use punctual_sync::shared::{BroadcastLayout, BroadcastReader, BroadcastWriter};

    const MESSAGES: u64 = 300_000;

    /// Reads until `is_over`, with a pause of `spins` after each message, and checks every message.
    fn read_all(mut reader: BroadcastReader<'_>, is_over: &AtomicBool, spins: u32) {
        let (mut buffer, mut count, mut last) = ([0; 8], 0, 0);
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            while let Some(message) = reader.read(&mut buffer) {
                let number = message.instant.as_ticks();
                assert!(number > last, "{number} after {last}");
                assert_eq!(message.sequence, number as u32);
                assert_eq!(message.bytes.len(), (number % 65) as usize);
                let expected = number.to_ne_bytes();
                let is_whole = message.bytes.chunks(8).all(|word| *word == expected[..word.len()]);
                assert!(is_whole, "torn: {number} has {:?}", message.bytes);
                (last, count) = (number, count + 1);
                (0..spins).for_each(|_| std::hint::spin_loop());
            }
            if was_over {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(count + reader.lost(), MESSAGES, "every message is read or counted");
        assert_eq!((last, reader.malformed()), (MESSAGES, 0));
    }

    #[test]
    fn readers_get_complete_messages_and_count_losses() {
        for capacity in [2, 64, 4096] {
            let layout = BroadcastLayout::new(capacity, 64).unwrap();
            let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
            let is_over = AtomicBool::new(false);
            scope(|scope| {
                for spins in [0, 100] {
                    let reader = BroadcastReader::new(&memory, layout).unwrap();
                    let is_over = &is_over;
                    scope.spawn(move || read_all(reader, is_over, spins));
                }
                let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
                for number in 1..=MESSAGES {
                    let bytes = [number.to_ne_bytes(); 8];
                    let bytes = &bytes.as_flattened()[..(number % 65) as usize];
                    writer.publish(Instant::from_ticks(number), number as u32, bytes).unwrap();
                }
                is_over.store(true, Ordering::Release);
            });
        }
    }
}
