//! The dispatch in the epilogue of an interrupt: a handler that runs before or after any access of
//! the interrupted thread to the partition's word, as that thread and on its stack, while another
//! CPU spawns or arms a timer.
//!
//! loom has no interrupts. So the word checks for a raised line around each change of the occupied
//! levels and each read of the ready ones, and calls the handler if the line is raised. Another
//! thread raises it, so loom tries every point. The handler works like that of the bare port of
//! `punctual`.
//!
//! Bound: three preemptions; the merge gate explores two. An interrupt at any point needs one
//! preemption: the device raises the line, and the handler runs on the interrupted thread. A second
//! separates two steps of the other CPU: the push of a job and its mark, or an arming and the
//! raised line. The third lets the other CPU continue once more before the thread ends.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Arena, check, current, level, slots};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use punctual_core::{
    CurrentWorker, Instant, Level, OneThread, Partition, Port, ReadyLevels, Slots, Stamp, WordCell, Worker,
};

loom::thread_local! {
    /// The line that interrupts the calling thread, if any.
    static LINE: Cell<Option<&'static Line>> = Cell::new(None);
}

/// An interrupt of the one CPU of a partition.
struct Line {
    raised: AtomicBool,
    handler: Box<dyn Fn()>,
}

// SAFETY: all threads of an execution run on one thread of the operating system, and only one of
// them calls the handler.
unsafe impl Sync for Line {}

impl Line {
    /// Not a store, which loom may order before the value that a swap has read already.
    fn raise(&self) {
        self.raised.swap(true, Ordering::AcqRel);
    }
}

/// A point at which an interrupt can occur.
fn point() {
    let line = LINE.with(Cell::get);
    if let Some(line) = line
        && line.raised.swap(false, Ordering::AcqRel)
    {
        masked(|| (line.handler)());
    }
}

/// Runs `f` with interrupts masked.
fn masked(f: impl FnOnce()) {
    let line = LINE.with(Cell::take);
    f();
    LINE.with(|mine| mine.set(line));
}

/// Runs `f` with the interrupts of `line` unmasked, in the handler.
fn unmasked(line: &'static Line, f: impl FnOnce()) {
    LINE.with(|mine| mine.set(Some(line)));
    f();
    LINE.with(|mine| mine.set(None));
}

#[derive(Debug)]
struct Word(ReadyLevels);

fn between<R>(operation: impl FnOnce() -> R) -> R {
    point();
    let result = operation();
    point();
    result
}

// SAFETY: the cell is the word of one thread, with other operations of the same thread possible
// around each operation.
unsafe impl WordCell for Word {
    type Dispatch = OneThread;
    type Token = ();

    fn empty() -> Self {
        Self(ReadyLevels::empty())
    }

    fn occupy(&self, record: &AtomicU32, occupied: u32) {
        between(|| self.0.occupy(record, occupied));
    }

    fn load(&self, order: Ordering) -> u64 {
        between(|| self.0.load(order))
    }

    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
        between(|| self.0.swap(from, to, order))
    }

    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        between(|| self.0.fetch_and(bits, order))
    }

    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        between(|| self.0.fetch_or(bits, order))
    }

    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        between(|| self.0.fetch_sub(number, order))
    }

    fn token(&self) {}

    unsafe fn reset(&self) {
        unreachable!("a model runs once");
    }
}

/// The CPU of the partition. A wake from another thread raises the interrupt; its own thread need
/// not.
#[derive(Default)]
struct Cpu {
    line: std::sync::OnceLock<&'static Line>,
}

loom::thread_local! {
    static IS_HOME: Cell<bool> = Cell::new(false);
}

impl Port for Cpu {
    type Word = Word;

    fn now(&self) -> Instant {
        Instant::from_ticks(0)
    }

    fn wake(&self, _: &Worker) {
        if !IS_HOME.with(Cell::get) {
            self.line.get().expect("the line is connected").raise();
        }
    }

    fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
        false
    }

    fn wait_while(&self, _: &punctual_core::sync::AtomicU32, _: u32) {
        panic!("the thread that runs jobs never waits");
    }

    fn wake_all(&self, _: &punctual_core::sync::AtomicU32) {}

    fn boost(&self, _: &punctual_core::sync::AtomicU32) -> bool {
        false
    }

    fn unboost(&self, _: &punctual_core::sync::AtomicU32) {}
}

/// The data shared by the jobs of a level; an interrupt may occur during an access.
struct Inside {
    jobs: UnsafeCell<Vec<u32>>,
    /// The jobs that have begun.
    begun: AtomicU32,
}

