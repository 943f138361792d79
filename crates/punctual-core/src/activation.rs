//! The single instance of an async task: its existence, and whether it is queued to be polled.
//!
//! A poll of an async task corresponds to a job of any other task: queued at the task's level,
//! dispatched by the same rules, never concurrently with another job of its level. Only the time of
//! queuing differs. Any number of wakers may fire at any time, from any thread, even for an
//! instance that has completed; and every wake must be followed by a poll.
//!
//! The state is a word of four bits. It is 0 if the instance waits, so that a waker tests this and
//! other conditions by one comparison.
//!
//! | bit | set by | cleared by |
//! |---|---|---|
//! | `UNCLAIMED` | the level's runner, after dropping the future | the spawner, before it creates the future |
//! | `ABSENT` | the level's runner, before dropping the future | the spawner, when the future exists |
//! | `QUEUED` | a spawner or waker, which then queues the node | the level's runner, before it polls |
//! | `RETIRED` | the one thread that runs a local level, at its end | [`reset`](Activation::reset) |
//!
//! A waker that occupies the level polls a [waiting](Activation::waits) instance at once, and sets
//! no bit.
//!
//! Invariants: the node is queued, or about to be, if and only if `QUEUED` is set; only the
//! claimant accesses the future while it is `ABSENT`, and only the level's runner after that. If
//! the instance completes while its node is queued, the poll finds no instance, or the next one. A
//! retired instance is no longer polled; its storage belongs to the retiring thread unless the
//! future was `ABSENT`, and then stays as the spawner left it.
//!
//! Real-time safety: one atomic read-modify-write each; nothing allocates, blocks or enters the
//! kernel.

use crate::atomic::{AtomicU32, Ordering, const_new};
use crate::level::Level;

const UNCLAIMED: u32 = 1;
const ABSENT: u32 = 2;
const QUEUED: u32 = 4;
const RETIRED: u32 = 8;

/// No instance.
const NONE: u32 = UNCLAIMED | ABSENT;

/// The state of an async task's instance, and its node in the level's queue.
#[derive(Debug)]
pub struct Activation {
    level: &'static Level,
    node: u32,
    state: AtomicU32,
}

impl Activation {
    const_new! {
        /// Creates an activation without an instance; `node` is its node in `level`.
        pub fn new(level: &'static Level, node: u32) -> Self {
            Self { level, node, state: AtomicU32::new(NONE) }
        }
    }

