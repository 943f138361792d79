//! Interrupt and softirq handlers: they displace threads, and are jobs themselves.

use super::cpu::HandlerFrame;
use super::thread::Purpose;
use super::{Decomposer, Sink};
use crate::event::Event;
use crate::jobs::blocking::{Blocking, WaitTarget};
use crate::jobs::bounds::Bounds;
use crate::jobs::cause::{Actor, blame};
use crate::jobs::job::{Flaw, JobKind, ReleasedBy};

impl Decomposer {
    #[inline(never)]
    pub(super) fn enter(&mut self, event: &Event, actor: Actor) {
        // Identifies the running thread, if it is unknown.
        let _ = self.running(event);
        let cpu = self.cpu(event.cpu);
        let current = cpu.current;
        let room = cpu.enter(event.time, actor);
        let full = cpu.occupants.half_full();
        if let Some(slot) = current {
            if !room {
                self.contradicted(slot);
            }
            let thread = self.threads.at(slot);
            let own = thread.purpose == Purpose::Softirqs && matches!(actor, Actor::Softirq(_));
            let here = thread.runs_on(event.cpu);
            if let Some(open) = thread.open.as_mut().filter(|open| here && !open.is_idle()) {
                open.handler_begins(event.time, !own);
            }
        }
        if full {
            self.blame_occupants_of_cpu(event);
        }
    }

    #[inline(never)]
    pub(super) fn leave(&mut self, event: &Event, actor: Actor, sink: Sink<'_>) {
        let cpu = self.cpu(event.cpu);
        // Between the event of a switch and the switch itself, the CPU already belongs to the next
        // thread.
        let next = cpu.switched_in.filter(|_| cpu.switched_out == event.by);
        let by = self.occupant(next.unwrap_or(event.by));
        let cpu = self.cpu(event.cpu);
        let current = cpu.current;
        // Ignore an exit without an entry: the trace began in between.
        let Some(clean) = cpu.leave(event.time, actor, by) else { return };
        let &HandlerFrame { entry, displaced, .. } = cpu.frames.ended();
        let full = cpu.occupants.half_full();
        let outer = cpu.handler();
        if let Some(slot) = current {
            let thread = self.threads.at(slot);
            let own = thread.purpose == Purpose::Softirqs;
            let displaces = |actor| !(own && matches!(actor, Actor::Softirq(_)));
            let here = thread.runs_on(event.cpu);
            if let Some(open) = thread.open.as_mut().filter(|open| here && !open.is_idle()) {
                open.handler_ends(event.time, outer.is_some_and(displaces));
                if displaces(actor) {
                    open.displaced(event.time, actor, entry, displaced);
                }
                if !clean {
                    open.flaw(Flaw::Contradiction);
                }
            }
        }
        if full {
            self.blame_occupants_of_cpu(event);
        }
        if self.config.handlers {
            self.handler_job(event, clean, sink);
        }
    }

    /// Each run of a handler is a job, because handlers cannot suspend themselves.
    #[inline(never)]
    fn handler_job(&mut self, event: &Event, clean: bool, sink: Sink<'_>) {
        let Some(cpu) = self.cpus.get(event.cpu) else { return };
        let frame = cpu.frames.ended();
        let job = &mut self.handler_job;
        job.number = self.counters.jobs;
        job.actor = frame.actor;
        job.kind = match frame.actor {
            Actor::Irq(_) => JobKind::Irq,
            Actor::Softirq(_) => JobKind::Softirq,
            _ => JobKind::Vector,
        };
        (job.start, job.end) = (frame.entry, event.time);
        (job.first_cpu, job.last_cpu) = (event.cpu, event.cpu);
        let window = event.time.saturating_sub(frame.entry);
        // The time at which a device raised its interrupt is unknown. A timer's interrupt was due
        // at the expiry of the timer.
        let timer = frame.due.filter(|_| job.kind == JobKind::Vector || job.kind == JobKind::Irq);
        job.released = timer.map(|(lo, hi)| (lo.min(frame.entry), hi.min(frame.entry)));
        job.released_by = if timer.is_some() { ReleasedBy::Timer } else { ReleasedBy::Unseen };
        job.jitter = job
            .released
            .map_or(Bounds::Unknown, |(lo, hi)| Bounds::between(frame.entry - hi, frame.entry - lo));
        job.window = Bounds::Exact(window);
        job.response = job.jitter_and_window();
        job.overhead = Bounds::Exact(0);
        (job.overhead_entry, job.overhead_exit) = (Bounds::Exact(0), Bounds::Exact(0));
        let execution = window.saturating_sub(frame.blocked).saturating_sub(frame.displaced);
        (job.blocking, job.interference) = (Bounds::Exact(frame.blocked), Bounds::Exact(frame.displaced));
        job.execution = Bounds::Exact(execution);
        if !(self.known.contention && self.known.handlers()) {
            job.execution = Bounds::between(0, execution);
        }
        if !self.known.contention {
            job.blocking = Bounds::at_least(frame.blocked);
        }
        if !self.known.handlers() {
            job.interference = Bounds::at_least(frame.displaced);
        }
        job.blockings.clear();
        if frame.waited > 0 {
            let (address, start, end) = frame.longest_wait;
            // Handlers cannot sleep.
            let lock = WaitTarget::Lock { address, flags: 0 };
            job.blockings.push(Blocking::new(lock, start, end));
        }
        job.blockings_left_out = frame.waited.saturating_sub(1);
        job.interference_causes.clear();
        if frame.displaced > 0 {
            let causes = &mut job.interference_causes;
            cpu.occupants.walk(frame.entry, event.time, |actor, from, to| {
                if actor != Some(frame.actor) {
                    blame(causes, actor.unwrap_or(Actor::Unseen), to - from);
                }
            });
        }
        job.flaw = (!clean || job.check_parts_of_window().is_err()).then_some(Flaw::Contradiction);
        self.counters.jobs += 1;
        self.counters.flawed += u64::from(!job.complete());
        sink(job);
    }
}
