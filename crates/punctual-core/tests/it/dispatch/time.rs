//! Timekeeping of levels, and the use of clock readings.

use std::sync::Mutex;

use punctual_core::sync::{AtomicU64, Ordering};
use punctual_core::{Duration, Instant, Periodic, Reaction, Slots, Word};

use crate::dispatch::rig::{Job, NOTHING, at, rig, rig_with};

#[test]
fn worker_sleeps_until_due_and_wakes_for_earlier_timer() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    let rig = rig_with(&[1], &[(1, 1, |_, _, _| GRID.completed(at(0)))], &[&GRID]);
    let slept: &'static Mutex<Vec<Option<u64>>> = Box::leak(Box::new(Mutex::default()));
    let asleep = move |until: Option<Instant>| {
        let (partition, level) = (&rig.partition, rig.level(1));
        slept.lock().unwrap().push(until.map(|until| until.as_ticks()));
        let until = until.expect("there is a grid");
        partition.armed(level, until);
        assert_eq!(rig.woken(), [], "it wakes by that time");
        partition.armed(level, at(until.as_ticks() - 1));
        assert_eq!(rig.woken(), [1], "it would sleep too long");
        if until == at(200) {
            return partition.stop();
        }
        partition.port().now.store(until.as_ticks(), Ordering::Relaxed);
    };
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    rig.level(1).start(at(0));
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!(*slept.lock().unwrap(), [Some(100), Some(200)]);
    assert_eq!(rig.ran(), [(1, 0, 1), (1, 0, 1)]);
    rig.woken();
    rig.partition.armed(rig.level(1), at(0));
    assert_eq!(rig.woken(), [], "the worker is awake and checks its timers");
}

#[test]
fn releases_awaited_timer_without_reading_the_clock() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses nodes 1 to 3.
    let slots = unsafe { Slots::<(), 3, 1>::new(rig.level(1), 1) };
    for time in [5, 5, 7] {
        slots.arm((), at(time)).unwrap();
    }
    let sleeps: &'static AtomicU64 = Box::leak(Box::default());
    let asleep = move |until: Option<Instant>| {
        let now = match sleeps.fetch_add(1, Ordering::Relaxed) {
            // Woken early.
            0 => 3,
            1 => {
                assert_eq!(rig.ran(), [], "no timer is due");
                // Late.
                8
            }
            _ => return rig.partition.stop(),
        };
        assert_eq!(until, Some(at(5)));
        rig.partition.port().now.store(now, Ordering::Relaxed);
    };
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!(rig.ran(), [(1, 1, 1), (1, 2, 1), (1, 3, 1)]);
    assert_eq!(rig.stamps(), [None, Some(8), Some(8)], "the first is released without reading the clock");
}

/// It would spin at its priority otherwise, and keep the thread that occupies the level from
/// running.
#[test]
fn worker_sleeps_while_its_level_cannot_start() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    // SAFETY: nothing else uses node 1.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 1) };
    slots.arm((), at(0)).unwrap();
    rig.spawn_from_outside(1, 0);
    let slept: &'static Mutex<Vec<Option<Instant>>> = Box::leak(Box::new(Mutex::default()));
    let asleep = move |until: Option<Instant>| {
        slept.lock().unwrap().push(until);
        std::panic::resume_unwind(Box::new("asleep"));
    };
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    let has_started = rig.call(rig.worker(2), 2, || {
        let work = std::panic::AssertUnwindSafe(|| rig.partition.work(rig.worker(1), rig.level(1)));
        assert!(std::panic::catch_unwind(work).is_err(), "the worker sleeps");
    });
    assert!(has_started);
    assert_eq!(*slept.lock().unwrap(), [None], "the job has been released, and waits with the other");
}

#[test]
fn higher_ready_level_precedes_due_timers() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(0)).unwrap();
    // SAFETY: the level is the partition's, and the node is in no queue.
    unsafe { rig.partition.spawn_from_outside(rig.level(2), 0) };
    assert_eq!(rig.woken(), [2], "the worker has not run yet");
    rig.partition.port().asleep.set(Box::new(|_| rig.partition.stop())).ok().unwrap();
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!(rig.ran(), [(2, 0, 1), (1, 2, 1)]);
}

