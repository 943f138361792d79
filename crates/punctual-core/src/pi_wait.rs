//! PI wait: waiting for a level to be vacated, with priority inheritance.
//!
//! Jobs that do not suspend themselves never get here: on one CPU the running thread is the one at
//! the top. A thread finds a level above its own occupied only if the holder sleeps in the kernel
//! in the middle of a job, or if the threads run in parallel because they lack their real-time
//! policy or their CPU.
//!
//! A waiting thread registers in the partition's word. A thread that vacates a level while waiters
//! are registered increments `changes` and wakes all of them; each repeats its check. That alone
//! ensures safety and progress. In addition, the waiter boosts the holder:
//!
//! * Each worker has a priority-inheritance futex word, `boost`, normally 0. The *waiter* writes
//!   the holder's TID into it, which makes the holder its owner in the kernel's view, and then
//!   waits for it, which boosts the holder. The holder pays nothing until it vacates a level with
//!   waiters registered; then it releases `boost` if it finds itself the owner.
//! * The waiter must not wait for a thread that will never check. A worker clears its bit in `held`
//!   *before* it vacates the level. So the waiter registers, finds a holder, writes `boost`, and
//!   *then* checks that the holder's bit is still set. If it is, the holder has yet to vacate the
//!   level. The holder will see the registration, because both are operations on the word, and it
//!   will see `boost`, because of the two sequentially consistent fences: one of the two sides must
//!   see the other's write.
//! * If no holder can be identified (it has won the level and not recorded it yet), the waiter
//!   waits without boosting.
//! * When the holder releases `boost`, the kernel hands it from waiter to waiter, and each releases
//!   it at once. While it is in transit, waiting for it would not boost the holder. Worse, the
//!   kernel lets a waiter of high priority steal it from an owner of low priority that has not run
//!   yet; on one CPU the waiter would steal it again and again, and neither the owner nor the
//!   holder would ever run. So a waiter that finds it in transit waits without boosting, and the
//!   thread that releases it increments `changes`.
//!
//! The kernel runs the protocol of L. Sha, R. Rajkumar, J. P. Lehoczky, *Priority inheritance
//! protocols*, IEEE Trans. Computers 39(9), 1990, section III, on `boost`.

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::current::CurrentWorker;
use crate::partition::{Dispatch, Partition};
use crate::port::Port;
use crate::word::Word;
use crate::word_cell::WordCell;
use crate::worker::Worker;

/// Bits of a priority-inheritance futex that identify its owner (`FUTEX_TID_MASK`).
const THREAD: u32 = 0x3fff_ffff;

impl<P: Port> Partition<P> {
    /// Blocks until `mine` holds for the word. It may no longer hold when this returns.
    #[cold]
    pub(crate) fn wait_for_word(&self, me: CurrentWorker, mine: impl Fn(Word) -> bool) {
        if !self.register(&mine) {
            return;
        }
        loop {
            // Acquire, and read before the word: a thread that vacates a level still visible in the
            // word increments `changes` later.
            let seen = self.changes.load(Ordering::Acquire);
            let word = self.load(Ordering::Relaxed);
            if mine(word) {
                break;
            }
            if self.boost_holder(me, word.level()) != Boost::Retry {
                self.port().wait_while(&self.changes, seen);
            }
        }
        self.deregister();
    }

    /// Boosts the holder of the top level once, if `level` is ready and cannot start, the calling
    /// thread is real-time, and the holder is not.
    ///
    /// Returns `true` if it waited, so that the caller checks again. This protects `idle`, an
    /// ordinary thread, from being preempted in a critical section that a worker needs. For a
    /// thread that has released a job of `level` and has its priority, before it sleeps. If another
    /// level waits for such a holder, that level's worker is woken to do the same: a job that this
    /// thread has run may have left the level waiting.
    ///
    /// Real-time safety: blocks in the kernel until the holder has left its critical section;
    /// otherwise a few instructions, or a wake.
    #[inline]
    pub fn boost_ordinary_holder(&self, me: CurrentWorker, level: u8) -> bool {
        // Usually no level waits.
        self.load(Ordering::Relaxed).highest_ready() != 0 && self.boost_for_ready(me, level)
    }

