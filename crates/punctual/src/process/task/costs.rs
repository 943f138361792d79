//! The overhead of the executor and the kernel on this machine, measured before a profiled run.
//!
//! Measured on a separate partition with one level and a task that does nothing, by a thread on the
//! CPU of the measured partition, with a real-time priority if the kernel grants one. Each figure
//! is the median of many, with warm caches on an undisturbed machine. It is not a bound.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use punctual_core::{
    Arguments, CurrentWorker, Duration, Instant, Jobs, Level, Locked, Mutex as _, Node, PackedStamp, Popped,
    Port, Queue, Resource, Worker,
};

use crate::model::{self, Model};
use crate::observe::profile::{self, Costs};
use crate::port::AppPort;
use crate::port::linux::{clock, cpu, settings};
use crate::state::partition::{PartitionConfig, PartitionState, ThreadModel};
use crate::state::runtime::{Options, Registered, Runtime};
use crate::state::thread::Member;
use crate::task::body::Body;
use crate::task::message::Task;

/// A free priority: by default below those of all levels.
const PRIORITY: u8 = 40;
/// The number of operations timed together, and the number of repetitions.
const BATCH: u32 = 200;
const BATCHES: usize = 41;
/// The number of preemptions of a thread, the interval between them, and the time limit for all of
/// them.
const PREEMPTIONS: usize = 41;
const APART: StdDuration = StdDuration::from_micros(200);
const LIMIT: StdDuration = StdDuration::from_millis(100);

/// Returns the costs of `partition` on its CPU.
pub(crate) fn measure(partition: &PartitionState, on: Option<usize>) -> Costs {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = move || on.map_or(Ok(()), cpu::pin);
    let own = std::thread::spawn(move || {
        place().ok()?;
        settings::boosted(PRIORITY, operations)
    });
    let found = own.join().ok().flatten().map_or([None; 6], |all| all.map(Some));
    let [release, dispatch, lock, profiling, profiling_before, profiling_lock] = found;
    // Nothing preempts a polling thread, and the CPU of a thread that may migrate is not known in
    // advance.
    let preempts = partition.model == ThreadModel::Levels;
    let preemption = on.filter(|_| preempts).and_then(preemption);
    Costs { release, dispatch, lock, preemption, profiling, profiling_before, profiling_lock }
}

/// The name of the locked resource.
const COUNT: &str = "count";

static RESOURCES: [model::Resource; 1] = [model::Resource {
    name: COUNT,
    ceiling: 1,
    protocol: model::Protocol::Srp,
    group: None,
    partitions: &[],
}];
static MODEL: Model = Model::new("costs", &[], &[], &RESOURCES, None);
static RUNTIME: Runtime = Runtime::new(&MODEL, Options::NONE, &[&PARTITION], &PARTITION, &[], None, None);
static IDLE: Worker = Worker::new(0);
static WORKER: Worker = Worker::new(1);
static NODES: [Node; 1] = [const { Node::new() }; 1];
static QUEUE: Queue = Queue::new();
static LEVEL: Level =
    // SAFETY: the executor fulfills the contract of `run`.
    Level::new(1, &WORKER, &QUEUE, &NODES, &[], unsafe { Jobs::by_node(&[run]) });
static PARTITION: PartitionState = {
    let config = PartitionConfig { name: "costs", model: ThreadModel::Levels, cpu: None, stack: None };
    // SAFETY: the level and the workers belong to no other partition, and each is named once.
    unsafe { PartitionState::new(config, &RUNTIME, &[&LEVEL], &[&IDLE, &WORKER], &IDLE, None) }
};
// SAFETY: only this task uses the node, and the level is the partition's.
static TASK: Task<Nothing, 1, 1> = unsafe { Task::new(&LEVEL, 0) };
static RESOURCE: Resource<u64> = Resource::new();
/// The time at which the user's function of a job begins, if requested.
static BEGINS: AtomicU64 = AtomicU64::new(0);
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// # Safety
/// As for [`Run`](punctual_core::Run), and the level is [`LEVEL`].
unsafe fn run(me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
    // SAFETY: the executor has popped the job, whose node is the task's only one, and occupies the
    // level.
    unsafe { TASK.run(me, job, now) }
}

/// A task that does nothing.
struct Nothing;

impl Body for Nothing {
    type Args = ();
    const NAME: &'static str = "nothing";
    const LEVEL: u8 = 1;
    const MONITOR: bool = true;
    const PROFILE: bool = false;
    const DEADLINE: Option<Duration> = None;
    const EXECUTION: Duration = Duration::from_ticks(0);

    fn runtime() -> &'static Runtime {
        &RUNTIME
    }

    fn partition() -> &'static PartitionState {
        &PARTITION
    }

    fn place() -> (&'static Level, u32) {
        (&LEVEL, 0)
    }

    unsafe fn call(_: CurrentWorker, _: Instant, args: Arguments) {
        // SAFETY: there is nothing to move.
        unsafe { Self::free(args) };
        if IS_REQUESTED.load(Ordering::Relaxed) {
            BEGINS.store(clock::now().as_ticks(), Ordering::Relaxed);
        }
    }

    unsafe fn free(args: Arguments) {
        // SAFETY: by this function's contract.
        unsafe { TASK.free(args) }
    }
}

