//! What a job that unwinds leaves behind: a port that was told while the level was held, a level that is free, and jobs that
//! are ready and not run in the middle of the unwind.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_core::sync::AtomicU32 as Futex;
use punctual_core::{CurrentWorker, Instant, Jobs, Level, Node, Partition, Port, Queue, Word, Worker};

/// One thread, which never waits.
struct Alone;

impl Port for Alone {
    type Word = AtomicU64;

    fn now(&self) -> Instant {
        Instant::from_ticks(0)
    }
    fn wake(&self, _: &Worker) {
        WOKEN.fetch_add(1, Ordering::Relaxed);
    }
    fn wait(&self, _: &Worker, _: Option<Instant>) -> bool {
        false
    }
    fn wait_while(&self, _: &Futex, _: u32) {}
    fn wake_all(&self, _: &Futex) {}
    fn boost(&self, _: &Futex) -> bool {
        false
    }
    fn unboost(&self, _: &Futex) {}
    fn unwinds(&self) {
        let level = PARTITION.snapshot().level();
        LEVEL_WHEN_TOLD.store(level.into(), Ordering::Relaxed);
    }
}

static WORKER: Worker = Worker::new(1);
static NODES: [Node; 2] = [const { Node::new() }; 2];
static QUEUE: Queue = Queue::new();
static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS);
// SAFETY: the only partition, with the only level and its worker.
static PARTITION: Partition<Alone> = unsafe { Partition::new(Alone, &[&LEVEL], &[&WORKER]) };
static RAN: AtomicU32 = AtomicU32::new(0);
static WOKEN: AtomicU32 = AtomicU32::new(0);
static LEVEL_WHEN_TOLD: AtomicU32 = AtomicU32::new(0);

const JOBS: Jobs = Jobs::of(&|me, node, _| {
    RAN.fetch_add(1, Ordering::Relaxed);
    if node == 0 {
        spawn(me, 1);
        // Unlike `panic!`, without a message.
        std::panic::resume_unwind(Box::new("the job fails"));
    }
    None
});

fn spawn(me: CurrentWorker, node: u32) {
    // SAFETY: each of the level's two nodes is spawned once.
    unsafe { PARTITION.spawn(me, &LEVEL, node) };
}

/// The first job queues the second without a mark, as a job that is still there to look at the queue afterwards.
#[test]
fn a_job_that_unwinds_does_not_forget_what_it_spawned_to_its_level() {
    // SAFETY: the worker is this thread's alone.
    let me = unsafe { CurrentWorker::new(&WORKER) };
    me.enter(1, true);
    me.allow_calls(true);
    let unwound = catch_unwind(AssertUnwindSafe(|| spawn(me, 0)));
    assert!(unwound.is_err());
    assert_eq!(LEVEL_WHEN_TOLD.load(Ordering::Relaxed), 1, "nobody could have started a job before");
    let (ran, woken) = (RAN.load(Ordering::Relaxed), WOKEN.load(Ordering::Relaxed));
    assert_eq!((ran, woken), (1, 1), "the other job is left to the level's worker");
    assert_eq!(PARTITION.snapshot(), Word::EMPTY.mark_ready(1));
    PARTITION.serve(me, None);
    assert_eq!(RAN.load(Ordering::Relaxed), 2, "every job runs once");
    assert_eq!((PARTITION.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
}
