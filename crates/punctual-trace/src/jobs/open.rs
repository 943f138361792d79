//! The account of a job that is not finished.
//!
//! At every instant of the busy window the job is in exactly one class, so the terms cannot overlap and their sum is the
//! window. Where definitions would claim an instant twice, this order decides: blocking, then displacement by a thread,
//! then by a handler, then the scheduler, and what is left is execution.

use super::blocking::Blocking;
use super::bounds::Bounds;
use super::cause::{Actor, blame};
use super::config::Config;
use super::history::{Occupants, State};
use super::job::{Flaw, Job, JobKind, Phase, ReleasedBy, blank};
use super::segments::SegmentTrack;
use super::waiting::FutexCall;
use crate::event::Tid;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is none.
    Idle,
    /// It waits for its first switch.
    Released,
    /// It has started.
    Active,
}

/// Where the thread is between two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedulerSide {
    /// It was switched to, and nothing proves yet that it has left the scheduler.
    Entering,
    /// It is out of the scheduler, as far as the last proof tells.
    Out,
    /// It has entered the scheduler.
    Leaving,
}

/// Sums of the classes, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) execution: u64,
    pub(crate) entry: u64,
    pub(crate) exit: u64,
    /// Execution or overhead, not told apart: of entries, of exits, and of both together.
    pub(crate) maybe_entry: u64,
    pub(crate) maybe_exit: u64,
    pub(crate) maybe: u64,
    pub(crate) blocking: u64,
    pub(crate) interference: u64,
    pub(crate) suspended: u64,
}

impl Sums {
    /// A window that nothing told apart held an entry of the scheduler, an exit, or both, each no longer than `longest`.
    fn add_ambiguous(&mut self, window: u64, longest: u64, entry: bool, exit: bool) {
        let one = window.min(longest);
        let both = if entry && exit { window.min(longest.saturating_mul(2)) } else { one };
        self.maybe_entry += if entry { one } else { 0 };
        self.maybe_exit += if exit { one } else { 0 };
        self.maybe += both;
        self.execution += window - both;
    }
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) job: Job,
    pub(crate) stage: Stage,
    pub(crate) edge: SchedulerSide,
    pub(crate) state: State,
    /// Whether a handler runs on its CPU.
    pub(crate) in_handler: bool,
    /// Whether there was a handler since the last proof of where the thread is.
    interrupted: bool,
    pub(crate) sums: Sums,
    /// Time since the last proof of where the thread is.
    pub(super) window: u64,
    /// Until when the account is settled.
    settled_until: u64,
    /// From when its turn is awaited, and on which CPU.
    pub(crate) ready: u64,
    pub(crate) futex: Option<FutexCall>,
    /// The wait for a lock it is in.
    pub(crate) wait: Option<Blocking>,
    /// Who got the thread's priority since it last tried to take a lock.
    pub(crate) boosted_holders: Vec<Tid>,
    /// Why the next release may be none.
    next_flaw: Option<Flaw>,
    /// Asleep of its own accord.
    pub(crate) suspended: bool,
    /// No entry or exit of the scheduler takes longer.
    longest: u64,
    pub(super) track: SegmentTrack,
}

impl Open {
    pub(crate) fn new(actor: Actor, kind: JobKind, config: &Config) -> Self {
        Self {
            job: blank(actor, kind),
            stage: Stage::Idle,
            edge: SchedulerSide::Out,
            state: State::Unknown,
            in_handler: false,
            interrupted: false,
            sums: Sums::default(),
            window: 0,
            settled_until: 0,
            ready: 0,
            futex: None,
            wait: None,
            boosted_holders: Vec::new(),
            next_flaw: None,
            suspended: false,
            longest: config.longest_schedule.unwrap_or(u64::MAX),
            track: SegmentTrack::new(config.segments),
        }
    }

    pub(crate) fn idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    pub(crate) fn active(&self) -> bool {
        self.stage == Stage::Active
    }

    /// How long the account has not been settled; it is now.
    pub(crate) fn unsettled(&mut self, time: u64) -> u64 {
        let past = time.saturating_sub(self.settled_until);
        self.settled_until = self.settled_until.max(time);
        past
    }

    /// Before this, nothing displaced it.
    pub(crate) fn displaced_from(&self) -> u64 {
        if self.active() { self.job.start } else { u64::MAX }
    }