#[test]
fn runs_jobs_that_became_due_during_a_call_after_it() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(5)).unwrap();
    let me = rig.worker(1);
    assert!(rig.call(me, 1, || {}));
    assert_eq!(rig.ran(), [], "the timer is not due");
    assert!(rig.call(me, 1, || rig.partition.port().now.store(5, Ordering::Relaxed)));
    assert_eq!(rig.ran(), [(1, 2, 1)]);
}

#[test]
fn spinning_worker_ends_at_due_job_of_any_level() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    // SAFETY: nothing else uses node 1 of each level.
    let [one, two]: [Slots<(), 1, 1>; 2] = [1, 2].map(|level| unsafe { Slots::new(rig.level(level), 1) });
    one.arm((), at(50)).unwrap();
    let sleeps: &'static AtomicU64 = Box::leak(Box::default());
    let asleep = move |_: Option<Instant>| match sleeps.fetch_add(1, Ordering::Relaxed) {
        // The worker of level 2 sleeps while that of level 1 goes to sleep.
        0 => rig.partition.work(rig.worker(1), rig.level(1)),
        _ => rig.partition.stop(),
    };
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    two.arm((), at(30)).unwrap();
    rig.partition.work(rig.worker(2), rig.level(2));
    assert_eq!(
        *rig.partition.port().spins.lock().unwrap(),
        [(Some(30), false), (Some(30), false)],
        "a longer spin would delay the other worker"
    );
}

#[test]
fn spin_is_over_while_a_level_is_occupied() {
    for is_occupied in [false, true] {
        let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
        rig.partition.port().asleep.set(Box::new(|_| rig.partition.stop())).ok().unwrap();
        let sleep = || rig.partition.work(rig.worker(1), rig.level(1));
        if is_occupied {
            assert!(rig.call(rig.worker(2), 2, sleep));
        } else {
            sleep();
        }
        assert_eq!(*rig.partition.port().spins.lock().unwrap(), [(None, is_occupied)]);
    }
}

#[test]
fn jobs_due_during_a_job_precede_later_releases() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses these nodes.
    let slots = unsafe { Slots::<(), 4, 1>::new(rig.level(1), 0) };
    let waits = slots.put((), 20).unwrap();
    for time in [30, 10, 20] {
        slots.arm((), at(time)).unwrap();
    }
    let me = rig.worker(1);
    assert!(rig.call(me, 1, || {
        rig.spawn(me, 1, waits);
        rig.partition.port().now.store(25, Ordering::Relaxed);
    }));
    assert_eq!(rig.ran(), [(1, 2, 1), (1, waits, 1), (1, 3, 1)], "at equal times the queued job goes first");
    rig.partition.port().now.store(30, Ordering::Relaxed);
    assert!(rig.call(me, 1, || {}));
    assert_eq!(rig.ran(), [(1, 1, 1)], "the timer was not due");
}

#[test]
fn stamp_releases_nothing() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(105)).unwrap();
    rig.partition.port().now.store(100, Ordering::Relaxed);
    rig.partition.port().ahead.store(7, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.ran(), [(1, 0, 1)], "it is 100");
    rig.partition.port().now.store(105, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.ran(), [(1, 0, 1), (1, 2, 1)]);
}

#[test]
fn releases_jobs_due_within_the_error_of_a_stamp() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(105)).unwrap();
    // The timestamp is 95, and may be late by 10.
    rig.partition.port().ahead.store(10_u64.wrapping_neg(), Ordering::Relaxed);
    let at_time = |time| rig.partition.port().now.store(time, Ordering::Relaxed);
    assert!(rig.call(rig.worker(1), 1, || at_time(50)));
    assert_eq!(rig.ran(), [], "the timer is armed, and not due");
    assert!(rig.call(rig.worker(1), 1, || at_time(105)));
    assert_eq!(rig.ran(), [(1, 2, 1)]);
}

#[test]
fn next_job_starts_at_end_of_clocked_job() {
    let job: Job = |rig, me, node| {
        if node == 1 {
            rig.spawn(me, 1, 0);
        }
    };
    let rig = rig(&[1], &[(1, 1, job)]);
    // SAFETY: nothing else uses node 1.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 1) };
    slots.arm((), at(5)).unwrap();
    rig.ends.store(9, Ordering::Relaxed);
    rig.partition.port().now.store(8, Ordering::Relaxed);
    rig.partition.port().asleep.set(Box::new(|_| rig.partition.stop())).ok().unwrap();
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!((rig.ran(), rig.stamps()), (vec![(1, 1, 1), (1, 0, 1)], vec![Some(8), Some(9)]));
}

