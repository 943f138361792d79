//! Edge cases of the structures in `shared`: the first and last of their values, and ends that were
//! never taken.

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use crate::support::polls;
use punctual_sync::Instant;
use punctual_sync::shared::{
    AcquireError, Barrier, Flag, Latest, Ring, Semaphore, TicketLock, TimedOut, init_at, region_size,
};

#[repr(C, align(4096))]
struct Memory([u8; 4096]);

#[test]
fn initializes_every_slot_in_used_memory() {
    let mut memory = Memory([0xff; 4096]);
    let end = region_size::<Latest<[u32; 3]>>();
    // SAFETY: the memory outlives the reference, and has no other user.
    let cell: &Latest<[u32; 3]> = unsafe { init_at(memory.0.as_mut_ptr(), end, [7, 8, 9]) }.unwrap();
    let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
    assert_eq!(reader.read().value, [7, 8, 9]);
    // Two successive writes go to the other two slots.
    for _ in 0..2 {
        writer.write_with(|slot| assert_eq!(*slot, [7, 8, 9]));
    }
    drop((writer, reader));
    assert!(memory.0[end..].iter().all(|byte| *byte == 0xff), "no byte after the cell is written");
}

#[test]
fn seized_end_is_occupied() {
    let cell = Latest::new(0_u8);
    // SAFETY: no thread uses the ends.
    let (writer, reader) = unsafe { (cell.take_over_writer_unchecked(), cell.take_over_reader_unchecked()) };
    assert!(cell.take_over_writer().is_err() && cell.take_over_reader().is_err());
    drop((writer, reader));
    assert!(cell.take_over_writer().is_ok() && cell.take_over_reader().is_ok());
}

#[test]
fn slices_of_any_length_wrap_at_any_position() {
    for (at, length) in (0..8).flat_map(|at| (0..=8).map(move |length| (at, length))) {
        let ring = Ring::<[u16; 3], 8>::new();
        let (mut producer, mut consumer) = ring.split().unwrap();
        for item in 0..at {
            producer.push([item; 3]).unwrap();
            assert_eq!(consumer.pop(), Some([item; 3]));
        }
        let items: Vec<[u16; 3]> = (100..100 + length).map(|item| [item, at, length]).collect();
        assert_eq!(producer.push_slice(&items), items.len());
        // One by one in half of the cases, and as a slice in the others.
        let mut out = vec![[0; 3]; items.len()];
        if (at + length) % 2 == 0 {
            out.fill_with(|| consumer.pop().unwrap());
        } else {
            assert_eq!(consumer.pop_slice(&mut out), items.len());
        }
        assert_eq!(out, items, "{length} items from slot {at} on");
        assert!(ring.is_empty());
    }
}

#[test]
fn slice_uses_room_freed_since_last_check() {
    let ring = Ring::<u8, 4>::new();
    let (mut producer, mut consumer) = ring.split().unwrap();
    assert_eq!(producer.push_slice(&[1, 2, 3, 4]), 4);
    let mut two = [0; 2];
    // The consumer has seen no item yet, and the producer no free slot.
    assert_eq!((consumer.pop_slice(&mut two), two), (2, [1, 2]));
    assert_eq!((consumer.pop_slice(&mut two), two), (2, [3, 4]));
    assert_eq!(producer.push_slice(&[5, 6]), 2);
    assert_eq!(ring.len(), 2);
}

#[test]
fn initializes_lock_in_used_memory() {
    let mut memory = Memory([0xff; 4096]);
    // SAFETY: the memory outlives the reference, and has no other user.
    let lock: &TicketLock<u32, 2> = unsafe { init_at(memory.0.as_mut_ptr(), 4096, 7) }.unwrap();
    assert_eq!(lock.try_lock().as_deref(), Some(&7));
}

#[test]
fn region_semaphore_rejects_initial_count_above_maximum() {
    let mut memory = Memory([0; 4096]);
    let mut begin = |units| {
        // SAFETY: the memory outlives the reference, and has no other user.
        let semaphore: &Semaphore<2> = unsafe { init_at(memory.0.as_mut_ptr(), 4096, units) }.unwrap();
        semaphore.free()
    };
    assert_eq!(begin(Semaphore::<2>::MAX), Semaphore::<2>::MAX);
    let begin = std::panic::AssertUnwindSafe(|| begin(Semaphore::<2>::MAX + 1));
    assert!(std::panic::catch_unwind(begin).is_err());
}

#[test]
fn failed_acquire_returns_its_place() {
    let semaphore = Semaphore::<1>::with_slots(0);
    for _ in 0..3 {
        assert_eq!(semaphore.acquire_until(1, Instant::from_ticks(1)), Err(AcquireError::TimedOut));
        assert!(matches!(semaphore.hold_until(1, Instant::from_ticks(1)), Err(AcquireError::TimedOut)));
    }
}

#[test]
fn earlier_set_does_not_end_wait() {
    let flag = Flag::new();
    for _ in 0..20 {
        assert_eq!((flag.spin_while(polls(0)), flag.spin_while(polls(1))), (Err(TimedOut), Err(TimedOut)));
        flag.set();
        assert_eq!(flag.spin_while(|| true), Ok(()), "at once");
        flag.clear();
    }
}

/// Waits until the other thread has begun to spin, or until just before.
fn give_time(is_there: &AtomicBool) {
    while !is_there.load(Ordering::Relaxed) {
        spin_loop();
    }
    (0..100_000).for_each(|_| spin_loop());
}

#[test]
fn spinning_ends_when_flag_is_set() {
    let (flag, spins) = (Flag::new(), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            give_time(&spins);
            flag.set();
        });
        spins.store(true, Ordering::Relaxed);
        assert_eq!(flag.spin_while(|| true), Ok(()));
    });
}

#[test]
fn spinning_ends_when_last_thread_arrives() {
    let (barrier, spins) = (Barrier::new(2), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            give_time(&spins);
            assert_eq!(barrier.spin_while(polls(0)), Ok(true));
        });
        spins.store(true, Ordering::Relaxed);
        assert_eq!(barrier.spin_while(|| true), Ok(false));
    });
}

#[test]
fn spinning_thread_that_panics_leaves_lock_and_barrier() {
    let lock = TicketLock::<_, 4>::with_slots(());
    for comes_first in [false, true] {
        let mut held = lock.try_lock();
        let panics = || -> bool {
            held.take_if(|_| comes_first);
            resume_unwind(Box::new("on purpose"))
        };
        assert!(catch_unwind(AssertUnwindSafe(|| lock.lock_while(panics).is_ok())).is_err());
        drop(held);
        assert!(lock.try_lock().is_some(), "no thread waits or holds it");
    }
    let barrier = Barrier::new(2);
    let panics = || -> bool { resume_unwind(Box::new("on purpose")) };
    assert!(catch_unwind(AssertUnwindSafe(|| barrier.spin_while(panics).is_ok())).is_err());
    assert_eq!(barrier.arrived(), 0);
}