    /// Begins a job that waits for its first switch, or is about to be declared active.
    pub(crate) fn release(&mut self, time: u64, priority: i32) {
        let job = &mut self.job;
        (job.task, job.priority, job.highest) = (None, priority, priority);
        (job.released, job.released_by, job.woken, job.waker) = (None, ReleasedBy::Unseen, None, None);
        (job.suspended, job.migrations, job.preemptions, job.flaw) = (0, 0, 0, self.next_flaw.take());
        (job.disabled, job.nmi) = (None, 0);
        job.jitter_causes.clear();
        job.interference_causes.clear();
        job.blockings.clear();
        job.blockings_left_out = 0;
        job.segments.clear();
        self.sums = Sums::default();
        (self.window, self.settled_until, self.ready) = (0, time, time);
        self.track.begin(time);
        (self.stage, self.edge, self.suspended) = (Stage::Released, SchedulerSide::Out, false);
        (self.futex, self.wait) = (None, None);
        self.boosted_holders.clear();
    }

    /// Its first switch, or the mark that begins it.
    pub(crate) fn start(&mut self, time: u64, cpu: u16, edge: SchedulerSide) {
        self.track.until(&mut self.job.segments, Phase::Jitter, time, cpu);
        (self.job.start, self.job.first_cpu, self.job.last_cpu) = (time, cpu, cpu);
        (self.settled_until, self.stage, self.edge) = (time, Stage::Active, edge);
    }

    /// The job, if one is open, is not to be trusted; and neither is the next release: the thread may be in the middle of
    /// a job, or of a wait, of which the beginning was not seen.
    pub(crate) fn flaw(&mut self, flaw: Flaw) {
        self.next_flaw = Some(flaw);
        if !self.idle() {
            self.job.flaw.get_or_insert(flaw);
        }
    }

    fn phase(&self) -> Phase {
        if self.wait.is_some() {
            return Phase::Blocking;
        }
        match (self.state, self.edge) {
            (State::Ready, _) => Phase::Interference,
            (State::Asleep, _) => Phase::Suspended,
            _ if self.in_handler => Phase::Interference,
            (_, SchedulerSide::Leaving) => Phase::Overhead,
            (_, SchedulerSide::Entering) => Phase::ExecutionOrOverhead,
            (_, SchedulerSide::Out) => Phase::Execution,
        }
    }

    /// Settles the account up to now. To be called before anything changes the class.
    #[inline]
    pub(crate) fn settle(&mut self, time: u64) {
        if self.stage != Stage::Active {
            return;
        }
        let phase = self.phase();
        let past = time.saturating_sub(self.settled_until);
        self.settled_until = self.settled_until.max(time);
        match phase {
            Phase::Blocking => self.sums.blocking += past,
            Phase::Interference => self.sums.interference += past,
            Phase::Suspended => self.sums.suspended += past,
            Phase::Overhead => self.sums.exit += past,
            Phase::Execution | Phase::ExecutionOrOverhead | Phase::Jitter => self.window += past,
        }
        if past > 0 {
            self.track.until(&mut self.job.segments, phase, time, self.job.last_cpu);
        }
    }

    /// An event that only thread code outside the scheduler causes.
    #[inline]
    pub(crate) fn outside_scheduler(&mut self, time: u64) {
        self.settle(time);
        if self.stage != Stage::Active || self.wait.is_some() {
            return;
        }
        match self.edge {
            SchedulerSide::Entering => self.sums.add_ambiguous(self.window, self.longest, true, false),
            SchedulerSide::Out => self.sums.execution += self.window,
            // On its way into sleep the scheduler wakes kernel threads that flush or take over work.
            SchedulerSide::Leaving => return,
        }
        (self.window, self.edge, self.interrupted) = (0, SchedulerSide::Out, false);
    }

    /// It wakes another thread. After a handler that may be the rest of the interrupt, which can be anywhere: it wakes
    /// threads that go on with softirqs.
    #[inline]
    pub(crate) fn wakes(&mut self, time: u64) {
        if !self.interrupted {
            self.outside_scheduler(time);
        }
    }

    pub(crate) fn scheduler_entered(&mut self, time: u64) {
        self.outside_scheduler(time);
        if self.wait.is_none() && !self.idle() {
            self.edge = SchedulerSide::Leaving;
        }
    }

