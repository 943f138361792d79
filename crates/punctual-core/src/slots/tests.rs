use std::sync::Arc;

use super::*;
use crate::atomic::AtomicU64;
use crate::{Jobs, Node, Queue, Worker};

static WORKER: Worker = Worker::new(1);
const JOBS: Jobs = Jobs::of(&|_, _, _| None);

/// A level that no other test uses.
fn level(nodes: &'static [Node]) -> &'static Level {
    let queue = Box::leak(Box::new(Queue::new()));
    Box::leak(Box::new(Level::new(1, &WORKER, queue, nodes, &[], JOBS)))
}

/// Slots whose nodes follow one of another task.
fn slots<A, const N: usize, const W: usize>() -> Slots<A, N, W> {
    let nodes: &'static [Node] = (0..=N).map(|_| Node::new()).collect::<Vec<_>>().leak();
    // SAFETY: nothing else uses the level.
    unsafe { Slots::new(level(nodes), 1) }
}

fn every_slot_is_used<const N: usize, const W: usize>() {
    let slots = slots::<u32, N, W>();
    let n = N as u32;
    for node in 1..=n {
        assert_eq!(slots.put(node, node.into()), Ok(node), "the lowest free slot is taken first");
    }
    assert_eq!(slots.put(0, 0), Err(0));
    for node in 1..=n {
        // SAFETY: the job was put there, and is taken once.
        assert_eq!(unsafe { slots.take(Popped::of(node)) }, (node, node.into()));
        assert_eq!(slots.put(n + node, 7), Ok(node), "a slot that was emptied is free");
    }
    assert_eq!((slots.owns(0), slots.owns(1), slots.owns(n), slots.owns(n + 1)), (false, true, true, false));
    // SAFETY: there is one thread.
    assert_eq!(unsafe { slots.clear(|_| {}) }, n);
    assert_eq!(slots.put(1, 0), Ok(1));
}

#[test]
fn uses_every_slot_up_to_capacity() {
    every_slot_is_used::<1, 1>();
    every_slot_is_used::<63, 1>();
    every_slot_is_used::<64, 1>();
    every_slot_is_used::<65, 2>();
    every_slot_is_used::<127, 2>();
    every_slot_is_used::<128, 2>();
    every_slot_is_used::<130, 3>();
}

#[test]
fn drops_waiting_messages_once() {
    let (slots, argument) = (slots::<Arc<()>, 70, 2>(), Arc::new(()));
    let mut armed = Vec::new();
    for time in 0..70 {
        armed.push(slots.arm(Arc::clone(&argument), Instant::from_ticks(time)).unwrap());
    }
    assert!(slots.arm(Arc::clone(&argument), Instant::from_ticks(0)).is_err());
    for armed in [armed[0], armed[63], armed[64]] {
        assert!(slots.reschedule(armed, Instant::from_ticks(100)));
        assert!(slots.cancel(armed).is_some());
        assert!(slots.cancel(armed).is_none() && !slots.reschedule(armed, Instant::from_ticks(100)));
    }
    assert_eq!(Arc::strong_count(&argument), 68);
    // SAFETY: there is one thread.
    let cleared = unsafe { slots.clear(|args| args.drop_in_place()) };
    assert_eq!((cleared, Arc::strong_count(&argument)), (67, 1));
    // SAFETY: there is one thread.
    assert_eq!(unsafe { slots.clear(|_| unreachable!()) }, 0);
}

/// A destructor may do so, which runs while the slots are cleared.
#[test]
fn cancels_no_job_that_is_being_dropped() {
    let (slots, mut dropped) = (slots::<u32, 3, 1>(), Vec::new());
    let armed = [1, 2, 3].map(|args| slots.arm(args, Instant::from_ticks(5)).unwrap());
    let drop = |args: *mut u32| {
        // SAFETY: the slot holds arguments.
        dropped.push(unsafe { *args });
        assert_eq!(slots.cancel(armed[0]), None);
        assert_eq!(slots.cancel(armed[1]), (dropped.len() == 1).then_some(2), "its turn has not come");
    };
    // SAFETY: there is one thread.
    assert_eq!(unsafe { slots.clear(drop) }, 2);
    assert_eq!(dropped, [1, 3]);
    assert!(armed.into_iter().all(|armed| slots.cancel(armed).is_none()));
}

#[test]
fn rejects_handle_of_another_task() {
    let of_four = || level((0..4).map(|_| Node::new()).collect::<Vec<_>>().leak());
    let (here, elsewhere) = (of_four(), of_four());
    // SAFETY: no two of these share a node.
    let (one, two, next, other) = unsafe {
        (
            Slots::<Arc<()>, 1, 1>::new(here, 0),
            Slots::<Arc<()>, 2, 1>::new(here, 1),
            Slots::<Arc<()>, 1, 1>::new(here, 3),
            Slots::<Arc<()>, 4, 1>::new(elsewhere, 0),
        )
    };
    let (argument, time) = (Arc::new(()), Instant::from_ticks(5));
    let armed = || Arc::clone(&argument);
    let first = one.arm(armed(), time).unwrap();
    let both = [two.arm(armed(), time).unwrap(), two.arm(armed(), time).unwrap()];
    let last = next.arm(armed(), time).unwrap();
    // In the same slots and under the same keys as the jobs above.
    let others = [(); 4].map(|()| other.arm(armed(), time).unwrap());
    for foreign in [first, last].into_iter().chain(others) {
        assert!(two.cancel(foreign).is_none(), "{foreign:?}");
        assert!(!two.reschedule(foreign, time), "{foreign:?}");
    }
    for foreign in both {
        assert!(one.cancel(foreign).is_none() && next.cancel(foreign).is_none());
        assert!(other.cancel(foreign).is_none() && !other.reschedule(foreign, time));
    }
    assert_eq!(Arc::strong_count(&argument), 9, "every job is still armed");
    for own in both {
        assert!(two.reschedule(own, time) && two.cancel(own).is_some());
    }
    assert!(others.into_iter().all(|own| other.cancel(own).is_some()));
    assert!(one.cancel(first).is_some() && next.cancel(last).is_some());
    assert_eq!(Arc::strong_count(&argument), 1);
}

#[test]
fn reports_next_time_after_reschedule() {
    let slots = slots::<u8, 2, 1>();
    let at = Instant::from_ticks;
    let armed = [1, 2].map(|argument| slots.arm(argument, at(50)).unwrap());
    // SAFETY: a single thread.
    let next = || unsafe { slots.level().next() };
    assert_eq!(next(), 50);
    assert!(slots.reschedule(armed[1], at(40)));
    assert_eq!(next(), 40);
    assert_eq!(slots.cancel(armed[1]), Some(2));
    assert_eq!(next(), 50);
}

#[test]
fn waiting_jobs_are_neither_released_nor_canceled() {
    let slots = slots::<u8, 3, 1>();
    let arm = |time| slots.arm(0, Instant::from_ticks(time)).unwrap();
    let armed = [arm(10), arm(20), arm(30)];
    let waiting = || armed.map(Armed::is_waiting);
    assert_eq!((waiting(), slots.armed()), ([true; 3], 3));
    // SAFETY: a single thread.
    assert!(unsafe { slots.level().release_due(Instant::from_ticks(10)) });
    assert_eq!((waiting(), slots.armed()), ([false, true, true], 2), "its job has not run");
    assert!(slots.reschedule(armed[1], Instant::from_ticks(40)));
    assert_eq!((waiting(), slots.armed()), ([false, true, true], 2));
    assert_eq!(slots.cancel(armed[1]), Some(0));
    assert_eq!((waiting(), slots.armed()), ([false, false, true], 1));
    let next = arm(50);
    assert_eq!((slots.slot_of(next), waiting()[1], next.is_waiting()), (1, false, true));
}

/// Jobs that were released and have not run keep their slots.
#[test]
fn limit_counts_armed_jobs_in_any_slots() {
    let slots = slots::<u8, 4, 1>();
    let arm = |time| slots.arm(0, Instant::from_ticks(time)).unwrap();
    // SAFETY: a single thread.
    let release = |time| unsafe { slots.level().release_due(Instant::from_ticks(time)) };
    arm(10);
    arm(20);
    assert!(slots.has_at_most(2) && !slots.has_at_most(1));
    assert!(release(20));
    assert!(slots.has_at_most(0));
    let armed = [arm(30), arm(30)];
    assert_eq!(armed.map(|armed| slots.slot_of(armed)), [2, 3]);
    assert!(slots.has_at_most(2) && !slots.has_at_most(1));
    // SAFETY: a single thread takes the job, which is in one of these slots, once.
    unsafe { slots.take(slots.level().waiting().pop().unwrap()) };
    let third = arm(40);
    assert_eq!(slots.slot_of(third), 0);
    assert!(slots.has_at_most(3) && !slots.has_at_most(2));
    assert_eq!(slots.cancel(armed[1]), Some(0));
    assert!(slots.has_at_most(2) && !slots.has_at_most(1));
}

/// With several words of free bits.
#[test]
fn limit_covers_every_word() {
    let slots = slots::<u8, 130, 3>();
    for count in 1..=130 {
        slots.arm(0, Instant::from_ticks(10)).unwrap();
        assert!(slots.has_at_most(count) && !slots.has_at_most(count - 1), "{count}");
    }
}

#[test]
#[should_panic(expected = "a node for each slot")]
fn rejects_slots_without_nodes() {
    // SAFETY: nothing else uses the level.
    unsafe { Slots::<(), 1, 1>::new(level(&[]), 0) };
}

/// The slot of a job that has started, for its own spawn and for other threads.
#[test]
fn the_spare_slot_is_free_for_every_thread() {
    let (slots, cell) = (slots::<u32, 2, 1>(), AtomicU64::new(0));
    // SAFETY: there is one thread.
    let me = unsafe { CurrentWorker::new(&WORKER) };
    // SAFETY: the arguments are integers; the one thread stands for the occupant of the level, and
    // the cell needs no token.
    let put_here = |args: u32| unsafe {
        let spare = slots.put_in_spare(&raw const args, None::<fn() -> u64>, &cell, me);
        spare.or_else(|| slots.put_here(&raw const args, None))
    };
    // SAFETY: the node was put, and its job starts once.
    let start = |node| unsafe { slots.free(slots.arguments(Popped::of(node))) };
    // SAFETY: the cell needs no token.
    let reclaim_as = |me| unsafe { slots.reclaim(&cell, me) };
    let reclaim = || reclaim_as(None);
    assert_eq!((slots.put(1, 0), slots.put(2, 0), slots.put(3, 0)), (Ok(1), Ok(2), Err(3)));
    reclaim();
    assert_eq!(slots.put(3, 0), Err(3), "no job has started");
    start(1);
    assert_eq!((put_here(3), put_here(4)), (Some(1), None), "the spawn of a job of the level takes it");
    start(1);
    assert_eq!(slots.put(5, 0), Err(5), "it is no free bit");
    reclaim();
    assert_eq!((slots.put(5, 0), slots.put(6, 0)), (Ok(1), Err(6)));
    start(2);
    assert_eq!(slots.put(6, 0), Ok(2), "no spare is made after one was withdrawn");
    start(1);
    assert_eq!(put_here(7), Some(1));
    start(1);
    assert_eq!(slots.put(8, 0), Ok(1), "nor after a spawn that has left no free slot");
    start(1);
    start(2);
    assert_eq!(put_here(7), Some(1));
    start(1);
    assert_eq!((slots.put(8, 0), slots.put(9, 0)), (Ok(2), Err(9)), "there is a spare again");
    reclaim_as(Some(me));
    assert_eq!(slots.put(9, 0), Ok(1));
    start(1);
    assert_eq!(slots.put(9, 0), Err(9), "a thread of the partition leaves no mark");
    // SAFETY: there is one thread.
    assert_eq!(unsafe { slots.clear(|_| {}) }, 1, "the spare holds no arguments");
    assert_eq!((slots.put(1, 0), slots.put(2, 0)), (Ok(1), Ok(2)));
}
