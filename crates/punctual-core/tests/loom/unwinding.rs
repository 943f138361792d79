//! A critical section unwinds, and the protected value may be half changed: a job that starts
//! because the level was vacated sees that the port was notified.
//!
//! Bound: three preemptions; the merge gate explores two. A job misses the notification if it
//! starts between the vacating of the level and the notification: one preemption of the unwinding
//! thread. In the model of released jobs, a second stops the worker between the release of the
//! timer and the start of the job. The third allows each order, since the unwinding thread is
//! first.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use crate::support::{
    Model, ModelPort, Region, check, current, i_am, level, partition, slots, start, worker,
};
use punctual_core::{Instant, Locked, Mutex, Resource, Slots, Worker};

/// The release time of the job of level 2, in ns.
const DUE: u64 = 5;

/// Leaves a critical section of ceiling `CEILING` in a job of level 1 by unwinding, after `inside`.
fn leave<const CEILING: u8>(
    resource: &'static Resource<Region>,
    partition: &'static Model,
    me: &'static Worker,
    inside: impl FnOnce(),
) {
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: a job of level 1 on its own thread; the models lock the resource with one
        // ceiling.
        let mut right: Locked<'_, _, _, 1, CEILING> =
            unsafe { Locked::new(resource, partition, current(me)) };
        right.lock(|r| {
            r.enter();
            inside();
            // Unlike `panic!`, without a message.
            resume_unwind(Box::new("half changed"));
        });
    }));
    assert!(unwound.is_err());
}

/// A job of level 1 leaves a critical section of ceiling 2 by unwinding. In it, it spawned to level
/// 2, whose worker is active, or armed a timer there.
fn unwinding(by_the_clock: bool) {
    check(3, move |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let resource = arena.put(Resource::with_value(Region::new()));
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 1, |_, _| {
            assert!(linked.get().unwrap().port().was_notified(), "it would use a half changed value");
        });
        let slots: &Slots<(), 1, 1> = slots(arena, l2);
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        linked.set(p).ok().unwrap();
        let low = p.call(w1, l1, || {
            let other = start(2, move || {
                p.release_due(l2, Instant::from_ticks(DUE));
                p.serve(w2);
            });
            leave::<2>(resource, p, w1, || {
                if by_the_clock {
                    slots.arm((), Instant::from_ticks(DUE)).unwrap();
                } else {
                    p.spawn(w1, l2, slots.put((), 0).unwrap());
                }
            });
            other.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(p.snapshot(), Default::default());
    });
}

#[test]
fn queued_job_observes_the_unwinding() {
    unwinding(false);
}

#[test]
fn released_job_observes_the_unwinding() {
    unwinding(true);
}

/// Without real-time priorities a job of level 1 runs in parallel with one of level 2, and may wait
/// for its end.
#[test]
fn waiting_job_is_notified() {
    check(3, |arena| {
        let resource = arena.put(Resource::with_value(Region::new()));
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let (l1, l2) = (level(arena, 1, w1, 0, |_, _| {}), level(arena, 2, w2, 0, |_, _| {}));
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        i_am(1);
        let low = p.call(w1, l1, || {
            let other = start(2, move || {
                // `None` if the other job is in its critical section. Dropping the preemption
                // stands for unwinding out of the job; real unwinding would poison loom's mutexes,
                // whose threads share one thread of the operating system.
                // SAFETY: the level is the partition's, and this is the thread's only preemption.
                drop(unsafe { p.preempt(current(w2), l2) });
            });
            // SAFETY: a job of level 1 on its own thread; no other thread uses the resource.
            let mut right: Locked<'_, _, _, 1, 2> = unsafe { Locked::new(resource, p, current(w1)) };
            right.lock(|r| r.enter());
            other.join().unwrap();
            None
        });
        assert!(low.is_ok());
        // The failed job has left its level marked ready, for a check of its queue.
        p.serve(w2);
        assert_eq!(p.snapshot(), Default::default());
    });
}

/// The thread that still occupies the level runs its ready jobs.
#[test]
fn wakes_no_worker_of_an_occupied_level() {
    check(3, |arena| {
        let resource = arena.put(Resource::with_value(Region::new()));
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 1, |_, _| {});
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let slots: &Slots<(), 1, 1> = slots(arena, l1);
        let job = p.call(w1, l1, || {
            leave::<2>(resource, p, w1, || p.spawn_from_outside(l1, slots.put((), 0).unwrap()));
            assert!(!p.port().was_woken(w1));
            None
        });
        assert!(job.is_ok());
        assert_eq!(p.snapshot(), Default::default());
    });
}
