//! Mutual exclusion and freedom from deadlock: jobs of different levels that run in parallel, as
//! they do without real-time privileges, lock the same resources, with plain waits or with priority
//! inheritance.
//!
//! Bound: three preemptions; the merge gate explores two. Two jobs exclude each other unless one
//! occupies a level between the other's check of the word and its change: one preemption. A waiting
//! job is not woken, or lends to the wrong thread, if the holder vacates its level between the
//! registration and the sleep: one preemption of the waiting job, and one of the holder between the
//! change and its check for waiting threads. The third lets the holder begin its next job or
//! section in between.

use crate::support::{
    Arena, Model, ModelPort, Region, check, current, i_am, level, partition, start, worker,
};
use punctual_core::{Level, Locked, Mutex, Port, Resource, Worker};

type Shared = Resource<Region>;

struct Trio {
    partition: &'static Model,
    levels: [&'static Level; 3],
    workers: [&'static Worker; 3],
}

/// Levels 1 to 3 without queued jobs, each with a worker; the calling thread is the lowest one's.
fn trio(arena: &Arena, boosts: bool) -> Trio {
    let workers = [1, 2, 3].map(|base| worker(arena, base, u32::from(base), true));
    let levels = workers.map(|worker| level(arena, worker.base(), worker, 0, |_, _| {}));
    let partition = partition(arena, ModelPort::new(3, boosts), &levels, &workers);
    i_am(1);
    Trio { partition, levels, workers }
}

fn shared(arena: &Arena) -> &'static Shared {
    arena.put(Resource::with_value(Region::new()))
}

/// The right of a job at `LEVEL` to lock `resource`.
fn right<const LEVEL: u8, const CEILING: u8>(
    resource: &'static Shared,
    partition: &'static Model,
    worker: &'static Worker,
) -> Locked<'static, Region, ModelPort, LEVEL, CEILING> {
    // SAFETY: the models lock each resource with one ceiling, in jobs of the given level.
    unsafe { Locked::new(resource, partition, current(worker)) }
}

fn count(resource: &'static Shared) -> u32 {
    // SAFETY: called when every other thread has ended.
    unsafe { resource.get() }.count()
}