    pub(crate) fn scheduler_left(&mut self, time: u64) {
        self.settle(time);
        if self.wait.is_some() || self.stage != Stage::Active {
            return;
        }
        if self.edge == SchedulerSide::Entering {
            self.sums.entry += self.window;
            self.track.entry_was_overhead(&mut self.job.segments, self.window);
            self.window = 0;
        }
        self.edge = match self.edge {
            SchedulerSide::Entering | SchedulerSide::Leaving => SchedulerSide::Out,
            // It was seen outside before: a return without entry is no proof of anything.
            SchedulerSide::Out => return,
        };
        self.interrupted = false;
    }

    /// A handler begins or ends on its CPU. That proves nothing about the thread: the scheduler takes interrupts before it
    /// holds the run queue, whenever it lets go of it to move threads between CPUs, and between a switch and its return.
    #[inline]
    pub(crate) fn handler(&mut self, time: u64, runs: bool) {
        self.settle(time);
        (self.in_handler, self.interrupted) = (runs, true);
    }

    /// It was switched away from.
    pub(crate) fn switched_out(&mut self, time: u64) {
        self.settle(time);
        if self.stage == Stage::Active && self.wait.is_none() {
            let window = std::mem::take(&mut self.window);
            self.sums.add_ambiguous(window, self.longest, self.edge == SchedulerSide::Entering, true);
            if self.edge == SchedulerSide::Out {
                self.track.exit_may_be_overhead(&mut self.job.segments, window.min(self.longest));
            }
        }
        self.in_handler = false;
    }

    /// Blames those who ran on `cpu` since the job awaits its turn.
    pub(crate) fn blame_occupants(&mut self, time: u64, occupants: &Occupants) {
        let from = self.ready;
        self.ready = time;
        if self.wait.is_some() {
            return;
        }
        let causes = match self.stage {
            Stage::Idle => return,
            Stage::Released => &mut self.job.jitter_causes,
            Stage::Active => &mut self.job.interference_causes,
        };
        let futex = self.futex.as_mut().map(|call| &mut call.causes);
        let mut undo = futex.filter(|_| self.stage == Stage::Active);
        occupants.walk(from, time, |actor, a, b| {
            let actor = actor.unwrap_or(Actor::Unseen);
            blame(causes, actor, b - a);
            if let Some(undo) = undo.as_mut() {
                blame(undo, actor, b - a);
            }
        });
    }

    /// A handler took this much of its time.
    pub(crate) fn displaced(&mut self, actor: Actor, ns: u64) {
        if self.stage == Stage::Active && self.wait.is_none() {
            blame(&mut self.job.interference_causes, actor, ns);
            if let Some(call) = self.futex.as_mut() {
                blame(&mut call.causes, actor, ns);
            }
        }
    }

    /// An NMI has ended that took this much of its time.
    pub(crate) fn nmi(&mut self, ns: u64) {
        if self.stage == Stage::Active {
            self.job.nmi = self.job.nmi.saturating_add(ns);
        }
    }

    /// Closes the account and fills in the terms.
    pub(crate) fn finish(&mut self, time: u64, cpu: u16) -> &Job {
        self.settle(time);
        // A mark ends a job outside the scheduler; a switch has emptied the window before.
        let (job, sums) = (&mut self.job, &mut self.sums);
        match self.edge {
            SchedulerSide::Entering => sums.add_ambiguous(self.window, self.longest, true, false),
            SchedulerSide::Out | SchedulerSide::Leaving => sums.execution += self.window,
        }
        (job.end, job.last_cpu) = (time.max(job.start), cpu);
        let window = job.end - job.start;
        job.window = Bounds::Exact(window);
        job.jitter = job.released.map_or(Bounds::Unknown, |(lo, hi)| {
            Bounds::between(job.start.saturating_sub(hi), job.start.saturating_sub(lo))
        });
        job.response = job.jitter.plus(window);
        let overhead = sums.entry + sums.exit;
        job.overhead = Bounds::between(overhead, overhead + sums.maybe);
        job.overhead_entry = Bounds::between(sums.entry, sums.entry + sums.maybe_entry);
        job.overhead_exit = Bounds::between(sums.exit, sums.exit + sums.maybe_exit);
        job.blocking = Bounds::Exact(sums.blocking);
        job.interference = Bounds::Exact(sums.interference);
        let execution = sums.execution + sums.suspended;
        job.execution = Bounds::between(execution, execution + sums.maybe);
        job.suspended = sums.suspended;
        self.stage = Stage::Idle;
        (self.futex, self.wait) = (None, None);
        if let Err(_equation) = self.job.check() {
            self.job.flaw.get_or_insert(Flaw::Contradiction);
        }
        &self.job
    }
}