#[test]
fn sleep_begins_at_end_of_last_job_unless_a_level_is_ready() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    // The second job leaves a job of the lower level.
    let job: Job = |rig, me, _| {
        if rig.partition.port().now.load(Ordering::Relaxed) == 100 {
            rig.spawn(me, 1, 0);
            rig.ends.store(109, Ordering::Relaxed);
        }
        GRID.completed(at(rig.ends.load(Ordering::Relaxed)));
    };
    let rig = rig_with(&[1, 2], &[(1, 1, NOTHING), (2, 2, job)], &[&GRID]);
    rig.level(2).start(at(0));
    rig.ends.store(9, Ordering::Relaxed);
    let asleep = |until: Option<Instant>| match until {
        Some(until) if until == at(200) => rig.partition.stop(),
        until => rig.partition.port().now.store(until.expect("a job is due").as_ticks(), Ordering::Relaxed),
    };
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    rig.partition.work(rig.worker(2), rig.level(2));
    assert_eq!(rig.ran(), [(2, 0, 2), (2, 0, 2)]);
    assert_eq!(*rig.partition.port().given.lock().unwrap(), [Some(9), None]);
    assert_eq!(rig.woken()[0], 1, "the worker of the ready level");
}

#[test]
fn stopping_worker_does_not_sleep() {
    let rig = rig(&[1], &[(1, 1, |rig, _, _| rig.partition.stop())]);
    // SAFETY: nothing else uses node 1.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 1) };
    slots.arm((), at(50)).unwrap();
    rig.spawn_from_outside(1, 0);
    let asleep = |until: Option<Instant>| assert_eq!(until, None, "no job is released");
    rig.partition.port().asleep.set(Box::new(asleep)).ok().unwrap();
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!(rig.ran(), [(1, 0, 1)]);
}

#[test]
fn polling_thread_finds_pushed_jobs_of_a_timed_level() {
    let rig = rig(&[0], &[(1, 0, |rig, _, _| rig.partition.stop())]);
    // SAFETY: nothing else uses node 1; and there is one thread.
    let slots = unsafe {
        rig.worker(0).set_polling();
        Slots::<(), 1, 1>::new(rig.level(1), 1)
    };
    slots.arm((), at(50)).unwrap();
    rig.partition.begin_polling();
    rig.spawn_from_outside(1, 0);
    rig.partition.poll_once(rig.worker(0), at(0));
    assert!(rig.partition.must_serve(rig.worker(0)));
    rig.partition.poll(rig.worker(0));
    assert_eq!(rig.ran(), [(1, 0, 0)], "the timer is not due");
    rig.partition.poll_once(rig.worker(0), at(50));
    assert!(!rig.partition.must_serve(rig.worker(0)), "no job is released after the stop");
}

/// Another thread may have released the job after the reading by which due jobs were found.
#[test]
fn polled_job_starts_at_later_clock_reading() {
    let rig = rig(&[0], &[(1, 0, |rig, _, _| rig.partition.stop())]);
    // SAFETY: nothing else uses node 1; and there is one thread.
    let slots = unsafe {
        rig.worker(0).set_polling();
        Slots::<(), 1, 1>::new(rig.level(1), 1)
    };
    slots.arm((), at(50)).unwrap();
    rig.partition.begin_polling();
    rig.spawn_from_outside(1, 0);
    rig.partition.port().step.store(1, Ordering::Relaxed);
    rig.partition.poll(rig.worker(0));
    assert_ne!(rig.stamps(), [Some(0)], "0 is the first reading");
}

#[test]
fn only_worker_of_level_serves_its_timers() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    let job: Job = |_, _, node| {
        if node == 0 {
            GRID.completed(at(0));
        }
    };
    let rig = rig_with(&[0, 1], &[(1, 1, job)], &[&GRID]);
    rig.level(1).start(at(0));
    rig.spawn(rig.worker(0), 1, 1);
    assert_eq!(rig.ran(), [(1, 1, 0)], "due jobs are left to the worker");
    rig.spawn(rig.worker(1), 1, 2);
    assert_eq!(rig.ran(), [(1, 2, 1), (1, 0, 1)], "a due job runs after those queued before");
    rig.partition.stop();
    rig.partition.port().now.store(100, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!(rig.ran(), [(1, 1, 1)], "no job is released");
}