/// Returns the costs of a release, a dispatch and a lock, then of profiling a job, the part of it
/// before the job's own function, and of measuring a critical section; `None` if they cannot be
/// measured.
fn operations() -> Option<[u64; 6]> {
    let taken = RUNTIME.take(false).ok()?;
    // SAFETY: no thread of an earlier run of this app is left, and this one is the only thread of
    // this run.
    let me = unsafe { PARTITION.enter_idle() };
    me.enter(crate::port::linux::kernel_thread(), true);
    // SAFETY: it is.
    unsafe { me.set_alone() };
    // SAFETY: it has no other users, and no job runs.
    unsafe {
        RESOURCE.fill(0);
        TASK.begin();
    }
    let member = Member::join(&PARTITION, me);
    // SAFETY: the resource is filled, this thread is idle and holds nothing, and there is one such
    // value.
    let mut resource = unsafe { Locked::<u64, AppPort, 0, 1>::new(&RESOURCE, PARTITION.core(), me) };
    let lock = median(|| resource.lock(|count| *count += 1));
    let dispatch = median(spawn);
    let released = median(|| {
        let now = PARTITION.core.port().now();
        // SAFETY: there is no argument.
        let _ = unsafe { TASK.spawn_at(now, &mut ()) };
        PARTITION.core.release_due(me, &LEVEL, now);
        PARTITION.core().serve(me, None);
    });
    let begins = begins();
    let mut measured = profile::Profiled::new(resource, COUNT);
    TASK.monitor.cells.mark.set_profiled(true);
    // SAFETY: only this thread runs the app, which has one task.
    let [profiled, begins_profiled, locked] = unsafe {
        profile::tried(&PARTITION, &TASK.monitor.cells.profile, || {
            let profiled = median(spawn);
            [profiled, self::begins(), median(|| measured.lock(|count| *count += 1))]
        })
    };
    TASK.monitor.cells.mark.set_profiled(false);
    drop(member);
    // SAFETY: no job of the task runs or can be spawned once the run has ended; no other thread was
    // in it, and nothing refers to the resource.
    unsafe {
        drop(taken.end());
        TASK.end();
        RESOURCE.empty();
    }
    let profiling = profiled.saturating_sub(dispatch);
    let before = begins_profiled.saturating_sub(begins).min(profiling);
    Some([released.saturating_sub(dispatch), dispatch, lock, profiling, before, locked.saturating_sub(lock)])
}

/// Returns the median time from before a spawn to the first instruction of the job, which is
/// called, in ns.
fn begins() -> u64 {
    IS_REQUESTED.store(true, Ordering::Relaxed);
    let time = || {
        let start = clock::now();
        spawn();
        BEGINS.load(Ordering::Relaxed).saturating_sub(start.as_ticks())
    };
    (0..BATCH).for_each(|_| _ = time());
    let times = (0..BATCH).map(|_| time()).collect();
    IS_REQUESTED.store(false, Ordering::Relaxed);
    middle(times).unwrap_or(0)
}

fn spawn() {
    // SAFETY: there is no argument.
    let _ = unsafe { TASK.spawn(&mut ()) };
}

/// Returns the median time of an operation, in ns.
fn median(mut operation: impl FnMut()) -> u64 {
    let mut batch = || {
        let start = clock::now();
        (0..BATCH).for_each(|_| operation());
        (clock::now().as_ticks() - start.as_ticks()).div_ceil(BATCH.into())
    };
    // The first ones run with cold caches.
    (0..3).for_each(|_| _ = batch());
    middle((0..BATCHES).map(|_| batch()).collect()).unwrap_or(0)
}

fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Returns the time a thread on this CPU loses when a higher-priority thread is woken by a timer,
/// reads the clock and sleeps again.
fn preemption(on: usize) -> Option<u64> {
    let (ready, wakes, done) = (AtomicBool::new(false), AtomicU32::new(0), AtomicBool::new(false));
    let end = StdInstant::now() + LIMIT;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sleep = || {
                ready.store(true, Ordering::Release);
                for _ in 0..PREEMPTIONS {
                    std::thread::sleep(APART);
                    wakes.fetch_add(1, Ordering::Relaxed);
                }
            };
            if cpu::pin(on).is_ok() {
                settings::boosted(PRIORITY + 1, sleep);
            }
            done.store(true, Ordering::Release);
        });
        let spinner = scope.spawn(|| {
            cpu::pin(on).ok()?;
            while !ready.load(Ordering::Acquire) && !done.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            settings::boosted(PRIORITY, || {
                middle(gaps(&wakes, || done.load(Ordering::Acquire) || StdInstant::now() > end))
            })
        });
        spinner.join().ok().flatten()
    })
}

/// Returns the times between two readings of the clock in which the other thread woke up.
fn gaps(wakes: &AtomicU32, over: impl Fn() -> bool) -> Vec<u64> {
    let mut gaps = Vec::with_capacity(PREEMPTIONS);
    let (mut before, mut seen) = (clock::now().as_ticks(), wakes.load(Ordering::Relaxed));
    while !over() {
        let (now, woken) = (clock::now().as_ticks(), wakes.load(Ordering::Relaxed));
        if woken != seen && gaps.len() < PREEMPTIONS {
            gaps.push(now - before);
        }
        // Without the time that checking for the end takes.
        (before, seen) = (clock::now().as_ticks(), woken);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_tried_and_can_be_tried_again() {
        // The time that other threads take from one attempt may exceed the difference of two
        // medians.
        let tries: Vec<_> = (0..9).map(|_| operations().expect("nobody else tries them")).collect();
        let usual =
            |at: usize| middle(tries.iter().map(|costs| costs[at]).collect()).expect("there are nine");
        let [_, dispatch, lock, profiling, _, profiling_lock] = std::array::from_fn(usual);
        assert!(dispatch > 0 && lock > 0, "{dispatch} {lock}");
        assert!(profiling > 0 && profiling_lock > 0, "{tries:?}");
        for [_, _, _, profiling, before, _] in tries {
            assert!(before <= profiling, "{before} {profiling}");
        }
    }

    #[test]
    fn median_of_no_samples_is_unknown() {
        assert_eq!(middle(Vec::new()), None);
        assert_eq!(middle(vec![9, 1, 5]), Some(5));
    }
}