    /// [`boost_ordinary_holder`](Self::boost_ordinary_holder) if a level is ready.
    #[inline(never)]
    fn boost_for_ready(&self, me: CurrentWorker, level: u8) -> bool {
        let blocked = |word: Word| word.is_ready(level) && word.level() >= level;
        let seen = self.changes.load(Ordering::Acquire);
        // A first check; registering repeats it.
        let word = self.load(Ordering::Relaxed);
        if !me.is_real_time() {
            return false;
        }
        if !blocked(word) {
            self.wake_to_boost(word);
            return false;
        }
        if self.holder(me, word.level()).is_none_or(Worker::is_real_time) {
            return false;
        }
        if !self.register(&|word| !blocked(word)) {
            return true;
        }
        let boost = self.boost_holder(me, word.level());
        if boost == Boost::InTransit {
            self.port().wait_while(&self.changes, seen);
        }
        self.deregister();
        boost != Boost::Refused
    }

    /// Boosts an ordinary thread that blocks the job just queued: wakes the worker of the job's
    /// level, which boosts the holder. For a thread that lacks the job's priority.
    ///
    /// Real-time safety: a few instructions, or a wake.
    #[inline]
    pub fn boost_for_queued(&self) {
        // In a polled partition no thread sleeps, and the word stays in the cache of its CPU.
        if !self.dispatch.polls() {
            self.wake_to_boost(self.load(Ordering::Relaxed));
        }
    }

    /// Wakes the worker of the highest ready level if that level is blocked by an ordinary thread,
    /// or by a thread that has not recorded its level yet. That worker boosts the holder, or finds
    /// that no boost is needed; no invariant depends on which thread is woken.
    #[inline]
    fn wake_to_boost(&self, word: Word) {
        let ready = word.highest_ready();
        if ready == 0 || ready > word.level() {
            return;
        }
        let worker = self.level(ready).worker();
        let is_real_time = |w: &&Worker| w.holds(word.level()) && w.is_real_time();
        if worker.is_real_time() && !self.workers().iter().any(is_real_time) {
            self.port().wake(worker);
        }
    }

    /// Wakes all waiters, after vacating a level.
    #[cold]
    pub(crate) fn release_waiters(&self, me: CurrentWorker) {
        // Pairs with the fence in `boost_holder`. Also ensures that a thread that sees the new
        // `changes` sees the vacated word.
        fence(Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.port().wake_all(&self.changes);
        let owner = me.boost.load(Ordering::Relaxed) & THREAD;
        if owner != 0 && owner == me.thread() {
            self.port().unboost(&me.boost);
        }
    }

    /// Registers this thread as a waiter, in the same step that finds that it has to wait.
    fn register(&self, mine: &impl Fn(Word) -> bool) -> bool {
        let mut word = self.load(Ordering::Relaxed);
        loop {
            if mine(word) {
                return false;
            }
            // The count cannot overflow: only workers wait, and a partition has at most 254.
            let registered = Word::from_raw(word.raw() + Word::ONE_WAITER);
            // Acquire: a holder that vacated before this has cleared its bit in `held`.
            match self.swap(word, registered, Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
    }

    fn deregister(&self) {
        self.word_cell().fetch_sub(Word::ONE_WAITER, Ordering::Relaxed);
    }

    fn holder(&self, me: CurrentWorker, level: u8) -> Option<&'static Worker> {
        self.workers().iter().copied().find(|w| !me.is(w) && w.holds(level))
    }

    /// Boosts the holder of `level` once, and waits for it. The caller is registered, and has read
    /// `changes` before.
    fn boost_holder(&self, me: CurrentWorker, level: u8) -> Boost {
        let Some(holder) = self.holder(me, level) else { return Boost::Refused };
        let owner = holder.thread();
        if owner == 0 {
            return Boost::Refused;
        }
        let written = holder.boost.compare_exchange(0, owner, Ordering::Relaxed, Ordering::Relaxed);
        if written.is_err_and(|boost| boost & THREAD != owner) {
            return Boost::InTransit;
        }
        // Pairs with the fence in `release_waiters`.
        fence(Ordering::SeqCst);
        if !holder.holds(level) {
            // The holder may have checked already. If the exchange fails, another waiter has
            // entered the kernel with the word, and that waiter has seen the holder's bit.
            let _ = holder.boost.compare_exchange(owner, 0, Ordering::Relaxed, Ordering::Relaxed);
            return Boost::Retry;
        }
        if !self.port().boost(&holder.boost) {
            return Boost::Refused;
        }
        self.port().unboost(&holder.boost);
        // For the waiters that found `boost` in transit.
        self.changes.fetch_add(1, Ordering::Release);
        self.port().wake_all(&self.changes);
        Boost::Retry
    }
}

/// The result of [`boost_holder`](Partition::boost_holder).
#[derive(PartialEq, Eq)]
enum Boost {
    /// The holder has vacated a level or is about to: check again.
    Retry,
    /// Another waiter owns `boost`, and increments `changes` when it releases it.
    InTransit,
    /// The holder is unknown, or the platform has no priority inheritance.
    Refused,
}

/// Counts the changes of the word that waiters have to observe; a futex.
pub(crate) type EventCount = AtomicU32;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

    use super::*;
    use crate::word::bit;
    use crate::{Instant, Level, Node, Preemption};
    use crate::{Jobs, Queue, Stamp};

    /// Records the calls.
    #[derive(Debug, Default)]
    struct Kernel {
        asked: Mutex<Vec<&'static str>>,
        refuses: AtomicBool,
        /// The address of the word that is boosted, or 0.
        boosted: AtomicUsize,
        /// A partition and the bits of its word that other threads clear while a thread waits.
        vacated: Mutex<Option<(&'static Partition<Kernel>, u64)>>,
    }

    impl Kernel {
        fn asked(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.asked.lock().unwrap())
        }

        fn note(&self, what: &'static str) {
            self.asked.lock().unwrap().push(what);
        }
    }

    impl Port for Kernel {
        type Word = AtomicU64;

        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {
            self.note("wake");
        }
        fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
            false
        }
        fn wait_while(&self, _: &AtomicU32, _: u32) {
            self.note("wait_while");
            assert!(self.asked.lock().unwrap().len() < 9, "the waiter loops without a change");
            if let Some((partition, bits)) = self.vacated.lock().unwrap().take() {
                partition.word_cell().fetch_and(!bits, Ordering::Relaxed);
            }
        }
        fn wake_all(&self, _: &AtomicU32) {
            self.note("wake_all");
        }
        fn boost(&self, word: &AtomicU32) -> bool {
            self.note("boost");
            self.boosted.store(core::ptr::from_ref(word).addr(), Ordering::Relaxed);
            !self.refuses.load(Ordering::Relaxed)
        }
        fn unboost(&self, word: &AtomicU32) {
            self.note("unboost");
            let boosted = self.boosted.swap(0, Ordering::Relaxed);
            assert!(
                boosted == 0 || boosted == core::ptr::from_ref(word).addr(),
                "a different word was boosted"
            );
        }
    }

