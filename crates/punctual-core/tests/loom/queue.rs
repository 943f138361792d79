//! The queue of a level and its job slots: each thread's jobs leave the queue in the order in which
//! it pushed them, and the arguments of each job are passed to one thread, once and completely.
//!
//! Bound: three preemptions; the merge gate explores two. The order of the queue breaks if a push
//! falls between two steps of a removal, or the converse: one preemption stops the first thread,
//! and one stops the other between its push and its mark. A timer or its arguments are lost or
//! taken twice if a change falls between the scan's check of a node and its next step: again one in
//! the scan and one in the change. The third allows each order, regardless of the first thread.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::support::{Arena, Model, ModelPort, check, level, partition, slots, start, worker};
use punctual_core::{Armed, Instant, Level, Popped, Slots, Worker};

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// Two foreign threads push, one of them twice, while the worker removes jobs; a job of the level
/// pushes one more without an atomic instruction.
#[test]
fn keeps_order_of_each_thread() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<(&Model, &Level)>::new());
        let order = arena.put(Mutex::new(Vec::new()));
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 4, move |me, node| {
            order.lock().unwrap().push(node);
            let &(partition, level) = linked.get().unwrap();
            if node == 0 {
                partition.spawn(me, level, 3);
            }
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        linked.set((p, l1)).ok().unwrap();
        let other = start(9, move || p.spawn_from_outside(l1, 2));
        let consumer = start(1, move || p.serve(w1));
        p.spawn_from_outside(l1, 0);
        p.spawn_from_outside(l1, 1);
        other.join().unwrap();
        consumer.join().unwrap();
        p.serve(w1);
        let order = order.lock().unwrap();
        let place = |node| order.iter().position(|&n| n == node).unwrap();
        assert_eq!(order.len(), 4, "none lost, none doubled: {order:?}");
        assert!(place(0) < place(1) && place(0) < place(3), "{order:?}");
    });
}

