//! Waiting for one's turn, and lending one's priority to whoever has it.
//!
//! Jobs that do not suspend themselves never get here: on one CPU the thread at the top is the one that
//! runs. A thread finds somebody above itself only if that somebody sleeps in the kernel in the middle of
//! a job, or if the threads run in parallel because they lack their real-time policy or their CPU.
//!
//! A waiting thread registers in the partition's word. Whoever vacates a level while somebody is
//! registered bumps `turn` and wakes all of them; each looks again for itself. That alone is enough for
//! safety and progress. On top of it the waiter lends its priority:
//!
//! * Each worker has a priority-inheritance futex word, `lent`, normally 0. The *waiter* writes the
//!   holder's thread identity into it, which makes the holder its owner as far as the kernel knows, and
//!   then waits for it, which boosts the holder. The holder pays nothing until it vacates a level with
//!   waiters registered; then it releases `lent` if it finds itself the owner.
//! * The waiter must not wait on a thread that will never look. A worker clears its bit in `held` *before*
//!   it vacates the level. So: the waiter registers, finds a holder, writes `lent`, and *then* checks that
//!   the holder's bit is still set. If it is, the holder's vacating lies ahead. It will see the
//!   registration, because both are operations on the word, and it will see `lent`, because of the two
//!   sequentially consistent fences: one of the two sides must see the other's write.
//! * If a holder cannot be told (it has won the level and not yet said so), the waiter waits plainly.
//! * When the holder releases `lent`, the kernel hands it from waiter to waiter, and each lets go of it at once.
//!   As long as it is on its way, waiting for it would lend nothing to the holder. Worse, the kernel lets a
//!   waiter of high priority take it from one of low priority that has been given it and has not run yet; on
//!   one CPU the first would take it again and again, and neither the second nor the holder would ever run. So
//!   a waiter that finds it on its way waits plainly, and whoever lets go of it bumps `turn`.
//!
//! L. Sha, R. Rajkumar, J. P. Lehoczky, *Priority inheritance protocols*, IEEE Trans. Computers 39(9),
//! 1990, section III, is the protocol the kernel runs on `lent`.

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::current::CurrentWorker;
use crate::partition::Partition;
use crate::port::Port;
use crate::word::Word;
use crate::worker::Worker;

/// Bits of a priority-inheritance futex that identify its owner (`FUTEX_TID_MASK`).
const THREAD: u32 = 0x3fff_ffff;

impl<P: Port> Partition<P> {
    /// Blocks until `mine` holds of the word. It may stop holding by the time this returns.
    #[cold]
    pub(crate) fn await_turn(&self, me: CurrentWorker, mine: impl Fn(Word) -> bool) {
        if !self.register(&mine) {
            return;
        }
        loop {
            // Acquire, and read before the word: a vacating that the word does not show yet bumps `turn` after this.
            let seen = self.turn.load(Ordering::Acquire);
            let word = self.load(Ordering::Relaxed);
            if mine(word) {
                break;
            }
            if self.lend_to_holder(me, word.level()) != Lending::LookAgain {
                self.port().wait_turn(&self.turn, seen);
            }
        }
        self.deregister();
    }

    /// Lends this real-time thread's priority, once, to a holder of the top that has no such priority.
    ///
    /// Returns whether it waited, so that the caller looks again. This is what keeps `idle`, an ordinary
    /// thread, from being held up in a critical section that a worker needs.
    pub(crate) fn lend_to_ordinary_holder(&self, me: CurrentWorker, level: u8) -> bool {
        let blocked = |word: Word| word.is_ready(level) && word.level() >= level;
        let seen = self.turn.load(Ordering::Acquire);
        // To begin with; registering looks again.
        let word = self.load(Ordering::Relaxed);
        if !me.is_real_time() || !blocked(word) {
            return false;
        }
        if self.holder(me, word.level()).is_none_or(Worker::is_real_time) {
            return false;
        }
        if !self.register(&|word| !blocked(word)) {
            return true;
        }
        let lending = self.lend_to_holder(me, word.level());
        if lending == Lending::OnItsWay {
            self.port().wait_turn(&self.turn, seen);
        }
        self.deregister();
        lending != Lending::Refused
    }

