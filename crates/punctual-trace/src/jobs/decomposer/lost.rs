//! Gaps in the trace: the jobs they affect are not trusted.
//!
//! A reader detects a gap when it reaches the events after it or, if it reads ahead, when it has
//! returned the last event before it. The earlier it reports the gap, the better: a job that runs
//! into the gap and ends on another CPU before the report looks complete. In both cases, the gap
//! lasts from the CPU's last event before the report to the first one after it.

use super::Decomposer;
use crate::event::Event;
use crate::jobs::cause::Actor;
use crate::jobs::history::State;
use crate::jobs::job::Flaw;

impl Decomposer {
    /// Events of a CPU were lost between its previous event and the next one.
    pub(super) fn lost(&mut self, event: &Event) {
        self.counters.gaps += 1;
        let cpu = self.cpu(event.cpu);
        let since = cpu.before;
        let current = cpu.current.take();
        (cpu.switched_out, cpu.switched_in, cpu.idle_until) = (0, None, None);
        cpu.frames.clear();
        cpu.firing = None;
        cpu.sections.forget();
        cpu.occupants.push(since, Actor::Unseen);
        if cpu.gap.replace(since).is_none() {
            self.gaps += 1;
        }
        if let Some(slot) = current {
            self.distrust(slot, since, event.cpu);
        }
        self.distrust_touched(since, event.cpu);
    }

    /// Processes the first event of a CPU after a gap.
    #[cold]
    pub(super) fn gap_ends(&mut self, event: &Event, since: u64) {
        self.gaps -= 1;
        let occupant = self.occupant(event.by);
        self.cpu(event.cpu).occupants.push(event.time, occupant);
        self.distrust_touched(since, event.cpu);
    }

    /// Marks the jobs that the gap may have affected. A job is unaffected only if its thread ran on
    /// another CPU throughout: in any other state, it could have been woken, moved or switched in
    /// during the gap. The same applies to threads without a job: their next wake-up may occur in
    /// the middle of a job that began in the gap.
    fn distrust_touched(&mut self, since: u64, gone: u16) {
        for index in 0..self.wanted.len() {
            let slot = self.wanted[index];
            let thread = self.threads.at(slot);
            let elsewhere = thread.state == State::Running && thread.cpu != gone && thread.since <= since;
            if !elsewhere {
                self.distrust(slot, since, gone);
            }
        }
    }

    fn distrust(&mut self, slot: u32, since: u64, gone: u16) {
        let thread = self.threads.at(slot);
        // If the thread now runs on another CPU, only its past is in doubt.
        if thread.state != State::Running || thread.cpu == gone {
            let (since, cpu) = (since.max(thread.since), thread.cpu);
            thread.set_state(since, State::Unknown, cpu);
            thread.parked = None;
        }
        thread.flaw(Flaw::Lost);
    }
}
