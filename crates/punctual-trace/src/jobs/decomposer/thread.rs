//! State of each thread, and the table of threads.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::cpu::HandlerFrame;
use super::deadline::DeadlineThread;
use crate::event::{Comm, Tid};
use crate::jobs::blocking::WaitTarget;
use crate::jobs::futexes::FutexRole;
use crate::jobs::history::{State, ThreadHistory};
use crate::jobs::job::{Flaw, JobKind};
use crate::jobs::open_job::{OpenJob, Wake};
use crate::recorded::Chosen;

/// Number of remembered state changes of each thread, to attribute the time of a lock's holder.
const MAX_STATE_CHANGES: usize = 32;
/// Number of remembered waits of each thread, to follow chains of holders.
const MAX_WAITS: usize = 4;
/// Number of threads that are found without the full table.
const CACHED: usize = 1 << 9;

/// Prefixes of kernel threads' names, with their purposes; few programs have a slash in theirs.
const KERNEL: [(&str, Purpose); 8] = [
    ("irq/", Purpose::Interrupt),
    ("ksoftirqd/", Purpose::Softirqs),
    ("ktimers/", Purpose::Softirqs),
    ("migration/", Purpose::Kernel),
    ("kworker/", Purpose::Kernel),
    ("cpuhp/", Purpose::Kernel),
    ("rcuc/", Purpose::Kernel),
    ("rcu_preempt", Purpose::Kernel),
];

/// Purpose of a thread, as shown by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Runs a program.
    Program,
    /// Serves an interrupt.
    Interrupt,
    /// Exists to run softirqs, which are its own execution.
    Softirqs,
    /// Any other kernel thread. Like the previous two, it makes no system calls.
    Kernel,
}

impl Purpose {
    fn of(name: &str) -> Self {
        let kernel = KERNEL.iter().find(|(beginning, _)| name.starts_with(beginning));
        kernel.map_or(Self::Program, |&(_, purpose)| purpose)
    }

    /// Returns the kind of its jobs.
    pub(super) fn job_kind(self) -> JobKind {
        if self == Self::Interrupt { JobKind::IrqThread } else { JobKind::Thread }
    }
}

/// Priority of a thread, as far as events have shown it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priority {
    /// Its own, as the kernel counts.
    pub(super) own: i32,
    /// An event has shown it.
    pub(super) is_shown: bool,
    /// The thread runs with an inherited priority.
    pub(super) is_boosted: bool,
    /// Time at which the thread last lost an inherited priority.
    pub(super) deboosted: u64,
}

/// Futex call of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FutexCall {
    /// None.
    None,
    /// A call that does not wait.
    Passing,
    /// A call that can wait; its sleep ends a job.
    Waiting,
    /// A call that waits for a lock; its sleep is part of a job.
    Blocking {
        /// Address of the futex word.
        word: u64,
        role: FutexRole,
    },
}

/// Contention of a thread for a kernel lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contention {
    /// None.
    None,
    /// The thread may spin.
    Spinning,
    /// The thread sleeps until this lock is free.
    Sleeping(WaitTarget),
}

/// Locks that a thread waits or has waited for.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) call: FutexCall,
    pub(super) contention: Contention,
    /// Thread that inherited this thread's priority when it began to wait.
    pub(super) boosted_holder: Option<Tid>,
    /// The most recent waits, up to [`MAX_WAITS`]; empty for most threads.
    pub(super) waits: Vec<Wait>,
    next_wait: usize,
}

impl Locks {
    fn new() -> Self {
        Self {
            call: FutexCall::None,
            contention: Contention::None,
            boosted_holder: None,
            waits: Vec::new(),
            next_wait: 0,
        }
    }

    /// Returns whether the thread is in a futex call that can wait, or contends for a kernel lock.
    #[inline]
    pub(super) fn may_wait(&self) -> bool {
        matches!(self.call, FutexCall::Waiting | FutexCall::Blocking { .. })
            || self.contention != Contention::None
    }

    /// Returns whether its last sleep may have been a wait for a lock.
    #[inline]
    pub(super) fn may_have_waited(&self) -> bool {
        !self.waits.is_empty() || self.may_wait()
    }

    /// Returns whether its sleep would be a wait for a lock, and so part of a job.
    pub(super) fn blocks(&self) -> bool {
        matches!(self.call, FutexCall::Blocking { .. }) || matches!(self.contention, Contention::Sleeping(_))
    }

    pub(super) fn remember_wait(&mut self, wait: Wait) {
        match self.waits.get_mut(self.next_wait) {
            Some(oldest) => *oldest = wait,
            None => self.waits.push(wait),
        }
        self.next_wait = (self.next_wait + 1) % MAX_WAITS;
    }
}

/// Recording of a thread's switches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coverage {
    /// All are recorded: because of its ID or its parent, or as shown by a switch.
    pub(super) is_traced: bool,
    /// All are recorded while it has its name.
    pub(super) is_named: bool,
    /// Not all are recorded, so that its state between recorded ones is unknown.
    pub(super) is_partial: bool,
}

