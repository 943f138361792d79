//! A partition that polls: jobs that others push into its inboxes run once, highest level first, in
//! order of arrival, and none is lost at the end.
//!
//! Bound: three preemptions; the merge gate explores two. A job is lost or overtaken if it is
//! pushed between the poller's check of the inboxes and its next step: one preemption of the
//! poller. A second stops the other thread between the push and the stop. The third allows each
//! order, since the other thread is first.

use std::sync::{Mutex, OnceLock};

use crate::support::{
    Arena, Model, ModelPort, Region, check, current, i_am, level, partition, start, worker,
};
use punctual_core::Worker;

/// The state that the jobs of a model need; the partition is created after its levels.
struct App {
    partition: OnceLock<&'static Model>,
    order: Mutex<Vec<u32>>,
    inside: Region,
}

impl App {
    fn new(arena: &Arena) -> &'static App {
        arena.put(App { partition: OnceLock::new(), order: Mutex::default(), inside: Region::new() })
    }

    fn partition(&self) -> &'static Model {
        self.partition.get().unwrap()
    }

    fn run(&self, job: u32) {
        self.inside.enter();
        self.order.lock().unwrap().push(job);
    }

    fn order(&self) -> Vec<u32> {
        self.order.lock().unwrap().clone()
    }
}

/// The thread that polls.
fn poller(arena: &Arena) -> &'static Worker {
    let me = worker(arena, 0, 1, false);
    // SAFETY: this is the only worker of its partition.
    unsafe { current(me).set_polling() };
    me
}

/// During a job another CPU spawns to a level above, and another job of the running job's level is
/// queued.
#[test]
fn higher_job_precedes_next_of_level() {
    check(3, |arena| {
        let app = App::new(arena);
        let me = poller(arena);
        let l2 = level(arena, 2, me, 1, |_, _| app.run(2));
        let l1 = level(arena, 1, me, 2, move |_, node| {
            app.run(node);
            if node == 0 {
                app.partition().spawn_from_outside(l2, 0);
            }
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1, l2], &[me]);
        app.partition.set(p).ok().unwrap();
        p.spawn_from_outside(l1, 0);
        p.spawn_from_outside(l1, 1);
        let thread = start(1, move || p.poll(me));
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.order(), [0, 2, 1]);
    });
}

/// A job spawns to a level whose inbox holds a job that it has itself pushed there as a foreign
/// thread.
#[test]
fn call_does_not_overtake_the_inbox() {
    check(3, |arena| {
        let app = App::new(arena);
        let me = poller(arena);
        let l2 = level(arena, 2, me, 2, |_, node| app.run(node));
        let l1 = level(arena, 1, me, 1, move |me, _| {
            let p = app.partition();
            p.spawn_from_outside(l2, 0);
            let called = p.call(me, l2, || {
                app.run(1);
                None
            });
            if called.is_err() {
                p.spawn(me, l2, 1);
            }
        });
        let p = partition(arena, ModelPort::new(1, false), &[l1, l2], &[me]);
        app.partition.set(p).ok().unwrap();
        p.spawn_from_outside(l1, 0);
        let thread = start(1, move || p.poll(me));
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.order(), [0, 1]);
    });
}

/// A spawn, and then a stop, while the thread checks the inboxes.
#[test]
fn runs_jobs_spawned_before_the_stop() {
    check(3, |arena| {
        let app = App::new(arena);
        let me = poller(arena);
        let l1 = level(arena, 1, me, 1, |_, node| app.run(node));
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[me]);
        i_am(9);
        let thread = start(1, move || p.poll(me));
        p.spawn_from_outside(l1, 0);
        p.stop();
        thread.join().unwrap();
        assert_eq!(app.order(), [0]);
    });
}

/// Two CPUs spawn at two levels.
///
/// Bound: two preemptions. One stops the poller between two checks, and one stops a spawning thread
/// between its push and its end. The other spawns where one of them ends.
#[test]
fn runs_each_job_of_two_spawners_once() {
    check(2, |arena| {
        let app = App::new(arena);
        let me = poller(arena);
        let l1 = level(arena, 1, me, 1, |_, _| app.run(1));
        let l2 = level(arena, 2, me, 1, |_, _| app.run(2));
        let p = partition(arena, ModelPort::new(1, false), &[l1, l2], &[me]);
        i_am(9);
        let thread = start(1, move || p.poll(me));
        let other = start(8, move || p.spawn_from_outside(l1, 0));
        p.spawn_from_outside(l2, 0);
        other.join().unwrap();
        p.stop();
        thread.join().unwrap();
        let mut order = app.order();
        order.sort_unstable();
        assert_eq!(order, [1, 2]);
    });
}
