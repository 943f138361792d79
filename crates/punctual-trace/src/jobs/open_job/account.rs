//! Attributes the time of a job to phases.
//!
//! At every instant of the busy window the job is in exactly one phase, so the terms cannot overlap
//! and their sum is the window. Where definitions would claim an instant twice, this order decides:
//! blocking, then displacement by a thread, then by a handler, then the scheduler; the rest is
//! execution.

use super::{OpenJob, Stage};
use crate::jobs::blocking::WaitTarget;
use crate::jobs::bounds::Bounds;
use crate::jobs::cause::{Actor, blame};
use crate::jobs::history::{Occupants, State};
use crate::jobs::job::{Job, Phase};
use crate::jobs::known::Certain;

/// Position of the thread relative to the scheduler between two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchedulerSide {
    /// Switched in; nothing proves yet that it has left the scheduler.
    Entering,
    /// Outside the scheduler when last proven.
    Out,
    /// Has entered the scheduler.
    Leaving,
}

/// Time of the job in each phase, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) execution: u64,
    entry: u64,
    exit: u64,
    /// Time that may be execution or overhead: around entries, around exits, and in total.
    maybe_entry: u64,
    maybe_exit: u64,
    maybe: u64,
    pub(super) blocking: u64,
    pub(super) interference: u64,
    pub(super) suspended: u64,
    /// Part of that which is likely overhead; `None` without evidence.
    likely: Option<u64>,
    /// Blocking, and interference, that may have been overhead or execution, because the switch
    /// that ended it was not recorded.
    maybe_blocking: u64,
    maybe_interference: u64,
}

/// Upper bounds of the last few entries or exits of the scheduler.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    last: [u64; 8],
    next: usize,
    /// The shortest, which contains the least execution.
    least: Option<u64>,
}

impl Seen {
    fn add(&mut self, ns: u64) {
        // Zero marks an empty entry.
        self.last[self.next % self.last.len()] = ns.max(1);
        self.next = self.next.wrapping_add(1);
        self.least = self.last.into_iter().filter(|&ns| ns > 0).min();
    }
}

/// Upper bounds of a thread's entries and exits of the scheduler, derived from the nearest system
/// calls and other events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Typical {
    entry: Seen,
    exit: Seen,
}

impl Typical {
    /// Returns the part of an ambiguous window that is likely overhead, if it contains an entry, an
    /// exit or both.
    fn of(&self, window: u64, entry: bool, exit: bool) -> Option<u64> {
        let side = |wanted: bool, seen: &Seen| if wanted { seen.least } else { Some(0) };
        Some(window.min(side(entry, &self.entry)? + side(exit, &self.exit)?))
    }
}

impl Sums {
    /// Resets it for a new job.
    pub(super) fn new() -> Self {
        Self { likely: Some(0), ..Self::default() }
    }

    /// Adds a window in which execution and overhead are indistinguishable. It contains an entry of
    /// the scheduler, an exit, or both, each no longer than `longest`.
    pub(super) fn add_ambiguous(
        &mut self,
        window: u64,
        longest: u64,
        (entry, exit): (bool, bool),
        typical: &mut Typical,
    ) {
        // A window with only one of them bounds the length of that one.
        match (entry, exit) {
            (true, false) => typical.entry.add(window),
            (false, true) => typical.exit.add(window),
            _ => {}
        }
        self.likely = self.likely.zip(typical.of(window, entry, exit)).map(|(sum, ns)| sum + ns);
        let one = window.min(longest);
        let both = if entry && exit { window.min(longest.saturating_mul(2)) } else { one };
        self.maybe_entry += if entry { one } else { 0 };
        self.maybe_exit += if exit { one } else { 0 };
        self.maybe += both;
        self.execution += window - both;
    }

    /// The thread was switched in at some time in the last `ns`, which count as its wait or
    /// displacement. A wait that continues does not change.
    pub(super) fn may_have_run(&mut self, ns: u64, wait: Option<WaitTarget>) {
        match wait {
            None => self.maybe_interference += ns,
            Some(WaitTarget::Kernel) => self.maybe_blocking += ns,
            Some(_) => return,
        }
        if ns > 0 {
            self.likely = None;
        }
    }

