//! Local levels: the level's worker runs each job, regardless of the thread that releases it, and
//! none is lost; and one thread drops the message that an async task leaves there.
//!
//! Bound: three preemptions; the merge gate explores two. A job is lost if the level's worker goes
//! to sleep between the spawning thread's push and its wake. A message is taken twice if the level
//! ends between a poll's check and its claim. Each needs one preemption that stops the first thread
//! in between, and one that stops the other before it has finished. The third allows each order,
//! regardless of the first thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{
    Arena, Model, ModelPort, Region, check, current, i_am, level, partition, start, worker,
};
use loom::cell::UnsafeCell;
use punctual_core::{
    Activation, CurrentWorker, Jobs, Level, Locked, Mutex, Node, Port, Queue, Resource, Worker,
};

/// The state that the jobs of a model need; the partition is created after its levels.
struct App {
    partition: OnceLock<&'static Model>,
    /// The one thread that runs the local level.
    runner: OnceLock<&'static Worker>,
    inside: Region,
    ran: AtomicU32,
    /// Jobs that another thread has run.
    strays: AtomicU32,
}

impl App {
    fn new(arena: &Arena) -> &'static App {
        arena.put(App {
            partition: OnceLock::new(),
            runner: OnceLock::new(),
            inside: Region::new(),
            ran: AtomicU32::new(0),
            strays: AtomicU32::new(0),
        })
    }

    fn partition(&self) -> &'static Model {
        self.partition.get().unwrap()
    }

    /// Checks at the end that all of `jobs` were run, and on the right thread.
    fn check(&self, jobs: u32) {
        assert_eq!(self.strays.load(Ordering::Relaxed), 0, "a local job left its thread");
        assert_eq!(self.ran.load(Ordering::Relaxed), jobs, "every job runs once");
    }

    /// A job of the local level.
    fn run(&self, me: &'static Worker) {
        if !std::ptr::eq(me, *self.runner.get().unwrap()) {
            self.strays.fetch_add(1, Ordering::Relaxed);
        }
        self.inside.enter();
        self.ran.fetch_add(1, Ordering::Relaxed);
    }
}

/// A local level 2 with `nodes` jobs, and its active worker.
fn local(arena: &Arena, app: &'static App, nodes: usize) -> (&'static Level, &'static Worker) {
    let w2 = worker(arena, 2, 2, true);
    app.runner.set(w2).unwrap();
    let run = arena.put(move |me: CurrentWorker, _: u32, _| {
        app.run(me.worker());
        None
    });
    let nodes = arena.put((0..nodes).map(|_| Node::new()).collect::<Vec<_>>());
    (arena.put(Level::new(2, w2, arena.put(Queue::new()), nodes, &[], Jobs::of(run)).local()), w2)
}

/// Like a spawn in an app: a direct call if allowed, otherwise through the queue.
fn spawn(p: &'static Model, me: &'static Worker, level: &'static Level, node: u32, app: &'static App) {
    let job = || {
        app.run(me);
        None
    };
    if p.call(me, level, job).is_err() {
        p.spawn(me, level, node);
    }
}

/// Releases the job of level 1 and serves it as the level's worker does.
fn run_one(p: &'static Model, w1: &'static Worker, l1: &'static Level) {
    p.spawn(w1, l1, 0);
    while p.snapshot().is_ready(1) {
        // A higher level was ready and went first.
        p.port().wait(w1, None, None);
        p.serve(w1);
    }
}

/// A job of level 1, which may call, spawns to the local level above; so does a foreign thread.
#[test]
fn job_from_below_goes_to_worker() {
    check(3, |arena| {
        let app = App::new(arena);
        let (l2, w2) = local(arena, app, 2);
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 1, move |me, _| spawn(app.partition(), me, l2, 0, app));
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        app.partition.set(p).ok().unwrap();
        let thread = start(2, move || p.work(l2));
        p.spawn_from_outside(l2, 1);
        run_one(p, w1, l1);
        p.stop();
        thread.join().unwrap();
        app.check(2);
    });
}

