//! Jobs that a Punctual app marks.
//!
//! A worker runs several jobs between two sleeps, and calls jobs of higher levels inside those of lower ones. So marks
//! nest, and the called job displaces the caller. A job is never called inside one of its own task, which lies on the same
//! level; if marks say so, or if they end a job that is not the innermost, the ends of others were lost, and
//! those end here, not to be trusted.

use super::cause::{Actor, blame};
use super::config::Release;
use super::decomposer::{Decomposer, Sink};
use super::history::State;
use super::job::{Flaw, Phase, ReleasedBy};
use super::open::{Open, SchedulerSide, Stage};
use crate::event::Event;

/// Calls nest no deeper than there are levels.
const MAX_NESTED: usize = 128;

impl Decomposer {
    pub(super) fn job_start(&mut self, event: &Event, task: u16, released: u64, sink: Sink<'_>) {
        let time = event.time;
        let Some(slot) = self.running(event) else { return };
        self.threads.at(slot).marks = true;
        if !self.want(slot) {
            return;
        }
        if self.innermost(slot, task, event, sink) {
            self.end_lost(slot, event, sink);
        }
        // What a mark names lies on the trace's time axis only if both clocks are one.
        let nominal =
            (self.config.monotonic && self.config.release == Release::Nominal).then_some(released.min(time));
        let thread = self.threads.at(slot);
        let priority = thread.priority;
        let Some(open) = thread.open.as_mut() else { return };
        open.outside_scheduler(time);
        let started_by_wake = open.stage == Stage::Active && open.job.task.is_none();
        if started_by_wake && nominal.is_none_or(|nominal| nominal <= open.job.start) {
            // The wake-up was for this job: it begins with the switch to the thread.
            open.job.task = Some(task);
            if let Some(nominal) = nominal {
                open.job.released = Some((nominal, nominal));
                open.job.released_by = ReleasedBy::Mark;
                open.track.released(&mut open.job.segments, nominal);
            }
            return;
        }
        if open.stage == Stage::Active && open.job.task.is_some() {
            if thread.outer.len() >= MAX_NESTED {
                return open.flaw(Flaw::Contradiction);
            }
            let fresh = Open::new(Actor::Thread(thread.tid), thread.kind, &self.config);
            thread.outer.push(std::mem::replace(&mut **open, fresh));
        }
        // The thread was awake already: what its CPU did until now delayed this job.
        open.release(time, priority);
        open.track.begin(nominal.unwrap_or(time));
        if let (Some(nominal), Some(Some(cpu))) = (nominal, self.cpus.get(usize::from(event.cpu))) {
            let causes = &mut open.job.jitter_causes;
            cpu.occupants.walk(nominal, time, |actor, from, to| {
                blame(causes, actor.unwrap_or(Actor::Unseen), to - from);
            });
        }
        open.start(time, event.cpu, SchedulerSide::Out);
        open.state = State::Running;
        open.in_handler = false;
        open.job.task = Some(task);
        open.job.released = nominal.map(|nominal| (nominal, nominal));
        open.job.released_by = if nominal.is_some() { ReleasedBy::Mark } else { ReleasedBy::Unseen };
    }

    pub(super) fn job_end(&mut self, event: &Event, task: u16, sink: Sink<'_>) {
        let Some(slot) = self.running(event) else { return };
        self.threads.at(slot).marks = true;
        if self.innermost(slot, task, event, sink) {
            self.end_innermost(slot, event, sink);
        } else if let Some(open) = self.threads.at(slot).open.as_mut().filter(|open| open.active()) {
            // The start of this one was lost.
            open.flaw(Flaw::Contradiction);
        }
    }

    /// Makes the job of `task` the innermost one, if the thread has one, by ending those that it called.
    fn innermost(&mut self, slot: u32, task: u16, event: &Event, sink: Sink<'_>) -> bool {
        let is_it = |open: &Open| open.active() && open.job.task == Some(task);
        let thread = self.threads.at(slot);
        if thread.open.as_deref().is_some_and(is_it) {
            return true;
        }
        let Some(depth) = thread.outer.iter().rposition(is_it) else { return false };
        while self.threads.at(slot).outer.len() > depth {
            self.end_lost(slot, event, sink);
        }
        true
    }

    /// Ends the innermost job, of which the end was lost, and with it what is known of the one that called it.
    fn end_lost(&mut self, slot: u32, event: &Event, sink: Sink<'_>) {
        let thread = self.threads.at(slot);
        for open in thread.open.as_deref_mut().into_iter().chain(thread.outer.last_mut()) {
            open.flaw(Flaw::Contradiction);
        }
        self.end_innermost(slot, event, sink);
    }

    fn end_innermost(&mut self, slot: u32, event: &Event, sink: Sink<'_>) {
        let time = event.time;
        let Some(mut open) = self.threads.at(slot).open.take() else { return };
        let called = open.job.task;
        open.outside_scheduler(time);
        self.hand_out(&mut open, time, event.cpu, sink);
        if let Some(mut outer) = self.threads.at(slot).outer.pop() {
            let took = outer.called(time);
            blame(&mut outer.job.interference_causes, called.map_or(Actor::Unseen, Actor::Task), took);
            outer.job.last_cpu = event.cpu;
            *open = outer;
        }
        self.threads.at(slot).open = Some(open);
    }

    /// Hands out the jobs that the thread's open one was called by: their ends will not be seen.
    pub(super) fn cut_outer(&mut self, slot: u32, time: u64, flaw: Flaw, sink: Sink<'_>) {
        for mut outer in std::mem::take(&mut self.threads.at(slot).outer).into_iter().rev() {
            outer.flaw(flaw);
            outer.called(time);
            let cpu = outer.job.last_cpu;
            self.hand_out(&mut outer, time, cpu, sink);
        }
    }
}

impl Open {
    /// A job that this one called has ended. Returns how long it took, whatever its thread did meanwhile.
    fn called(&mut self, time: u64) -> u64 {
        let took = self.unsettled(time);
        self.sums.interference += took;
        (self.state, self.edge, self.in_handler) = (State::Running, SchedulerSide::Out, false);
        self.track.until(&mut self.job.segments, Phase::Interference, time, self.job.last_cpu);
        took
    }
}
