//! Bounds the scheduling latency of the highest-priority thread of a CPU.
//!
//! *De Oliveira, Casini, de Oliveira, Cucinotta, "Demystifying the Real-Time Linux Scheduling
//! Latency", ECRTS 2020*: without interrupts, the time from the wake-up of such a thread to the
//! switch to it is at most
//!
//! > max(ST, POID) + PAIE + PSD
//!
//! with the longest of each that a recording with `preemptirq` events contains. None of them
//! includes interrupt handlers, whose time is added as often as they may occur. If the scheduler is
//! called and selects the running thread again, the section counts as POID, because no event
//! distinguishes the two: that is conservative.
//!
//! While the idle thread runs, disabled preemption delays no thread: there PSD is the time from the
//! wake-up to the switch.
//!
//! No event reports that a thread raised its own priority, and the change stays invisible if the
//! thread lowers it before it is switched out. The kernel's choice reveals it: the kernel switches
//! to a higher-priority thread as soon as interrupts and preemption are enabled. So a thread that
//! continues to run then does not have a lower priority.

use std::collections::HashMap;

use crate::event::{Event, Kind, Section, Task, Tid};

/// Number of times that both are enabled again while a higher-priority thread is ready, without a
/// switch, before the thread is considered not to have a higher priority. One would suffice, but
/// for an interrupt that occurs in between.
const CHANCES: u32 = 3;

/// Maximum number of stored threads; when it is exceeded, all are dropped.
const MAX_RAISED: usize = 4_096;

/// The longest section of a kind, and the time of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Longest {
    /// Length, in ns.
    pub ns: u64,
    /// Time of its end, on the trace's clock.
    pub end: u64,
}

impl Longest {
    fn see(&mut self, ns: u64, end: u64) {
        if ns >= self.ns {
            *self = Self { ns, end };
        }
    }
}

/// Measurements of a CPU, each without interrupt handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Preemption or interrupts disabled for other reasons than scheduling.
    pub poid: Longest,
    /// From a switch until both are enabled again.
    pub st: Longest,
    /// Both enabled while a higher-priority thread is ready, until they are disabled to schedule.
    pub paie: Longest,
    /// Preemption disabled to schedule, until the switch.
    pub psd: Longest,
    /// Number of sections.
    pub sections: u64,
    /// Switches with neither disabled, which cannot happen: events are missing.
    pub contradictions: u64,
}

impl Terms {
    /// Returns the bound without interrupts, or `None` if no section was recorded, so nothing is
    /// known.
    #[must_use]
    pub fn without_interrupts(&self) -> Option<u64> {
        let longest = self.st.ns.max(self.poid.ns);
        let sum = longest.checked_add(self.paie.ns)?.checked_add(self.psd.ns)?;
        (self.sections > 0 && self.contradictions == 0).then_some(sum)
    }
}

/// An instant, with the total handler time until then.
#[derive(Debug, Clone, Copy)]
struct Mark {
    time: u64,
    handled: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    terms: Terms,
    current: Option<Task>,
    /// Disabled mechanisms: interrupts and preemption.
    off: [bool; 2],
    section: Option<Mark>,
    /// The last switch in the section.
    switched: Option<Mark>,
    /// Time since which both are enabled and a higher-priority thread is ready.
    enabled: Option<Mark>,
    /// The highest priority of the threads that wait for this CPU, with the start of the wait.
    pending: Option<(i32, Mark)>,
    /// Number of opportunities to switch to it; not counted if it was woken on another CPU, which
    /// has to notify this one first.
    chances: Option<u32>,
    /// The longest PAIE since the start of that wait.
    enabled_longest: Longest,
    /// Time at which the current thread was switched in.
    current_since: u64,
    depth: u32,
    entered: u64,
    handled: u64,
}

impl Cpu {
    fn mark(&self, time: u64) -> Mark {
        let open = if self.depth > 0 { time.saturating_sub(self.entered) } else { 0 };
        Mark { time, handled: self.handled + open }
    }

    /// Returns the elapsed time without handlers.
    fn since(&self, from: Mark, time: u64) -> u64 {
        let handled = self.mark(time).handled - from.handled;
        time.saturating_sub(from.time).saturating_sub(handled)
    }

    fn is_idle(&self) -> bool {
        self.current.is_some_and(|task| task.id == 0)
    }

    fn disable(&mut self, time: u64, section: Section) {
        let was_on = self.off == [false; 2];
        self.off[section as usize] = true;
        if was_on && !self.is_idle() {
            if let Some(from) = self.enabled.take() {
                let ns = self.since(from, time);
                self.enabled_longest.see(ns, time);
            }
            (self.section, self.switched) = (Some(self.mark(time)), None);
        }
    }

