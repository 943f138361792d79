//! What is remembered of each thread, and the table of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::cpu::HandlerFrame;
use super::history::{State, ThreadHistory};
use super::job::{JobKind, ReleasedBy, Waker};
use super::open::Open;
use crate::event::Tid;

/// Changes remembered of each thread, to say what a lock's holder did.
const MAX_STATE_CHANGES: usize = 32;
/// FutexWait remembered of each thread, to follow chains of holders.
const MAX_WAITS: usize = 4;
/// How many threads are found without the table of all.
const CACHED: usize = 1 << 9;

/// A wake-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) waker: Waker,
    /// Earliest and latest release, if a timer's expiry says so.
    pub(crate) nominal: Option<(u64, u64)>,
    pub(crate) by: ReleasedBy,
}

/// A wait for a lock that another thread held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Who held it at first.
    pub(crate) holder: Tid,
    /// Who handed it over at the end; 0 if that is not known.
    pub(crate) releaser: Tid,
    /// When the former passed it on to the latter, if they are two and inheritance showed it.
    pub(crate) passed: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: Tid,
    pub(crate) priority: i32,
    pub(crate) cpu: u16,
    pub(crate) state: State,
    /// Since when.
    pub(crate) since: u64,
    /// Runs on an inherited priority.
    pub(crate) boosted: bool,
    /// When it last gave one back.
    pub(crate) deboosted: u64,
    /// Chosen by its number or name.
    pub(crate) chosen: bool,
    /// Was started by a thread that the choice is restricted to, or by what such a one started.
    pub(crate) descends: bool,
    pub(crate) kind: JobKind,
    /// Runs softirqs for a living: they are its own execution.
    pub(crate) softirqs: bool,
    /// It marks its jobs, so its wake-ups alone are none.
    pub(crate) marks: bool,
    /// A wake-up that came before the thread slept: the kernel decides under a lock, the trace shows it in any order.
    pub(crate) early: Option<Wake>,
    /// Is in a futex call that can wait, or contends for a lock of the kernel.
    pub(crate) in_lock: bool,
    /// Is in any futex call.
    pub(crate) futex_entered: bool,
    /// Who got this thread's priority as it went to wait.
    pub(crate) boosted_holder: Option<Tid>,
    pub(crate) history: ThreadHistory,
    pub(crate) waits: [Wait; MAX_WAITS],
    pub(crate) next_wait: usize,
    /// A softirq that was displaced together with the thread, as PREEMPT_RT allows.
    pub(crate) parked: Option<Box<HandlerFrame>>,
    /// The job, for threads whose jobs are wanted.
    pub(crate) open: Option<Box<Open>>,
    /// Jobs that called this one on the same thread.
    pub(crate) outer: Vec<Open>,
}

impl Thread {
    fn new(tid: Tid) -> Self {
        Self {
            tid,
            priority: 120,
            cpu: 0,
            state: State::Unknown,
            since: 0,
            boosted: false,
            deboosted: 0,
            chosen: false,
            descends: false,
            kind: JobKind::Thread,
            softirqs: false,
            marks: false,
            early: None,
            in_lock: false,
            futex_entered: false,
            boosted_holder: None,
            history: ThreadHistory::new(MAX_STATE_CHANGES, (State::Unknown, 0)),
            waits: [Wait { start: 0, end: 0, holder: 0, releaser: 0, passed: None }; MAX_WAITS],
            next_wait: 0,
            parked: None,
            open: None,
            outer: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn set_state(&mut self, time: u64, state: State, cpu: u16) {
        self.state = state;
        self.cpu = cpu;
        self.since = time;
        self.history.push(time, (state, cpu));
    }

    /// Whether it runs there: after events were lost a CPU may still remember a thread that has gone on.
    #[inline]
    pub(crate) fn runs_on(&self, cpu: u16) -> bool {
        self.state == State::Running && self.cpu == cpu
    }

    pub(crate) fn remember_wait(&mut self, wait: Wait) {
        self.waits[self.next_wait % MAX_WAITS] = wait;
        self.next_wait = self.next_wait.wrapping_add(1);
    }

    /// Takes over a priority that an event shows, unless it is a borrowed one.
    #[inline]
    pub(crate) fn observe_priority(&mut self, priority: i32) {
        if !self.boosted {
            self.priority = priority;
        }
    }
}

/// The keys are numbers that the kernel gives out, small and dense: one multiplication spreads them well enough.
#[derive(Default)]
pub(crate) struct IntHasher(u64);

impl Hasher for IntHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(20);
    }
}