    const HOLDER: u32 = 7;
    const WAITER: u32 = 8;
    const ANOTHER: u32 = 9;

    /// Runs `test` while a job of level 1 runs on the holder's thread; the test owns both workers.
    fn with_holder(
        test: impl FnOnce(&'static Partition<Kernel>, CurrentWorker, CurrentWorker, Preemption<Kernel>),
    ) {
        let jobs = Jobs::of(&|_, _, _| None);
        let leak = |base| &*Box::leak(Box::new(Worker::new(base)));
        let workers: &'static [&'static Worker] = vec![leak(1), leak(2)].leak();
        let queue = Box::leak(Box::new(Queue::new()));
        let level = &*Box::leak(Box::new(Level::new(1, workers[0], queue, &[], &[], jobs)));
        // SAFETY: the levels and workers are new, so no other partition has them.
        let partition = unsafe { Partition::new(Kernel::default(), vec![level].leak(), workers) };
        let partition = &*Box::leak(Box::new(partition));
        // SAFETY: there is one thread.
        let [holder, waiter] = [0, 1].map(|index| unsafe { CurrentWorker::new(workers[index]) });
        holder.enter(HOLDER, true);
        waiter.enter(WAITER, true);
        holder.allow_calls(true);
        // SAFETY: the level is the partition's, and this is the only preemption.
        let job = unsafe { partition.preempt(holder, level) }.unwrap();
        test(partition, holder, waiter, job);
    }

    fn changes(partition: &Partition<Kernel>) -> u32 {
        partition.changes.load(Ordering::Relaxed)
    }

    #[test]
    fn unboosting_wakes_waiters_that_saw_boost_in_transit() {
        with_holder(|partition, holder, waiter, _job| {
            assert!(partition.boost_holder(waiter, 1) == Boost::Retry);
            assert_eq!(partition.port().asked(), ["boost", "unboost", "wake_all"]);
            assert_eq!((changes(partition), holder.boost.load(Ordering::Relaxed)), (1, HOLDER));
            holder.boost.store(ANOTHER, Ordering::Relaxed);
            assert!(partition.boost_holder(waiter, 1) == Boost::InTransit);
            assert_eq!((partition.port().asked(), changes(partition)), (vec![], 1));
        });
    }

    #[test]
    fn waits_without_boost_if_holder_is_unknown() {
        with_holder(|partition, holder, waiter, _job| {
            assert!(partition.boost_holder(waiter, 2) == Boost::Refused, "level 2 is free");
            assert!(partition.boost_holder(holder, 1) == Boost::Refused, "a thread does not boost itself");
            assert_eq!(partition.port().asked(), [""; 0]);
            partition.port().refuses.store(true, Ordering::Relaxed);
            assert!(partition.boost_holder(waiter, 1) == Boost::Refused);
            assert_eq!((partition.port().asked(), changes(partition)), (vec!["boost"], 0));
        });
    }