    /// Releases those who wait, after vacating a level.
    #[cold]
    pub(crate) fn release_waiters(&self, me: CurrentWorker) {
        // Pairs with the fence in `lend_to_holder`. It also lets who sees the new `turn` see the word that was left.
        fence(Ordering::SeqCst);
        self.turn.fetch_add(1, Ordering::Relaxed);
        self.port().wake_turn(&self.turn);
        let owner = me.lent.load(Ordering::Relaxed) & THREAD;
        if owner != 0 && owner == me.thread() {
            self.port().repay(&me.lent);
        }
    }

    /// Counts this thread as waiting, in the same step in which it is seen that it has to.
    fn register(&self, mine: &impl Fn(Word) -> bool) -> bool {
        let mut word = self.load(Ordering::Relaxed);
        loop {
            if mine(word) {
                return false;
            }
            // The count has room: only workers wait, of which a partition has at most 254.
            let registered = Word::from_raw(word.raw() + Word::ONE_WAITER);
            // Acquire: a holder that vacated before this has cleared its bit in `held`.
            match self.swap(word, registered, Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
    }

    fn deregister(&self) {
        self.word().fetch_sub(Word::ONE_WAITER, Ordering::Relaxed);
    }

    fn holder(&self, me: CurrentWorker, level: u8) -> Option<&'static Worker> {
        self.workers().iter().copied().find(|w| !me.is(w) && w.holds(level))
    }

    /// Waits once for the holder of `level` with this thread's priority. The caller is registered, and has read
    /// `turn` before.
    fn lend_to_holder(&self, me: CurrentWorker, level: u8) -> Lending {
        let Some(holder) = self.holder(me, level) else { return Lending::Refused };
        let owner = holder.thread();
        if owner == 0 {
            return Lending::Refused;
        }
        let written = holder.lent.compare_exchange(0, owner, Ordering::Relaxed, Ordering::Relaxed);
        if written.is_err_and(|lent| lent & THREAD != owner) {
            return Lending::OnItsWay;
        }
        // Pairs with the fence in `release_waiters`.
        fence(Ordering::SeqCst);
        if !holder.holds(level) {
            // Perhaps too late for the holder to see it. If another waiter has gone to the kernel with
            // it, it is not ours to take back, and that waiter has seen the holder's bit.
            let _ = holder.lent.compare_exchange(owner, 0, Ordering::Relaxed, Ordering::Relaxed);
            return Lending::LookAgain;
        }
        if !self.port().lend(&holder.lent) {
            return Lending::Refused;
        }
        self.port().repay(&holder.lent);
        // For those that found it on its way.
        self.turn.fetch_add(1, Ordering::Release);
        self.port().wake_turn(&self.turn);
        Lending::LookAgain
    }
}

/// What came of lending one's priority.
#[derive(PartialEq, Eq)]
enum Lending {
    /// The holder has vacated something, or is about to.
    LookAgain,
    /// `lent` is another waiter's, who bumps `turn` when it lets go of it.
    OnItsWay,
    /// The holder cannot be told, or the platform lends nothing.
    Refused,
}

/// The counter that a plain wait waits on.
pub(crate) type Turn = AtomicU32;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::level::RunJob;
    use crate::word::bit;
    use crate::{Instant, Level, Node, Preemption};

