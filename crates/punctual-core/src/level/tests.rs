//! Timekeeping of a level: due times, and the order of releases.

use super::*;
use crate::{Duration, Reaction};

/// Arms a node of `level`; returns the key.
fn arm(level: &Level, node: u32, time: Instant) -> u32 {
    let (key, first) = level.arm(level.node(node), time);
    if first {
        level.note(level.node(node));
    }
    key
}

#[test]
fn grids_and_timers_end_with_clock() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 2] = [const { Node::new() }; 2];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    // Called at the end of a grid that never ends.
    const OVERRUN: fn() = || panic!("released forever");
    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Call(OVERRUN));
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&GRID], JOBS);
    let end = Instant::from_ticks(u64::MAX);
    let released = || {
        let mut released = Vec::new();
        // SAFETY: only this test uses the level.
        unsafe { LEVEL.each_due(end, |node| released.push((node, LEVEL.released(Popped::of(node))))) };
        released
    };
    assert_eq!(released(), [], "no grid has started");
    LEVEL.start(Instant::from_ticks(u64::MAX - 50));
    arm(&LEVEL, 1, end);
    assert_eq!(LEVEL.next_due(), Some(Instant::from_ticks(u64::MAX - 50)));
    assert_eq!(released(), [(0, u64::MAX - 50), (1, u64::MAX)], "the grid has no further point");
    assert_eq!((released(), LEVEL.next_due()), (vec![], None));
    LEVEL.start(end);
    assert_eq!((released(), LEVEL.next_due()), (vec![], None), "the offset is after the end of the clock");
}

#[test]
fn grid_precedes_simultaneous_timer() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 2] = [const { Node::new() }; 2];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static GRID: Periodic =
        Periodic::new(1, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&GRID], JOBS);
    let at = Instant::from_ticks;
    arm(&LEVEL, 0, at(50));
    LEVEL.start(at(50));
    let mut released = Vec::new();
    // SAFETY: only this test uses the level.
    unsafe {
        assert_eq!(LEVEL.next(), 50);
        let (node, next) = LEVEL.take_due();
        released.extend(node);
        assert_eq!(next, 50, "the timer is still due");
        assert!(LEVEL.is_timed() && LEVEL.may_be_due(50));
        let (node, next) = LEVEL.take_due();
        released.extend(node);
        assert_eq!(next, 150);
    }
    assert_eq!(released, [1, 0]);
    assert!(!LEVEL.may_be_due(149) && LEVEL.may_be_due(150));
}

#[test]
fn next_release_is_earlier_of_grid_and_timer() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 2] = [const { Node::new() }; 2];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static GRID: Periodic =
        Periodic::new(1, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&GRID], JOBS);
    let at = Instant::from_ticks;
    // SAFETY: only this test uses the level.
    let next = || unsafe { LEVEL.next() };
    LEVEL.start(at(50));
    let key = arm(&LEVEL, 0, at(60));
    assert_eq!(next(), 50, "the grid comes first");
    assert!(LEVEL.rearm(LEVEL.node(0), key, at(40)));
    assert_eq!(next(), 40, "the timer comes first");
    assert!(LEVEL.disarm(LEVEL.node(0), key));
    assert_eq!(next(), 50, "no timer is armed");
}

#[test]
fn level_is_timed_while_timer_is_armed() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 2] = [const { Node::new() }; 2];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS);
    let at = Instant::from_ticks;
    // SAFETY: only this test uses the level.
    let next = || unsafe { LEVEL.next() };
    assert!(!LEVEL.is_timed() && !LEVEL.may_be_due(u64::MAX - 1));
    let keys = [0, 1].map(|node| arm(&LEVEL, node, at(5)));
    let disarm = |node: u32| LEVEL.disarm(LEVEL.node(node), keys[node as usize]);
    assert!(LEVEL.may_be_due(0), "no scan since");
    assert!(disarm(0) && !disarm(0));
    assert_eq!((next(), LEVEL.is_timed()), (5, true), "one is still armed");
    assert!(!LEVEL.may_be_due(4) && LEVEL.may_be_due(5));
    assert!(disarm(1));
    assert_eq!((next(), LEVEL.is_timed()), (NEVER, false));
    arm(&LEVEL, 0, at(5));
    // SAFETY: only this test uses the level.
    assert!(unsafe { LEVEL.each_due(at(5), |_| ()) } && !LEVEL.is_timed());
    arm(&LEVEL, 0, at(5));
    assert_eq!(next(), 5);
    // SAFETY: only this test uses the level.
    unsafe { LEVEL.reset() };
    assert!(!LEVEL.is_timed());
    arm(&LEVEL, 0, at(5));
    // SAFETY: only this test uses the level.
    unsafe { LEVEL.reset() };
    assert!(!LEVEL.is_timed(), "reset without a scan");
}

