//! Context switches: jobs start, are displaced, wait and end.

use super::thread::{Contention, FutexCall, Purpose, Wait};
use super::{Decomposer, Sink};
use crate::event::{Event, Kind, SwitchOut, Task};
use crate::jobs::cause::Actor;
use crate::jobs::config::Sleeps;
use crate::jobs::history::State;
use crate::jobs::job::Flaw;

impl Decomposer {
    #[inline(never)]
    pub(super) fn switch(&mut self, event: &Event, sink: Sink<'_>) {
        let Kind::Switch { from, reason, to } = event.kind else { return };
        let cpu = self.cpu(event.cpu);
        let (known, came, in_handler) = (cpu.current, cpu.switched_in, !cpu.frames.is_empty());
        cpu.firing = None;
        let leaving = match known {
            Some(slot) if self.threads.at(slot).tid == from.id => known,
            _ => (from.id != 0).then(|| self.threads.slot(from.id)),
        };
        if let Some(slot) = known
            && known != leaving
        {
            self.contradicted(slot);
        }
        if in_handler {
            self.park(event, leaving);
        }
        if let Some(slot) = leaving {
            self.shows(slot, from, to.id == 0);
            self.switch_out(event, slot, from, reason, sink);
        }
        let coming = (to.id != 0).then(|| self.threads.slot(to.id));
        if let Some(slot) = coming {
            self.shows(slot, to, from.id == 0);
            self.switch_in(event, slot, to, event.time);
        }
        let occupant = self.occupant(to.id);
        let came = came.filter(|&came| came != from.id);
        let unseen = came.is_some_and(|came| self.must_observe(came) || self.must_observe(from.id));
        let cpu = self.cpu(event.cpu);
        (cpu.current, cpu.switched_out, cpu.switched_in) = (coming, from.id, Some(to.id));
        cpu.idle_until = (to.id == 0).then_some(event.time);
        cpu.occupants.push(event.time, cpu.frames.last().map_or(occupant, |frame| frame.actor));
        if cpu.occupants.half_full() {
            self.blame_occupants_of_cpu(event);
        }
        self.counters.switches += 1;
        self.counters.unseen_switches += u64::from(unseen);
    }

    /// Call it before the ring of occupants overwrites entries that waiting threads have not
    /// examined.
    #[cold]
    pub(super) fn blame_occupants_of_cpu(&mut self, event: &Event) {
        for index in 0..self.wanted.len() {
            let slot = self.wanted[index];
            if self.threads.at(slot).cpu == event.cpu {
                self.blame_occupants(event.time, slot);
            }
        }
    }

    /// Only a softirq that runs in a thread, as all do under PREEMPT_RT, can be switched out. It
    /// migrates with its thread.
    #[cold]
    pub(super) fn park(&mut self, event: &Event, leaving: Option<u32>) {
        let cpu = self.cpu(event.cpu);
        cpu.firing = None;
        let Some(mut frame) = cpu.frames.last().copied() else { return };
        let movable = cpu.frames.len() == 1 && matches!(frame.actor, Actor::Softirq(_));
        cpu.frames.clear();
        let Some(slot) = leaving else { return };
        if self.threads.at(slot).coverage.is_partial {
            // Its resumption will not be seen.
            return;
        }
        if movable {
            frame.parked = event.time;
            self.threads.at(slot).parked = Some(Box::new(frame));
        } else {
            self.contradicted(slot);
            self.threads.at(slot).set_state(event.time, State::Running, event.cpu);
        }
    }

