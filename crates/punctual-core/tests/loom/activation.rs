//! Async tasks: a later poll sees the writes that a waker made before it woke the task, and one
//! thread at a time uses an instance.
//!
//! Bound: three preemptions; the merge gate explores two. A wake is lost, or the storage gets a
//! second user, if one thread changes the state between another's check of it and its own change.
//! One preemption stops a thread there. A second stops the thread that interferes, before it has
//! queued the node or left the storage. The third lets a third thread act in between.

use std::sync::OnceLock;

use crate::support::{Arena, Model, ModelPort, Region, check, level, partition, start, worker};
use loom::sync::atomic::{AtomicU32, Ordering};
use punctual_core::{Activation, Level};

/// Queues the poll if the waker has to, from a thread outside the partition.
fn queue(partition: &'static Model, task: &Activation, mine: bool) {
    if mine {
        partition.spawn_from_outside(task.level(), task.node());
    }
}

/// An async task that is alone at level 1, and its poll function.
fn task(
    arena: &Arena,
    poll: impl Fn(&'static Activation) + 'static + Sync,
) -> (&'static Model, &'static Activation) {
    let linked = arena.put(OnceLock::<&Activation>::new());
    let w1 = worker(arena, 1, 1, true);
    let l1: &Level = level(arena, 1, w1, 1, move |_, _| {
        let task = linked.get().unwrap();
        if task.poll() {
            poll(task);
        }
    });
    let task = arena.put(Activation::new(l1, 0));
    linked.set(task).unwrap();
    (partition(arena, ModelPort::new(1, false), &[l1], &[w1]), task)
}

/// Runs the level's worker once.
fn serve(partition: &'static Model, task: &Activation) {
    partition.serve(task.level().worker());
}

/// Two threads write and wake while the task is polled: the last poll sees both writes.
#[test]
fn wake_releases_earlier_writes() {
    check(3, |arena| {
        let inputs = arena.put([AtomicU32::new(0), AtomicU32::new(0)]);
        let seen = arena.put(AtomicU32::new(0));
        let (p, task) = task(arena, move |_| {
            let sum = inputs.iter().map(|input| input.load(Ordering::Relaxed)).sum();
            seen.store(sum, Ordering::Relaxed);
        });
        assert!(task.claim());
        queue(p, task, task.spawned());
        let waker = start(9, move || {
            inputs[0].store(1, Ordering::Relaxed);
            queue(p, task, task.wake());
        });
        let runner = start(1, move || serve(p, task));
        inputs[1].store(1, Ordering::Relaxed);
        queue(p, task, task.wake());
        waker.join().unwrap();
        runner.join().unwrap();
        serve(p, task);
        assert_eq!(seen.load(Ordering::Relaxed), 2, "a wake was lost");
    });
}

/// An instance completes in its first poll. Concurrently a thread spawns the next one, and a stale
/// waker fires: the storage has one user, and the spawned instance is polled.
#[test]
fn next_instance_survives_stale_waker() {
    check(3, |arena| {
        let storage = arena.put(Region::new());
        let polled = arena.put(AtomicU32::new(0));
        let (p, task) = task(arena, move |task| {
            storage.enter();
            polled.fetch_add(1, Ordering::Relaxed);
            task.end_polls();
            storage.enter();
            task.completed();
        });
        let spawn = move || {
            let claimed = task.claim();
            if claimed {
                storage.enter();
                queue(p, task, task.spawned());
            }
            u32::from(claimed)
        };
        assert_eq!(spawn(), 1);
        let spawned = arena.put(AtomicU32::new(1));
        let spawner = start(9, move || {
            spawned.fetch_add(spawn(), Ordering::Relaxed);
        });
        let runner = start(1, move || serve(p, task));
        queue(p, task, task.wake());
        spawner.join().unwrap();
        runner.join().unwrap();
        serve(p, task);
        assert_eq!(
            polled.load(Ordering::Relaxed),
            spawned.load(Ordering::Relaxed),
            "every instance is polled, once"
        );
    });
}

/// A task is spawned, and spawned again, while a waker that occupies the level polls the waiting
/// instance: the storage has one user.
#[test]
fn waker_that_occupies_the_level_polls_waiting_tasks() {
    check(3, |arena| {
        let storage = arena.put(Region::new());
        let polled = arena.put(AtomicU32::new(0));
        let poll = move |task: &Activation| {
            storage.enter();
            // The second poll completes the instance.
            if polled.fetch_add(1, Ordering::Relaxed) == 1 {
                task.end_polls();
                storage.enter();
                task.completed();
            }
        };
        let (p, task) = task(arena, poll);
        let spawner = start(9, move || {
            for _ in 0..2 {
                if task.claim() {
                    storage.enter();
                    queue(p, task, task.spawned());
                }
            }
        });
        let runner = start(1, move || {
            serve(p, task);
            let job = || {
                if task.waits() {
                    poll(task);
                }
                None
            };
            let _ = p.call(task.level().worker(), task.level(), job);
        });
        spawner.join().unwrap();
        runner.join().unwrap();
        serve(p, task);
        assert!(polled.load(Ordering::Relaxed) >= 1, "the spawned instance is polled");
    });
}

/// A waker that has to queue the node does so after the runner has removed it from the queue: it
/// writes the node's link.
#[test]
fn requeue_happens_after_dequeue() {
    check(3, |arena| {
        let w1 = worker(arena, 1, 1, true);
        let l1 = level(arena, 1, w1, 1, |_, _| {});
        let task = arena.put(Activation::new(l1, 0));
        let link = arena.put(Region::new());
        assert!(task.claim() && task.spawned());
        let runner = start(1, move || {
            link.enter();
            assert!(task.poll());
        });
        if task.wake() {
            link.enter();
        }
        runner.join().unwrap();
        assert!((1..=2).contains(&link.count()));
    });
}