    /// Returns the level at which the instance is polled.
    #[inline]
    pub fn level(&self) -> &'static Level {
        self.level
    }

    /// Returns the task's node in the level's queue.
    #[inline]
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Records the release time of the poll that is about to be queued, in ns; 0 if it is unknown.
    #[inline]
    pub fn stamp(&self, release: u64) {
        self.level.node(self.node).set_time(release);
    }

    /// Claims the instance for a spawn; returns `false` if there is one already, or if the task is
    /// retired.
    ///
    /// The claimant creates the future and calls [`spawned`](Self::spawned).
    #[inline]
    pub fn claim(&self) -> bool {
        // Acquire: the claimant sees that the storage of the last instance is free.
        self.state.fetch_and(!UNCLAIMED, Ordering::Acquire) & (UNCLAIMED | RETIRED) == UNCLAIMED
    }

    /// Records that the future exists. Returns `true` if the caller has to queue the node;
    /// otherwise it is queued already.
    #[inline]
    pub fn spawned(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            // Release: the polling thread sees the future. `poll` acquires, even if it follows at
            // once.
            let queued = state & !ABSENT | QUEUED;
            match self.state.compare_exchange_weak(state, queued, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return state & QUEUED == 0,
                Err(now) => state = now,
            }
        }
    }

    /// Wakes the instance. Returns `true` if the caller has to queue the node.
    #[inline]
    pub fn wake(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & (ABSENT | RETIRED) == 0 {
            // Written even if the node is queued already: the next poll has to see the caller's
            // earlier writes.
            let queued = state | QUEUED;
            match self.state.compare_exchange_weak(state, queued, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return state & QUEUED == 0,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Returns `true` if there is an instance that is not queued. For a waker on a thread that
    /// occupies the level, which may then poll it at once, without [`wake`](Self::wake) and
    /// [`poll`](Self::poll).
    ///
    /// No other thread polls or ends the instance concurrently. It has been polled before, since a
    /// spawn queues it; so occupying the level has made the future visible. A later wake queues it,
    /// and it is polled once more.
    #[inline]
    pub fn waits(&self) -> bool {
        // Relaxed: see above.
        self.state.load(Ordering::Relaxed) == 0
    }

    /// Returns `true` if this is `node` of `level`.
    #[inline]
    pub fn is_at(&self, level: &'static Level, node: u32) -> bool {
        core::ptr::eq(self.level, level) && self.node == node
    }

    /// Begins a poll, after the node was removed from the queue or instead of queuing it: the next
    /// wake queues it again. Returns `true` if there is a future to poll.
    #[inline]
    pub fn poll(&self) -> bool {
        self.state.fetch_and(!QUEUED, Ordering::AcqRel) & ABSENT == 0
    }

    /// Records that the future has completed and is about to be dropped: it is no longer polled.
    #[inline]
    pub fn end_polls(&self) {
        self.state.fetch_or(ABSENT, Ordering::Relaxed);
    }

    /// Records that the future is dropped: the next instance may be claimed.
    #[inline]
    pub fn completed(&self) {
        // Release: the next claimant writes the storage after this.
        self.state.fetch_or(UNCLAIMED, Ordering::Release);
    }

    /// Ends polling for this run. Returns `true` if there is an instance, which the caller has to
    /// drop.
    ///
    /// For the only thread that polls the task, outside of polls.
    pub fn retire(&self) -> bool {
        // Acquire: this thread sees the future that the spawner of a never polled instance stored.
        self.state.fetch_or(RETIRED, Ordering::Acquire) & ABSENT == 0
    }

    /// Returns `true` if the task is retired; for the thread that retires it.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.state.load(Ordering::Relaxed) & RETIRED != 0
    }

    /// Removes the instance between two runs. Returns `None` if there is no future to drop;
    /// otherwise whether it was queued to be polled.
    ///
    /// # Safety
    /// No other thread uses the task or its level.
    pub unsafe fn reset(&self) -> Option<bool> {
        let state = self.state.load(Ordering::Acquire);
        self.state.store(NONE, Ordering::Relaxed);
        (state & ABSENT == 0).then_some(state & QUEUED != 0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Jobs, Node, Popped, Queue, Worker};

    fn with_activation(test: impl FnOnce(&Activation)) {
        static WORKER: Worker = Worker::new(1);
        static NODES: [Node; 1] = [Node::new()];
        static QUEUE: Queue = Queue::new();
        const JOBS: Jobs = Jobs::of(&|_, _, _| None);
        static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], JOBS);
        test(&Activation::new(&LEVEL, 0));
    }

    #[test]
    fn allows_one_instance() {
        with_activation(|task| {
            assert!(task.claim());
            assert!(!task.claim());
            assert!(task.spawned(), "the spawner queues it");
            assert!(task.poll());
            task.end_polls();
            assert!(!task.claim(), "its storage is in use");
            task.completed();
            assert!(task.claim());
        });
    }

    #[test]
    fn poll_carries_release_time() {
        with_activation(|task| {
            task.stamp(5);
            assert_eq!(task.level().released(Popped::of(task.node())), 5);
        });
    }

    #[test]
    fn wakes_between_polls_queue_once() {
        with_activation(|task| {
            assert!(task.claim() && task.spawned());
            assert!(!task.wake(), "the instance is queued");
            assert!(task.poll());
            assert!(task.waits() && task.wake());
            assert!(!task.waits() && !task.wake());
        });
    }

    #[test]
    fn stale_waker_has_no_effect() {
        with_activation(|task| {
            assert!(!task.wake());
            assert!(task.claim());
            assert!(!task.wake() && !task.waits(), "there is no future yet");
        });
    }

    #[test]
    fn retired_activation_is_neither_woken_nor_claimed() {
        with_activation(|task| {
            assert!(!task.retire(), "there is no instance");
            assert!(task.is_retired() && !task.claim());
            // SAFETY: a single thread.
            assert_eq!(unsafe { task.reset() }, None);
            assert!(task.claim() && task.spawned() && task.poll());
            assert!(task.retire(), "the caller drops the instance");
            assert!(!task.wake() && !task.waits() && !task.claim());
            // SAFETY: a single thread.
            assert_eq!(unsafe { task.reset() }, Some(false), "the instance was not queued");
            assert!(!task.is_retired() && task.claim() && task.spawned());
            // SAFETY: a single thread.
            assert_eq!(unsafe { task.reset() }, Some(true), "the instance was queued");
        });
    }

    #[test]
    fn completion_while_queued_passes_node_to_next_instance() {
        with_activation(|task| {
            assert!(task.claim() && task.spawned() && task.poll());
            assert!(task.wake());
            task.end_polls();
            task.completed();
            assert!(task.claim());
            assert!(!task.spawned(), "the node is still in the queue");
            assert!(task.poll());
        });
    }
}