    #[test]
    fn joins_a_waiter_in_the_kernel() {
        const WAITERS: u32 = 0x8000_0000;
        with_holder(|partition, holder, waiter, _job| {
            holder.boost.store(HOLDER | WAITERS, Ordering::Relaxed);
            assert!(partition.boost_holder(waiter, 1) == Boost::Retry);
            assert_eq!(partition.port().asked(), ["boost", "unboost", "wake_all"]);
        });
    }

    #[test]
    fn does_not_boost_thread_without_tid() {
        with_holder(|partition, holder, waiter, _job| {
            holder.worker().thread.store(0, Ordering::Relaxed);
            assert!(partition.boost_holder(waiter, 1) == Boost::Refused);
            partition.release_waiters(holder);
            assert_eq!(partition.port().asked(), ["wake_all"]);
        });
    }

    #[test]
    fn boosts_ordinary_holder_only_from_real_time_thread() {
        with_holder(|partition, holder, waiter, _job| {
            let boost = |level| {
                let boosted = partition.boost_ordinary_holder(waiter, level);
                assert_eq!(partition.snapshot().waiters(), 0, "no waiter is left");
                (boosted, partition.port().asked())
            };
            let real_time = |me: CurrentWorker, is| me.worker().real_time.store(is, Ordering::Relaxed);
            real_time(holder, false);
            assert_eq!(boost(1), (false, vec![]), "no job waits");
            partition.mark_ready(partition.levels()[0]);
            let calls = vec!["boost", "unboost", "wake_all"];
            assert_eq!(boost(1), (true, calls.clone()));
            assert_eq!(boost(2), (false, vec![]), "no job waits at level 2");
            partition.word_cell().fetch_or(Word::ready_bit(2), Ordering::Relaxed);
            assert_eq!(boost(2), (false, vec![]), "the level can start");
            partition.word_cell().fetch_and(!Word::ready_bit(2), Ordering::Relaxed);
            real_time(holder, true);
            assert_eq!(boost(1), (false, vec![]), "the holder has its level's priority");
            real_time(holder, false);
            real_time(waiter, false);
            assert_eq!(boost(1), (false, vec![]), "the waiter has no real-time priority");
            real_time(waiter, true);
            holder.boost.store(ANOTHER, Ordering::Relaxed);
            assert_eq!(boost(1), (true, vec!["wait_while"]), "the futex is in transit");
            holder.boost.store(0, Ordering::Relaxed);
            partition.port().refuses.store(true, Ordering::Relaxed);
            assert_eq!(boost(1), (false, vec!["boost"]));
        });
    }

