//! Starting: jobs released while `init` holds everything wait for its end, and the grids of
//! periodic tasks start while their workers are awake already.
//!
//! Bound: three preemptions; the merge gate explores two. A release is lost, or counted as an
//! overrun, if the worker reads the grid or the ready levels between two steps of the start. One
//! preemption stops the starting thread there, and a second stops the worker between its two reads.
//! The third lets the worker continue before the start has ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{
    Model, ModelPort, Region, check, current, i_am, level, level_with, partition, start, worker,
};
use punctual_core::{Duration, Instant, Periodic, Reaction, Slots};

/// The worker of a periodic task is awake when the grid starts and its first point is due at once.
/// Every release is one job, and none counts as an overrun.
#[test]
fn worker_sees_started_grid() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let (idle, w2) = (worker(arena, 0, 1, false), worker(arena, 2, 2, true));
        let task = Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
        let task = arena.put(task);
        let jobs = arena.put(AtomicU32::new(0));
        let l2 = level_with(arena, 2, w2, 1, &[task], |me, _| {
            let &partition = linked.get().unwrap();
            let job = jobs.fetch_add(1, Ordering::Relaxed);
            task.completed(Instant::from_ticks(u64::from(job) * 100));
            if job == 0 {
                partition.port().advance(100, &[me]);
            } else {
                partition.stop();
            }
        });
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[idle, w2]);
        linked.set(p).ok().unwrap();
        i_am(1);
        p.hold_all_jobs(idle);
        let thread = start(2, move || p.work(l2));
        p.go(idle, Instant::from_ticks(0));
        thread.join().unwrap();
        assert_eq!(jobs.load(Ordering::Relaxed), 2, "one job for each release");
        assert_eq!(task.overruns(), 0, "a release was taken for an overrun");
    });
}

/// Another thread starts a grid while the polling thread runs: each release is one job.
#[test]
fn poller_sees_started_grid() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let poller = worker(arena, 0, 1, false);
        // SAFETY: this is the only worker of its partition.
        unsafe { current(poller).set_polling() };
        let ticks = Duration::from_ticks;
        let task = arena.put(Periodic::new(0, 1, ticks(100), ticks(0), Reaction::Skip));
        let jobs = arena.put(AtomicU32::new(0));
        let l1 = level_with(arena, 1, poller, 1, &[task], |_, _| {
            let &partition = linked.get().unwrap();
            task.completed(Instant::from_ticks(0));
            match jobs.fetch_add(1, Ordering::Relaxed) {
                0 => partition.port().advance(100, &[]),
                _ => partition.stop(),
            }
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[poller]);
        linked.set(p).ok().unwrap();
        i_am(9);
        let thread = start(1, move || p.poll(poller));
        p.lay_grids(Instant::from_ticks(0));
        thread.join().unwrap();
        assert_eq!(jobs.load(Ordering::Relaxed), 2, "one job for each release");
        assert_eq!(task.overruns(), 0, "a release was taken for an overrun");
    });
}

/// Jobs spawned during `init` run after it, and see its effects.
#[test]
fn spawn_during_init_waits() {
    check(3, |arena| {
        let linked = arena.put(OnceLock::<&Model>::new());
        let init = arena.put(Region::new());
        let (idle, w1) = (worker(arena, 0, 1, false), worker(arena, 1, 2, true));
        let l1 = level(arena, 1, w1, 1, |_, _| {
            init.enter();
            linked.get().unwrap().stop();
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[idle, w1]);
        linked.set(p).ok().unwrap();
        i_am(1);
        p.hold_all_jobs(idle);
        let thread = start(2, move || p.work(l1));
        p.spawn(idle, l1, 0);
        init.enter();
        p.go(idle, Instant::from_ticks(0));
        thread.join().unwrap();
        assert_eq!(init.count(), 2);
    });
}

/// A job runs across a grid point on a thread other than the timekeeper: that release is an
/// overrun, whether the timekeeper finds the job unfinished or sees that it has ended since.
#[test]
fn job_that_ends_after_grid_point_overruns() {
    check(3, |arena| {
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let ticks = Duration::from_ticks;
        let task = arena.put(Periodic::new(0, 1, ticks(100), ticks(0), Reaction::Skip));
        let l2 = level_with(arena, 2, w2, 1, &[task], |_, _| task.completed(Instant::from_ticks(150)));
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[w1, w2]);
        i_am(1);
        l2.start(Instant::from_ticks(0));
        p.release_due(l2, Instant::from_ticks(0));
        let keeper = start(2, move || p.release_due(l2, Instant::from_ticks(100)));
        p.serve(w1);
        keeper.join().unwrap();
        assert_eq!(task.overruns(), 1, "the job was running at the grid point");
    });
}

/// As the first model, for a grid that was started in an earlier run: the worker sees none of that
/// run's state, although a due timer makes it read the grid before the new grid is published.
#[test]
fn worker_sees_restarted_grid() {
    check(3, |arena| {
        let w2 = worker(arena, 2, 2, true);
        let ticks = Duration::from_ticks;
        let task = arena.put(Periodic::new(0, 1, ticks(100), ticks(0), Reaction::Skip));
        let l2 = level_with(arena, 2, w2, 2, &[task], |_, _| {});
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[w2]);
        // SAFETY: node 0 belongs to the periodic task, and node 1 to these slots.
        let slots: &Slots<(), 1, 1> = arena.put(unsafe { Slots::new(l2, 1) });
        i_am(1);
        l2.start(Instant::from_ticks(0));
        p.release_due(l2, Instant::from_ticks(0));
        // SAFETY: there is no other thread yet.
        unsafe { p.reset() };
        slots.arm((), Instant::from_ticks(100)).unwrap();
        let keeper = start(2, move || p.release_due(l2, Instant::from_ticks(100)));
        l2.start(Instant::from_ticks(100));
        keeper.join().unwrap();
        assert_eq!(task.overruns(), 0, "the job of the earlier run is discarded");
    });
}