// SAFETY: loom checks every access.
unsafe impl Sync for Inside {}

impl Inside {
    fn new() -> Self {
        Self { jobs: UnsafeCell::new(Vec::new()), begun: AtomicU32::new(0) }
    }

    fn enter(&self, node: u32) {
        self.jobs.with_mut(|jobs| {
            point();
            self.begun.fetch_add(1, Ordering::Relaxed);
            // SAFETY: `with_mut` panics if there is another access.
            unsafe { (*jobs).push(node) };
        });
    }

    fn jobs(&self) -> Vec<u32> {
        // SAFETY: as above.
        self.jobs.with(|jobs| unsafe { (*jobs).clone() })
    }
}

type Part = Partition<Cpu>;

/// The time that the handler passes.
const DUE: Instant = Instant::from_ticks(5);

/// A partition of levels 1 and 2 with one thread, the data of their jobs, and the interrupt, whose
/// handler runs or queues node 0 of level 2 if the device raised it.
struct Model {
    partition: &'static Part,
    me: CurrentWorker,
    levels: [&'static Level; 2],
    inside: [&'static Inside; 2],
    device: &'static AtomicBool,
    line: &'static Line,
    /// For node 0 of level 2.
    timer: &'static Slots<(), 1, 1>,
}

impl Model {
    fn new(arena: &Arena) -> Self {
        let worker: &'static Worker = arena.put(Worker::new(0));
        let me = current(worker);
        me.enter(1, true);
        // SAFETY: no other thread runs jobs.
        unsafe { me.set_alone() };
        let place: &'static std::sync::OnceLock<&'static Part> = arena.put(std::sync::OnceLock::new());
        let inside: [&'static Inside; 2] = [0, 1].map(|_| arena.put(Inside::new()));
        let workers: [&'static Worker; 2] = [1, 2].map(|base| arena.put(Worker::new(base)));
        let levels = [1, 2].map(|number: u8| {
            let inside = inside[number as usize - 1];
            level(arena, number, workers[number as usize - 1], 3, move |me, node| {
                inside.enter(node);
                // A job may raise its level, for which it has to occupy the level it runs at.
                place.get().expect("the partition exists").at_top_level(current(me), || {});
            })
        });
        let list: &'static Vec<&'static Level> = arena.put(levels.to_vec());
        let all: &'static Vec<&'static Worker> = arena.put(vec![worker, workers[0], workers[1]]);
        // SAFETY: there is one partition, with these workers and levels.
        let partition: &'static Part = arena.put(unsafe { Partition::new(Cpu::default(), list, all) });
        place.set(partition).ok().expect("set once");
        let device: &'static AtomicBool = arena.put(AtomicBool::new(false));
        let connected: &'static std::sync::OnceLock<&'static Line> = arena.put(std::sync::OnceLock::new());
        let handler = move || {
            handle(
                connected.get().expect("the line is set"),
                partition,
                current(worker),
                levels[1],
                inside[1],
                device,
            )
        };
        let line = arena.put(Line { raised: AtomicBool::new(false), handler: Box::new(handler) });
        connected.set(line).ok().expect("set once");
        partition.port().line.set(line).ok().expect("set once");
        IS_HOME.with(|is| is.set(true));
        // SAFETY: as the bare port does before the first interrupt; no timer is due.
        let (next, expired) = unsafe { partition.tick(me, Instant::from_ticks(0)) };
        assert!(next.is_none() && expired.is_none());
        LINE.with(|mine| mine.set(Some(line)));
        let timer = slots(arena, levels[1]);
        Self { partition, me, levels, inside, device, line, timer }
    }

    /// Spawns `node` of level `number`, from a job of the other level, as a direct call if
    /// possible.
    fn spawn(&self, number: u8, node: u32) {
        let level = self.levels[number as usize - 1];
        let (partition, me, inside) = (self.partition, self.me, self.inside[number as usize - 1]);
        // SAFETY: the level is the partition's, and the preemption is finished after those nested
        // in it.
        match unsafe { partition.preempt(me, level) } {
            Some(preemption) => {
                inside.enter(node);
                partition.at_top_level(me, || {});
                preemption.finish(None);
            }
            // SAFETY: the level is the partition's, and the node is this thread's.
            None => unsafe { partition.spawn(me, level, node) },
        }
    }

    /// Takes a pending interrupt, and then checks that no work is left.
    fn ended(&self, jobs: [&[u32]; 2]) {
        point();
        LINE.with(Cell::take);
        let word = self.partition.snapshot();
        assert!(!word.must_serve(), "a ready level is free and was not served: {word:?}");
        assert_eq!((word.level(), self.me.level(), self.me.running()), (0, 0, 0), "all levels are vacated");
        for (inside, wanted) in self.inside.iter().zip(jobs) {
            let mut ran = inside.jobs();
            ran.sort_unstable();
            assert_eq!(ran, wanted, "each job runs once");
        }
    }
}

/// The handler of the bare port: see `bare/bound.rs` and `bare/interrupt.rs` there.
fn handle(
    line: &'static Line,
    partition: &'static Part,
    me: CurrentWorker,
    high: &'static Level,
    inside: &'static Inside,
    device: &'static AtomicBool,
) {
    if device.swap(false, Ordering::AcqRel) {
        // SAFETY: the caller stands for the handler, and the interrupted thread continues when this
        // returns.
        match unsafe { partition.preempt_by_interrupt(me, high) } {
            Some(preemption) => unmasked(line, || {
                inside.enter(0);
                partition.at_top_level(me, || {});
                preemption.finish(None);
            }),
            // SAFETY: the level is the partition's, and the node is the device's.
            None => unsafe { partition.spawn_from_outside(high, 0) },
        }
    } else {
        // SAFETY: as above.
        let (_, expired) = unsafe { partition.tick(me, DUE) };
        if let Some(expired) = expired {
            unmasked(line, || expired.run());
        }
    }
    if partition.must_serve(me) {
        unmasked(line, || partition.serve(me, None));
    }
}

/// A device that interrupts once.
fn device(model: &Rc<Model>) -> loom::thread::JoinHandle<()> {
    let (device, line) = (model.device, model.line);
    loom::thread::spawn(move || {
        device.swap(true, Ordering::AcqRel);
        line.raise();
    })
}

#[test]
fn handler_interrupts_spawns_and_locks() {
    check(3, |arena| {
        let model = Rc::new(Model::new(arena));
        let device = device(&model);
        // A job of the lower level, in which one of the higher is spawned in a critical section, so
        // that it is queued.
        model.spawn(1, 0);
        model.partition.at_top_level(model.me, || model.spawn(2, 1));
        device.join().unwrap();
        model.ended([&[0], &[0, 1]]);
    });
}

/// Bound: two preemptions. One lets the device and one lets the other CPU act, each between two
/// steps of the thread.
#[test]
fn remote_spawn_during_handler() {
    check(2, |arena| {
        let model = Rc::new(Model::new(arena));
        let device = device(&model);
        let (partition, level) = (model.partition, model.levels[1]);
        // SAFETY: the level is the partition's, and the node is the other CPU's.
        let other = loom::thread::spawn(move || unsafe { partition.spawn_from_outside(level, 1) });
        model.spawn(1, 0);
        device.join().unwrap();
        other.join().unwrap();
        model.ended([&[0], &[0, 1]]);
    });
}

/// The end of a critical section of `idle` has to find the job that the handler cannot run in it:
/// nothing follows.
#[test]
fn handler_interrupts_end_of_section() {
    check(3, |arena| {
        let model = Rc::new(Model::new(arena));
        let device = device(&model);
        model.partition.at_top_level(model.me, || {});
        device.join().unwrap();
        model.ended([&[], &[0]]);
    });
}

/// The first of two jobs runs when a job of the level checks its queue, which leaves the mark. The
/// other is queued while the mark is still set, so no thread is woken: the thread that clears the
/// mark has to find it.
#[test]
fn two_remote_spawns_during_job() {
    check(3, |arena| {
        let model = Rc::new(Model::new(arena));
        let (partition, level) = (model.partition, model.levels[1]);
        let other = loom::thread::spawn(move || {
            // SAFETY: the level is the partition's, and the nodes are the other CPU's.
            [0, 1].map(|node| unsafe { partition.spawn_from_outside(level, node) });
        });
        model.spawn(2, 2);
        other.join().unwrap();
        model.ended([&[], &[0, 1, 2]]);
    });
}

/// Bound: two preemptions. One lets the other CPU act between two steps of the thread, and one
/// returns to the thread between the arming and the raised line.
#[test]
fn handler_runs_timers_of_another_cpu() {
    check(2, |arena| {
        let model = Rc::new(Model::new(arena));
        let (partition, level, timer) = (model.partition, model.levels[1], model.timer);
        let other = loom::thread::spawn(move || {
            timer.arm((), DUE).unwrap();
            // Raises the line.
            partition.armed(level, DUE);
        });
        model.spawn(1, 0);
        model.partition.at_top_level(model.me, || model.spawn(2, 1));
        other.join().unwrap();
        model.ended([&[0], &[0, 1]]);
    });
}