    /// Writes the terms of the busy window into the job.
    pub(super) fn fill_in(&self, job: &mut Job, certain: Certain) {
        job.suspended = self.suspended;
        job.likely_overhead = None;
        job.interference = Bounds::at_least(self.interference.saturating_sub(self.maybe_interference));
        job.blocking = Bounds::at_least(self.blocking.saturating_sub(self.maybe_blocking));
        if !certain.whole {
            // The rest of the job is unknown, and the last part of this may have been on the way to
            // a lock.
            (job.overhead, job.overhead_entry, job.overhead_exit) = Default::default();
            job.execution = Bounds::Unknown;
            return;
        }
        // Unrecorded locks and handlers are counted here as execution and overhead.
        let all = certain.locks && certain.handlers;
        let least = |ns| if all { ns } else { 0 };
        let between = |ns: u64, maybe: u64| Bounds::between(least(ns), ns + maybe);
        // Around switches that were not recorded: before the job's start, and within it.
        let before = job.start_slack;
        let within = self.maybe_blocking + self.maybe_interference;
        let unsure = before + within;
        job.overhead = between(self.entry + self.exit, self.maybe + unsure);
        job.overhead_entry = between(self.entry, self.maybe_entry + unsure);
        job.overhead_exit = between(self.exit, self.maybe_exit + unsure);
        if certain.locks {
            job.blocking = Bounds::between(self.blocking.saturating_sub(self.maybe_blocking), self.blocking);
        }
        if certain.handlers && certain.wakeups {
            let lo = self.interference.saturating_sub(self.maybe_interference);
            job.interference = Bounds::between(if certain.locks { lo } else { 0 }, self.interference);
        }
        if all && self.maybe > 0 && unsure == 0 {
            job.likely_overhead = self.likely.map(|likely| self.entry + self.exit + likely.min(self.maybe));
        }
        let execution = self.execution + self.suspended;
        let lo = match certain {
            Certain { locks: true, handlers: true, wakeups: true, .. } => execution,
            Certain { locks: true, wakeups: true, .. } => self.suspended,
            _ => 0,
        };
        job.execution = Bounds::between(lo, execution + self.maybe + unsure);
    }
}

impl OpenJob {
    fn phase(&self) -> Phase {
        if self.wait.is_some() {
            return Phase::Blocking;
        }
        match (self.state, self.side) {
            (State::Ready, _) => Phase::Interference,
            (State::Asleep, _) => Phase::Suspended,
            _ if self.in_handler => Phase::Interference,
            (_, SchedulerSide::Leaving) => Phase::Overhead,
            (_, SchedulerSide::Entering) => Phase::ExecutionOrOverhead,
            (_, SchedulerSide::Out) => Phase::Execution,
        }
    }

    /// Returns the time since the account was last settled, and marks it settled.
    #[inline]
    pub(super) fn elapse(&mut self, time: u64) -> u64 {
        let past = time.saturating_sub(self.settled_until);
        self.settled_until = self.settled_until.max(time);
        past
    }

    /// Settles the account up to now. Call it before anything changes the phase.
    #[inline]
    pub(super) fn settle(&mut self, time: u64) {
        if self.stage == Stage::Active {
            self.settle_active(time);
        }
    }

    fn settle_active(&mut self, time: u64) {
        let phase = self.phase();
        let past = self.elapse(time);
        match phase {
            Phase::Blocking => self.sums.blocking += past,
            Phase::Interference => self.sums.interference += past,
            Phase::Suspended => self.sums.suspended += past,
            Phase::Overhead => self.sums.exit += past,
            Phase::Execution | Phase::ExecutionOrOverhead | Phase::Jitter => self.window += past,
        }
        if past > 0 {
            self.segments.until(&mut self.job.segments, phase, time, self.job.last_cpu);
        }
    }

    /// Processes an event that only thread code outside the scheduler causes.
    #[inline]
    pub(in crate::jobs) fn outside_scheduler(&mut self, time: u64) {
        self.settle(time);
        if self.stage != Stage::Active || self.wait.is_some() {
            return;
        }
        match self.side {
            SchedulerSide::Entering => {
                self.sums.add_ambiguous(self.window, self.longest_schedule, (true, false), &mut self.typical);
            }
            SchedulerSide::Out => self.sums.execution += self.window,
            // On its way to sleep the scheduler wakes kernel threads that flush or take over work.
            SchedulerSide::Leaving => return,
        }
        (self.window, self.side, self.interrupted) = (0, SchedulerSide::Out, false);
    }

