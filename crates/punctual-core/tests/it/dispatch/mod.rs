//! The dispatch rules one by one, on one thread: which thread runs a job, when, and which workers
//! are woken.

mod rig;
mod time;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use punctual_core::{
    Duration, Jobs, Level, Locked, MAX_LEVEL, Mutex as _, Periodic, Queue, Reaction, Resource, Slots, Word,
    Worker,
};

use self::rig::{NOTHING, at, rig, rig_with};

#[test]
fn higher_spawn_is_called_and_lower_spawn_waits() {
    let rig = rig(&[1, 2, 3], &[(1, 1, NOTHING), (2, 2, NOTHING), (3, 3, NOTHING)]);
    let me = rig.worker(1);
    assert!(rig.call(me, 2, || {
        rig.spawn(me, 3, 0);
        assert_eq!(rig.ran(), [(3, 0, 1)], "above: at once, on this thread");
        rig.spawn(me, 1, 0);
        rig.spawn(me, 2, 0);
        assert!(!rig.call(me, 2, || {}) && !rig.call(me, 1, || {}), "not above");
        assert_eq!(rig.ran(), [], "not above: afterwards");
        assert_eq!((me.level(), me.running()), (2, 2));
        assert!(!rig.partition.snapshot().is_ready(2), "this thread checks its level before it vacates it");
    }));
    assert_eq!(rig.ran(), [(2, 0, 1), (1, 0, 1)], "highest first");
    assert_eq!(rig.woken(), [], "this thread runs them all");
    assert_eq!((rig.partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
}

#[test]
fn suspended_preemption_keeps_level() {
    let rig = rig(&[1, 3], &[(1, 1, NOTHING), (2, 1, NOTHING), (3, 3, NOTHING)]);
    let me = rig.worker(1);
    // SAFETY: the level is the partition's, and its preemption is finished below, as the only one.
    let preemption = unsafe { rig.partition.preempt(me, rig.level(2)) }.unwrap();
    let outer = preemption.suspend();
    assert_eq!((outer, me.level(), me.running(), rig.partition.snapshot().level()), (0, 2, 2, 2));
    rig.spawn(me, 1, 0);
    assert_eq!(rig.ran(), [], "the level is still occupied");
    // SAFETY: resumed with the values it was suspended with.
    unsafe { rig.partition.resume(me, rig.level(2), outer) }.finish(None);
    assert_eq!(rig.ran(), [(1, 0, 1)]);
    assert_eq!((rig.partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
}

#[test]
fn dispatches_call_at_base_level_of_thread() {
    // The caller is not the level's worker, like a thread that waits for an event.
    let rig = rig(&[1, 2], &[(2, 1, NOTHING)]);
    assert!(rig.call(rig.worker(2), 2, || {}));
    rig.spawn(rig.worker(2), 2, 0);
    assert_eq!((rig.ran(), rig.woken()), (vec![(2, 0, 2)], vec![]));
}

#[test]
fn hands_foreign_level_to_its_worker_once() {
    let rig = rig(&[1, 3], &[(1, 1, NOTHING), (3, 3, NOTHING)]);
    let me = rig.worker(3);
    assert!(rig.call(me, 3, || rig.spawn(me, 1, 0)));
    assert_eq!((rig.ran(), rig.woken()), (vec![], vec![1]), "rule 3");
    rig.partition.serve(rig.worker(1), None);
    assert_eq!((rig.ran(), rig.woken()), (vec![(1, 0, 1)], vec![]));
    let low = rig.worker(1);
    low.allow_calls(false);
    assert!(!rig.call(low, 3, || {}));
    rig.spawn(low, 3, 1);
    assert_eq!((rig.ran(), rig.woken()), (vec![], vec![3]), "rule 6");
    rig.partition.serve(rig.worker(3), None);
    rig.spawn(low, 1, 1);
    assert_eq!(rig.ran(), [(3, 1, 3), (1, 1, 1)], "a thread runs its own level without the right to call");
    assert_eq!(rig.woken(), []);
}

#[test]
fn foreign_spawn_wakes_idle_partition() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    let me = rig.worker(1);
    rig.spawn_from_outside(2, 0);
    assert_eq!(rig.woken(), [2]);
    rig.spawn_from_outside(2, 1);
    assert_eq!(rig.woken(), [], "the worker was woken already");
    rig.partition.serve(me, None);
    assert_eq!(rig.ran(), [(2, 0, 1), (2, 1, 1)]);
    assert!(rig.call(me, 1, || {
        rig.spawn_from_outside(1, 0);
        assert_eq!(rig.woken(), [], "the occupant checks the level again");
        rig.spawn_from_outside(2, 2);
        assert_eq!(rig.woken(), [2]);
        assert!(!rig.call(me, 2, || {}), "it would overtake the queued job");
    }));
    assert_eq!(rig.ran(), [(1, 0, 1), (2, 2, 1)]);
}

#[test]
fn holds_all_jobs_until_start() {
    let rig = rig(&[0, 1], &[(1, 1, NOTHING)]);
    let (idle, partition) = (rig.worker(0), &rig.partition);
    partition.hold_all_jobs(idle);
    rig.spawn(idle, 1, 0);
    rig.spawn_from_outside(1, 1);
    assert_eq!((rig.ran(), rig.woken(), idle.level()), (vec![], vec![], MAX_LEVEL));
    let again = catch_unwind(AssertUnwindSafe(|| partition.hold_all_jobs(idle)));
    let printed = again.expect_err("holding everything twice must fail");
    assert_eq!(printed.downcast_ref(), Some(&"everything is held already"));
    // SAFETY: everything is held.
    unsafe { partition.go(idle, at(0)) };
    assert_eq!(rig.ran(), [(1, 0, 0), (1, 1, 0)]);
    partition.hold_all_jobs(idle);
    rig.spawn(idle, 1, 2);
    // SAFETY: everything is held.
    unsafe { partition.abandon(idle) };
    assert_eq!((rig.ran(), partition.snapshot()), (vec![(1, 2, 0)], Word::EMPTY));
}

#[test]
fn job_below_top_level_can_raise_to_top() {
    let rig = rig(&[1], &[(MAX_LEVEL - 1, 1, NOTHING)]);
    let (me, partition) = (rig.worker(1), &rig.partition);
    assert!(rig.call(me, MAX_LEVEL - 1, || {
        partition.at_top_level(me, || assert_eq!(partition.snapshot().level(), MAX_LEVEL));
        partition.hold_all_jobs(me);
        assert_eq!(partition.snapshot().level(), MAX_LEVEL);
        // SAFETY: everything is held.
        unsafe { partition.abandon(me) };
    }));
    assert_eq!(partition.snapshot(), Word::EMPTY);
}

#[test]
fn does_not_occupy_held_ceiling_again() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let (me, partition) = (rig.worker(1), &rig.partition);
    let resources = [const { Resource::new() }; 3];
    // SAFETY: no other thread has them.
    resources.iter().for_each(|resource| unsafe { resource.fill(0) });
    let [a, b, own] = &resources;
    assert!(rig.call(me, 1, || {
        // SAFETY: the job of level 1 creates one for each resource, and no other thread uses them.
        let (mut a, mut b): (Locked<'_, _, _, 1, 3>, Locked<'_, _, _, 1, 3>) =
            unsafe { (Locked::new(a, partition, me), Locked::new(b, partition, me)) };
        // SAFETY: as above.
        let mut own: Locked<'_, _, _, 1, 1> = unsafe { Locked::new(own, partition, me) };
        let (job, section) = (Word::EMPTY.occupy(1), Word::EMPTY.occupy(1).occupy(3));
        own.lock(|_| assert_eq!(partition.snapshot(), job));
        a.lock(|a| {
            b.lock(|b| *b += 1);
            assert_eq!(partition.snapshot(), section, "the outer critical section continues");
            *a += 1;
        });
        assert_eq!(partition.snapshot(), job);
    }));
    // SAFETY: the job has ended.
    assert_eq!(unsafe { (*a.get(), *b.get()) }, (1, 1));
}

#[test]
fn resource_keeps_value_until_taken() {
    let (resource, value) = (Resource::new(), Arc::new(()));
    // SAFETY: there is one thread, and no reference is retained.
    unsafe {
        resource.fill(Arc::clone(&value));
        assert!(Arc::ptr_eq(resource.get(), &value) && Arc::ptr_eq(resource.get_mut(), &value));
        assert_eq!(Arc::strong_count(&value), 2);
        resource.empty();
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn occupies_top_level_once() {
    let rig = rig(&[1], &[(1, 1, NOTHING), (MAX_LEVEL, 1, NOTHING)]);
    let me = rig.worker(1);
    rig.partition.at_top_level(me, || {
        assert_eq!((me.level(), rig.partition.snapshot().level()), (MAX_LEVEL, MAX_LEVEL));
        rig.partition.at_top_level(me, || {});
        assert_eq!(me.level(), MAX_LEVEL, "the outer section continues");
        rig.spawn(me, 1, 0);
        assert_eq!(rig.ran(), []);
    });
    assert_eq!((rig.ran(), rig.partition.snapshot()), (vec![(1, 0, 1)], Word::EMPTY));
}

#[test]
fn closes_partition_only_between_jobs() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let me = rig.worker(1);
    assert!(rig.call(me, 1, || assert!(!rig.partition.close(), "a job runs")));
    assert!(rig.partition.close());
    assert!(!rig.call(me, 1, || {}));
    rig.spawn(me, 1, 0);
    assert_eq!((rig.ran(), rig.partition.close()), (vec![], false));
}

#[test]
fn reset_partition_keeps_no_state() {
    static GRID: Periodic =
        Periodic::new(3, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    let rig = rig_with(&[1], &[(1, 1, NOTHING)], &[&GRID]);
    let (me, partition, level) = (rig.worker(1), &rig.partition, rig.level(1));
    // SAFETY: nothing else uses node 2.
    let slots: &'static Slots<(), 1, 1> = Box::leak(Box::new(unsafe { Slots::new(level, 2) }));
    let armed = slots.arm((), at(7)).unwrap();
    level.start(at(5));
    assert!(partition.close());
    rig.spawn(me, 1, 0);
    partition.stop();
    assert_eq!((rig.woken(), level.next_due()), (vec![1], Some(at(5))));
    // SAFETY: there is one thread.
    unsafe { partition.reset() };
    assert_eq!((partition.snapshot(), partition.is_stopping()), (Word::EMPTY, false));
    assert_eq!((level.next_due(), slots.cancel(armed)), (None, None));
    partition.release_due(me, level, at(u64::MAX));
    partition.serve(me, None);
    assert_eq!(rig.ran(), [], "the queued job is discarded");
    rig.spawn(me, 1, 0);
    assert_eq!(rig.ran(), [(1, 0, 1)]);
}

#[test]
#[should_panic(expected = "own worker")]
fn rejects_second_worker_of_level() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING)]);
    rig.partition.work(rig.worker(2), rig.level(1));
}

