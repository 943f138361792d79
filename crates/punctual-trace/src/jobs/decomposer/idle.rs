//! Switches from the idle thread that the kernel has not recorded.
//!
//! Some kernels trace no switch from idle, for minutes or for a whole boot. The last event of the
//! idle thread on a CPU and the first event of the next thread there bound such a switch, usually
//! within microseconds.

use super::{Decomposer, is_contention};
use crate::event::{Event, Kind, Task};
use crate::jobs::history::State;

impl Decomposer {
    /// A thread has caused an event on a CPU on which the idle thread ran at the previous event. If
    /// the thread was ready there, the switch to it lies between the two.
    #[cold]
    pub(super) fn runs_after_idle(&mut self, event: &Event) {
        let slot = self.threads.slot(event.by);
        let is_leaving = is_contention(event) && !self.threads.get_slot(slot).queued && !self.acquires(event);
        if self.gaps > 0 || is_leaving {
            return;
        }
        let thread = self.threads.get_slot(slot);
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
        let earliest = self.cpu(event.cpu).idle_until.max(since);
        self.switch_in(event, slot, task, earliest);
        let occupant = self.occupant(event.by);
        let cpu = self.cpu(event.cpu);
        (cpu.current, cpu.switched_out, cpu.switched_in) = (Some(slot), 0, Some(event.by));
        if is_contention(event) {
            // The contention alone does not show that the thread runs.
            cpu.ran = Some(event.by);
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