    /// Returns the current thread if its priority turns out to be at least that of the waiting one.
    fn enable(&mut self, time: u64, section: Section) -> Option<Tid> {
        self.off[section as usize] = false;
        if self.off != [false; 2] {
            return None;
        }
        let from = self.section.take()?;
        self.terms.sections += 1;
        match self.switched.take() {
            Some(switched) => {
                let ns = self.since(switched, time);
                self.terms.st.see(ns, time);
            }
            None => {
                let ns = self.since(from, time);
                self.terms.poid.see(ns, time);
            }
        }
        self.enabled = self.pending.map(|_| self.mark(time));
        let chances = self.chances.as_mut().filter(|_| self.pending.is_some())?;
        *chances += 1;
        if *chances < CHANCES || self.is_idle() {
            return None;
        }
        self.forget_pending();
        self.current.map(|current| current.id)
    }

    fn forget_pending(&mut self) {
        (self.pending, self.enabled, self.chances) = (None, None, None);
        self.enabled_longest = Longest::default();
    }

    fn waking(&mut self, time: u64, task: Task, is_here: bool) {
        let is_above = |other: i32| task.priority < other;
        if self.current.is_some_and(|current| is_above(current.priority))
            && self.pending.is_none_or(|(other, _)| is_above(other))
        {
            let since = self.pending.map_or(self.mark(time), |(_, since)| since);
            self.pending = Some((task.priority, since));
            self.chances = is_here.then_some(0);
            if self.off == [false; 2] && self.enabled.is_none() && !self.is_idle() {
                self.enabled = Some(self.mark(time));
            }
        }
    }

    fn switch(&mut self, time: u64, to: Task) {
        let before = if self.is_idle() { self.pending.map(|(_, since)| since) } else { self.section };
        match before {
            Some(from) => {
                // After an earlier switch in the same section, the time until then was the tail of
                // that switch.
                let from = self.switched.unwrap_or(from);
                let ns = self.since(from, time);
                self.terms.psd.see(ns, time);
            }
            None if self.current.is_some() && !self.is_idle() => self.terms.contradictions += 1,
            None => {}
        }
        let now = self.mark(time);
        if self.enabled_longest.end > 0 {
            self.terms.paie.see(self.enabled_longest.ns, self.enabled_longest.end);
        }
        (self.current, self.current_since) = (Some(to), time);
        self.forget_pending();
        if to.id == 0 {
            (self.section, self.switched) = (None, None);
        } else {
            self.section = Some(self.section.unwrap_or(now));
            self.switched = Some(now);
            // The thread is leaving the scheduler, regardless of its recorded priority.
            if self.off == [false; 2] {
                self.off[Section::Preemption as usize] = true;
            }
        }
    }
}

/// Processes events in the order of their times.
#[derive(Debug, Default)]
pub struct Latency {
    cpus: Vec<Cpu>,
    /// For each thread that ran with a higher priority than events reported: the start of its last
    /// such run.
    raised: HashMap<Tid, u64>,
}

impl Latency {
    /// Processes an event.
    pub fn feed(&mut self, event: &Event) {
        let time = event.time;
        match event.kind {
            Kind::Waking { task, cpu } => self.cpu(cpu).waking(time, task, cpu == event.cpu),
            Kind::Switch { to, .. } => self.cpu(event.cpu).switch(time, to),
            Kind::Disable { section, .. } => self.cpu(event.cpu).disable(time, section),
            Kind::Enable { section, .. } => {
                let cpu = self.cpu(event.cpu);
                let since = cpu.current_since;
                if let Some(thread) = cpu.enable(time, section) {
                    if self.raised.len() >= MAX_RAISED {
                        self.raised.clear();
                    }
                    self.raised.insert(thread, since);
                }
            }
            Kind::IrqEntry { .. } | Kind::VectorEntry { .. } => {
                let cpu = self.cpu(event.cpu);
                if cpu.depth == 0 {
                    cpu.entered = time;
                }
                cpu.depth += 1;
            }
            Kind::IrqExit { .. } | Kind::VectorExit { .. } => {
                let cpu = self.cpu(event.cpu);
                if cpu.depth == 1 {
                    cpu.handled += time.saturating_sub(cpu.entered);
                }
                cpu.depth = cpu.depth.saturating_sub(1);
            }
            Kind::Lost { .. } => {
                let cpu = self.cpu(event.cpu);
                *cpu = Cpu { terms: cpu.terms, ..Cpu::default() };
            }
            _ => {}
        }
    }

    /// Returns the start of the thread's last run with a higher priority than events reported, or
    /// `None` if there was no such run.
    #[must_use]
    pub fn raised(&self, thread: Tid) -> Option<u64> {
        self.raised.get(&thread).copied()
    }