/// The arguments of a job that is pushed while another of its level runs reach the thread that runs
/// it; and a slot is written again only after it has been read.
fn handed_over<const SLOTS: usize>(preemptions: usize) {
    check(preemptions, |arena| {
        let linked = arena.put(OnceLock::<&Slots<[u32; 2], SLOTS, 1>>::new());
        let sum = arena.put(AtomicU32::new(0));
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, SLOTS, |_, node| {
            // SAFETY: this is the level's only task.
            let ([a, b], _) = unsafe { linked.get().unwrap().take(Popped::of(node)) };
            assert_eq!(a, b);
            sum.fetch_add(a, Ordering::Relaxed);
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let slots: &Slots<_, SLOTS, 1> = slots(arena, l1);
        linked.set(slots).ok().unwrap();
        let spawn = move |n| match slots.put([n; 2], 0) {
            Ok(node) => {
                p.spawn_from_outside(l1, node);
                n
            }
            Err(_) => 0,
        };
        let consumer = start(1, move || p.serve(w1));
        let spawned = spawn(1) + spawn(2) + spawn(4);
        consumer.join().unwrap();
        p.serve(w1);
        assert_eq!(sum.load(Ordering::Relaxed), spawned, "every job runs once");
    });
}

#[test]
fn passes_arguments_intact() {
    handed_over::<1>(3);
}

/// Bound: two preemptions. A slot that is written too early needs one, between the removal of the
/// job and the read of its slot. The model of one slot explores three.
#[test]
fn passes_arguments_intact_in_two_slots() {
    handed_over::<2>(2);
}

/// Counts its drops.
struct Argument(&'static AtomicU32);

impl Drop for Argument {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A level with one timer slot, whose jobs and arguments are counted.
struct Timed {
    partition: &'static Model,
    worker: &'static Worker,
    level: &'static Level,
    slots: &'static Slots<Argument, 1, 1>,
    ran: &'static AtomicU32,
    dropped: &'static AtomicU32,
}

impl Timed {
    fn new(arena: &Arena) -> &'static Timed {
        let linked = arena.put(OnceLock::<&'static Timed>::new());
        let worker = worker(arena, 1, 1, true);
        let level = level(arena, 1, worker, 1, |_, node| {
            let timed = linked.get().unwrap();
            // SAFETY: this is the level's only task.
            drop(unsafe { timed.slots.take(Popped::of(node)) });
            timed.ran.fetch_add(1, Ordering::Relaxed);
        });
        let timed = arena.put(Timed {
            partition: partition(arena, ModelPort::new(1, false), &[level], &[worker]),
            worker,
            level,
            slots: slots(arena, level),
            ran: arena.put(AtomicU32::new(0)),
            dropped: arena.put(AtomicU32::new(0)),
        });
        linked.set(timed).ok().unwrap();
        timed
    }

    /// Runs the worker at `time`.
    fn release(&self, time: u64) {
        self.partition.release_due(self.level, at(time));
        self.partition.serve(self.worker);
    }

    fn argument(&self) -> Argument {
        Argument(self.dropped)
    }

    fn ran(&self) -> u32 {
        self.ran.load(Ordering::Relaxed)
    }

    fn dropped(&self) -> u32 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// A timer expires while it is canceled: one of the two gets the arguments. The slot can be used
/// again.
#[test]
fn does_not_release_canceled_job() {
    check(3, |arena| {
        let t = Timed::new(arena);
        let armed = t.slots.arm(t.argument(), at(5)).ok().unwrap();
        let worker = start(1, move || t.release(5));
        let taken = t.slots.cancel(armed);
        // Stale by now in either case, and so without effect on the next arming.
        let again = t.slots.arm(t.argument(), at(9)).is_ok();
        assert!(t.slots.cancel(armed).is_none());
        worker.join().unwrap();
        assert_eq!(t.ran() + u32::from(taken.is_some()), 1);
        t.release(9);
        assert_eq!(t.ran() + u32::from(taken.is_some()), 1 + u32::from(again));
        drop(taken);
        assert_eq!(t.dropped(), 2);
    });
}

/// Two threads cancel the same timer.
#[test]
fn cancels_only_once() {
    check(3, |arena| {
        let t = Timed::new(arena);
        let armed = t.slots.arm(t.argument(), at(5)).ok().unwrap();
        let other = start(2, move || drop(t.slots.cancel(armed)));
        drop(t.slots.cancel(armed));
        other.join().unwrap();
        assert_eq!(t.dropped(), 1, "one of the two gets the arguments");
    });
}

/// Two threads cancel the same timer, which is already among those of the worker.
#[test]
fn cancels_only_once_what_the_worker_has_seen() {
    check(3, |arena| {
        let t = Timed::new(arena);
        let armed = t.slots.arm(t.argument(), at(5)).ok().unwrap();
        t.release(1);
        let other = start(2, move || drop(t.slots.cancel(armed)));
        drop(t.slots.cancel(armed));
        other.join().unwrap();
        assert_eq!((t.ran(), t.dropped()), (0, 1), "one of the two gets the arguments");
    });
}

/// A timer that was moved to a later time is not released before that time, and is released then.
#[test]
fn releases_rescheduled_job_once() {
    check(3, |arena| {
        let t = Timed::new(arena);
        let armed = t.slots.arm(t.argument(), at(5)).ok().unwrap();
        // The node is now in the heap.
        t.release(0);
        let worker = start(1, move || t.release(5));
        let moved = t.slots.reschedule(armed, at(9));
        worker.join().unwrap();
        assert_eq!(t.ran(), u32::from(!moved), "released although moved to a later time, or lost");
        t.release(9);
        assert_eq!((t.ran(), t.dropped()), (1, 1));
    });
}

/// A thread other than the one that recorded the node's change arms a timer: the thread that scans
/// the node sees its time, and its arguments when it is released.
#[test]
fn sees_timer_armed_after_noted_change() {
    check(3, |arena| {
        let t = Timed::new(arena);
        let armed = t.slots.arm(t.argument(), at(9)).ok().unwrap();
        t.release(0);
        drop(t.slots.cancel(armed));
        let worker = start(1, move || t.release(5));
        assert!(t.slots.arm(t.argument(), at(5)).is_ok(), "the slot is free");
        worker.join().unwrap();
        t.release(5);
        assert_eq!((t.ran(), t.dropped()), (1, 2));
    });
}

/// Two timers of one level have changed, and one of them changes again during the worker's scan,
/// which sees the other.
#[test]
fn change_during_check_hides_no_other() {
    check(3, |arena| {
        let t = Timers::new(arena);
        t.arm(5);
        let later = t.arm(9);
        let worker = start(1, move || t.release(5));
        assert!(t.slots.cancel(later).is_some());
        worker.join().unwrap();
        assert_eq!(t.ran.load(Ordering::Relaxed), 5, "the timer was due");
    });
}

/// Two threads arm a timer each while the worker collects the changes. Both are released.
#[test]
fn notes_changes_of_two_threads() {
    check(3, |arena| {
        let t = Timers::new(arena);
        let other = start(2, move || drop(t.arm(3)));
        let worker = start(1, move || t.release(5));
        t.arm(4);
        other.join().unwrap();
        worker.join().unwrap();
        t.release(5);
        assert_eq!(t.ran.load(Ordering::Relaxed), 3 + 4);
    });
}

/// A level with two timer slots, whose jobs add up their times.
struct Timers {
    partition: &'static Model,
    worker: &'static Worker,
    level: &'static Level,
    slots: &'static Slots<u64, 2, 1>,
    ran: &'static AtomicU32,
}

impl Timers {
    fn new(arena: &Arena) -> &'static Timers {
        let linked = arena.put(OnceLock::<&'static Timers>::new());
        let worker = worker(arena, 1, 1, true);
        let level = level(arena, 1, worker, 2, |_, node| {
            let timers = linked.get().unwrap();
            // SAFETY: this is the level's only task.
            let (argument, release) = unsafe { timers.slots.take(Popped::of(node)) };
            assert_eq!(argument, release, "the job for this time");
            timers.ran.fetch_add(release as u32, Ordering::Relaxed);
        });
        let timers = arena.put(Timers {
            partition: partition(arena, ModelPort::new(1, false), &[level], &[worker]),
            worker,
            level,
            slots: slots(arena, level),
            ran: arena.put(AtomicU32::new(0)),
        });
        linked.set(timers).ok().unwrap();
        timers
    }

    fn arm(&self, time: u64) -> Armed {
        self.slots.arm(time, at(time)).unwrap()
    }

    /// Runs the worker at `time`.
    fn release(&self, time: u64) {
        self.partition.release_due(self.level, at(time));
        self.partition.serve(self.worker);
    }
}

#[test]
fn reports_next_timer_with_its_time() {
    check(3, |arena| {
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 1, |_, _| {});
        partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let slots: &Slots<(), 1, 1> = slots(arena, l1);
        let other = start(9, move || {
            let _ = slots.arm((), at(5)).unwrap();
        });
        let reader = start(8, move || {
            assert!(l1.next_due().is_none_or(|due| due == at(5)));
        });
        other.join().unwrap();
        reader.join().unwrap();
        assert_eq!(l1.next_due(), Some(at(5)));
    });
}
