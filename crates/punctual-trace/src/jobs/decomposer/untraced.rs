//! Threads whose switches are not all recorded. In narrow recordings, only those between them and a
//! traced thread are; some kernels omit switches from the idle thread.
//!
//! The state of such a thread after a switch or a wake-up is unknown, so it has no jobs. For the
//! same reason the occupant of a CPU is unknown from the time a traced thread has left it until the
//! next one arrives. All of this applies to the idle thread, too.

use super::{Decomposer, is_contention};
use crate::event::{Event, Kind, Task, Tid};
use crate::jobs::cause::Actor;
use crate::jobs::history::State;

impl Decomposer {
    /// An event shows a thread with a priority, perhaps in a switch with the idle thread.
    #[inline]
    pub(super) fn shows(&mut self, slot: u32, task: Task, with_idle: bool) {
        if self.known.switches_of_some {
            self.observe(slot, Some(task.priority), with_idle);
        }
    }

    /// A thread has this name.
    pub(super) fn is_named(&mut self, slot: u32, name: &str) {
        if let Some(chosen) = self.config.recorded.switches_of() {
            self.threads.at(slot).coverage.is_named = chosen.has_name(name);
            self.observe(slot, None, false);
        }
    }

    fn observe(&mut self, slot: u32, priority: Option<i32>, with_idle: bool) {
        let Some(chosen) = self.config.recorded.switches_of() else { return };
        let thread = self.threads.at(slot);
        if let Some(priority) = priority {
            thread.observe_priority(priority);
        }
        // A switch is recorded if one of both threads is traced, and the idle one never is.
        thread.coverage.is_traced |= with_idle && chosen.follows();
        let partly = !(thread.coverage.is_traced
            || thread.coverage.is_named
            || (thread.priority.is_shown && chosen.has_priority(thread.priority.own)));
        if partly && !std::mem::replace(&mut thread.coverage.is_partial, partly) {
            // Its later activity is not recorded.
            (thread.open, thread.parked) = (None, None);
            thread.callers.clear();
            thread.set_state(thread.since, State::Unknown, thread.cpu);
        }
        thread.coverage.is_partial = partly;
    }

    /// Returns whether all switches of a new thread are recorded, judging by its parent and its ID.
    pub(super) fn starts_traced(&mut self, by: Tid, slot: u32) -> bool {
        let Some(chosen) = self.config.recorded.switches_of() else { return true };
        if !chosen.follows() {
            return chosen.has(self.threads.at(slot).tid);
        }
        self.threads.get(by).map_or_else(|| chosen.has(by), |parent| parent.coverage.is_traced)
    }

    /// Returns whether all switches of this thread are recorded, as far as currently known.
    #[must_use]
    pub fn must_observe(&self, tid: Tid) -> bool {
        let Some(chosen) = self.config.recorded.switches_of() else { return true };
        tid != 0
            && self.threads.get(tid).map_or_else(|| chosen.has(tid), |thread| !thread.coverage.is_partial)
    }

    /// Returns the occupant of a CPU from now on, as far as is certain, if this thread is the
    /// current one.
    #[inline]
    pub(super) fn occupant(&self, tid: Tid) -> Actor {
        if self.known.switches_of_some && !self.must_observe(tid) {
            Actor::Unseen
        } else {
            Actor::Thread(tid)
        }
    }
}

/// Switches from the idle thread that the kernel has not recorded.
///
/// Some kernels trace no switch from idle, for minutes or for a whole boot. The last event of the
/// idle thread on a CPU and the first event of the next thread there bound such a switch, usually
/// within microseconds.
impl Decomposer {
    /// A thread has caused an event on a CPU on which the idle thread ran at the previous event. If
    /// the thread was ready there, the switch to it lies between the two.
    #[cold]
    pub(super) fn runs_after_idle(&mut self, event: &Event, idle_until: u64) {
        let slot = self.threads.slot(event.by);
        if self.gaps > 0 {
            return;
        }
        let thread = self.threads.get_slot(slot);
        if is_contention(event) && !thread.queued && !self.acquires(event) {
            // On its way to sleep; without recorded ends of wake-ups, perhaps in its next job.
            self.threads.at(slot).contended = !self.known.insertions;
            return;
        }
        let is_ready = match thread.state {
            State::Ready => thread.cpu == event.cpu,
            // Nothing shows when it was woken.
            State::Asleep => !self.known.wakeups,
            State::Running | State::Unknown => false,
        };
        if !is_ready || thread.coverage.is_partial {
            return;
        }
        self.park(event, None);
        let thread = self.threads.get_slot(slot);
        let (task, since) = (Task { id: event.by, priority: thread.priority.own }, thread.since);
        let contended = thread.contended;
        self.switch_in(event, slot, task, idle_until.max(since));
        if contended && let Some(open) = self.threads.at(slot).open.as_mut() {
            open.contended_unobserved();
        }
        let occupant = self.occupant(event.by);
        let cpu = self.cpu(event.cpu);
        (cpu.current, cpu.switched_out, cpu.switched_in) = (Some(slot), 0, Some(event.by));
        if is_contention(event) {
            // The contention alone does not show that the thread runs.
            cpu.idle_until = None;
        }
        cpu.occupants.push(event.time, occupant);
        self.counters.bounded_switches += 1;
    }

    /// Returns whether the thread has acquired the lock that its job waits for, and so runs. The
    /// scheduler contends for other locks.
    fn acquires(&self, event: &Event) -> bool {
        let Kind::ContentionEnd { lock } = event.kind else { return false };
        let open = self.threads.get(event.by).and_then(|thread| thread.open.as_ref());
        open.is_some_and(|open| open.waits_for_lock(lock) == Some(true))
    }
}
