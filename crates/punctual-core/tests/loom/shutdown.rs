//! Stopping: every worker ends, regardless of the activity at the time, and every job has either
//! run or is found afterwards, once.
//!
//! Bound: three preemptions; the merge gate explores two. A worker does not end, or a job is lost,
//! if the stop falls between a worker's check of the partition and its sleep or end: one preemption
//! of the worker. A second stops the thread that stops the partition between the mark and the wake,
//! or the spawning thread between the push and the mark. The third allows each order, since the
//! thread that stops is first.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{
    Arena, ModelPort, Region, check, current, i_am, level, partition, slots, start, worker,
};
use punctual_core::{Locked, Mutex, Popped, Resource, Slots};

fn counter(arena: &Arena) -> &'static AtomicU32 {
    arena.put(AtomicU32::new(0))
}

/// Counts its drops.
struct Argument(&'static AtomicU32);

impl Drop for Argument {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A foreign thread spawns while another stops the partition.
#[test]
fn late_job_is_found() {
    check(3, |arena| {
        let (ran, dropped) = (counter(arena), counter(arena));
        let linked = arena.put(OnceLock::<&Slots<Argument, 2, 1>>::new());
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 2, |_, node| {
            ran.fetch_add(1, Ordering::Relaxed);
            // SAFETY: this is the level's only task.
            drop(unsafe { linked.get().unwrap().take(Popped::of(node)) });
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let slots: &Slots<_, 2, 1> = slots(arena, l1);
        linked.set(slots).ok().unwrap();
        let thread = start(1, move || p.work(l1));
        let foreign = start(9, move || {
            for _ in 0..2 {
                let node = slots.put(Argument(dropped), 0).ok().unwrap();
                p.spawn_from_outside(l1, node);
            }
        });
        p.stop();
        foreign.join().unwrap();
        thread.join().unwrap();
        // SAFETY: every thread has ended.
        let left = unsafe { slots.clear(|args| args.drop_in_place()) };
        assert_eq!(ran.load(Ordering::Relaxed) + left, 2);
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    });
}

/// A job of level 2 is released during a critical section, its worker sees that the partition is
/// stopping while it cannot start the job, and then another thread runs it.
///
/// Bound: two preemptions. One stops the worker between its check of the level and its sleep, and
/// one stops the other thread between the job and its wake.
#[test]
fn worker_ends_after_its_job_ran_elsewhere() {
    check(2, |arena| {
        let ran = counter(arena);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 1, |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        let resource = arena.put(Resource::with_value(()));
        i_am(1);
        let thread = start(2, move || p.work(l2));
        let low = p.call(w1, l1, || {
            // SAFETY: a job of level 1 on its own worker; no other thread uses the resource.
            let mut right: Locked<'_, _, _, 1, 3> = unsafe { Locked::new(resource, p, current(w1)) };
            right.lock(|()| {
                p.spawn(w1, l2, 0);
                p.stop();
            });
            None
        });
        assert!(low.is_ok());
        thread.join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    });
}

/// While the partition stops, a job of level 3 spawns to level 1, and later to level 2, whose
/// worker has ended by then. That must not block the worker of level 1.
fn a_worker_left(may_call: bool) {
    check(3, move |arena| {
        let ran = counter(arena);
        let [w1, w2, w3] = [1, 2, 3].map(|base| worker(arena, base, u32::from(base), true));
        w1.allow_calls(may_call);
        let l1 = level(arena, 1, w1, 1, |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        let l2 = level(arena, 2, w2, 1, |_, _| {
            ran.fetch_add(10, Ordering::Relaxed);
        });
        let l3 = level(arena, 3, w3, 0, |_, _| {});
        let p = partition(arena, ModelPort::new(3, false), &[l1, l2, l3], &[w1, w2, w3]);
        i_am(3);
        let mut thread = None;
        let high = p.call(w3, l3, || {
            p.spawn(w3, l1, 0);
            p.stop();
            thread = Some(start(1, move || p.work(l1)));
            start(2, move || p.work(l2)).join().unwrap();
            p.spawn(w3, l2, 0);
            None
        });
        assert!(high.is_ok());
        thread.unwrap().join().unwrap();
        let ran = ran.load(Ordering::Relaxed);
        assert!(ran == 1 || ran == 11, "a job released before the stop is finished: {ran}");
    });
}

#[test]
fn departed_worker_blocks_no_shutdown() {
    a_worker_left(true);
}

#[test]
fn departed_worker_blocks_no_shutdown_without_calls() {
    a_worker_left(false);
}

/// A thread that is about to end the process closes the partition during a job, before it, or after
/// it.
#[test]
fn closing_a_partition_acquires_effects_of_its_jobs() {
    check(3, |arena| {
        let w1 = worker(arena, 1, 1, true);
        let region = arena.put(Region::new());
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let thread = start(1, move || {
            let _ = p.call(w1, l1, || {
                region.enter();
                None
            });
        });
        if p.close() {
            assert!(region.count() <= 1);
            region.enter();
        }
        thread.join().unwrap();
    });
}
