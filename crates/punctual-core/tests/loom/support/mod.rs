//! The common parts of the loom models: a [`ModelPort`] whose every wait loom sees, and a short way
//! to build a partition that lives for one execution of a model.
//!
//! loom has no timeouts. The clock stands still until the model calls [`ModelPort::advance`], which
//! wakes exactly the threads that sleep until that time or earlier, as a kernel's timer would.

#![allow(dead_code, reason = "every model uses its own part of this")]

mod awake;
mod common;
mod port;

use std::cell::RefCell;
use std::sync::Arc;

use punctual_core::{
    ConstLevel, CurrentWorker, Instant, Jobs, Level, Node, Partition, Periodic, Queue, Slots, Stamp, Worker,
};

use self::awake::Ending;
pub(crate) use self::common::Region;
pub(crate) use self::port::ModelPort;

/// The partition of a model.
///
/// The models satisfy the contracts of the unsafe functions: each worker is used by the thread that
/// stands for it, the levels are the partition's own, and each node is spawned by the thread that
/// owns it. loom checks the queues.
pub(crate) struct Model(Partition<ModelPort>);

impl std::ops::Deref for Model {
    type Target = Partition<ModelPort>;

    fn deref(&self) -> &Partition<ModelPort> {
        &self.0
    }
}

/// A level that is a constant.
struct Number<const NUMBER: u8>;

impl<const NUMBER: u8> ConstLevel for Number<NUMBER> {
    const NUMBER: u8 = NUMBER;
}

/// The calling thread, which stands for `worker`.
pub(crate) fn current(worker: &'static Worker) -> CurrentWorker {
    // SAFETY: see `Model`.
    unsafe { CurrentWorker::new(worker) }
}

impl Model {
    pub(crate) fn call<J: FnOnce() -> Stamp>(
        &'static self,
        me: &'static Worker,
        level: &'static Level,
        job: J,
    ) -> Result<(), J> {
        match level.number() {
            1 => self.call_at::<1, J>(me, level, job),
            2 => self.call_at::<2, J>(me, level, job),
            3 => self.call_at::<3, J>(me, level, job),
            // SAFETY: see `Model`.
            _ => unsafe { self.0.call(current(me), level, job) },
        }
    }

    /// Calls as a task does, whose level is a constant.
    fn call_at<const NUMBER: u8, J: FnOnce() -> Stamp>(
        &'static self,
        me: &'static Worker,
        level: &'static Level,
        job: J,
    ) -> Result<(), J> {
        // SAFETY: see `Model`, and the word needs no token.
        let preemption = unsafe { self.0.preempt_at::<Number<NUMBER>>(current(me), level) };
        let Some(preemption) = preemption else {
            // SAFETY: see `Model`.
            return unsafe { self.0.call(current(me), level, job) };
        };
        let end = job();
        if !preemption.finish_at::<Number<NUMBER>>(end) {
            // SAFETY: the preemption of the level could not be finished.
            unsafe { self.0.reenter(current(me), level) }.finish(end);
        }
        Ok(())
    }

    pub(crate) fn spawn(&'static self, me: &'static Worker, level: &'static Level, node: u32) {
        // SAFETY: see `Model`.
        unsafe { self.0.spawn(current(me), level, node) };
    }

    pub(crate) fn spawn_from_outside(&self, level: &'static Level, node: u32) {
        // SAFETY: see `Model`.
        unsafe { self.0.spawn_from_outside(level, node) };
    }

    pub(crate) fn serve(&'static self, me: &'static Worker) {
        self.0.serve(current(me), None);
    }

    pub(crate) fn work(&'static self, level: &'static Level) {
        self.0.work(current(level.worker()), level);
    }

    pub(crate) fn run_last(&'static self, level: &'static Level, job: impl FnOnce()) {
        // SAFETY: see `Model`.
        unsafe { self.0.run_last(current(level.worker()), level, job) };
    }

    pub(crate) fn poll(&'static self, me: &'static Worker) {
        self.0.poll(current(me));
    }

    pub(crate) fn release_due(&self, level: &'static Level, now: Instant) {
        self.0.release_due(current(level.worker()), level, now);
    }

    pub(crate) fn hold_all_jobs(&self, me: &'static Worker) {
        self.0.hold_all_jobs(current(me));
    }

    /// Must follow [`hold_all_jobs`](Self::hold_all_jobs).
    pub(crate) fn go(&'static self, me: &'static Worker, start: Instant) {
        // SAFETY: as above; and models call this outside of critical sections.
        unsafe { self.0.go(current(me), start) };
    }
}

