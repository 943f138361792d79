//! Gaps in the trace: the jobs they touch are not to be trusted.

use super::cause::Actor;
use super::decomposer::Decomposer;
use super::history::State;
use super::job::Flaw;
use crate::event::Event;

impl Decomposer {
    /// Events of a CPU were lost between its event before and this one. A job is untouched only if its thread ran on
    /// another CPU all the while: whatever else it did, it could have been woken, moved or switched to in the gap.
    pub(super) fn lost(&mut self, event: &Event) {
        self.counters.gaps += 1;
        let gone = event.cpu;
        let cpu = self.cpu(gone);
        let since = cpu.last;
        let current = cpu.current.take();
        cpu.frames.clear();
        cpu.firing = None;
        cpu.occupants.push(since, Actor::Unseen);
        if let Some(slot) = current {
            self.lose(slot, since, gone);
        }
        for index in 0..self.wanted.len() {
            let slot = self.wanted[index];
            let thread = self.threads.at(slot);
            let elsewhere = thread.state == State::Running && thread.cpu != gone && thread.since <= since;
            if !elsewhere && thread.open.as_ref().is_some_and(|open| !open.idle()) {
                self.lose(slot, since, gone);
            }
        }
    }

    fn lose(&mut self, slot: u32, since: u64, gone: u16) {
        let thread = self.threads.at(slot);
        // Of a thread that runs elsewhere by now only the past is doubtful.
        if thread.state != State::Running || thread.cpu == gone {
            let (since, cpu) = (since.max(thread.since), thread.cpu);
            thread.become_(since, State::Unknown, cpu);
            thread.parked = None;
        }
        for open in thread.open.iter_mut().chain(&mut thread.outer) {
            open.flaw(Flaw::Lost);
        }
    }
}
