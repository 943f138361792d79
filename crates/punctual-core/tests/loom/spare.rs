//! The spare slot of a task: it passes on with the level, has one owner at a time, and hides no
//! free slot.
//!
//! Bound: three preemptions; the merge gate explores two. A wrong owner of the spare needs two, and
//! a slot that seems to be missing needs one, as each model argues.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Arena, Model, ModelPort, check, current, level, partition, slots, start, worker};
use punctual_core::{Level, Popped, Slots, Worker};

/// Argument of a job that spawns another job of its task.
const RESPAWNS: u32 = 1;
/// Argument of a job that spawns nothing.
const ENDS: u32 = 2;
/// Argument of a job that another job has spawned.
const RESPAWNED: u32 = 4;
/// Argument of a job that a foreign thread has spawned during the other jobs.
const FOREIGN: u32 = 8;

/// The only task of level 1, with two slots. A job frees its slot at its start, as jobs do.
struct Task {
    partition: &'static Model,
    level: &'static Level,
    slots: &'static Slots<u32, 2, 1>,
    /// The sum of the arguments of the jobs that have run.
    ran: &'static AtomicU32,
    /// The sum of the arguments of the jobs that other jobs have spawned.
    respawned: &'static AtomicU32,
}

impl Task {
    fn new(arena: &Arena, workers: &[&'static Worker]) -> &'static Self {
        let linked = arena.put(OnceLock::<&'static Self>::new());
        let level = level(arena, 1, workers[0], 2, |me, node| linked.get().unwrap().run(me, node));
        let task = arena.put(Self {
            partition: partition(arena, ModelPort::new(1, false), &[level], workers),
            level,
            slots: slots(arena, level),
            ran: arena.put(AtomicU32::new(0)),
            respawned: arena.put(AtomicU32::new(0)),
        });
        linked.set(task).ok().unwrap();
        task
    }

    fn run(&self, me: &'static Worker, node: u32) {
        // SAFETY: the job of the node runs, on the thread that occupies the level.
        let argument = unsafe {
            let args = self.slots.arguments(Popped::of(node));
            let argument = args.place().cast::<u32>().read();
            self.slots.free(args);
            argument
        };
        self.ran.fetch_add(argument, Ordering::Relaxed);
        if argument != RESPAWNS {
            return;
        }
        let cell = self.partition.word_cell();
        // SAFETY: a job of the level runs on this thread, the argument is an integer, and the word
        // needs no token.
        let put = unsafe {
            let spare = self.slots.put_in_spare(&RESPAWNED, None::<fn() -> u64>, cell, current(me));
            spare.or_else(|| self.slots.put_here(&RESPAWNED, None))
        };
        if let Some(node) = put {
            self.respawned.fetch_add(RESPAWNED, Ordering::Relaxed);
            self.partition.spawn(me, self.level, node);
        }
    }

    /// Spawns a job as a foreign thread, or as a thread of the partition; returns `false` if it
    /// finds no slot.
    fn spawn_as(&self, me: Option<&'static Worker>, argument: u32) -> bool {
        let put = || self.slots.put(argument, 0).ok();
        let put_again = || {
            // SAFETY: this is a foreign thread, or `me` is its worker and the word needs no token.
            unsafe { self.slots.reclaim(self.partition.word_cell(), me.map(current)) };
            put()
        };
        let Some(node) = put().or_else(put_again) else { return false };
        match me {
            None => self.partition.spawn_from_outside(self.level, node),
            Some(me) => self.partition.spawn(me, self.level, node),
        }
        true
    }

    fn spawn(&self, argument: u32) -> bool {
        self.spawn_as(None, argument)
    }

    /// Returns the sums of the arguments: of all jobs that have run, and of those spawned by jobs.
    fn sums(&self) -> (u32, u32) {
        (self.ran.load(Ordering::Relaxed), self.respawned.load(Ordering::Relaxed))
    }
}

/// A job frees its slot and spawns its own task, while a foreign thread finds no free bit: one of
/// them gets the slot, and none is refused for a slot that is free.
///
/// Bound: three preemptions. A wrong owner needs two: after the comparison of one thread, and after
/// the claim of the other.
#[test]
fn is_handed_out_once() {
    check(3, |arena| {
        let w1 = worker(arena, 1, 1, true);
        let task = Task::new(arena, &[w1]);
        assert!(task.spawn(RESPAWNS) && task.spawn(ENDS));
        let foreign = arena.put(AtomicU32::new(0));
        let other = start(9, move || {
            if task.spawn(FOREIGN) {
                foreign.store(FOREIGN, Ordering::Relaxed);
            }
        });
        task.partition.serve(w1);
        other.join().unwrap();
        task.partition.serve(w1);
        let (ran, respawned) = task.sums();
        let foreign = foreign.load(Ordering::Relaxed);
        assert_eq!(ran, RESPAWNS + ENDS + respawned + foreign, "each job runs once");
        assert!(respawned + foreign > 0, "the first job has freed a slot");
    });
}

/// One of the two slots is free throughout: first the spare, and after a job of the other slot has
/// taken the spare, that other slot. Another thread, `idle` or a foreign one, finds it at any time.
///
/// Bound: three preemptions. A refusal needs one: both changes lie between two checks of the other
/// thread.
fn is_found(idle: bool) {
    check(3, move |arena| {
        let w1 = worker(arena, 1, 1, true);
        let w0 = worker(arena, 0, 2, false);
        let task = Task::new(arena, &[w1, w0]);
        assert!(task.spawn(ENDS));
        task.partition.serve(w1);
        assert!(task.spawn(RESPAWNS), "the other slot is a free bit");
        let me = idle.then_some(w0);
        let other = start(2, move || assert!(task.spawn_as(me, FOREIGN), "a slot is free"));
        task.partition.serve(w1);
        other.join().unwrap();
        task.partition.serve(w1);
        assert_eq!(task.sums(), (ENDS + RESPAWNS + RESPAWNED + FOREIGN, RESPAWNED));
    });
}

#[test]
fn foreign_spawn_finds_a_slot_while_one_is_free() {
    is_found(false);
}

#[test]
fn spawn_by_idle_finds_a_slot_while_one_is_free() {
    is_found(true);
}

/// Two threads occupy the level in turn. The second takes the spare of the first, or makes its own.
///
/// Bound: two preemptions. Each of the threads is preempted at most once while it occupies the
/// level, where the other could interfere if the spare did not belong to the level.
#[test]
fn passes_on_with_the_level() {
    check(2, |arena| {
        let (w1, idle) = (worker(arena, 1, 1, true), worker(arena, 0, 2, true));
        let task = Task::new(arena, &[w1, idle]);
        assert!(task.spawn(RESPAWNS) && task.spawn(ENDS));
        let other = start(2, move || task.partition.serve(idle));
        task.partition.serve(w1);
        other.join().unwrap();
        task.partition.serve(w1);
        assert_eq!(task.sums(), (RESPAWNS + ENDS + RESPAWNED, RESPAWNED), "each job runs once");
        assert!(task.spawn(ENDS) && task.spawn(ENDS), "every slot is free again");
        assert!(!task.spawn(ENDS));
    });
}
