//! A partition whose jobs record themselves, on one thread and with a clock that only the test
//! advances.

use std::sync::{Mutex, OnceLock};

use punctual_core::sync::{AtomicU32, AtomicU64, Ordering};
use punctual_core::{
    ConstLevel, CurrentWorker, Duration, Instant, Jobs, Level, Node, Partition, Periodic, Port, Queue, Stamp,
    Worker,
};

pub(crate) fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// Records the woken workers by base. The clock stands still until it is set, unless it has a step.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) now: AtomicU64,
    /// By how much each reading of the clock advances it.
    pub(crate) step: AtomicU64,
    /// How far a timestamp is ahead, modulo 2⁶⁴.
    pub(crate) ahead: AtomicU64,
    woken: Mutex<Vec<u8>>,
    /// For each worker that is about to sleep: the end of the allowed spin, and whether it is over.
    pub(crate) spins: Mutex<Vec<(Option<u64>, bool)>>,
    /// The time that each wait is given.
    pub(crate) given: Mutex<Vec<Option<u64>>>,
    /// Number of jobs pushed to a polled partition.
    pub(crate) pushed: AtomicU32,
    /// Called while the worker sleeps.
    pub(crate) asleep: OnceLock<Box<dyn Fn(Option<Instant>) + Send + Sync>>,
}

impl Port for Recorder {
    type Word = AtomicU64;

    fn now(&self) -> Instant {
        at(self.now.fetch_add(self.step.load(Ordering::Relaxed), Ordering::Relaxed))
    }
    const STAMP_ERROR: Duration = Duration::from_ticks(10);
    fn stamp(&self) -> Instant {
        at(self.now().as_ticks().wrapping_add(self.ahead.load(Ordering::Relaxed)))
    }
    fn wake(&self, worker: &Worker) {
        self.woken.lock().unwrap().push(worker.base());
    }
    fn spin(&self, _: &Worker, until: impl FnOnce() -> Option<Instant>, is_over: impl Fn() -> bool) {
        self.spins.lock().unwrap().push((until().map(|until| until.as_ticks()), is_over()));
    }
    fn pushed(&self) {
        self.pushed.fetch_add(1, Ordering::Relaxed);
    }
    fn wait(&self, _: &Worker, until: Option<Instant>, now: Stamp) -> bool {
        self.given.lock().unwrap().push(now.map(|now| now.as_ticks()));
        self.asleep.get().expect("no worker sleeps in this test")(until);
        until.is_some_and(|until| self.now() >= until)
    }
    fn wait_while(&self, _: &AtomicU32, _: u32) {
        panic!("no level above is occupied");
    }
    fn wake_all(&self, _: &AtomicU32) {
        panic!("no thread waits");
    }
    fn boost(&self, _: &AtomicU32) -> bool {
        false
    }
    fn unboost(&self, _: &AtomicU32) {}
    fn unwinds(&self) {
        panic!("no critical section unwinds");
    }
}

pub(crate) type Job = fn(&'static Rig, CurrentWorker, u32);

/// A partition whose jobs record themselves.
pub(crate) struct Rig {
    pub(crate) partition: Partition<Recorder>,
    /// (level, node, base of the worker).
    ran: Mutex<Vec<(u8, u32, u8)>>,
    /// The end of each job, if jobs read the clock; 0 if they do not.
    pub(crate) ends: AtomicU64,
    /// The start time passed to each job.
    stamps: Mutex<Vec<Option<u64>>>,
}

/// Each level has four nodes; its worker is the one with the given base. All workers may call.
pub(crate) fn rig(bases: &[u8], levels: &[(u8, u8, Job)]) -> &'static Rig {
    rig_with(bases, levels, &[])
}

