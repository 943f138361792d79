//! Jobs marked by a Punctual app.
//!
//! A worker runs several jobs between two sleeps, and calls jobs of higher levels inside those of
//! lower ones. So marks nest, and the called job displaces its caller. A job is never called inside
//! another job of the same task, which has the same level. If marks show this, or if they end a job
//! that is not the innermost, end marks of other jobs were lost, and those jobs end here as flawed.

use super::{Decomposer, Sink};
use crate::event::Event;
use crate::jobs::config::Release;
use crate::jobs::job::Flaw;
use crate::jobs::open_job::OpenJob;

/// Calls nest no deeper than the number of levels.
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
        // The time in a mark can be compared with the trace only if both use the same clock.
        let nominal =
            (self.config.monotonic && self.config.release == Release::Nominal).then_some(released.min(time));
        let thread = self.threads.at(slot);
        let priority = thread.priority.own;
        let Some(open) = thread.open.as_mut() else { return };
        open.outside_scheduler(time);
        if open.claim_wake_up(task, nominal) {
            return;
        }
        if open.is_active() && open.task().is_some() {
            if thread.callers.len() >= MAX_NESTED {
                return open.flaw(Flaw::Contradiction);
            }
            let called = Box::new(self.open_job(slot));
            let thread = self.threads.at(slot);
            thread.callers.extend(thread.open.replace(called).map(|caller| *caller));
        }
        let open = self.threads.at(slot).open.as_mut();
        if let (Some(cpu), Some(open)) = (self.cpus.get(event.cpu), open) {
            open.start_marked(event, task, nominal, priority, &cpu.occupants);
        }
    }

    pub(super) fn job_end(&mut self, event: &Event, task: u16, sink: Sink<'_>) {
        let Some(slot) = self.running(event) else { return };
        self.threads.at(slot).marks = true;
        if self.innermost(slot, task, event, sink) {
            self.end_innermost(slot, event, sink);
        } else if let Some(open) = self.threads.at(slot).open.as_mut().filter(|open| open.is_active()) {
            // Its start was lost.
            open.flaw(Flaw::Contradiction);
        }
    }

    /// Makes the thread's job of `task` the innermost one, if there is one, by ending the jobs it
    /// called.
    fn innermost(&mut self, slot: u32, task: u16, event: &Event, sink: Sink<'_>) -> bool {
        let is_it = |open: &OpenJob| open.is_active() && open.task() == Some(task);
        let thread = self.threads.at(slot);
        if thread.open.as_deref().is_some_and(is_it) {
            return true;
        }
        let Some(depth) = thread.callers.iter().rposition(is_it) else { return false };
        while self.threads.at(slot).callers.len() > depth {
            self.end_lost(slot, event, sink);
        }
        true
    }

    /// Ends the innermost job, whose end was lost, which leaves its caller in doubt, too.
    fn end_lost(&mut self, slot: u32, event: &Event, sink: Sink<'_>) {
        let thread = self.threads.at(slot);
        for open in thread.open.as_deref_mut().into_iter().chain(thread.callers.last_mut()) {
            open.flaw(Flaw::Contradiction);
        }
        self.end_innermost(slot, event, sink);
    }

    fn end_innermost(&mut self, slot: u32, event: &Event, sink: Sink<'_>) {
        let thread = self.threads.at(slot);
        let Some(open) = thread.open.as_deref_mut() else { return };
        let called = open.task();
        open.outside_scheduler(event.time);
        self.counters.hand_out(open, event.time, event.cpu, sink);
        if let Some(mut caller) = thread.callers.pop() {
            caller.call_ended(event, called);
            *open = caller;
        }
    }

    /// Reports the callers of the thread's open job, whose ends will not be recorded.
    pub(super) fn cut_callers(&mut self, slot: u32, time: u64, flaw: Flaw, sink: Sink<'_>) {
        for mut caller in std::mem::take(&mut self.threads.at(slot).callers).into_iter().rev() {
            caller.flaw(flaw);
            caller.called_until(time);
            let cpu = caller.last_cpu();
            self.counters.hand_out(&mut caller, time, cpu, sink);
        }
    }
}