    /// Notes what is asked of it.
    #[derive(Debug, Default)]
    struct Kernel {
        asked: Mutex<Vec<&'static str>>,
        refuses: AtomicBool,
        /// The words of a partition that others change while somebody waits.
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
        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, _: Option<Instant>) {}
        fn wait_turn(&self, _: &AtomicU32, _: u32) {
            self.note("wait_turn");
            if let Some((partition, bits)) = self.vacated.lock().unwrap().take() {
                partition.word().fetch_and(!bits, Ordering::Relaxed);
            }
        }
        fn wake_turn(&self, _: &AtomicU32) {
            self.note("wake_turn");
        }
        fn lend(&self, _: &AtomicU32) -> bool {
            self.note("lend");
            !self.refuses.load(Ordering::Relaxed)
        }
        fn repay(&self, _: &AtomicU32) {
            self.note("repay");
        }
    }

    const HOLDER: u32 = 7;
    const WAITER: u32 = 8;
    const ANOTHER: u32 = 9;

    /// A job of level 1 runs on the holder's thread; both workers are the test's.
    fn with_holder(
        test: impl FnOnce(&'static Partition<Kernel>, CurrentWorker, CurrentWorker, Preemption<Kernel>),
    ) {
        let run: &RunJob = &|_, _, _| None;
        let leak = |base| &*Box::leak(Box::new(Worker::new(base)));
        let workers: &'static [&'static Worker] = vec![leak(1), leak(2)].leak();
        let level = &*Box::leak(Box::new(Level::new(1, workers[0], &[], &[], run)));
        // SAFETY: they are new, and so in no other partition.
        let partition = unsafe { Partition::new(Kernel::default(), vec![level].leak(), workers) };
        let partition = &*Box::leak(Box::new(partition));
        // SAFETY: there is one thread.
        let [holder, waiter] = [0, 1].map(|index| unsafe { CurrentWorker::new(workers[index]) });
        holder.enter(HOLDER, true);
        waiter.enter(WAITER, true);
        holder.allow_calls(true);
        // SAFETY: it is the partition's level, and the only preemption.
        let job = unsafe { partition.preempt(holder, level) }.unwrap();
        test(partition, holder, waiter, job);
    }

    fn turn(partition: &Partition<Kernel>) -> u32 {
        partition.turn.load(Ordering::Relaxed)
    }

    #[test]
    fn who_gives_a_loan_back_tells_those_that_found_it_on_its_way() {
        with_holder(|partition, holder, waiter, _job| {
            assert!(partition.lend_to_holder(waiter, 1) == Lending::LookAgain);
            assert_eq!(partition.port().asked(), ["lend", "repay", "wake_turn"]);
            assert_eq!((turn(partition), holder.lent.load(Ordering::Relaxed)), (1, HOLDER));
            holder.lent.store(ANOTHER, Ordering::Relaxed);
            assert!(partition.lend_to_holder(waiter, 1) == Lending::OnItsWay);
            assert_eq!((partition.port().asked(), turn(partition)), (vec![], 1));
        });
    }

    #[test]
    fn a_holder_that_cannot_be_told_is_waited_for_plainly() {
        with_holder(|partition, holder, waiter, _job| {
            assert!(partition.lend_to_holder(waiter, 2) == Lending::Refused, "nobody holds level 2");
            assert!(
                partition.lend_to_holder(holder, 1) == Lending::Refused,
                "a thread does not lend to itself"
            );
            assert_eq!(partition.port().asked(), [""; 0]);
            partition.port().refuses.store(true, Ordering::Relaxed);
            assert!(partition.lend_to_holder(waiter, 1) == Lending::Refused);
            assert_eq!((partition.port().asked(), turn(partition)), (vec!["lend"], 0));
        });
    }

    #[test]
    fn who_waits_in_the_kernel_is_joined_there() {
        const WAITERS: u32 = 0x8000_0000;
        with_holder(|partition, holder, waiter, _job| {
            holder.lent.store(HOLDER | WAITERS, Ordering::Relaxed);
            assert!(partition.lend_to_holder(waiter, 1) == Lending::LookAgain);
            assert_eq!(partition.port().asked(), ["lend", "repay", "wake_turn"]);
        });
    }

    #[test]
    fn a_thread_that_the_kernel_does_not_know_is_lent_nothing() {
        with_holder(|partition, holder, waiter, _job| {
            holder.worker().thread.store(0, Ordering::Relaxed);
            assert!(partition.lend_to_holder(waiter, 1) == Lending::Refused);
            partition.release_waiters(holder);
            assert_eq!(partition.port().asked(), ["wake_turn"]);
        });
    }

    #[test]
    fn a_real_time_thread_lends_to_an_ordinary_one_above() {
        with_holder(|partition, holder, waiter, _job| {
            let lend = |level| {
                let lent = partition.lend_to_ordinary_holder(waiter, level);
                assert_eq!(partition.snapshot().waiters(), 0, "it does not wait any more");
                (lent, partition.port().asked())
            };
            let real_time = |me: CurrentWorker, is| me.worker().real_time.store(is, Ordering::Relaxed);
            real_time(holder, false);
            assert_eq!(lend(1), (false, vec![]), "no job waits");
            partition.mark_ready(partition.levels()[0]);
            let loan = vec!["lend", "repay", "wake_turn"];
            assert_eq!(lend(1), (true, loan.clone()));
            assert_eq!(lend(2), (false, vec![]), "no job waits there");
            partition.word().fetch_or(Word::ready_bit(2), Ordering::Relaxed);
            assert_eq!(lend(2), (false, vec![]), "nobody is above");
            partition.word().fetch_and(!Word::ready_bit(2), Ordering::Relaxed);
            real_time(holder, true);
            assert_eq!(lend(1), (false, vec![]), "it has the priority of its own level");
            real_time(holder, false);
            real_time(waiter, false);
            assert_eq!(lend(1), (false, vec![]), "there is nothing to lend");
            real_time(waiter, true);
            holder.lent.store(ANOTHER, Ordering::Relaxed);
            assert_eq!(lend(1), (true, vec!["wait_turn"]), "it is on its way");
            holder.lent.store(0, Ordering::Relaxed);
            partition.port().refuses.store(true, Ordering::Relaxed);
            assert_eq!(lend(1), (false, vec!["lend"]));
        });
    }

    /// What follows a wake in the kernel starts later than the job before has ended.
    #[test]
    fn a_reading_of_the_clock_is_not_kept_across_a_wake() {
        static STAMPS: Mutex<Vec<Option<u64>>> = Mutex::new(Vec::new());
        let run: &RunJob = &|_, _, now| {
            STAMPS.lock().unwrap().push(now.map(|now| now.as_ticks()));
            Some(Instant::from_ticks(5))
        };
        let nodes = || &*vec![Node::new()].leak();
        let worker = &*Box::leak(Box::new(Worker::new(1)));
        let [one, two, three] =
            [1, 2, 3].map(|number| &*Box::leak(Box::new(Level::new(number, worker, nodes(), &[], run))));
        // SAFETY: they are new, and so in no other partition.
        let partition =
            unsafe { Partition::new(Kernel::default(), vec![one, two, three].leak(), vec![worker].leak()) };
        let partition = &*Box::leak(Box::new(partition));
        // SAFETY: there is one thread.
        let me = unsafe { CurrentWorker::new(worker) };
        me.allow_calls(true);
        // What the jobs of levels 2 and 1 are told that are queued while one of level 3 runs.
        let stamps = || {
            let job = || {
                for level in [one, two] {
                    // SAFETY: it is the partition's, and its one node is in no queue.
                    unsafe { partition.spawn(me, level, 0) };
                }
                Some(Instant::from_ticks(4))
            };
            // SAFETY: the level is the partition's.
            assert!(unsafe { partition.call(me, three, job) }.is_ok());
            std::mem::take(&mut *STAMPS.lock().unwrap())
        };
        assert_eq!(stamps(), [Some(4), Some(5)]);
        partition.word().fetch_add(Word::ONE_WAITER, Ordering::Relaxed);
        assert_eq!(stamps(), [None, None], "somebody waits for its turn");
    }

    #[test]
    fn who_ends_waits_for_the_job_of_its_level() {
        with_holder(|partition, _, waiter, job| {
            let level = partition.levels()[0];
            partition.mark_ready(level);
            let port = partition.port();
            port.refuses.store(true, Ordering::Relaxed);
            // The job runs what is ready, and ends.
            let bits = Word::ready_bit(1) | u64::from(bit(1));
            *port.vacated.lock().unwrap() = Some((partition, bits));
            partition.finish(waiter, level);
            assert_eq!(port.asked(), ["lend", "wait_turn"], "it sleeps meanwhile, once");
            std::mem::forget(job);
        });
    }

    #[test]
    fn only_who_has_to_wait_is_counted() {
        with_holder(|partition, _, waiter, _job| {
            let waiters = || partition.snapshot().waiters();
            partition.await_turn(waiter, |_| true);
            assert!(!partition.register(&|_| true));
            assert_eq!(waiters(), 0);
            assert!(partition.register(&|_| false));
            assert_eq!(waiters(), 1);
            partition.deregister();
            assert_eq!(waiters(), 0);
        });
    }

    #[test]
    fn a_thread_gives_back_only_what_it_was_lent() {
        with_holder(|partition, holder, _, _job| {
            for (lent, asked) in
                [(0, vec!["wake_turn"]), (HOLDER, vec!["wake_turn", "repay"]), (ANOTHER, vec!["wake_turn"])]
            {
                holder.lent.store(lent, Ordering::Relaxed);
                partition.release_waiters(holder);
                assert_eq!(partition.port().asked(), asked, "{lent}");
            }
            assert_eq!(turn(partition), 3);
        });
    }
}