/// A wait for a lock that another thread held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The first holder.
    pub(super) holder: Tid,
    /// The thread that handed it over at the end; 0 if unknown.
    pub(super) releaser: Tid,
    /// Time at which the holder passed it to the releaser, if they differ and inheritance showed
    /// it.
    pub(super) passed: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: Tid,
    pub(super) name: Comm,
    /// Number of earlier threads with jobs that had its ID.
    pub(super) incarnation: u32,
    pub(super) purpose: Purpose,
    pub(super) priority: Priority,
    pub(super) cpu: u16,
    pub(super) state: State,
    /// Start of the current state.
    pub(super) since: u64,
    /// In a run queue, and off the CPU where it slept.
    pub(super) queued: bool,
    /// Has contended for a lock, perhaps on its way off that CPU, perhaps in its next job.
    pub(super) contended: bool,
    /// Time since which it has been running or ready without a sleep; 0 if it sleeps, or if
    /// unknown.
    pub(super) awake_since: u64,
    pub(super) coverage: Coverage,
    /// Selected by its ID or name.
    pub(super) chosen: bool,
    /// Descends from a thread that the selection is restricted to.
    pub(super) descends: bool,
    /// Its system calls are recorded: it has made one, or was started by a thread whose calls are
    /// recorded.
    pub(super) calls: bool,
    /// Marks its jobs, so a wake-up alone is not a job.
    pub(super) marks: bool,
    /// A wake-up before the thread slept: the kernel decides under a lock, but records in either
    /// order.
    pub(super) early: Option<Wake>,
    pub(super) locks: Locks,
    /// Sleeps in the middle of a job whose start was not recorded.
    pub(super) continues: bool,
    /// Present if it is known to be a SCHED_DEADLINE thread.
    pub(super) deadline: Option<Box<DeadlineThread>>,
    /// Is in `sched_yield`.
    pub(super) yields: bool,
    pub(super) history: ThreadHistory,
    /// A softirq that was displaced together with the thread, as PREEMPT_RT allows.
    pub(super) parked: Option<Box<HandlerFrame>>,
    /// The job, for selected threads.
    pub(super) open: Option<Box<OpenJob>>,
    /// The jobs that called this one on the same thread, innermost last.
    pub(super) callers: Vec<OpenJob>,
}

impl Thread {
    fn new(tid: Tid) -> Self {
        Self {
            tid,
            name: Comm::default(),
            incarnation: 0,
            purpose: Purpose::Program,
            priority: Priority { own: 120, is_shown: false, is_boosted: false, deboosted: 0 },
            cpu: 0,
            state: State::Unknown,
            since: 0,
            queued: false,
            contended: false,
            awake_since: 0,
            coverage: Coverage { is_traced: true, is_named: false, is_partial: false },
            chosen: false,
            descends: false,
            calls: false,
            marks: false,
            early: None,
            locks: Locks::new(),
            continues: false,
            deadline: None,
            yields: false,
            history: ThreadHistory::new(MAX_STATE_CHANGES, (State::Unknown, 0)),
            parked: None,
            open: None,
            callers: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn set_state(&mut self, time: u64, state: State, cpu: u16) {
        let state = if self.coverage.is_partial { State::Unknown } else { state };
        (self.state, self.queued, self.contended) = (state, false, false);
        self.cpu = cpu;
        self.since = time;
        self.awake_since = match state {
            State::Asleep | State::Unknown => 0,
            State::Running | State::Ready if self.awake_since == 0 => time,
            State::Running | State::Ready => self.awake_since,
        };
        self.history.push(time, (state, cpu));
    }

    /// Sets its name, which may reveal its purpose.
    pub(super) fn set_name(&mut self, name: Comm, chosen: bool) {
        self.name = name;
        self.chosen = chosen;
        self.purpose = Purpose::of(&name.text());
    }

    /// Marks its jobs as flawed.
    pub(super) fn flaw(&mut self, flaw: Flaw) {
        self.open.as_deref_mut().into_iter().chain(&mut self.callers).for_each(|open| open.flaw(flaw));
    }

    /// Returns whether it runs on that CPU: after lost events, a CPU may still store a thread that
    /// has left.
    #[inline]
    pub(super) fn runs_on(&self, cpu: u16) -> bool {
        self.state == State::Running && self.cpu == cpu
    }

    /// Adopts a priority that an event shows, unless it is inherited.
    #[inline]
    pub(super) fn observe_priority(&mut self, priority: i32) {
        self.priority.is_shown = true;
        if !self.priority.is_boosted {
            self.priority.own = priority;
        }
    }
}

/// Hasher for small, dense numbers assigned by the kernel: one multiplication spreads them well
/// enough.
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

/// All threads seen, each in a slot that it occupies until it ends or is dropped.
#[derive(Debug)]
pub(super) struct Threads {
    slots: Vec<Thread>,
    free: Vec<u32>,
    index: HashMap<Tid, u32, BuildHasherDefault<IntHasher>>,
    /// The threads found last, by the low bits of their IDs: successive events concern few threads,
    /// and IDs are assigned in sequence.
    recent: Box<[(Tid, u32); CACHED]>,
    /// For each ID, the number of threads with jobs before the current or next one.
    incarnations: HashMap<Tid, u32, BuildHasherDefault<IntHasher>>,
    /// Threads with jobs that have ended or are stopped.
    ended: HashSet<Tid, BuildHasherDefault<IntHasher>>,
    limit: usize,
    /// Threads whose switches are recorded, if not all.
    chosen: Option<Chosen>,
}

impl Threads {
    pub(super) fn new(limit: usize, chosen: Option<Chosen>) -> Self {
        let index = HashMap::default();
        let recent = Box::new([(0, 0); CACHED]);
        let (incarnations, ended) = (HashMap::default(), HashSet::default());
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index,
            recent,
            incarnations,
            ended,
            limit: limit.max(16),
            chosen,
        }
    }

    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> &mut Thread {
        &mut self.slots[slot as usize]
    }

    pub(super) fn get_slot(&self, slot: u32) -> &Thread {
        &self.slots[slot as usize]
    }

    pub(super) fn get(&self, tid: Tid) -> Option<&Thread> {
        self.index.get(&tid).map(|&slot| &self.slots[slot as usize])
    }

    /// Returns the slot of a thread, and creates it if necessary. Thread 0 exists once per CPU and
    /// has no slot.
    #[inline]
    pub(super) fn slot(&mut self, tid: Tid) -> u32 {
        let (recent, slot) = self.recent[tid as usize % CACHED];
        if recent == tid && tid != 0 { slot } else { self.look_up(tid) }
    }

    #[inline(never)]
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
            self.drop_older_half();
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
        self.at(slot).incarnation = self.incarnation(tid);
        if let Some(chosen) = &self.chosen {
            let traced = chosen.has(tid);
            let thread = self.at(slot);
            (thread.coverage.is_traced, thread.coverage.is_partial) = (traced, !traced);
        }
        slot
    }

