//! A worker that goes to sleep until its next timer is not too late for one armed concurrently:
//! either it sees the timer, or the arming thread sees that the worker sleeps too long.
//!
//! Bound: three preemptions; the merge gate explores two. A wake for a timer is lost if the timer
//! is armed after the worker's scan, and the worker publishes its wake-up time after the arming
//! thread's check. That needs one preemption to start the worker, and one between its scan and its
//! sleep. The third stops the arming thread between its change of the timer and its check.

use std::sync::OnceLock;

use crate::support::{Model, ModelPort, check, level, partition, slots, start, worker};
use punctual_core::{Armed, Instant, Popped, Slots};

type Timers = Slots<u64, 2, 1>;

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// A worker of level 2 whose first job stops the partition. No event follows `time`, so a worker
/// that sleeps longer never wakes.
fn awake_by(time: u64, first: Option<u64>, change: fn(&'static Timers, Option<Armed>) -> u64) {
    awake_on(|| ModelPort::new(2, false), time, first, change);
}

fn awake_on(
    port: fn() -> ModelPort,
    time: u64,
    first: Option<u64>,
    change: fn(&'static Timers, Option<Armed>) -> u64,
) {
    check(3, move |arena| {
        let linked = arena.put(OnceLock::<(&Model, &Timers)>::new());
        let w2 = worker(arena, 2, 2, true);
        let l2 = level(arena, 2, w2, 2, move |_, node| {
            let &(partition, slots) = linked.get().unwrap();
            // SAFETY: this is the level's only task.
            let (argument, release) = unsafe { slots.take(Popped::of(node)) };
            assert_eq!(argument, release, "the job for this time");
            assert_eq!(release, time);
            partition.stop();
        });
        let p = partition(arena, port(), &[l2], &[w2]);
        let slots: &Timers = slots(arena, l2);
        linked.set((p, slots)).ok().unwrap();
        let armed = first.map(|first| slots.arm(first, at(first)).unwrap());
        let thread = start(2, move || p.work(l2));
        p.armed(l2, at(change(slots, armed)));
        p.port().advance(time, &[w2]);
        thread.join().unwrap();
    });
}

#[test]
fn wakes_for_first_timer() {
    awake_by(5, None, |slots, _| {
        slots.arm(5, at(5)).unwrap();
        5
    });
}

#[test]
fn wakes_for_earlier_timer() {
    awake_by(5, Some(9), |slots, _| {
        slots.arm(5, at(5)).unwrap();
        5
    });
}

/// The worker publishes its wake-up time before it spins, so a thread that arms a timer during the
/// spin wakes it.
#[test]
fn spinning_worker_sees_earlier_timer() {
    awake_on(
        || ModelPort::new(2, false).spinning(),
        5,
        Some(9),
        |slots, _| {
            slots.arm(5, at(5)).unwrap();
            5
        },
    );
}

#[test]
fn later_timer_does_not_wake() {
    awake_by(5, Some(5), |slots, _| {
        slots.arm(9, at(9)).unwrap();
        9
    });
}

/// The only timer is moved to an earlier time.
#[test]
fn wakes_for_moved_timer() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let w2 = worker(arena, 2, 2, true);
        let l2 = level(arena, 2, w2, 1, |_, _| linked.get().unwrap().stop());
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[w2]);
        linked.set(p).ok().unwrap();
        let slots: &Slots<u64, 1, 1> = slots(arena, l2);
        let armed = slots.arm(0, at(9)).unwrap();
        let thread = start(2, move || p.work(l2));
        assert!(slots.reschedule(armed, at(5)), "the timer is not due before the clock advances");
        p.armed(l2, at(5));
        p.port().advance(5, &[w2]);
        thread.join().unwrap();
    });
}

/// A thread arms a timer that is due and is preempted before it can notify the worker. In both
/// cases, whether or not the worker has released that timer, the other one must not be lost.
#[test]
fn wakes_for_timer_armed_concurrently() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<(&Model, &Timers)>::new());
        let w2 = worker(arena, 2, 2, true);
        let l2 = level(arena, 2, w2, 2, move |_, node| {
            let &(partition, slots) = linked.get().unwrap();
            // SAFETY: this is the level's only task.
            let (argument, release) = unsafe { slots.take(Popped::of(node)) };
            assert_eq!(argument, release, "the job for this time");
            if argument == 5 {
                partition.stop();
            }
        });
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[w2]);
        let slots: &Timers = slots(arena, l2);
        linked.set((p, slots)).ok().unwrap();
        slots.arm(5, at(5)).unwrap();
        let thread = start(2, move || p.work(l2));
        let preempted = start(9, move || {
            slots.arm(0, at(0)).unwrap();
        });
        p.port().advance(5, &[w2]);
        thread.join().unwrap();
        preempted.join().unwrap();
    });
}
