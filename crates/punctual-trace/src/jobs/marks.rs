//! Jobs that a Punctual app marks.
//!
//! A worker runs several jobs between two sleeps, and calls jobs of higher levels inside those of lower ones. So marks
//! nest, and the called job displaces the caller.

use super::cause::{Actor, blame};
use super::config::Release;
use super::decomposer::{Decomposer, Sink};
use super::history::State;
use super::job::{Flaw, Phase, ReleasedBy};
use super::open::{Edge, Open, Stage};
use crate::event::Event;

/// Calls nest no deeper than there are levels.
const MAX_NESTED: usize = 128;

impl Decomposer {
    pub(super) fn job_start(&mut self, event: &Event, task: u16, released: u64) {
        let time = event.time;
        let Some(slot) = self.running(event) else { return };
        self.threads.at(slot).marks = true;
        if !self.want(slot) {
            return;
        }
        // What a mark names lies on the trace's time axis only if both clocks are one.
        let nominal =
            (self.config.monotonic && self.config.release == Release::Nominal).then_some(released.min(time));
        let thread = self.threads.at(slot);
        let priority = thread.priority;
        let Some(open) = thread.open.as_mut() else { return };
        open.proof(time);
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
            let fresh = Open::new(Actor::Thread(thread.tid), thread.sort, &self.config);
            thread.outer.push(std::mem::replace(&mut **open, fresh));
        }
        // The thread was awake already: what it did until now delayed this job.
        open.release(time, priority);
        open.track.begin(nominal.unwrap_or(time));
        open.start(time, event.cpu, Edge::Out);
        open.state = State::Running;
        open.in_handler = false;
        open.job.task = Some(task);
        open.job.released = nominal.map(|nominal| (nominal, nominal));
        open.job.released_by = if nominal.is_some() { ReleasedBy::Mark } else { ReleasedBy::Unseen };
    }

    pub(super) fn job_end(&mut self, event: &Event, task: u16, sink: Sink<'_>) {
        let time = event.time;
        let Some(slot) = self.running(event) else { return };
        self.threads.at(slot).marks = true;
        let Some(mut open) = self.threads.at(slot).open.take() else { return };
        if open.stage == Stage::Active && open.job.task == Some(task) {
            open.proof(time);
            self.hand_out(&mut open, time, event.cpu, sink);
            if let Some(mut outer) = self.threads.at(slot).outer.pop() {
                let took = outer.called(time);
                blame(&mut outer.job.interference_causes, Actor::Task(task), took);
                outer.job.last_cpu = event.cpu;
                *open = outer;
            }
        } else if open.stage == Stage::Active {
            // The start of this one was lost, or that of another's end.
            open.flaw(Flaw::Contradiction);
        }
        self.threads.at(slot).open = Some(open);
    }
}

impl Open {
    /// A job that this one called has ended. Returns how long it took, whatever its thread did meanwhile.
    fn called(&mut self, time: u64) -> u64 {
        let took = self.unsettled(time);
        self.sums.interference += took;
        (self.state, self.edge, self.in_handler) = (State::Running, Edge::Out, false);
        self.track.until(&mut self.job.segments, Phase::Interference, time, self.job.last_cpu);
        took
    }
}
