//! The dispatch rules one by one, on one thread: who runs a job, when, and who is woken for it and who is not.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use punctual_core::sync::{AtomicU32, AtomicU64, Ordering};
use punctual_core::{
    CurrentWorker, Duration, Instant, Jobs, Level, Locked, MAX_LEVEL, Mutex as _, Node, OverrunPolicy,
    Partition, Periodic, Port, Queue, Resource, Slots, Stamp, Word, Worker,
};

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// Notes who is woken, by its base. Time stands still until it is set.
#[derive(Default)]
struct Recorder {
    now: AtomicU64,
    /// How far a stamp is ahead.
    ahead: AtomicU64,
    woken: Mutex<Vec<u8>>,
    /// What happens while the worker sleeps.
    asleep: OnceLock<Box<dyn Fn(Option<Instant>) + Send + Sync>>,
}

impl Port for Recorder {
    type Word = AtomicU64;

    fn now(&self) -> Instant {
        at(self.now.load(Ordering::Relaxed))
    }
    const STAMP_ERROR: Duration = Duration::from_ticks(10);
    fn stamp(&self) -> Instant {
        at(self.now().as_ticks() + self.ahead.load(Ordering::Relaxed))
    }
    fn wake(&self, worker: &Worker) {
        self.woken.lock().unwrap().push(worker.base());
    }
    fn wait(&self, _: &Worker, until: Option<Instant>) -> bool {
        self.asleep.get().expect("nobody sleeps in this test")(until);
        until.is_some_and(|until| self.now() >= until)
    }
    fn wait_while(&self, _: &AtomicU32, _: u32) {
        panic!("nobody is above");
    }
    fn wake_all(&self, _: &AtomicU32) {
        panic!("nobody waits");
    }
    fn boost(&self, _: &AtomicU32) -> bool {
        false
    }
    fn unboost(&self, _: &AtomicU32) {}
    fn unwinds(&self) {
        panic!("every critical section is left at its end");
    }
}

type Job = fn(&'static Rig, CurrentWorker, u32);

/// A partition whose jobs note themselves.
struct Rig {
    partition: Partition<Recorder>,
    /// (level, node, base of the worker).
    ran: Mutex<Vec<(u8, u32, u8)>>,
    /// When each of them started, as far as they were told.
    stamps: Mutex<Vec<Option<u64>>>,
}

/// Four nodes of each level; the worker of each is the one with this base. All may call.
fn rig(bases: &[u8], levels: &[(u8, u8, Job)]) -> &'static Rig {
    rig_with(bases, levels, &[])
}

fn rig_with(bases: &[u8], levels: &[(u8, u8, Job)], grids: &[&'static Periodic]) -> &'static Rig {
    let grids: &'static [&'static Periodic] = grids.to_vec().leak();
    let linked: &'static OnceLock<&'static Rig> = Box::leak(Box::new(OnceLock::new()));
    let workers: &'static [&'static Worker] =
        bases.iter().map(|&base| &*Box::leak(Box::new(Worker::new(base)))).collect::<Vec<_>>().leak();
    let levels = levels.iter().map(|&(number, base, job)| {
        let run = move |me: CurrentWorker, node: u32, now: Stamp| {
            let rig = *linked.get().unwrap();
            rig.ran.lock().unwrap().push((number, node, me.base()));
            rig.stamps.lock().unwrap().push(now.map(|now| now.as_ticks()));
            job(rig, me, node);
            now
        };
        let worker = workers.iter().find(|worker| worker.base() == base).unwrap();
        let nodes: &'static [Node] = (0..4).map(|_| Node::new()).collect::<Vec<_>>().leak();
        let queue = Box::leak(Box::new(Queue::new()));
        let jobs = Jobs::of(Box::leak(Box::new(run)));
        &*Box::leak(Box::new(Level::new(number, worker, queue, nodes, grids, jobs)))
    });
    let levels: &'static [&'static Level] = levels.collect::<Vec<_>>().leak();
    // SAFETY: all of them are new, and this is their only partition.
    let partition = unsafe { Partition::new(Recorder::default(), levels, workers) };
    let rig: &'static Rig =
        Box::leak(Box::new(Rig { partition, ran: Mutex::default(), stamps: Mutex::default() }));
    linked.set(rig).ok().unwrap();
    for base in bases {
        let me = rig.worker(*base);
        me.enter(u32::from(*base) + 1, true);
        me.allow_calls(true);
    }
    rig
}