/// All threads seen, each in a slot that stays its own until it ends or is forgotten.
#[derive(Debug)]
pub(crate) struct Threads {
    slots: Vec<Thread>,
    free: Vec<u32>,
    index: HashMap<Tid, u32, BuildHasherDefault<IntHasher>>,
    /// Those found last, by the low bits of their numbers: events come for few threads at a time, and numbers are given out in
    /// turn.
    recent: Box<[(Tid, u32); CACHED]>,
    limit: usize,
}

impl Threads {
    pub(crate) fn new(limit: usize) -> Self {
        let index = HashMap::default();
        let recent = Box::new([(0, 0); CACHED]);
        Self { slots: Vec::new(), free: Vec::new(), index, recent, limit: limit.max(16) }
    }

    #[inline]
    pub(crate) fn at(&mut self, slot: u32) -> &mut Thread {
        &mut self.slots[slot as usize]
    }

    pub(crate) fn get(&self, tid: Tid) -> Option<&Thread> {
        self.index.get(&tid).map(|&slot| &self.slots[slot as usize])
    }

    /// The slot of a thread, which is made if there is none. Thread 0 is one per CPU and has none.
    #[inline]
    pub(crate) fn slot(&mut self, tid: Tid) -> u32 {
        let (recent, slot) = self.recent[tid as usize % CACHED];
        if recent == tid && tid != 0 { slot } else { self.look_up(tid) }
    }

    fn look_up(&mut self, tid: Tid) -> u32 {
        let slot = match self.index.get(&tid) {
            Some(&slot) => slot,
            None => self.insert(tid),
        };
        self.recent[tid as usize % CACHED] = (tid, slot);
        slot
    }

    #[cold]
    fn insert(&mut self, tid: Tid) -> u32 {
        if self.index.len() >= self.limit {
            self.forget_half();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Thread::new(tid);
                slot
            }
            None => {
                self.slots.push(Thread::new(tid));
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.index.insert(tid, slot);
        slot
    }

    /// Forgets a thread that has ended.
    pub(crate) fn remove(&mut self, tid: Tid) {
        if let Some(slot) = self.index.remove(&tid) {
            self.slots[slot as usize] = Thread::new(0);
            self.free.push(slot);
        }
        self.recent[tid as usize % CACHED] = (0, 0);
    }

    /// Of the threads that neither run nor have an open job, forgets the half that changed longest ago; of all that do
    /// not run, if the others are too few.
    fn forget_half(&mut self) {
        let asleep = |t: &&Thread| t.state != State::Running;
        let idle = |t: &&Thread| asleep(t) && t.open.as_ref().is_none_or(|open| open.idle());
        let mut times: Vec<(u64, Tid)> = self.known().filter(idle).map(|t| (t.since, t.tid)).collect();
        if times.len() < self.limit / 4 {
            times = self.known().filter(asleep).map(|t| (t.since, t.tid)).collect();
        }
        times.sort_unstable();
        times.truncate(times.len().div_ceil(2));
        times.into_iter().for_each(|(_, tid)| self.remove(tid));
    }

    fn known(&self) -> impl Iterator<Item = &Thread> {
        self.index.values().map(|&slot| &self.slots[slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_memory_for_any_number_of_threads() {
        let mut threads = Threads::new(100);
        for tid in 1..10_000 {
            let slot = threads.slot(tid);
            threads.at(slot).set_state(u64::from(tid), State::Asleep, 0);
            assert_eq!(threads.slot(tid), slot);
        }
        assert!(threads.index.len() <= 100 && threads.slots.len() <= 101, "{}", threads.slots.len());
        assert_eq!(threads.get(9_999).map(|thread| thread.since), Some(9_999));
        assert!(threads.get(9_000).is_none());
    }
}
