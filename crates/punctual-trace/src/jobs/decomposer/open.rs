//! Open jobs: nothing else reveals a deadlock or a thread that never sleeps.

use super::{Decomposer, Sink};
use crate::jobs::cause::Actor;
use crate::jobs::history::State;
use crate::jobs::job::{Flaw, Job};
use crate::jobs::open_job::OpenJob;

impl Decomposer {
    /// Calls `each` with the jobs that at `now` have been open for more than `longest` ns, as
    /// [cut](Flaw::Cut). All events up to `now` must have been fed.
    pub fn open_jobs(&mut self, now: u64, longest: u64, each: &mut dyn FnMut(&Job)) {
        let now = now.max(self.time);
        for index in 0..self.wanted.len() {
            let slot = self.wanted[index];
            let since = self.threads.at(slot).open.as_deref().and_then(OpenJob::open_since);
            if since.is_some_and(|since| now.saturating_sub(since) > longest) {
                self.cut(slot, now, &mut |open, number| each(open.cut(number, now)));
            }
        }
        for slot in self.running_on() {
            if now.saturating_sub(self.threads.at(slot).awake_since) > longest {
                self.running_on_job(slot, now, each);
            }
        }
    }

    /// Reports the jobs that are still open, as [cut](Flaw::Cut): their terms are at least their
    /// values so far.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&Job)) {
        let time = self.time;
        let running_on = self.running_on();
        for slot in std::mem::take(&mut self.wanted) {
            if self.threads.at(slot).open.as_ref().is_some_and(|open| !open.is_idle()) {
                let mut jobs = 0;
                self.cut(slot, time, &mut |open, number| {
                    jobs += 1;
                    sink(open.cut(number, time));
                });
                self.counters.jobs += jobs;
                self.counters.flawed += jobs;
            }
            self.threads.at(slot).open = None;
            self.cut_callers(slot, time, Flaw::Cut, sink);
        }
        for slot in running_on {
            self.running_on_job(slot, time, sink);
            self.counters.jobs += 1;
            self.counters.flawed += 1;
        }
    }

    /// Calls `act` with a copy of a thread's open job, in which its wait and its call end now.
    fn cut(&mut self, slot: u32, now: u64, act: &mut dyn FnMut(&mut OpenJob, u64)) {
        let thread = self.threads.at(slot);
        let (waiter, cpu, ready) = (thread.tid, thread.cpu, thread.state == State::Ready);
        let Some(mut open) = thread.open.clone() else { return };
        if ready {
            let cpu = self.cpus.get(cpu);
            open.blame_occupants(now, cpu.map(|cpu| &cpu.occupants));
        }
        if let Some(wait) = open.ending_wait(now).filter(|wait| wait.slept) {
            self.explain_wait(wait, waiter);
        }
        open.end_wait(now);
        act(&mut open, self.counters.jobs);
    }

    /// Returns the threads that have been running or ready since they were first seen: without a
    /// recorded wake-up, they have no job.
    fn running_on(&mut self) -> Vec<u32> {
        let mut slots = self.threads.awake_without_job();
        slots.retain(|&slot| self.want_running_on(slot));
        slots
    }

    /// Returns whether its jobs are selected, as far as known for a thread that was never switched
    /// in.
    fn want_running_on(&mut self, slot: u32) -> bool {
        let maybe = self.config.select.priorities.is_some() && !self.threads.at(slot).priority.is_shown;
        self.want(slot) || (maybe && self.is_among(slot))
    }

    fn running_on_job(&mut self, slot: u32, now: u64, each: Sink<'_>) {
        let thread = self.threads.at(slot);
        let mut open = OpenJob::new(Actor::Thread(thread.tid), thread.purpose.job_kind(), &self.config);
        open.runs_on(thread.awake_since, thread.cpu, thread.priority.own);
        each(open.cut(self.counters.jobs, now));
    }
}