    /// Returns the measurements of each CPU.
    pub fn terms(&self) -> impl Iterator<Item = (u16, &Terms)> {
        (0..).zip(self.cpus.iter().map(|cpu| &cpu.terms))
    }

    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        let at = usize::from(cpu);
        if at >= self.cpus.len() {
            self.cpus.resize_with(at + 1, Cpu::default);
        }
        &mut self.cpus[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SwitchOut;

    const LOW: Task = Task { id: 7, priority: 120 };
    const HIGH: Task = Task { id: 8, priority: 20 };
    const IDLE: Task = Task { id: 0, priority: 120 };

    fn terms(events: &[(u64, Kind)]) -> Terms {
        let mut latency = Latency::default();
        events.iter().for_each(|&(time, kind)| latency.feed(&Event { time, cpu: 0, by: 0, kind }));
        *latency.terms().next().unwrap().1
    }

    fn off(section: Section) -> Kind {
        Kind::Disable { section, caller: 0 }
    }

    fn on(section: Section) -> Kind {
        Kind::Enable { section, caller: 0 }
    }

    fn switch(from: Task, to: Task) -> Kind {
        Kind::Switch { from, reason: SwitchOut::Runnable, to }
    }

    use Section::{Interrupts, Preemption};

    /// LOW disables preemption from 100 to 400. At 150 a timer, handled until 200, wakes HIGH,
    /// which is switched in at 480; preemption is enabled at 500.
    #[test]
    fn measures_each_term_without_handlers() {
        let found = terms(&[
            (10, off(Preemption)),
            (20, switch(IDLE, LOW)),
            (30, on(Preemption)),
            (100, off(Preemption)),
            (145, off(Interrupts)),
            (150, Kind::VectorEntry { vector: 236 }),
            (170, Kind::Waking { task: HIGH, cpu: 0 }),
            (200, Kind::VectorExit { vector: 236 }),
            (205, on(Interrupts)),
            (400, on(Preemption)),
            (430, off(Preemption)),
            (480, switch(LOW, HIGH)),
            (500, on(Preemption)),
        ]);
        assert_eq!(found.poid, Longest { ns: 250, end: 400 });
        assert_eq!(found.paie, Longest { ns: 30, end: 430 });
        assert_eq!(found.psd, Longest { ns: 50, end: 480 });
        assert_eq!(found.st, Longest { ns: 20, end: 500 });
        // From 170 to 480 is 310, of which the handler takes 30.
        assert_eq!(found.without_interrupts(), Some(250 + 30 + 50));
        assert_eq!((found.sections, found.contradictions), (3, 0));
    }

    /// Preemption is disabled while the CPU idles, which delays no thread.
    #[test]
    fn idle_is_not_a_section() {
        let found = terms(&[
            (10, off(Preemption)),
            (20, switch(LOW, IDLE)),
            (30, off(Interrupts)),
            (900_000, on(Interrupts)),
            (900_010, Kind::VectorEntry { vector: 236 }),
            (900_020, Kind::Waking { task: HIGH, cpu: 0 }),
            (900_050, Kind::VectorExit { vector: 236 }),
            (900_090, switch(IDLE, HIGH)),
            (900_100, on(Preemption)),
        ]);
        assert_eq!((found.poid.ns, found.psd.ns, found.st.ns), (0, 40, 10));
    }

    /// LOW raises its own priority, which no event reports, and HIGH is woken. LOW runs for three
    /// ticks more.
    fn raised(ticks: u64, cpu: u16) -> Latency {
        let mut events = vec![
            (10, off(Preemption)),
            (20, switch(IDLE, LOW)),
            (30, on(Preemption)),
            (100, off(Preemption)),
            (110, Kind::Waking { task: HIGH, cpu: 0 }),
            (120, on(Preemption)),
        ];
        for tick in 1..=ticks {
            events.extend([(1_000 * tick, off(Interrupts)), (1_000 * tick + 40, on(Interrupts))]);
        }
        let end = 1_000 * (ticks + 1);
        events.extend([(end, off(Preemption)), (end + 50, switch(LOW, HIGH)), (end + 60, on(Preemption))]);
        let mut latency = Latency::default();
        let by = |at: u64| if at == 110 { cpu } else { 0 };
        events.iter().for_each(|&(time, kind)| latency.feed(&Event { time, cpu: by(time), by: 0, kind }));
        latency
    }

    #[test]
    fn thread_that_keeps_the_cpu_is_at_least_as_urgent() {
        let latency = raised(5, 0);
        assert_eq!((latency.raised(LOW.id), latency.raised(HIGH.id)), (Some(20), None));
        let terms = latency.terms().next().unwrap().1;
        // Between two ticks both were enabled, but no thread waited that should have run.
        assert_eq!((terms.paie.ns, terms.poid.ns, terms.psd.ns), (0, 40, 50));
    }

    #[test]
    fn interrupt_in_between_proves_no_priority() {
        let latency = raised(1, 0);
        assert_eq!(latency.raised(LOW.id), None);
        assert_eq!(latency.terms().next().unwrap().1.paie, Longest { ns: 960, end: 2_000 });
    }

    #[test]
    fn remote_wakeup_may_be_in_flight() {
        assert_eq!(raised(5, 1).raised(LOW.id), None);
    }

    #[test]
    fn reports_unknown_without_sections() {
        let found = terms(&[(20, switch(IDLE, LOW)), (90, switch(LOW, HIGH))]);
        assert_eq!(found.without_interrupts(), None);
    }

    #[test]
    fn discards_open_sections_at_lost_events() {
        let found = terms(&[(10, off(Preemption)), (20, Kind::Lost { count: 3 }), (900, on(Preemption))]);
        assert_eq!((found.poid.ns, found.sections), (0, 0));
    }
}