impl Rig {
    /// The thread of the test, as one after the other.
    fn worker(&'static self, base: u8) -> CurrentWorker {
        let worker = self.partition.workers().iter().find(|worker| worker.base() == base).unwrap();
        // SAFETY: each test has one thread and a partition of its own.
        unsafe { CurrentWorker::new(worker) }
    }

    fn level(&self, number: u8) -> &'static Level {
        self.partition.levels().iter().find(|level| level.number() == number).unwrap()
    }

    fn spawn(&'static self, me: CurrentWorker, level: u8, node: u32) {
        // SAFETY: the level is the partition's, and tests spawn a node that is in no queue.
        unsafe { self.partition.spawn(me, self.level(level), node) };
    }

    fn spawn_from_outside(&self, level: u8, node: u32) {
        // SAFETY: as for `spawn`.
        unsafe { self.partition.spawn_from_outside(self.level(level), node) };
    }

    /// Runs `job` at `level` if it may be a call.
    fn call(&'static self, me: CurrentWorker, level: u8, job: impl FnOnce()) -> bool {
        let job = || {
            job();
            None
        };
        // SAFETY: the level is the partition's.
        unsafe { self.partition.call(me, self.level(level), job) }.is_ok()
    }

    fn ran(&self) -> Vec<(u8, u32, u8)> {
        std::mem::take(&mut self.ran.lock().unwrap())
    }

    fn stamps(&self) -> Vec<Option<u64>> {
        std::mem::take(&mut self.stamps.lock().unwrap())
    }

    fn woken(&self) -> Vec<u8> {
        std::mem::take(&mut self.partition.port().woken.lock().unwrap())
    }
}

const NOTHING: Job = |_, _, _| {};

