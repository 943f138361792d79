//! The state after a job unwinds: the port was notified while the level was occupied, the level is
//! free, and ready jobs did not run during the unwind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex as StdMutex, OnceLock};

use punctual_core::sync::{AtomicU32 as Futex, AtomicU64};
use punctual_core::{
    CurrentWorker, Instant, Jobs, Level, Locked, Mutex, Node, Partition, Port, Queue, Resource, Stamp, Word,
    Worker,
};

/// One thread, which never waits.
#[derive(Default)]
struct Alone {
    partition: OnceLock<&'static Partition<Alone>>,
    /// The bases of workers that were woken.
    woken: StdMutex<Vec<u8>>,
    /// The partition's level at each notification of an unwind.
    notified: StdMutex<Vec<u8>>,
}

impl Port for Alone {
    type Word = AtomicU64;

    fn now(&self) -> Instant {
        Instant::from_ticks(0)
    }
    fn wake(&self, worker: &Worker) {
        self.woken.lock().unwrap().push(worker.base());
    }
    fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
        false
    }
    fn wait_while(&self, _: &Futex, _: u32) {}
    fn wake_all(&self, _: &Futex) {}
    fn boost(&self, _: &Futex) -> bool {
        false
    }
    fn unboost(&self, _: &Futex) {}
    fn unwinds(&self) {
        self.notified.lock().unwrap().push(self.partition.get().unwrap().snapshot().level());
    }
}

/// Levels 1 and 2 with a node and a worker each; the thread of the test is the first worker.
struct Rig {
    partition: &'static Partition<Alone>,
    /// The levels of the jobs that were queued and have run.
    ran: StdMutex<Vec<u8>>,
}

fn rig() -> &'static Rig {
    let rig: &'static OnceLock<Rig> = Box::leak(Box::new(OnceLock::new()));
    let workers: &'static [&'static Worker] =
        [1, 2].map(|base| &*Box::leak(Box::new(Worker::new(base)))).to_vec().leak();
    let level = |number: u8, worker| {
        let run = move |_: CurrentWorker, _: u32, _| {
            rig.get().unwrap().ran.lock().unwrap().push(number);
            None
        };
        let nodes: &'static [Node] = vec![Node::new()].leak();
        let (queue, jobs) = (Box::leak(Box::new(Queue::new())), Jobs::of(Box::leak(Box::new(run))));
        &*Box::leak(Box::new(Level::new(number, worker, queue, nodes, &[], jobs)))
    };
    let levels: &'static [&'static Level] = vec![level(1, workers[0]), level(2, workers[1])].leak();
    // SAFETY: the levels and workers are new, and this is their only partition.
    let partition = &*Box::leak(Box::new(unsafe { Partition::new(Alone::default(), levels, workers) }));
    partition.port().partition.set(partition).ok().unwrap();
    let rig = rig.get_or_init(|| Rig { partition, ran: StdMutex::default() });
    rig.me().enter(1, true);
    rig.me().allow_calls(true);
    rig
}

impl Rig {
    fn me(&self) -> CurrentWorker {
        // SAFETY: each test has one thread and its own partition.
        unsafe { CurrentWorker::new(self.partition.workers()[0]) }
    }

    fn spawn(&self, level: &'static Level) {
        // SAFETY: the level is the partition's, and tests spawn its node once.
        unsafe { self.partition.spawn(self.me(), level, 0) };
    }

    /// Runs `job` as a direct call at level 1; returns whether it unwinds.
    fn call(&self, job: impl FnOnce()) -> bool {
        let job = || {
            job();
            None
        };
        // SAFETY: the level is the partition's.
        fails(|| assert!(unsafe { self.partition.call(self.me(), self.partition.levels()[0], job) }.is_ok()))
    }

    fn woken(&self) -> Vec<u8> {
        std::mem::take(&mut self.partition.port().woken.lock().unwrap())
    }

    fn notified(&self) -> Vec<u8> {
        std::mem::take(&mut self.partition.port().notified.lock().unwrap())
    }

    fn ran(&self) -> Vec<u8> {
        std::mem::take(&mut self.ran.lock().unwrap())
    }
}

/// Returns `true` if `f` unwinds.
fn fails(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Unlike `panic!`, without a message.
fn fail() {
    std::panic::resume_unwind(Box::new("the test fails"));
}

/// The first job queues the second without a mark, as a job that checks the queue at its end may.
#[test]
fn unwinding_job_keeps_its_spawns() {
    let rig = rig();
    let level = rig.partition.levels()[0];
    assert!(rig.call(|| {
        rig.spawn(level);
        fail();
    }));
    assert_eq!(rig.notified(), [1], "the port is notified before any job can start");
    assert_eq!((rig.ran(), rig.woken()), (vec![], vec![1]), "the other job is left to the level's worker");
    assert_eq!(rig.partition.snapshot(), Word::EMPTY.mark_ready(1));
    rig.partition.serve(rig.me(), None);
    assert_eq!(rig.ran(), [1], "every job runs once");
    assert_eq!((rig.partition.snapshot(), rig.me().level(), rig.me().running()), (Word::EMPTY, 0, 0));
}

#[test]
fn unwinding_section_wakes_worker_of_higher_ready_level() {
    let rig = rig();
    let level = rig.partition.levels()[1];
    assert!(!rig.call(|| {
        let section = || {
            rig.spawn(level);
            fail();
        };
        assert!(fails(|| rig.partition.at_top_level(rig.me(), section)));
        assert_eq!((rig.ran(), rig.woken()), (vec![], vec![2]), "the job does not run during the unwind");
    }));
    assert_eq!(rig.ran(), [2]);
}

#[test]
fn unwinding_section_at_own_level_notifies_port() {
    let rig = rig();
    let resource: &'static Resource<u32> = Box::leak(Box::new(Resource::new()));
    // SAFETY: only this test uses the resource.
    unsafe { resource.fill(0) };
    assert!(!rig.call(|| {
        // SAFETY: the job is of that level, and the only user of the resource.
        let mut right = unsafe { Locked::<_, _, 1, 1>::new(resource, rig.partition, rig.me()) };
        assert!(fails(|| right.lock(|_| fail())));
    }));
    assert_eq!(rig.notified(), [1], "while it holds the level");
}