    /// Its thread wakes another. After a handler this may be the rest of the interrupt, which can
    /// occur anywhere: it wakes threads that continue its softirqs.
    #[inline]
    pub(in crate::jobs) fn wakes_another(&mut self, time: u64) {
        if !self.interrupted {
            self.outside_scheduler(time);
        }
    }

    pub(in crate::jobs) fn scheduler_entered(&mut self, time: u64) {
        self.outside_scheduler(time);
        if self.wait.is_none() && !self.is_idle() {
            self.side = SchedulerSide::Leaving;
        }
    }

    pub(in crate::jobs) fn scheduler_left(&mut self, time: u64) {
        self.settle(time);
        if self.wait.is_some() || self.stage != Stage::Active {
            return;
        }
        match self.side {
            SchedulerSide::Entering => {
                self.sums.entry += self.window;
                self.segments.entry_was_overhead(&mut self.job.segments, self.window);
                self.window = 0;
            }
            SchedulerSide::Leaving => {}
            // The thread was already outside: a return without an entry proves nothing.
            SchedulerSide::Out => return,
        }
        (self.side, self.interrupted) = (SchedulerSide::Out, false);
    }

    /// Settles the account when its thread is switched out.
    pub(super) fn settle_exit(&mut self, time: u64) {
        self.settle(time);
        if self.stage == Stage::Active && self.wait.is_none() {
            let window = std::mem::take(&mut self.window);
            let entering = self.side == SchedulerSide::Entering;
            self.sums.add_ambiguous(window, self.longest_schedule, (entering, true), &mut self.typical);
            if self.side == SchedulerSide::Out {
                let most = window.min(self.longest_schedule);
                self.segments.exit_may_be_overhead(&mut self.job.segments, most);
            }
        }
        self.in_handler = false;
    }

    /// A handler begins on its CPU. It displaces the thread unless running such handlers is the
    /// thread's own work.
    #[inline]
    pub(in crate::jobs) fn handler_begins(&mut self, time: u64, displaces: bool) {
        let displaced = self.in_handler || displaces;
        self.handler(time, displaced);
    }

    /// A handler ends on its CPU; another may continue.
    #[inline]
    pub(in crate::jobs) fn handler_ends(&mut self, time: u64, still_displaced: bool) {
        self.handler(time, still_displaced);
    }

    /// Handlers prove nothing about the thread: the scheduler allows interrupts before it locks the
    /// run queue, whenever it unlocks it to move threads between CPUs, and between a switch and its
    /// return.
    #[inline]
    fn handler(&mut self, time: u64, in_handler: bool) {
        self.settle(time);
        (self.in_handler, self.interrupted) = (in_handler, true);
    }

    /// A handler entered at `entry` has ended; nested handlers took `others` of its time.
    pub(in crate::jobs) fn displaced(&mut self, time: u64, actor: Actor, entry: u64, others: u64) {
        if self.stage != Stage::Active || self.wait.is_some() {
            return;
        }
        // Nothing displaces a job before it starts.
        let ns = time.saturating_sub(entry.max(self.job.start)).saturating_sub(others);
        blame(&mut self.job.interference_causes, actor, ns);
        if let Some(call) = self.futex.as_mut() {
            blame(&mut call.causes, actor, ns);
        }
    }

    /// An NMI took this much of its time.
    pub(in crate::jobs) fn nmi(&mut self, ns: u64) {
        if self.stage == Stage::Active {
            self.job.nmi = self.job.nmi.saturating_add(ns);
        }
    }

    /// Attributes the time since it became ready to the occupants of its CPU, or to no particular
    /// one if no event of that CPU has been seen yet.
    pub(in crate::jobs) fn blame_occupants(&mut self, time: u64, occupants: Option<&Occupants>) {
        let from = std::mem::replace(&mut self.ready_since, time);
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
        let mut each = |actor: Option<Actor>, a, b| {
            let actor = actor.unwrap_or(Actor::Unseen);
            blame(causes, actor, b - a);
            if let Some(undo) = undo.as_mut() {
                blame(undo, actor, b - a);
            }
        };
        match occupants {
            Some(occupants) => occupants.walk(from, time, each),
            None if from < time => each(None, from, time),
            None => {}
        }
    }
}