#[test]
fn last_job_precedes_jobs_that_it_releases_at_its_level() {
    let rig = rig(&[0, 2], &[(2, 2, |_, _, _| {})]);
    let me = rig.worker(2);
    let mut ran = None;
    // SAFETY: the level is the partition's, and its worker is this thread.
    unsafe {
        rig.partition.run_last(me, rig.level(2), || {
            rig.spawn(me, 2, 0);
            ran = Some(rig.ran());
        });
    }
    assert_eq!(ran.as_deref(), Some([].as_slice()), "it runs after the last job");
    assert_eq!(rig.ran(), [(2, 0, 2)]);
    assert_eq!(rig.partition.snapshot().level(), 0, "the level is vacated");
}

#[test]
#[should_panic(expected = "another partition")]
fn rejects_level_of_another_partition() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let me = rig.worker(1);
    let queue = Box::leak(Box::new(Queue::new()));
    let jobs = Jobs::of(&|_, _, _| None);
    rig.partition.work(me, Box::leak(Box::new(Level::new(1, me.worker(), queue, &[], &[], jobs))));
}

#[test]
#[should_panic(expected = "a unique number")]
fn rejects_duplicate_levels() {
    rig(&[1, 2], &[(2, 1, NOTHING), (1, 1, NOTHING), (2, 2, NOTHING)]);
}