/// A job of level 1 holds a resource whose ceiling is the local level, and spawns there: the end of
/// the lock, on a thread that may not serve the level, wakes the worker.
#[test]
fn end_of_section_wakes_worker() {
    check(3, |arena| {
        let app = App::new(arena);
        let (l2, w2) = local(arena, app, 1);
        let w1 = worker(arena, 1, 1, true);
        let resource: &Resource<u32> = arena.put(Resource::with_value(0));
        let l1 = level(arena, 1, w1, 1, move |me, _| {
            let p = app.partition();
            // SAFETY: this is a job of level 1 on `me`'s thread, the only one to use the resource.
            let mut locked = unsafe { Locked::<u32, ModelPort, 1, 2>::new(resource, p, current(me)) };
            locked.lock(|count| {
                *count += 1;
                spawn(p, me, l2, 0, app);
            });
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        app.partition.set(p).ok().unwrap();
        let worker = start(2, move || p.work(l2));
        run_one(p, w1, l1);
        p.stop();
        worker.join().unwrap();
        app.check(1);
    });
}

/// A foreign thread spawns an async task of the local level while the level's thread ends: that
/// thread polls or drops the message, or the remaining thread finds it.
#[test]
fn release_while_level_ends() {
    check(3, |arena| {
        /// The message: how often it was stored, and how often taken.
        struct Message(UnsafeCell<[u32; 2]>);
        // SAFETY: loom checks every access; this is the purpose of the type.
        unsafe impl Sync for Message {}
        impl Message {
            fn count(&self, which: usize) {
                // SAFETY: `with_mut` panics if any other access is in progress or unordered.
                self.0.with_mut(|counts| unsafe { (*counts)[which] += 1 });
            }
        }

        let message: &Message = arena.put(Message(UnsafeCell::new([0; 2])));
        let linked = arena.put(OnceLock::<&Activation>::new());
        let w1 = worker(arena, 1, 1, true);
        let run = arena.put(move |_: CurrentWorker, _: u32, _| {
            let task = linked.get().unwrap();
            if !task.is_retired() && task.poll() {
                message.count(1);
                task.end_polls();
                task.completed();
            }
            None
        });
        let nodes = arena.put([Node::new()]);
        let l1: &'static Level =
            arena.put(Level::new(1, w1, arena.put(Queue::new()), nodes, &[], Jobs::of(run)).local());
        let task: &'static Activation = arena.put(Activation::new(l1, 0));
        linked.set(task).unwrap();
        let p = partition(arena, ModelPort::new(1, false), &[l1], &[w1]);
        let spawner = start(9, move || {
            if task.claim() {
                message.count(0);
                if task.spawned() {
                    p.spawn_from_outside(l1, 0);
                }
            }
        });
        let runner = start(1, move || {
            p.serve(w1);
            if task.retire() {
                message.count(1);
            }
            // A later or leftover message is not polled.
            p.serve(w1);
            assert!(!task.claim(), "no instance is left");
        });
        spawner.join().unwrap();
        runner.join().unwrap();
        // SAFETY: `with` panics if any other access is in progress or unordered.
        let [put, taken] = message.0.with(|counts| unsafe { *counts });
        // SAFETY: the other threads have ended.
        let left = unsafe { task.reset() };
        assert!(taken <= put && (taken == put || left.is_some()), "the message is taken once, or left");
    });
}

/// The last action of a local level's thread, outside of its jobs, excludes a holder of the level
/// as a ceiling.
#[test]
fn last_job_of_a_level_excludes_the_ceiling() {
    check(3, |arena| {
        let region = arena.put(Resource::with_value(Region::new()));
        let (idle, w1) = (worker(arena, 0, 1, false), worker(arena, 1, 2, true));
        let jobs = Jobs::of(&|_, _, _| None);
        let l1: &'static Level =
            arena.put(Level::new(1, w1, arena.put(Queue::new()), &[], &[], jobs).local());
        let p = partition(arena, ModelPort::new(2, false), &[l1], &[idle, w1]);
        i_am(1);
        let ends = start(2, move || {
            // SAFETY: the resource is filled, and its ceiling is the level that this runs at.
            p.run_last(l1, || unsafe { region.get_mut() }.enter());
        });
        // SAFETY: idle's own thread, which holds nothing; the ceiling is the level.
        let mut right: Locked<'_, _, _, 0, 1> = unsafe { Locked::new(region, p, current(idle)) };
        right.lock(|region| region.enter());
        ends.join().unwrap();
    });
}

/// The last action at a local level locks as its jobs do.
///
/// Bound: two preemptions. The regions overlap if the job above starts between the section's check
/// of the word and its change: one preemption stops the first thread there, and one stops the job
/// in its region.
#[test]
fn last_job_of_a_level_locks() {
    check(2, |arena| {
        let region = arena.put(Resource::with_value(Region::new()));
        let (w1, w2) = (worker(arena, 1, 1, true), worker(arena, 2, 2, true));
        let jobs = Jobs::of(&|_, _, _| None);
        let l1: &'static Level =
            arena.put(Level::new(1, w1, arena.put(Queue::new()), &[], &[], jobs).local());
        let l2 = level(arena, 2, w2, 1, move |_, _| {
            // SAFETY: the resource is filled, and its ceiling is this job's level.
            unsafe { region.get_mut() }.enter();
        });
        let p = partition(arena, ModelPort::new(2, false), &[l1, l2], &[w1, w2]);
        i_am(1);
        p.spawn_from_outside(l2, 0);
        let above = start(2, move || p.serve(w2));
        p.run_last(l1, || {
            // SAFETY: this runs at level 1, on its own thread, and the job above uses the same
            // ceiling.
            let mut right: Locked<'_, _, _, 1, 2> = unsafe { Locked::new(region, p, current(w1)) };
            right.lock(|region| region.enter());
        });
        above.join().unwrap();
    });
}