#[test]
fn a_spawn_above_is_a_call_and_one_below_waits() {
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
        assert!(!rig.partition.snapshot().is_ready(2), "this thread looks at its level anyway");
    }));
    assert_eq!(rig.ran(), [(2, 0, 1), (1, 0, 1)], "highest first");
    assert_eq!(rig.woken(), [], "this thread runs them all");
    assert_eq!((rig.partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
}

#[test]
fn a_suspended_preemption_keeps_its_level() {
    let rig = rig(&[1, 3], &[(1, 1, NOTHING), (2, 1, NOTHING), (3, 3, NOTHING)]);
    let me = rig.worker(1);
    // SAFETY: the level is the partition's, and its preemption is finished below, as the only one.
    let preemption = unsafe { rig.partition.preempt(me, rig.level(2)) }.unwrap();
    let outer = preemption.suspend();
    assert_eq!((outer, me.level(), me.running(), rig.partition.snapshot().level()), (0, 2, 2, 2));
    rig.spawn(me, 1, 0);
    assert_eq!(rig.ran(), [], "the level is still occupied");
    // SAFETY: as it was suspended.
    unsafe { rig.partition.resume(me, rig.level(2), outer) }.finish(None);
    assert_eq!(rig.ran(), [(1, 0, 1)]);
    assert_eq!((rig.partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
}

#[test]
fn a_call_at_the_threads_own_base_is_one() {
    // As a thread that waits for an event has, beside the level's worker.
    let rig = rig(&[1, 2], &[(2, 1, NOTHING)]);
    assert!(rig.call(rig.worker(2), 2, || {}));
    rig.spawn(rig.worker(2), 2, 0);
    assert_eq!((rig.ran(), rig.woken()), (vec![(2, 0, 2)], vec![]));
}

#[test]
fn what_a_thread_may_not_run_is_handed_to_its_worker_once() {
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
    assert_eq!(rig.ran(), [(3, 1, 3), (1, 1, 1)], "its own level it runs whatever it may call");
    assert_eq!(rig.woken(), []);
}

#[test]
fn a_spawn_from_outside_wakes_if_nobody_else_sees_to_it() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    let me = rig.worker(1);
    rig.spawn_from_outside(2, 0);
    assert_eq!(rig.woken(), [2]);
    rig.spawn_from_outside(2, 1);
    assert_eq!(rig.woken(), [], "it is awake, or about to be");
    rig.partition.serve(me, None);
    assert_eq!(rig.ran(), [(2, 0, 1), (2, 1, 1)]);
    assert!(rig.call(me, 1, || {
        rig.spawn_from_outside(1, 0);
        assert_eq!(rig.woken(), [], "who occupies the level looks again");
        rig.spawn_from_outside(2, 2);
        assert_eq!(rig.woken(), [2]);
        assert!(!rig.call(me, 2, || {}), "it would overtake the job that waits");
    }));
    assert_eq!(rig.ran(), [(1, 0, 1), (2, 2, 1)]);
}

#[test]
fn everything_is_held_until_it_starts() {
    let rig = rig(&[0, 1], &[(1, 1, NOTHING)]);
    let (idle, partition) = (rig.worker(0), &rig.partition);
    partition.hold_everything(idle);
    rig.spawn(idle, 1, 0);
    rig.spawn_from_outside(1, 1);
    assert_eq!((rig.ran(), rig.woken(), idle.level()), (vec![], vec![], MAX_LEVEL));
    let again = catch_unwind(AssertUnwindSafe(|| partition.hold_everything(idle)));
    let said = again.expect_err("it would be ended twice");
    assert_eq!(said.downcast_ref(), Some(&"everything is held already"));
    // SAFETY: everything is held.
    unsafe { partition.go(idle, at(0)) };
    assert_eq!(rig.ran(), [(1, 0, 0), (1, 1, 0)]);
    partition.hold_everything(idle);
    rig.spawn(idle, 1, 2);
    // SAFETY: everything is held.
    unsafe { partition.abandon(idle) };
    assert_eq!((rig.ran(), partition.snapshot()), (vec![(1, 2, 0)], Word::EMPTY));
}

#[test]
fn a_job_just_below_the_top_can_hold_everything() {
    let rig = rig(&[1], &[(MAX_LEVEL - 1, 1, NOTHING)]);
    let (me, partition) = (rig.worker(1), &rig.partition);
    assert!(rig.call(me, MAX_LEVEL - 1, || {
        partition.at_top_level(me, || assert_eq!(partition.snapshot().level(), MAX_LEVEL));
        partition.hold_everything(me);
        assert_eq!(partition.snapshot().level(), MAX_LEVEL);
        // SAFETY: everything is held.
        unsafe { partition.abandon(me) };
    }));
    assert_eq!(partition.snapshot(), Word::EMPTY);
}

#[test]
fn a_ceiling_that_is_held_is_not_occupied_again() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let (me, partition) = (rig.worker(1), &rig.partition);
    let resources = [const { Resource::new() }; 3];
    // SAFETY: nobody else has them.
    resources.iter().for_each(|resource| unsafe { resource.fill(0) });
    let [a, b, own] = &resources;
    assert!(rig.call(me, 1, || {
        // SAFETY: the job of level 1 makes one for each resource, and nobody else uses them.
        let (mut a, mut b): (Locked<'_, _, _, 1, 3>, Locked<'_, _, _, 1, 3>) =
            unsafe { (Locked::new(a, partition, me), Locked::new(b, partition, me)) };
        // SAFETY: as above.
        let mut own: Locked<'_, _, _, 1, 1> = unsafe { Locked::new(own, partition, me) };
        let (job, section) = (Word::EMPTY.occupy(1), Word::EMPTY.occupy(1).occupy(3));
        own.lock(|_| assert_eq!(partition.snapshot(), job));
        a.lock(|a| {
            b.lock(|b| *b += 1);
            assert_eq!(partition.snapshot(), section, "the outer critical section goes on");
            *a += 1;
        });
        assert_eq!(partition.snapshot(), job);
    }));
    // SAFETY: the job has ended.
    assert_eq!(unsafe { (*a.get(), *b.get()) }, (1, 1));
}

#[test]
fn a_resource_holds_its_value_until_it_is_emptied() {
    let (resource, value) = (Resource::new(), Arc::new(()));
    // SAFETY: there is one thread, and no reference is kept.
    unsafe {
        resource.fill(Arc::clone(&value));
        assert!(Arc::ptr_eq(resource.get(), &value) && Arc::ptr_eq(resource.get_mut(), &value));
        assert_eq!(Arc::strong_count(&value), 2);
        resource.empty();
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn the_top_is_taken_once() {
    let rig = rig(&[1], &[(1, 1, NOTHING), (MAX_LEVEL, 1, NOTHING)]);
    let me = rig.worker(1);
    rig.partition.at_top_level(me, || {
        assert_eq!((me.level(), rig.partition.snapshot().level()), (MAX_LEVEL, MAX_LEVEL));
        rig.partition.at_top_level(me, || {});
        assert_eq!(me.level(), MAX_LEVEL, "the outer one goes on");
        rig.spawn(me, 1, 0);
        assert_eq!(rig.ran(), []);
    });
    assert_eq!((rig.ran(), rig.partition.snapshot()), (vec![(1, 0, 1)], Word::EMPTY));
}

#[test]
fn a_partition_is_closed_between_jobs_only() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let me = rig.worker(1);
    assert!(rig.call(me, 1, || assert!(!rig.partition.close(), "a job runs")));
    assert!(rig.partition.close());
    assert!(!rig.call(me, 1, || {}));
    rig.spawn(me, 1, 0);
    assert_eq!((rig.ran(), rig.partition.close()), (vec![], false));
}

#[test]
fn a_partition_that_was_reset_knows_nothing_of_the_run_before() {
    static GRID: Periodic =
        Periodic::new(3, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
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
    assert_eq!(rig.ran(), [], "what waited is forgotten");
    rig.spawn(me, 1, 0);
    assert_eq!(rig.ran(), [(1, 0, 1)]);
}

#[test]
fn a_worker_sleeps_until_something_is_due_and_is_woken_for_what_is_earlier() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
    let rig = rig_with(&[1], &[(1, 1, |_, _, _| GRID.completed(at(0)))], &[&GRID]);
    let slept: &'static Mutex<Vec<Option<u64>>> = Box::leak(Box::new(Mutex::default()));
    let asleep = move |until: Option<Instant>| {
        let (partition, level) = (&rig.partition, rig.level(1));
        slept.lock().unwrap().push(until.map(|until| until.as_ticks()));
        let until = until.expect("there is a grid");
        partition.armed(level, until);
        assert_eq!(rig.woken(), [], "it wakes by then");
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
    assert_eq!(rig.woken(), [], "it is awake and looks by itself");
}

#[test]
fn what_a_sleep_has_waited_for_is_released_without_a_look_at_the_clock() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses nodes 1 to 3.
    let slots = unsafe { Slots::<(), 3, 1>::new(rig.level(1), 1) };
    for time in [5, 5, 7] {
        slots.arm((), at(time)).unwrap();
    }
    let sleeps: &'static AtomicU64 = Box::leak(Box::default());
    let asleep = move |until: Option<Instant>| {
        let now = match sleeps.fetch_add(1, Ordering::Relaxed) {
            // Woken before.
            0 => 3,
            1 => {
                assert_eq!(rig.ran(), [], "nothing is due");
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
    assert_eq!(rig.stamps(), [None, Some(8), Some(8)], "the first is released by what the sleep has told");
}

#[test]
fn what_is_ready_above_goes_before_what_is_due() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(0)).unwrap();
    // SAFETY: the level is the partition's, and the node is in no queue.
    unsafe { rig.partition.spawn_from_outside(rig.level(2), 0) };
    assert_eq!(rig.woken(), [2], "whose thread has not come yet");
    rig.partition.port().asleep.set(Box::new(|_| rig.partition.stop())).ok().unwrap();
    rig.partition.work(rig.worker(1), rig.level(1));
    assert_eq!(rig.ran(), [(2, 0, 1), (1, 2, 1)]);
}

#[test]
fn what_has_become_due_during_a_call_on_the_levels_worker_is_run_after_it() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    // SAFETY: nothing else uses node 2.
    let slots = unsafe { Slots::<(), 1, 1>::new(rig.level(1), 2) };
    slots.arm((), at(5)).unwrap();
    let me = rig.worker(1);
    assert!(rig.call(me, 1, || {}));
    assert_eq!(rig.ran(), [], "it is not due");
    assert!(rig.call(me, 1, || rig.partition.port().now.store(5, Ordering::Relaxed)));
    assert_eq!(rig.ran(), [(1, 2, 1)]);
}

#[test]
fn nothing_is_released_by_a_stamp() {
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
fn only_a_levels_worker_keeps_its_time() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
    let job: Job = |_, _, node| {
        if node == 0 {
            GRID.completed(at(0));
        }
    };
    let rig = rig_with(&[0, 1], &[(1, 1, job)], &[&GRID]);
    rig.level(1).start(at(0));
    rig.spawn(rig.worker(0), 1, 1);
    assert_eq!(rig.ran(), [(1, 1, 0)], "what is due is left to the worker");
    rig.spawn(rig.worker(1), 1, 2);
    assert_eq!(rig.ran(), [(1, 2, 1), (1, 0, 1)], "what is due comes after what was queued before");
    rig.partition.stop();
    rig.partition.port().now.store(100, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!(rig.ran(), [(1, 1, 1)], "nothing is released any more");
}

#[test]
fn the_clock_is_read_for_a_timed_level_only_and_handed_on() {
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
    let rig = rig_with(&[1], &[(1, 1, NOTHING)], &[&GRID]);
    rig.level(1).start(at(0));
    rig.partition.port().ahead.store(7, Ordering::Relaxed);
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!(
        (rig.ran().len(), rig.stamps()),
        (2, vec![Some(0), Some(0)]),
        "by the clock if something is due"
    );
    rig.spawn(rig.worker(1), 1, 1);
    assert_eq!(rig.stamps(), [Some(7)], "by the stamp if nothing is");
    let rig = self::rig(&[1], &[(1, 1, NOTHING)]);
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.stamps(), [None]);
    // SAFETY: there is no other worker.
    unsafe { rig.worker(1).set_polling() };
    rig.spawn(rig.worker(1), 1, 0);
    assert_eq!(rig.stamps(), [None]);
}

#[test]
fn a_thread_that_polls_keeps_the_time_of_every_level() {
    let rig = rig(&[0], &[(1, 0, NOTHING), (2, 0, NOTHING)]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    // SAFETY: nothing else uses node 2 of each level.
    let [one, two]: [Slots<(), 1, 1>; 2] = [1, 2].map(|level| unsafe { Slots::new(rig.level(level), 2) });
    one.arm((), at(5)).unwrap();
    two.arm((), at(6)).unwrap();
    assert!(rig.call(me, 1, || {}), "nothing waits");
    assert_eq!(rig.ran(), [], "nothing is due");
    rig.partition.port().now.store(6, Ordering::Relaxed);
    assert!(rig.call(me, 1, || rig.spawn(me, 1, 0)));
    assert_eq!(
        rig.ran(),
        [(2, 2, 0), (1, 0, 0), (1, 2, 0)],
        "the highest first; jobs of a level by their release"
    );
    assert_eq!(rig.stamps(), [Some(6), None, None], "a reading is old when a job has run since");
    rig.partition.stop();
    one.arm((), at(0)).unwrap_err();
    assert_eq!(rig.woken(), [0], "of the stop");
}

#[test]
fn a_thread_that_polls_releases_at_the_level_that_it_occupies() {
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
fn a_look_releases_and_marks_and_runs_nothing() {
    let rig = rig(&[0], &[(1, 0, NOTHING), (2, 0, NOTHING)]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    rig.partition.begin_polling();
    // SAFETY: nothing else uses node 2.
    let slots: Slots<(), 1, 1> = unsafe { Slots::new(rig.level(1), 2) };
    slots.arm((), at(5)).unwrap();
    rig.partition.look(me, at(4));
    assert_eq!(rig.partition.snapshot(), Word::EMPTY, "it is not due");
    rig.spawn_from_outside(2, 0);
    rig.partition.look(me, at(5));
    assert_eq!((rig.partition.snapshot(), rig.ran()), (Word::EMPTY.mark_ready(1).mark_ready(2), vec![]));
    rig.partition.serve(me, None);
    assert_eq!(rig.ran(), [(2, 0, 0), (1, 2, 0)]);
}

#[test]
fn a_thread_that_polls_needs_no_marks_and_no_wakes() {
    let low: Job = |rig, _, _| {
        rig.spawn_from_outside(2, 0);
        assert_eq!((rig.ran(), rig.woken()), (vec![(1, 0, 0)], vec![]));
        assert!(!rig.partition.snapshot().is_ready(2), "its thread finds the job");
    };
    let rig = rig(&[0], &[(1, 0, low), (2, 0, |rig, _, _| rig.partition.stop())]);
    let me = rig.worker(0);
    // SAFETY: there is no other worker.
    unsafe { me.set_polling() };
    rig.spawn_from_outside(1, 0);
    assert_eq!(rig.woken(), [0], "it does not poll yet");
    rig.partition.poll(me);
    assert_eq!(rig.ran(), [(2, 0, 0)]);
    assert_eq!(rig.partition.snapshot(), Word::EMPTY);
    rig.woken();
    // SAFETY: there is one thread.
    unsafe { rig.partition.reset() };
    rig.spawn_from_outside(1, 0);
    assert_eq!(rig.woken(), [0], "it does not poll any more");
}

#[test]
#[should_panic(expected = "own worker")]
fn a_level_is_not_worked_by_another_thread() {
    let rig = rig(&[1, 2], &[(1, 1, NOTHING)]);
    rig.partition.work(rig.worker(2), rig.level(1));
}

#[test]
fn the_last_job_runs_at_its_level_and_what_it_releases_there_after_it() {
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
    assert_eq!(ran.as_deref(), Some([].as_slice()), "not before its end");
    assert_eq!(rig.ran(), [(2, 0, 2)]);
    assert_eq!(rig.partition.snapshot().level(), 0, "it has left its level");
}

#[test]
#[should_panic(expected = "another partition")]
fn a_level_of_another_partition_is_not_worked() {
    let rig = rig(&[1], &[(1, 1, NOTHING)]);
    let me = rig.worker(1);
    let queue = Box::leak(Box::new(Queue::new()));
    let jobs = Jobs::of(&|_, _, _| None);
    rig.partition.work(me, Box::leak(Box::new(Level::new(1, me.worker(), queue, &[], &[], jobs))));
}

#[test]
#[should_panic(expected = "a number of its own")]
fn two_levels_of_one_number_are_refused() {
    rig(&[1, 2], &[(2, 1, NOTHING), (1, 1, NOTHING), (2, 2, NOTHING)]);
}

#[test]
fn a_partition_has_at_most_254_threads() {
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