#[test]
fn rejects_more_than_254_threads() {
    let bases = [1; 255];
    rig(&bases[..254], &[]);
    assert!(catch_unwind(|| rig(&[1; 255], &[])).is_err());
}

#[test]
fn levels_are_numbered_from_1_to_28() {
    let level = |number| {
        static WORKER: Worker = Worker::new(1);
        static QUEUE: Queue = Queue::new();
        let jobs = Jobs::of(&|_, _, _| None);
        catch_unwind(AssertUnwindSafe(|| _ = Level::new(number, &WORKER, &QUEUE, &[], &[], jobs))).is_ok()
    };
    assert_eq!([0, 1, 28, 29].map(level), [false, true, true, false]);
}

/// Calls at constant levels, which one instruction starts and ends: each of its masks is necessary.
mod constants {
    use punctual_core::Word;

    use super::rig::{NOTHING, Rig, rig};

    /// Levels 1 and 2 with a worker each, and the idle thread, which may call both.
    fn two_levels() -> &'static Rig {
        rig(&[0, 1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)])
    }

    #[test]
    fn does_not_start_while_another_thread_occupies_the_level() {
        let rig = two_levels();
        let (idle, worker) = (rig.worker(0), rig.worker(2));
        assert!(rig.call(worker, 2, || {
            assert!(!rig.call(idle, 2, || unreachable!("two threads would run one level")));
            assert!(!rig.call(idle, 1, || unreachable!("it is below the partition's level")));
        }));
        assert!(rig.call(idle, 2, || {}));
    }

    #[test]
    fn serves_the_levels_that_became_ready_below_it() {
        let rig = two_levels();
        assert!(rig.call(rig.worker(0), 2, || rig.spawn_from_outside(1, 0)));
        assert_eq!(rig.ran(), [(1, 0, 0)]);
    }

    #[test]
    fn does_not_overtake_a_job_in_the_inbox_of_a_polled_level() {
        let rig = two_levels();
        let idle = rig.worker(0);
        // SAFETY: there is one thread.
        unsafe { idle.set_polling() };
        rig.partition.begin_polling();
        assert!(rig.call(idle, 1, || {
            rig.spawn_from_outside(2, 0);
            assert!(!rig.call(idle, 2, || unreachable!("it would overtake the first job")));
        }));
    }

    #[test]
    fn restores_the_record_of_the_thread() {
        let rig = two_levels();
        let idle = rig.worker(0);
        assert!(rig.call(idle, 1, || {
            assert!(rig.call(idle, 2, || assert_eq!((idle.level(), idle.running()), (2, 2))));
            assert_eq!((idle.level(), idle.running()), (1, 1));
        }));
        assert_eq!((idle.level(), idle.running(), rig.partition.snapshot()), (0, 0, Word::EMPTY));
    }
}