    #[test]
    fn wakes_worker_of_level_that_waits_for_ordinary_thread() {
        let jobs = Jobs::of(&|_, _, _| None);
        let workers: &'static [&'static Worker] =
            [0, 1, 2].map(|base| &*Box::leak(Box::new(Worker::new(base)))).to_vec().leak();
        let queue = Box::leak(Box::new(Queue::new()));
        let level = &*Box::leak(Box::new(Level::new(1, workers[1], queue, &[], &[], jobs)));
        // SAFETY: the levels and workers are new, so no other partition has them.
        let partition = unsafe { Partition::new(Kernel::default(), vec![level].leak(), workers) };
        let partition: &'static Partition<Kernel> = Box::leak(Box::new(partition));
        // SAFETY: there is one thread.
        let [idle, worker, above] = [0, 1, 2].map(|index| unsafe { CurrentWorker::new(workers[index]) });
        idle.enter(HOLDER, false);
        worker.enter(WAITER, true);
        above.enter(ANOTHER, true);
        let queued = || {
            partition.boost_for_queued();
            partition.port().asked()
        };
        let set = |flag: &AtomicBool, is| flag.store(is, Ordering::Relaxed);
        partition.raise(idle, 1);
        assert_eq!(queued(), [""; 0], "no job waits");
        partition.mark_ready(level);
        assert_eq!(queued(), ["wake"]);
        assert!(!partition.boost_ordinary_holder(above, 2));
        assert_eq!(partition.port().asked(), ["wake"], "a thread of another level wakes the worker");
        set(&worker.worker().real_time, false);
        assert_eq!(queued(), [""; 0], "the worker has no priority to lend");
        set(&worker.worker().real_time, true);
        set(&idle.worker().real_time, true);
        assert_eq!(queued(), [""; 0], "the holder has a priority");
        set(&idle.worker().real_time, false);
        partition.begin_polling();
        assert_eq!(queued(), [""; 0], "the partition is polled");
        partition.dispatch.reset();
        partition.lower(idle, 1);
        assert_eq!(partition.port().asked(), ["wake"], "woken to run the job");
        assert_eq!(queued(), [""; 0], "the level can start");
    }

    /// A job that runs after a wake in the kernel starts later than the preceding job ended.
    #[test]
    fn rereads_clock_after_waking_waiters() {
        static STAMPS: Mutex<Vec<Option<u64>>> = Mutex::new(Vec::new());
        let jobs = Jobs::of(&|_, _, now: Stamp| {
            STAMPS.lock().unwrap().push(now.map(|now| now.as_ticks()));
            Some(Instant::from_ticks(5))
        });
        let queue = || &*Box::leak(Box::new(Queue::new()));
        let nodes = || &*vec![Node::new()].leak();
        let worker = &*Box::leak(Box::new(Worker::new(1)));
        let [one, two, three] = [1, 2, 3]
            .map(|number| &*Box::leak(Box::new(Level::new(number, worker, queue(), nodes(), &[], jobs))));
        // SAFETY: the levels and workers are new, so no other partition has them.
        let partition =
            unsafe { Partition::new(Kernel::default(), vec![one, two, three].leak(), vec![worker].leak()) };
        let partition = &*Box::leak(Box::new(partition));
        // SAFETY: there is one thread.
        let me = unsafe { CurrentWorker::new(worker) };
        me.allow_calls(true);
        // The start times passed to the jobs of levels 2 and 1 that are queued while a job of level
        // 3 runs.
        let stamps = || {
            let job = || {
                for level in [one, two] {
                    // SAFETY: the level is the partition's, and its only node is in no queue.
                    unsafe { partition.spawn(me, level, 0) };
                }
                Some(Instant::from_ticks(4))
            };
            // SAFETY: the level is the partition's.
            assert!(unsafe { partition.call(me, three, job) }.is_ok());
            std::mem::take(&mut *STAMPS.lock().unwrap())
        };
        assert_eq!(stamps(), [Some(4), Some(5)]);
        partition.word_cell().fetch_sub(Word::ONE_WAITER.wrapping_neg(), Ordering::Relaxed);
        assert_eq!(stamps(), [None, None], "a thread waits");
    }

    #[test]
    fn stopping_worker_waits_for_job_of_its_level() {
        with_holder(|partition, _, waiter, job| {
            let level = partition.levels()[0];
            partition.mark_ready(level);
            let port = partition.port();
            port.refuses.store(true, Ordering::Relaxed);
            // The job serves the level, and ends.
            let bits = Word::ready_bit(1) | u64::from(bit(1));
            *port.vacated.lock().unwrap() = Some((partition, bits));
            partition.finish(waiter, level);
            assert_eq!(port.asked(), ["boost", "wait_while"], "it sleeps once");
            std::mem::forget(job);
        });
    }

    #[test]
    fn stopping_worker_ignores_job_that_left_its_level() {
        with_holder(|partition, _, waiter, job| {
            let level = partition.levels()[0];
            partition.mark_ready(level);
            let port = partition.port();
            port.refuses.store(true, Ordering::Relaxed);
            // The job serves the level, and continues.
            *port.vacated.lock().unwrap() = Some((partition, Word::ready_bit(1)));
            partition.finish(waiter, level);
            assert_eq!(port.asked(), ["boost", "wait_while"]);
            std::mem::forget(job);
        });
    }

    #[test]
    fn counts_only_waiting_threads() {
        with_holder(|partition, _, waiter, _job| {
            let waiters = || partition.snapshot().waiters();
            partition.wait_for_word(waiter, |_| true);
            assert!(!partition.register(&|_| true));
            assert_eq!(waiters(), 0);
            assert!(partition.register(&|_| false));
            assert_eq!(waiters(), 1);
            partition.deregister();
            assert_eq!(waiters(), 0);
        });
    }

    #[test]
    fn releases_only_its_own_boost() {
        with_holder(|partition, holder, _, _job| {
            for (boost, asked) in
                [(0, vec!["wake_all"]), (HOLDER, vec!["wake_all", "unboost"]), (ANOTHER, vec!["wake_all"])]
            {
                holder.boost.store(boost, Ordering::Relaxed);
                partition.release_waiters(holder);
                assert_eq!(partition.port().asked(), asked, "{boost}");
            }
            assert_eq!(changes(partition), 3);
        });
    }
}
