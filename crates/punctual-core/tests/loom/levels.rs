//! At most one thread runs jobs of a level, and every queued job is run exactly once, regardless of
//! the thread that queues it, of the levels that block it, and of the rule that dispatches it.
//!
//! Bound: three preemptions; the merge gate explores two. A job is lost if a thread vacates its
//! level, or its worker goes to sleep, on a word that lacks the mark, while the spawning thread
//! omits the wake: one preemption between a check and the vacating or the sleep, and one between
//! the push, the mark and the wake. The same two let two threads start one level, or a call
//! overtake the queue. With two threads, the third allows each order, regardless of the first
//! thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{
    Arena, Model, ModelPort, Region, check, current, i_am, level, level_with, partition, slots, start, worker,
};
use punctual_core::{Duration, Instant, Level, Locked, Mutex, Periodic, Reaction, Resource, Slots, Worker};

/// The state that the jobs of a model need; the partition is created after its levels.
struct App {
    partition: OnceLock<&'static Model>,
    /// Entered by the jobs of level 2.
    two: Region,
    ran: [AtomicU32; 2],
}

impl App {
    fn new(arena: &Arena) -> &'static App {
        arena.put(App { partition: OnceLock::new(), two: Region::new(), ran: Default::default() })
    }

    fn partition(&self) -> &'static Model {
        self.partition.get().unwrap()
    }

    fn run(&self, node: u32) {
        self.two.enter();
        self.ran[node as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn ran(&self) -> [u32; 2] {
        [0, 1].map(|node: usize| self.ran[node].load(Ordering::Relaxed))
    }
}

/// A worker that sleeps, an ordinary thread of the partition that spawns jobs for it, and a stop.
#[test]
fn thread_that_may_not_call_wakes_worker() {
    check(3, |arena| {
        let app = App::new(arena);
        let (idle, w2) = (worker(arena, 0, 1, false), worker(arena, 2, 2, true));
        let l2 = level(arena, 2, w2, 2, |_, node| app.run(node));
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[idle, w2]);
        let thread = start(2, move || p.work(l2));
        p.spawn(idle, l2, 0);
        p.spawn(idle, l2, 1);
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// A job of level 1 spawns to level 2 and may run the job as a direct call; a foreign thread spawns
/// to level 2 as well; and the level's own worker is active.
///
/// Bound: two preemptions. One before and one after the instruction that starts or ends the call; a
/// third thread continues where another ends.
#[test]
fn call_races_foreign_spawn_and_worker() {
    check(2, |arena| {
        let app = App::new(arena);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 2, |_, node| app.run(node));
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        let low = p.call(w1, l1, || {
            let foreign = start(9, move || p.spawn_from_outside(l2, 1));
            let thread = start(2, move || p.work(l2));
            p.spawn(w1, l2, 0);
            foreign.join().unwrap();
            p.stop();
            thread.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// The idle thread calls a job of level 1, which calls one of level 2, both at constant levels; a
/// foreign thread spawns to level 2, and the level's own worker is active.
///
/// Bound: two preemptions, one before and one after the instruction that starts or ends a call.
#[test]
fn calls_at_constant_levels_race_foreign_spawn_and_worker() {
    check(2, |arena| {
        let app = App::new(arena);
        let idle = worker(arena, 0, 3, true);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 2, |_, node| app.run(node));
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[idle, w1, w2]);
        i_am(3);
        let thread = start(2, move || p.work(l2));
        let foreign = start(9, move || p.spawn_from_outside(l2, 1));
        let job = || {
            app.run(0);
            None
        };
        let call = || {
            if p.call(idle, l2, job).is_err() {
                p.spawn(idle, l2, 0);
            }
            None
        };
        if p.call(idle, l1, call).is_err() {
            call();
        }
        assert_eq!((idle.level(), idle.running()), (0, 0), "the thread occupies nothing");
        foreign.join().unwrap();
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// A foreign thread spawns a job of level 2 while a job of level 1 holds a ceiling above it. The
/// worker of level 2 sees that the job cannot start and sleeps; the thread that lowers the level
/// runs it.
///
/// Bound: two preemptions. One stops the foreign thread between its push and its mark, and one
/// stops the worker between its check and its sleep.
#[test]
fn foreign_spawn_during_critical_section() {
    check(2, |arena| {
        let app = App::new(arena);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 1, |_, node| {
            app.run(node);
            app.partition().stop();
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        app.partition.set(p).ok().unwrap();
        let resource = arena.put(Resource::with_value(()));
        let low = p.call(w1, l1, || {
            let thread = start(2, move || p.work(l2));
            let foreign = start(9, move || p.spawn_from_outside(l2, 0));
            // SAFETY: a job of level 1 on its own worker; no other thread uses the resource.
            let mut right: Locked<'_, _, _, 1, 3> = unsafe { Locked::new(resource, p, current(w1)) };
            right.lock(|()| ());
            foreign.join().unwrap();
            thread.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(app.ran(), [1, 0], "the job runs once");
    });
}

/// Level 2 becomes due at 5 during a job of level 3, by one of `grids` or as `arm` has armed it:
/// its worker releases the job, cannot start it, and is woken by the thread that ends the job of
/// level 3 (rules 4, 2 and 3).
fn is_due_below_running_job(arena: &Arena, grids: &[&'static Periodic], arm: impl FnOnce(&'static Level)) {
    let app = App::new(arena);
    let (w2, w3) = (worker(arena, 2, 2, true), worker(arena, 3, 3, true));
    let l2 = level_with(arena, 2, w2, 1, grids, |_, node| {
        app.run(node);
        app.partition().stop();
    });
    let l3 = level(arena, 3, w3, 0, |_, _| {});
    let p = partition(arena, ModelPort::new(3, false), &[l2, l3], &[w2, w3]);
    app.partition.set(p).ok().unwrap();
    arm(l2);
    let thread = start(2, move || p.work(l2));
    let high = p.call(w3, l3, || {
        p.port().advance(5, &[w2]);
        None
    });
    assert!(high.is_ok());
    thread.join().unwrap();
    assert_eq!(app.ran(), [1, 0], "the job runs once");
}

#[test]
fn timer_expires_below_running_job() {
    check(3, |arena| {
        is_due_below_running_job(arena, &[], |l2| {
            let slots: &Slots<u32, 1, 1> = slots(arena, l2);
            slots.arm(0, Instant::from_ticks(5)).unwrap();
        });
    });
}

/// The worker heeds no wake while it sleeps until a grid point, unless its level is ready.
#[test]
fn grid_point_passes_below_running_job() {
    check(3, |arena| {
        let ticks = Duration::from_ticks;
        let grid = arena.put(Periodic::new(0, 1, ticks(100), ticks(5), Reaction::Skip));
        is_due_below_running_job(arena, &[grid], |l2| l2.start(Instant::from_ticks(0)));
    });
}

/// The chain from level to level: a foreign thread spawns a job of level 2, which spawns one of
/// level 1, which its own worker has to run.
///
/// Bound: two preemptions. The spawns follow each other, so each level has one check that can miss
/// its job: one preemption between the check and the sleep of each worker.
#[test]
fn hands_lower_level_to_worker() {
    fn chain(p: &'static Model, l1: &'static Level, l2: &'static Level, workers: [&'static Worker; 2]) {
        let threads = [(workers[0], l1), (workers[1], l2)]
            .map(|(worker, level)| start(worker.thread(), move || p.work(level)));
        p.spawn_from_outside(l2, 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    check(2, |arena| {
        let app = App::new(arena);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 1, |me, _| {
            assert_eq!(me.base(), 1, "level 1 runs on its own worker");
            app.run(1);
            app.partition().stop();
        });
        let l2 = level(arena, 2, w2, 1, move |me, _| {
            app.run(0);
            app.partition().spawn(me, l1, 0);
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        app.partition.set(p).ok().unwrap();
        chain(p, l1, l2, [w1, w2]);
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// Two threads without the right to run jobs as direct calls spawn to one level concurrently: one
/// wake may be omitted, but no job.
#[test]
fn omitted_wake_loses_no_job() {
    check(3, |arena| {
        let app = App::new(arena);
        let (idle, w2) = (worker(arena, 0, 1, false), worker(arena, 2, 2, true));
        let done = arena.put(AtomicU32::new(0));
        let l2 = level(arena, 2, w2, 2, |_, node| {
            app.run(node);
            if done.fetch_add(1, Ordering::Relaxed) == 1 {
                app.partition().stop();
            }
        });
        let p = partition(arena, ModelPort::new(2, false), &[l2], &[idle, w2]);
        app.partition.set(p).ok().unwrap();
        i_am(1);
        let thread = start(2, move || p.work(l2));
        let foreign = start(9, move || p.spawn_from_outside(l2, 1));
        p.spawn(idle, l2, 0);
        foreign.join().unwrap();
        thread.join().unwrap();
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// A foreign thread has spawned to level 2, and then a job of level 1 does. The second spawn could
/// be a direct call, but would overtake the first job if that is still queued.
#[test]
fn call_does_not_overtake_queue() {
    check(3, |arena| {
        let app = App::new(arena);
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let l1 = level(arena, 1, w1, 0, |_, _| {});
        let l2 = level(arena, 2, w2, 2, |_, node| {
            assert!(node == 0 || app.ran() == [1, 0], "the first job was overtaken");
            app.run(node);
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        i_am(1);
        let low = p.call(w1, l1, || {
            let thread = start(2, move || p.serve(w2));
            p.spawn_from_outside(l2, 0);
            let called = p.call(w1, l2, || {
                assert_eq!(app.ran(), [1, 0], "the first job was overtaken by a call");
                app.run(1);
                None
            });
            if called.is_err() {
                p.spawn(w1, l2, 1);
            }
            thread.join().unwrap();
            None
        });
        assert!(low.is_ok());
        assert_eq!(app.ran(), [1, 1], "every job runs once");
    });
}

/// A thread of base 3 that is between two jobs, like one that has waited for an event, spawns to
/// level 2. It must not run that job itself (rule 3): level 2's worker does.
///
/// Bound: two preemptions. One between the worker's check and its sleep, and one between the mark
/// and the wake. The rejected call itself depends on no other thread.
#[test]
fn spawn_below_thread_goes_to_worker() {
    check(2, |arena| {
        let app = App::new(arena);
        let (w2, w3) = (worker(arena, 2, 2, true), worker(arena, 3, 3, true));
        let l2 = level(arena, 2, w2, 1, |me, node| {
            assert_eq!(me.base(), 2, "level 2 runs on its own worker");
            app.run(node);
        });
        let p = partition(arena, ModelPort::new(3, false), &[l2], &[w2, w3]);
        i_am(3);
        let thread = start(2, move || p.work(l2));
        let called = p.call(w3, l2, || None);
        assert!(called.is_err(), "a call would delay the levels between the job's and the thread's");
        p.spawn(w3, l2, 0);
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.ran(), [1, 0], "the job runs once");
    });
}