#[test]
fn takes_each_due_timer_and_returns_the_next_time() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 3] = [const { Node::new() }; 3];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS);
    let at = Instant::from_ticks;
    for node in 0..3 {
        arm(&LEVEL, node, at(5 + u64::from(node)));
    }
    for (node, next) in [(0, 6), (1, 7), (2, NEVER)] {
        // SAFETY: only this test uses the level, and its thread stands for the occupant.
        let taken = unsafe {
            LEVEL.next();
            LEVEL.take_due()
        };
        assert_eq!(taken, (Some(node), next));
    }
}

#[test]
fn takes_earliest_of_several_grids_and_returns_the_next_time() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 3] = [const { Node::new() }; 3];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    const fn grid(node: u32, period: u64, offset: u64) -> Periodic {
        Periodic::new(node, 1, Duration::from_ticks(period), Duration::from_ticks(offset), Reaction::Skip)
    }
    static FIRST: Periodic = grid(0, 100, 20);
    static SECOND: Periodic = grid(1, 100, 10);
    static THIRD: Periodic = grid(2, 30, 40);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&FIRST, &SECOND, &THIRD], JOBS);
    LEVEL.start(Instant::from_ticks(0));
    // The second job of the third grid is skipped, since the first has not ended.
    for (node, next) in [(Some(1), 20), (Some(0), 40), (Some(2), 70), (None, 100), (None, 110)] {
        // SAFETY: only this test uses the level, and its thread stands for the occupant.
        let taken = unsafe {
            LEVEL.next();
            LEVEL.take_due()
        };
        assert_eq!(taken, (node, next));
    }
    assert_eq!(THIRD.overruns(), 2);
}

#[test]
fn handle_of_an_earlier_run_is_stale() {
    static WORKER: Worker = Worker::new(1);
    static NODES: [Node; 1] = [const { Node::new() }; 1];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS);
    let arm = || arm(&LEVEL, 0, Instant::from_ticks(5));
    let disarm = |key| LEVEL.disarm(LEVEL.node(0), key);
    let earlier = arm();
    // SAFETY: only this test uses the level.
    unsafe { LEVEL.reset() };
    let now = arm();
    assert!(!disarm(earlier) && disarm(now));
}

#[test]
fn only_its_single_thread_calls_local_level() {
    static WORKER: Worker = Worker::new(1);
    static OTHER: Worker = Worker::new(0);
    static NODES: [Node; 0] = [];
    static QUEUE: Queue = Queue::new();
    const JOBS: Jobs = Jobs::of(&|_, _, _| None);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS).local();
    static OTHERS: Queue = Queue::new();
    static ORDINARY: Level = Level::new(2, &WORKER, &OTHERS, &NODES, &[], JOBS);
    // SAFETY: only this test uses the workers.
    let (worker, other) = unsafe { (CurrentWorker::new(&WORKER), CurrentWorker::new(&OTHER)) };
    assert!(LEVEL.keeps_to(worker) && !LEVEL.keeps_to(other) && !ORDINARY.keeps_to(worker));
    let may = || (OTHER.may_call(&LEVEL), OTHER.may_call(&ORDINARY));
    assert_eq!(may(), (false, false));
    OTHER.allow_calls(true);
    assert_eq!((may(), LEVEL.keeps_to(other)), ((false, true), false));
    // SAFETY: there are no jobs.
    unsafe { other.set_alone() };
    assert_eq!((may(), LEVEL.keeps_to(other)), ((true, true), true));
    // SAFETY: there are no jobs.
    unsafe { other.set_polling() };
    assert_eq!((may(), LEVEL.keeps_to(other)), ((true, true), true));
}
