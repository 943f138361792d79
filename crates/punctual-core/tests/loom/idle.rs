//! Idle, an ordinary thread, holds a ceiling that blocks a real-time worker's job: the worker lends
//! its priority instead of only sleeping, and is released when idle leaves its critical section.
//!
//! Bound: three preemptions; the merge gate explores two. A boost or wake is lost if `idle` leaves
//! its section between the worker's check of the level and its sleep: one preemption stops the
//! worker there. A second stops `idle` between the end of the section and its check for waiting
//! threads. The third lets `idle` enter its next section before the worker continues.

use std::sync::OnceLock;

use crate::support::{Model, ModelPort, Region, check, current, i_am, level, partition, start, worker};
use punctual_core::{Locked, Mutex, Port, Resource};

/// The job is spawned by idle in the middle of its critical section, or by a foreign thread.
fn idle_holds_a_ceiling(boosts: bool, from_outside: bool, preemptions: usize) {
    check(preemptions, move |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let resource = arena.put(Resource::with_value(Region::new()));
        let (idle, w2) = (worker(arena, 0, 1, false), worker(arena, 2, 2, true));
        let l2 = level(arena, 2, w2, 1, |me, _| {
            let partition = linked.get().unwrap();
            // SAFETY: a job of level 2 on its own thread, and idle uses the same ceiling.
            let mut right: Locked<'_, _, _, 2, 2> = unsafe { Locked::new(resource, partition, current(me)) };
            right.lock(|r| r.enter());
            partition.stop();
        });
        let p = partition(arena, ModelPort::new(2, boosts), &[l2], &[idle, w2]);
        linked.set(p).ok().unwrap();
        i_am(1);
        let thread = start(2, move || p.work(l2));
        let foreign = from_outside.then(|| start(9, move || p.spawn_from_outside(l2, 0)));
        // SAFETY: idle's own thread, which holds nothing, and the job uses the same ceiling.
        let mut right: Locked<'_, _, _, 0, 2> = unsafe { Locked::new(resource, p, current(idle)) };
        right.lock(|r| {
            if !from_outside {
                p.spawn(idle, l2, 0);
            }
            r.enter();
        });
        right.lock(|r| r.enter());
        thread.join().unwrap();
        foreign.into_iter().for_each(|foreign| foreign.join().unwrap());
        // SAFETY: every other thread has ended.
        assert_eq!(unsafe { resource.get() }.count(), 3);
        assert_eq!(p.snapshot(), Default::default());
    });
}

/// Two workers lend to idle, which leaves its critical section and enters it again while the first
/// worker passes the boost on. The second worker finds the boost in transit.
///
/// The second worker starts in the second section. A worker that has read `changes` in the first
/// one does not sleep on a boost in transit, since `idle` increments `changes` before it releases
/// the boost.
///
/// Bound: two preemptions. One stops the first worker while it has the boost, and one stops the
/// second between its check and its sleep. The threads wait for each other at the other points.
#[test]
fn wakes_worker_that_saw_boost_in_transit() {
    check(2, |arena| {
        let resource = arena.put(Resource::with_value(Region::new()));
        let (idle, w2, w3) =
            (worker(arena, 0, 1, false), worker(arena, 2, 2, true), worker(arena, 3, 3, true));
        let levels = [(2, w2), (3, w3)].map(|(number, worker)| level(arena, number, worker, 1, |_, _| ()));
        let p = partition(arena, ModelPort::new(3, true), &levels, &[idle, w2, w3]);
        i_am(1);
        let first = start(2, move || {
            p.boost_ordinary_holder(current(w2), 2);
            p.port().needs_nothing(2);
            p.port().wake(idle);
        });
        // SAFETY: idle's own thread, which holds nothing, and no job uses the resource.
        let mut right: Locked<'_, _, _, 0, 3> = unsafe { Locked::new(resource, p, current(idle)) };
        right.lock(|_| {
            levels.iter().for_each(|level| p.spawn(idle, level, 0));
            p.port().wait_for_lender(2);
        });
        let second = right.lock(|_| {
            let second = start(3, move || _ = p.boost_ordinary_holder(current(w3), 3));
            // Until the first worker has passed the boost on.
            p.port().wait(idle, None, None);
            second
        });
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn worker_boosts_idle() {
    idle_holds_a_ceiling(true, false, 3);
}

/// Bound: two preemptions. One moves the spawn to any point of the critical section, and one stops
/// the worker between its check and its sleep.
#[test]
fn worker_boosts_idle_for_foreign_job() {
    idle_holds_a_ceiling(true, true, 2);
}

#[test]
fn worker_without_boost_sleeps() {
    idle_holds_a_ceiling(false, false, 3);
}