/// A job at level 1 is raising to `CEILING` while others start at level 2, one after the other, and
/// raise too. One of them is first; the others wait or do not start.
fn two_levels<const CEILING: u8>(boosts: bool, others: u32) {
    check(3, move |arena| {
        let Trio { partition, levels: [l1, l2, _], workers: [w1, w2, _] } = trio(arena, boosts);
        let resource = shared(arena);
        let low = partition.call(w1, l1, || {
            let other = start(2, move || {
                for _ in 0..others {
                    let _ = partition.call(w2, l2, || {
                        right::<2, CEILING>(resource, partition, w2).lock(|r| r.enter());
                        None
                    });
                }
            });
            right::<1, CEILING>(resource, partition, w1).lock(|r| r.enter());
            other.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert!((1..=1 + others).contains(&count(resource)));
        assert_eq!(partition.snapshot(), Default::default());
    });
}

#[test]
fn two_waiting_jobs_exclude_each_other() {
    two_levels::<3>(false, 1);
}

#[test]
fn two_boosting_jobs_exclude_each_other() {
    two_levels::<3>(true, 1);
}

/// A job that waits to raise finds the level above vacated, and occupied again before it has
/// raised.
#[test]
fn job_waits_again_for_restarted_level() {
    two_levels::<2>(false, 2);
}

/// The upper job runs at the ceiling itself, one level above the lower job, and so never raises.
#[test]
fn ceiling_is_next_level() {
    two_levels::<2>(false, 1);
}

/// The upper job runs at the ceiling itself and so never raises: the lower one has to see that it
/// runs.
#[test]
fn job_at_ceiling_does_not_raise() {
    check(3, |arena| {
        let Trio { partition, levels: [l1, _, l3], workers: [w1, _, w3] } = trio(arena, true);
        let resource = shared(arena);
        let low = partition.call(w1, l1, || {
            let other = start(3, move || {
                let _ = partition.call(w3, l3, || {
                    right::<3, 3>(resource, partition, w3).lock(|r| r.enter());
                    None
                });
            });
            let mut right = right::<1, 3>(resource, partition, w1);
            right.lock(|r| r.enter());
            right.lock(|r| r.enter());
            other.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert!((2..=3).contains(&count(resource)));
    });
}

/// Two resources of different ceilings, nested one way by one job and the other way by the other.
#[test]
fn opposite_nesting_does_not_deadlock() {
    check(3, |arena| {
        let Trio { partition, levels: [l1, l2, _], workers: [w1, w2, _] } = trio(arena, false);
        let (q, r) = (shared(arena), shared(arena));
        let low = partition.call(w1, l1, || {
            let other = start(2, move || {
                let _ = partition.call(w2, l2, || {
                    right::<2, 4>(r, partition, w2).lock(|r| {
                        right::<2, 3>(q, partition, w2).lock(|q| q.enter());
                        r.enter();
                    });
                    None
                });
            });
            right::<1, 3>(q, partition, w1).lock(|q| {
                right::<1, 4>(r, partition, w1).lock(|r| r.enter());
                q.enter();
            });
            other.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(count(q), count(r));
    });
}

/// Enters the region in a section of ceiling 4, or at the top of the partition.
fn enter<const LEVEL: u8>(
    resource: &'static Shared,
    partition: &'static Model,
    worker: &'static Worker,
    at_top: bool,
) {
    if at_top {
        // SAFETY: the resource is filled, and only shared references to it exist; loom checks the
        // region in it.
        return partition.at_top_level(current(worker), || unsafe { resource.get() }.enter());
    }
    right::<LEVEL, 4>(resource, partition, worker).lock(|r| r.enter());
}

/// Two waiters at different levels below one holder, and the holder's job ends while they arrive.
///
/// Bound: two preemptions. One stops the holder between the end of its section and its check for
/// waiting jobs, and one stops a waiting job between its check and its sleep. The third job arrives
/// where another waits or ends. The models of two jobs explore three.
fn three_jobs(boosts: bool, at_top: bool) {
    check(2, move |arena| {
        let Trio { partition, levels: [l1, l2, l3], workers: [w1, w2, w3] } = trio(arena, boosts);
        let resource = shared(arena);
        let low = partition.call(w1, l1, || {
            let middle = start(2, move || {
                let _ = partition.call(w2, l2, || {
                    enter::<2>(resource, partition, w2, at_top);
                    None
                });
            });
            let high = start(3, move || {
                let _ = partition.call(w3, l3, || {
                    enter::<3>(resource, partition, w3, at_top);
                    None
                });
            });
            enter::<1>(resource, partition, w1, at_top);
            middle.join().unwrap();
            high.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert!((1..=3).contains(&count(resource)));
        assert_eq!(partition.snapshot(), Default::default());
    });
}

#[test]
fn three_waiting_jobs_exclude_each_other() {
    three_jobs(false, false);
}

#[test]
fn three_boosting_jobs_exclude_each_other() {
    three_jobs(true, false);
}

#[test]
fn three_boosting_jobs_exclude_each_other_at_the_top() {
    three_jobs(true, true);
}

/// Two jobs wait for a third thread, which ends its job and begins another before the first waiter
/// has passed the boost on. The other waiter finds the boost in transit. The third thread runs only
/// once that waiter lends its priority as well.
///
/// Bound: one preemption. The defect needs none, because the threads wait for each other at each
/// point that leads to it.
#[test]
fn waiter_that_saw_boost_in_transit_boosts_after_it() {
    check(1, move |arena| {
        let Trio { partition, levels: [l1, l2, l3], workers: [w1, w2, w3] } = trio(arena, true);
        let port = partition.port();
        let resource = shared(arena);
        let low = partition.call(w1, l1, || {
            let middle = start(2, move || {
                let _ = partition.call(w2, l2, || {
                    // Until the second job of the third thread runs.
                    port.wait(w2, None, None);
                    right::<2, 4>(resource, partition, w2).lock(|r| r.enter());
                    None
                });
                port.needs_nothing(2);
            });
            let high = start(3, move || {
                let _ = partition.call(w3, l3, || {
                    port.wake(w1);
                    port.wait_for_lender(1);
                    None
                });
                let called = partition.call(w3, l3, || {
                    port.wake(w2);
                    port.wait_for_lender(2);
                    None
                });
                if called.is_err() {
                    port.wake(w2);
                }
            });
            // Until the first job of the third thread runs.
            port.wait(w1, None, None);
            right::<1, 4>(resource, partition, w1).lock(|r| r.enter());
            middle.join().unwrap();
            high.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(partition.snapshot(), Default::default());
    });
}