    fn switch_out(&mut self, event: &Event, slot: u32, task: Task, reason: SwitchOut, sink: Sink<'_>) {
        let (time, sleeps) = (event.time, self.config.sleeps);
        let mut thread = self.threads.at(slot);
        let known = thread.runs_on(event.cpu);
        if !known && thread.state != State::Unknown {
            self.contradicted(slot);
            thread = self.threads.at(slot);
        }
        thread.observe_priority(task.priority);
        let state = if reason == SwitchOut::Runnable { State::Ready } else { State::Asleep };
        thread.set_state(time, state, event.cpu);
        let for_lock =
            state == State::Asleep && (thread.locks.may_wait() || reason == SwitchOut::Uninterruptible);
        if let Some(holder) = thread.locks.boosted_holder.take_if(|_| state == State::Asleep)
            && for_lock
        {
            thread.locks.remember_wait(Wait {
                start: time,
                end: u64::MAX,
                holder,
                releaser: 0,
                passed: None,
            });
        }
        if state == State::Ready {
            thread.early = None;
            let untold = task.priority < 0 && !self.known.timers;
            if untold || thread.yields || thread.deadline.is_some() {
                if self.leaves_by_deadline(event, slot, known, sink) {
                    return;
                }
                thread = self.threads.at(slot);
            }
        }
        if reason == SwitchOut::Gone && thread.open.as_ref().is_some_and(|open| open.waits()) {
            // A thread killed during a wait does not return from the call.
            self.end_wait(time, slot);
            thread = self.threads.at(slot);
        }
        // Its activity after such a sleep began before, unobserved.
        thread.continues = state == State::Asleep
            && thread.open.as_ref().is_none_or(|open| open.is_idle())
            && (thread.locks.blocks()
                || reason == SwitchOut::Uninterruptible
                || sleeps == Sleeps::BelongToJob);
        if let Some(open) = thread.open.as_mut()
            && open.switched_out(event, reason, (known, thread.marks), sleeps)
        {
            self.counters.hand_out(open, time, event.cpu, sink);
        }
        if reason == SwitchOut::Gone {
            self.cut_callers(slot, time, Flaw::Contradiction, sink);
            self.threads.end(task.id);
            self.wanted.retain(|&wanted| wanted != slot);
        }
    }

    /// Switches a thread in: at the event, or at `earliest` or later if the switch was not
    /// recorded.
    pub(super) fn switch_in(&mut self, event: &Event, slot: u32, task: Task, earliest: u64) {
        let time = event.time;
        let mut thread = self.threads.at(slot);
        if thread.deadline.is_some() {
            self.is_due_by_deadline(slot);
            thread = self.threads.at(slot);
        }
        let was = thread.state;
        thread.observe_priority(task.priority);
        if was == State::Ready && thread.open.is_none() && thread.parked.is_none() {
            // Most threads are not selected.
            thread.set_state(time, State::Running, event.cpu);
            return;
        }
        // Without wake-ups in the trace a sleep ends with the switch.
        let silent = was == State::Asleep && !self.known.wakeups;
        if matches!(was, State::Asleep | State::Running) && !silent {
            self.contradicted(slot);
        }
        self.blame_occupants(time, slot);
        // A thread whose wake-up was not recorded still has a job, with an unknown release.
        let unseen = was == State::Asleep && self.want(slot) && self.want_release(slot);
        let thread = self.threads.at(slot);
        let moved = was == State::Ready && thread.cpu != event.cpu;
        thread.set_state(time, State::Running, event.cpu);
        let parked = thread.parked.take();
        let (own, continues) = (thread.purpose == Purpose::Softirqs, std::mem::take(&mut thread.continues));
        let priority = thread.priority.own;
        let mut ends_wait = false;
        if let (Some(open), Some(cpu)) = (thread.open.as_mut(), self.cpus.get(event.cpu)) {
            if unseen {
                open.release_unseen(time, priority);
                if continues {
                    open.continues_unobserved();
                }
            }
            if self.gaps > 0 {
                open.flaw(Flaw::Lost);
            }
            // A thread that marks its jobs has no others.
            let resumes = open.continues() && open.is_released() && !thread.marks;
            ends_wait = open.switched_in(event, earliest, moved, parked.is_some() && !own, &cpu.sections);
            if resumes {
                let call = match thread.locks.call {
                    FutexCall::Blocking { word, role } => Some((word, role)),
                    _ => None,
                };
                let lock = match thread.locks.contention {
                    Contention::Sleeping(lock) => Some(lock),
                    _ => None,
                };
                open.resumes_wait(time, call, lock);
            }
        }
        if ends_wait {
            self.end_wait(time, slot);
        }
        if let Some(mut frame) = parked {
            frame.displaced += time.saturating_sub(frame.parked);
            self.cpu(event.cpu).frames.push(*frame);
        }
    }
}
