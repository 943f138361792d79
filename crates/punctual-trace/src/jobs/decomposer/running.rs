//! The running thread of each CPU, and the selection of jobs.

use std::ops::RangeInclusive;

use super::Decomposer;
use super::cpu::Cpu;
use super::thread::{Purpose, Thread};
use crate::event::{Event, Kind};
use crate::jobs::cause::Actor;
use crate::jobs::config::FutexWaits;
use crate::jobs::history::State;
use crate::jobs::job::Flaw;
use crate::jobs::open_job::OpenJob;

impl Decomposer {
    /// Returns the CPU of the event being processed.
    #[inline]
    pub(super) fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        self.cpus.get_mut(cpu).expect("feed has added it")
    }

    /// Returns the slot of the thread that caused an event, which shows that it runs there.
    #[inline]
    pub(super) fn running(&mut self, event: &Event) -> Option<u32> {
        let current = self.cpu(event.cpu).current;
        let contends = matches!(event.kind, Kind::ContentionBegin { .. } | Kind::ContentionEnd { .. });
        match current {
            None if event.by == 0 => None,
            Some(slot) if self.threads.at(slot).tid == event.by => current,
            // The event precedes the switch itself, which contends for locks on behalf of the
            // thread being switched out.
            _ if self.cpu(event.cpu).switched_out == event.by && (event.by != 0 || contends) => None,
            Some(slot) if event.by == 0 => {
                self.found_idle(event, slot);
                None
            }
            _ => Some(self.found_running(event, current)),
        }
    }

    /// A CPU turns out to be idle although its thread was not seen to leave. Kernels occasionally
    /// omit a switch without counting it.
    #[cold]
    fn found_idle(&mut self, event: &Event, instead_of: u32) {
        self.contradicted(instead_of);
        let idle = self.occupant(0);
        let cpu = self.cpu(event.cpu);
        cpu.current = None;
        cpu.occupants.push(event.time, idle);
    }

    /// A thread turns out to be running without having been switched in.
    #[cold]
    fn found_running(&mut self, event: &Event, instead_of: Option<u32>) -> u32 {
        if let Some(slot) = instead_of {
            self.contradicted(slot);
        }
        let slot = self.threads.slot(event.by);
        if self.threads.at(slot).state != State::Unknown {
            self.contradicted(slot);
        }
        let thread = self.threads.at(slot);
        thread.set_state(event.time, State::Running, event.cpu);
        if let Some(open) = thread.open.as_mut() {
            open.found_running(event.time, event.cpu);
        }
        let occupant = self.occupant(event.by);
        let cpu = self.cpu(event.cpu);
        cpu.current = Some(slot);
        cpu.occupants.push(event.time, occupant);
        slot
    }

    /// The known state of a thread turns out to be wrong.
    #[cold]
    pub(super) fn contradicted(&mut self, slot: u32) {
        let thread = self.threads.at(slot);
        let time = thread.since;
        if thread.coverage.is_partial {
            // An unrecorded event contradicts nothing.
            return thread.set_state(time, State::Unknown, thread.cpu);
        }
        self.counters.contradictions += 1;
        let thread = self.threads.at(slot);
        thread.set_state(time, State::Unknown, thread.cpu);
        thread.flaw(Flaw::Contradiction);
    }

    /// Calls `act` with the open job, if any, of the thread that caused the event.
    #[inline]
    pub(super) fn with_running(&mut self, event: &Event, act: impl FnOnce(&mut OpenJob)) {
        if let Some(slot) = self.running(event)
            && let Some(open) = self.threads.at(slot).open.as_mut()
        {
            act(open);
        }
    }

    /// The thread that caused the event enters or leaves a system call, so its calls are recorded,
    /// and it is outside the scheduler.
    #[inline]
    pub(super) fn call(&mut self, event: &Event) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.calls = true;
        if let Some(open) = thread.open.as_mut() {
            open.has_calls();
            open.outside_scheduler(event.time);
        }
    }

    /// Returns whether the jobs of this thread are selected; if so, it has an [`OpenJob`].
    #[inline]
    pub(super) fn want(&mut self, slot: u32) -> bool {
        let thread = self.threads.at(slot);
        !thread.coverage.is_partial && (thread.open.is_some() || self.selects(slot))
    }

    /// Returns whether a thread without an [`OpenJob`] is selected; if so, it gets one.
    fn selects(&mut self, slot: u32) -> bool {
        let (thread, select) = (self.threads.at(slot), &self.config.select);
        let by_priority =
            select.priorities.as_ref().is_some_and(|range| range.contains(&thread.priority.own));
        let by_marks = select.marked && thread.marks;
        if !(by_priority || by_marks || thread.chosen || select.tids.contains(&thread.tid)) {
            return false;
        }
        if !self.is_among(slot) {
            return false;
        }
        let mut open = Box::new(self.open_job(slot));
        open.reserves(self.budgets.of(self.threads.at(slot).tid));
        if self.counters.gaps > 0 {
            // Its first wake-up may have been in a gap.
            open.flaw(Flaw::Lost);
        }
        self.threads.at(slot).open = Some(open);
        if !self.wanted.contains(&slot) {
            self.wanted.push(slot);
        }
        true
    }

    /// Creates the job record of this thread.
    pub(super) fn open_job(&self, slot: u32) -> OpenJob {
        let thread = self.threads.get_slot(slot);
        let mut open = OpenJob::new(Actor::Thread(thread.tid), thread.purpose.job_kind(), &self.config);
        open.set_incarnation(thread.incarnation);
        if thread.purpose != Purpose::Program || self.config.futex == FutexWaits::Suspend {
            open.waits_for_no_futex();
        }
        if thread.calls || self.config.recorded.has_calls_of(thread.tid) {
            open.has_calls();
        }
        open
    }

    /// Returns whether a job released now is selected: if only the thread's priority selects it,
    /// that priority must match.
    #[inline]
    pub(super) fn want_release(&mut self, slot: u32) -> bool {
        let thread = self.threads.at(slot);
        let select = &self.config.select;
        let by_priority = |range: &RangeInclusive<i32>| range.contains(&thread.priority.own);
        select.priorities.as_ref().is_none_or(by_priority)
            || thread.chosen
            || (select.marked && thread.marks)
            || select.tids.contains(&thread.tid)
    }

    /// Returns whether it belongs to the threads that the selection is restricted to.
    #[inline]
    pub(super) fn is_among(&mut self, slot: u32) -> bool {
        let among = &self.config.select.among;
        let thread = self.threads.at(slot);
        among.is_empty() || thread.descends || among.contains(&thread.tid)
    }

    /// The thread that caused the event has created this one.
    #[cold]
    pub(super) fn thread_created(&mut self, event: &Event, slot: u32) {
        let among = &self.config.select.among;
        let descends = |parent: &Thread| parent.descends || among.contains(&parent.tid);
        let parent = self.threads.get(event.by);
        let descends = !among.is_empty() && parent.is_some_and(descends);
        let recorded = &self.config.recorded;
        let calls = parent.is_some_and(|parent| parent.calls || recorded.has_calls_of(parent.tid));
        // The previous thread with this TID has ended.
        let traced = self.starts_traced(event.by, slot);
        let incarnation = self.threads.created(slot);
        let thread = self.threads.at(slot);
        (thread.descends, thread.marks, thread.calls) = (descends, false, calls);
        thread.continues = false;
        thread.coverage.is_traced = traced;
        thread.open.take_if(|open| open.is_idle());
        if let Some(open) = thread.open.as_mut() {
            open.set_incarnation(incarnation);
        }
    }
}