pub(crate) fn rig_with(bases: &[u8], levels: &[(u8, u8, Job)], grids: &[&'static Periodic]) -> &'static Rig {
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
            let end = rig.ends.load(Ordering::Relaxed);
            if end == 0 { now } else { Some(at(end)) }
        };
        let worker = workers.iter().find(|worker| worker.base() == base).unwrap();
        let nodes: &'static [Node] = (0..4).map(|_| Node::new()).collect::<Vec<_>>().leak();
        let queue = Box::leak(Box::new(Queue::new()));
        let jobs = Jobs::of(Box::leak(Box::new(run)));
        &*Box::leak(Box::new(Level::new(number, worker, queue, nodes, grids, jobs)))
    });
    let levels: &'static [&'static Level] = levels.collect::<Vec<_>>().leak();
    // SAFETY: the levels and workers are new, and this is their only partition.
    let partition = unsafe { Partition::new(Recorder::default(), levels, workers) };
    let rig: &'static Rig = Box::leak(Box::new(Rig {
        partition,
        ran: Mutex::default(),
        ends: AtomicU64::new(0),
        stamps: Mutex::default(),
    }));
    linked.set(rig).ok().unwrap();
    for base in bases {
        let me = rig.worker(*base);
        me.enter(u32::from(*base) + 1, true);
        me.allow_calls(true);
    }
    rig
}

impl Rig {
    /// Returns the test's thread as the worker with this base.
    pub(crate) fn worker(&'static self, base: u8) -> CurrentWorker {
        let worker = self.partition.workers().iter().find(|worker| worker.base() == base).unwrap();
        // SAFETY: each test has one thread and its own partition.
        unsafe { CurrentWorker::new(worker) }
    }

    pub(crate) fn level(&self, number: u8) -> &'static Level {
        self.partition.levels().iter().find(|level| level.number() == number).unwrap()
    }

    pub(crate) fn spawn(&'static self, me: CurrentWorker, level: u8, node: u32) {
        // SAFETY: the level is the partition's, and tests spawn a node that is in no queue.
        unsafe { self.partition.spawn(me, self.level(level), node) };
    }

    pub(crate) fn spawn_from_outside(&self, level: u8, node: u32) {
        // SAFETY: as for `spawn`.
        unsafe { self.partition.spawn_from_outside(self.level(level), node) };
    }

    /// Runs `job` at `level` if it may be a direct call.
    pub(crate) fn call(&'static self, me: CurrentWorker, level: u8, job: impl FnOnce()) -> bool {
        let job = || {
            job();
            None
        };
        match level {
            1 => self.call_at::<1>(me, job),
            2 => self.call_at::<2>(me, job),
            // SAFETY: the level is the partition's.
            _ => unsafe { self.partition.call(me, self.level(level), job) }.is_ok(),
        }
    }

    /// Calls as a task does, whose level is a constant.
    fn call_at<const NUMBER: u8>(&'static self, me: CurrentWorker, job: impl FnOnce() -> Stamp) -> bool {
        struct Number<const NUMBER: u8>;
        impl<const NUMBER: u8> ConstLevel for Number<NUMBER> {
            const NUMBER: u8 = NUMBER;
        }
        // SAFETY: the level is the partition's, and the word needs no token.
        let preemption = unsafe { self.partition.preempt_at::<Number<NUMBER>>(me, self.level(NUMBER)) };
        let Some(preemption) = preemption else {
            // SAFETY: the level is the partition's.
            return unsafe { self.partition.call(me, self.level(NUMBER), job) }.is_ok();
        };
        let end = job();
        if !preemption.finish_at::<Number<NUMBER>>(end) {
            // SAFETY: the preemption of the level could not be finished.
            unsafe { self.partition.reenter(me, self.level(NUMBER)) }.finish(end);
        }
        true
    }

    pub(crate) fn ran(&self) -> Vec<(u8, u32, u8)> {
        std::mem::take(&mut self.ran.lock().unwrap())
    }

    pub(crate) fn stamps(&self) -> Vec<Option<u64>> {
        std::mem::take(&mut self.stamps.lock().unwrap())
    }

    pub(crate) fn woken(&self) -> Vec<u8> {
        std::mem::take(&mut self.partition.port().woken.lock().unwrap())
    }
}

pub(crate) const NOTHING: Job = |_, _, _| {};