    /// Returns the number of threads with jobs that had the ID before the current one.
    pub(super) fn incarnation(&self, tid: Tid) -> u32 {
        self.incarnations.get(&tid).copied().unwrap_or(0)
    }

    /// A thread has been created in this slot; returns the number of threads with jobs that had its
    /// ID before.
    pub(super) fn created(&mut self, slot: u32) -> u32 {
        let thread = self.at(slot);
        let (tid, unended) = (thread.tid, thread.open.is_some());
        if self.ended.remove(&tid) || unended {
            self.count_incarnation(tid);
        }
        let incarnation = self.incarnation(tid);
        self.at(slot).incarnation = incarnation;
        incarnation
    }

    /// A thread with jobs has ended, and another may get its ID.
    fn count_incarnation(&mut self, tid: Tid) {
        if self.incarnations.len() >= self.limit && !self.incarnations.contains_key(&tid) {
            self.incarnations.clear();
            self.ended.clear();
        }
        *self.incarnations.entry(tid).or_default() += 1;
    }

    /// A thread is stopped or has ended.
    pub(super) fn end(&mut self, tid: Tid) {
        let jobs = self.get(tid).is_some_and(|thread| thread.open.is_some());
        self.remove(tid);
        if jobs {
            self.ended.insert(tid);
        }
    }

    /// Drops a thread.
    fn remove(&mut self, tid: Tid) {
        if let Some(slot) = self.index.remove(&tid) {
            self.slots[slot as usize] = Thread::new(0);
            self.free.push(slot);
        }
        self.recent[tid as usize % CACHED] = (0, 0);
    }

    /// Drops, of the threads that neither run nor have an open job, the half whose last change is
    /// oldest; of all threads that do not run, if those are too few.
    fn drop_older_half(&mut self) {
        let asleep = |t: &&Thread| t.state != State::Running;
        let idle = |t: &&Thread| asleep(t) && t.open.as_ref().is_none_or(|open| open.is_idle());
        let mut times: Vec<(u64, Tid)> = self.known().filter(idle).map(|t| (t.since, t.tid)).collect();
        if times.len() < self.limit / 4 {
            times = self.known().filter(asleep).map(|t| (t.since, t.tid)).collect();
        }
        times.sort_unstable();
        times.truncate(times.len().div_ceil(2));
        times.into_iter().for_each(|(_, tid)| self.remove(tid));
    }

    /// Returns the slots of running or ready threads without a job.
    pub(super) fn awake_without_job(&self) -> Vec<u32> {
        let jobless =
            |t: &&Thread| t.awake_since > 0 && !t.marks && t.open.as_ref().is_none_or(|open| open.is_idle());
        let mut slots: Vec<u32> =
            self.known().filter(jobless).filter_map(|t| self.index.get(&t.tid).copied()).collect();
        slots.sort_unstable();
        slots
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
        let mut threads = Threads::new(100, None);
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