/// [Explores](common::check) the executions of a model whose values live in an arena.
pub(crate) fn check(preemptions: usize, model: impl Fn(&Arena) + Sync + Send + 'static) {
    common::check(preemptions, move || {
        port::begin();
        let arena = Arena::new();
        model(&arena);
    });
}

/// A worker whose TID in the model's kernel is `thread`, with its real-time policy or without.
pub(crate) fn worker(arena: &Arena, base: u8, thread: u32, real_time: bool) -> &'static Worker {
    let worker = arena.put(Worker::new(base));
    current(worker).enter(thread, real_time);
    worker.allow_calls(real_time);
    worker
}

/// A level with `nodes` job slots and no periodic tasks.
pub(crate) fn level(
    arena: &Arena,
    number: u8,
    worker: &'static Worker,
    nodes: usize,
    job: impl Fn(&'static Worker, u32) + Sync + 'static,
) -> &'static Level {
    level_with(arena, number, worker, nodes, &[], job)
}

/// A level with `nodes` job slots.
pub(crate) fn level_with(
    arena: &Arena,
    number: u8,
    worker: &'static Worker,
    nodes: usize,
    periodic: &[&'static Periodic],
    job: impl Fn(&'static Worker, u32) + Sync + 'static,
) -> &'static Level {
    let nodes: &'static Vec<Node> = arena.put((0..nodes).map(|_| Node::new()).collect());
    let periodic: &'static Vec<&'static Periodic> = arena.put(periodic.to_vec());
    let run = arena.put(move |me: CurrentWorker, node: u32, _| {
        job(me.worker(), node);
        None
    });
    let queue = arena.put(Queue::new());
    arena.put(Level::new(number, worker, queue, nodes, periodic, Jobs::of(run)))
}

/// The job slots of the only task of `level`.
pub(crate) fn slots<A: 'static, const N: usize, const W: usize>(
    arena: &Arena,
    level: &'static Level,
) -> &'static Slots<A, N, W> {
    // SAFETY: nothing else uses nodes of the level.
    arena.put(unsafe { Slots::new(level, 0) })
}

/// A partition of these levels and workers.
pub(crate) fn partition(
    arena: &Arena,
    port: ModelPort,
    levels: &[&'static Level],
    workers: &[&'static Worker],
) -> &'static Model {
    let levels: &'static Vec<&'static Level> = arena.put(levels.to_vec());
    let workers: &'static Vec<&'static Worker> = arena.put(workers.to_vec());
    // SAFETY: a model has one partition, and workers for all of its levels.
    let partition = arena.put(Model(unsafe { Partition::new(port, levels, workers) }));
    port::is_about(partition);
    partition
}

/// Starts a thread whose TID in the model's kernel is `thread`.
pub(crate) fn start(thread: u32, body: impl FnOnce() + 'static) -> Started {
    let ending = Ending::new();
    let mine = Arc::clone(&ending);
    port::awake().more(1);
    let handle = loom::thread::spawn(move || {
        port::become_thread(thread);
        body();
        if !mine.end(&port::awake()) {
            port::stuck();
        }
    });
    Started { handle, ending }
}

/// A started thread.
pub(crate) struct Started {
    handle: loom::thread::JoinHandle<()>,
    ending: Arc<Ending>,
}

impl Started {
    /// Waits for the thread's end.
    pub(crate) fn join(self) -> std::thread::Result<()> {
        if !self.ending.join(&port::awake()) {
            port::stuck();
        }
        self.handle.join()
    }
}

/// Sets the TID of the model's first thread in the model's kernel.
pub(crate) fn i_am(thread: u32) {
    port::become_thread(thread);
}

/// Owns the values of a model, for which the executor requires `'static`, and frees them when the
/// execution has ended.
///
/// A model joins every thread it starts before it returns and retains no reference, so no use
/// outlives the arena.
pub(crate) struct Arena(RefCell<Vec<Box<dyn FnOnce()>>>);

impl Arena {
    fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Stores `value` until the end of the execution.
    pub(crate) fn put<T: 'static>(&self, value: T) -> &'static T {
        let place = Box::into_raw(Box::new(value));
        self.0.borrow_mut().push(Box::new(move || {
            // SAFETY: `place` was made by `Box::into_raw` above and is freed once, after its last
            // use.
            drop(unsafe { Box::from_raw(place) });
        }));
        // SAFETY: `place` is valid until the arena is dropped, and a model uses none of its values
        // after that.
        unsafe { &*place }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // A model that failed may have left threads behind: then everything is leaked.
        if !std::thread::panicking() {
            // In reverse, since later values refer to earlier ones.
            self.0.get_mut().drain(..).rev().for_each(|free| free());
        }
    }
}