#[test]
fn reads_clock_only_for_timed_levels() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    let rig = rig_with(&[1], &[(1, 1, NOTHING)], &[&GRID]);
    rig.level(1).start(at(0));
    rig.partition.port().ahead.store(7, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!((rig.ran().len(), rig.stamps()), (2, vec![Some(0), Some(0)]), "the clock if a job is due");
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!(rig.stamps(), [Some(7)], "the timestamp if no job is due");
    let rig = self::rig(&[1], &[(1, 1, NOTHING)]);
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.stamps(), [None]);
    // SAFETY: there is no other worker.
    unsafe { rig.worker(1).set_polling() };
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.stamps(), [None]);
}

#[test]
fn poller_serves_timers_of_every_level() {
    let rig = rig(&[0], &[(1, 0, NOTHING), (2, 0, NOTHING)]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    // SAFETY: nothing else uses node 2 of each level.
    let [one, two]: [Slots<(), 1, 1>; 2] = [1, 2].map(|level| unsafe { Slots::new(rig.level(level), 2) });
    one.arm((), at(5)).unwrap();
    two.arm((), at(6)).unwrap();
    assert!(rig.call(me, 1, || {}), "no job is queued");
    assert_eq!(rig.ran(), [], "no job is due");
    rig.partition.port().now.store(6, Ordering::Relaxed);
    assert!(rig.call(me, 1, || rig.spawn(me, 1, 0)));
    assert_eq!(
        rig.ran(),
        [(2, 2, 0), (1, 0, 0), (1, 2, 0)],
        "the highest first; jobs of a level by their release"
    );
    assert_eq!(rig.stamps(), [Some(6), None, None], "a reading is stale once a job has run");
    rig.partition.stop();
    one.arm((), at(0)).unwrap_err();
    assert_eq!(rig.woken(), [0], "woken by the stop");
}

#[test]
fn poller_releases_at_occupied_level() {
    let rig = rig(&[0], &[(1, 0, NOTHING)]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    // SAFETY: nothing else uses node 2.
    let slots: Slots<(), 1, 1> = unsafe { Slots::new(rig.level(1), 2) };
    slots.arm((), at(5)).unwrap();
    rig.partition.port().now.store(5, Ordering::Relaxed);
    assert!(rig.call(me, 1, || {}));
    assert_eq!((rig.ran(), rig.partition.snapshot()), (vec![(1, 2, 0)], Word::EMPTY));
}

#[test]
fn check_releases_and_marks_without_running() {
    let rig = rig(&[0], &[(1, 0, NOTHING), (2, 0, NOTHING)]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    rig.partition.begin_polling();
    // SAFETY: nothing else uses node 2.
    let slots: Slots<(), 1, 1> = unsafe { Slots::new(rig.level(1), 2) };
    slots.arm((), at(5)).unwrap();
    rig.partition.poll_once(me, at(4));
    assert_eq!(rig.partition.snapshot(), Word::EMPTY, "the timer is not due");
    rig.spawn_from_outside(2, 0);
    rig.partition.poll_once(me, at(5));
    assert_eq!((rig.partition.snapshot(), rig.ran()), (Word::EMPTY.mark_ready(1).mark_ready(2), vec![]));
    rig.partition.serve(me, None);
    assert_eq!(rig.ran(), [(2, 0, 0), (1, 2, 0)]);
}

#[test]
fn poller_needs_no_marks_and_no_wakes() {
    let low: Job = |rig, _, _| {
        rig.spawn_from_outside(2, 0);
        assert_eq!((rig.ran(), rig.woken()), (vec![(1, 0, 0)], vec![]));
        assert!(!rig.partition.snapshot().is_ready(2), "the polling thread finds the job");
    };
    let rig = rig(&[0], &[(1, 0, low), (2, 0, |rig, _, _| rig.partition.stop())]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    rig.spawn_from_outside(1, 0);
    assert_eq!(rig.woken(), [0], "the thread does not poll yet");
    rig.partition.poll(me);
    assert_eq!(rig.ran(), [(2, 0, 0)]);
    assert_eq!(rig.partition.snapshot(), Word::EMPTY);
    let pushed = &rig.partition.port().pushed;
    assert_eq!(pushed.load(Ordering::Relaxed), 1, "the port is notified of the push");
    rig.woken();
    // SAFETY: there is one thread.
    unsafe { rig.partition.reset() };
    rig.spawn_from_outside(1, 0);
    assert_eq!(rig.woken(), [0], "the thread no longer polls");
}
