//! Order of threads: their own priorities, as far as a recording has shown them.

use std::collections::HashMap;

use punctual_trace::event::{Event, Kind, Task, Tid};
use punctual_trace::jobs::{Actor, Cause};

/// Maximum number of stored threads; when it is exceeded, all are dropped.
const MAX_THREADS: usize = 65_536;

/// Priorities from here on are not real time.
const ORDINARY: i32 = 100;

/// A priority as the kernel counts: lower is more urgent.
#[derive(Debug, Clone, Copy)]
struct Priority {
    own: i32,
    inherited: Option<i32>,
    /// True if the thread has inherited a priority at any time.
    has_inherited: bool,
}

/// Number of a thread's real-time priorities for which the last run is stored.
const RAN: usize = 8;

/// Priorities of threads.
#[derive(Debug, Default)]
pub(crate) struct Priorities {
    threads: HashMap<Tid, Priority>,
    /// Time until which a thread last ran with each of its own priorities, if real-time.
    ran: HashMap<Tid, Vec<(i32, u64)>>,
}

/// Classification of the time in which a job did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Displacement {
    /// By interrupts and by threads that are not of lower priority.
    pub(crate) above: u64,
    /// Of these, by threads of the same priority.
    pub(crate) equal: u64,
    /// By threads of ordinary priority that never inherited another one, and by the idle thread.
    pub(crate) ordinary: u64,
}

impl Priorities {
    /// Updates the priorities from an event.
    pub(crate) fn see(&mut self, event: &Event) {
        match event.kind {
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } => self.shows(task),
            Kind::Switch { from, to, .. } => {
                // It may have changed its priority since it was switched in.
                self.has_run(from.id, event.time);
                self.shows(from);
                self.has_run(from.id, event.time);
                self.shows(to);
            }
            Kind::Inherit { task, old, new } => {
                let unknown = Priority { own: old.max(new), inherited: None, has_inherited: false };
                let known = self.threads.entry(task).or_insert(unknown);
                known.inherited = (new < known.own).then_some(new);
                known.has_inherited |= known.inherited.is_some();
            }
            _ => {}
        }
    }

    fn shows(&mut self, Task { id, priority }: Task) {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&id) {
            self.threads.clear();
            self.ran.clear();
        }
        let new = Priority { own: priority, inherited: None, has_inherited: false };
        let known = self.threads.entry(id).or_insert(new);
        if known.inherited != Some(priority) {
            *known = Priority { has_inherited: known.has_inherited, ..new };
        }
    }

    /// Returns the thread's own priority, without inheritance.
    pub(crate) fn own(&self, thread: Tid) -> Option<i32> {
        self.threads.get(&thread).map(|known| known.own)
    }

    fn has_run(&mut self, thread: Tid, until: u64) {
        let Some(own) = self.own(thread).filter(|&own| own < 100 && thread != 0) else { return };
        let ran = self.ran.entry(thread).or_default();
        match ran.iter_mut().find(|(priority, _)| *priority == own) {
            Some(known) => known.1 = until,
            None => {
                if ran.len() >= RAN {
                    ran.sort_unstable_by_key(|&(_, until)| until);
                    ran.remove(0);
                }
                ran.push((own, until));
            }
        }
    }

    /// Returns whether a thread has run with an own priority that is not below this one, since
    /// `since`.
    pub(crate) fn was_not_below(&self, thread: Tid, priority: i32, since: u64) -> bool {
        let mut ran = self.ran.get(&thread).into_iter().flatten();
        ran.any(|&(own, until)| own <= priority && until >= since)
    }

    /// Classifies the actors that kept a thread of this priority from running.
    pub(crate) fn sort(&self, priority: i32, causes: &[Cause]) -> Displacement {
        let mut sum = Displacement::default();
        for cause in causes {
            match cause.actor {
                Actor::Irq(_) | Actor::Vector(_) | Actor::Softirq(_) | Actor::Task(_) => {
                    sum.above += cause.ns
                }
                Actor::Thread(0) => sum.ordinary += cause.ns,
                Actor::Thread(thread) => match self.threads.get(&thread) {
                    Some(other) if other.own <= priority => {
                        sum.above += cause.ns;
                        sum.equal += if other.own == priority { cause.ns } else { 0 };
                    }
                    Some(other) if other.own >= ORDINARY && !other.has_inherited => {
                        sum.ordinary += cause.ns;
                    }
                    _ => {}
                },
                Actor::Throttling | Actor::Others | Actor::Unseen => {}
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use punctual_trace::event::SwitchOut;

    use super::*;

    fn event(kind: Kind) -> Event {
        Event { time: 0, cpu: 0, by: 0, kind }
    }

    #[test]
    fn remembers_priority_of_running_thread() {
        let mut priorities = Priorities::default();
        let thread = |id, priority| Task { id, priority };
        let mut switch = |time, from, to| {
            let kind = Kind::Switch { from, reason: SwitchOut::Runnable, to };
            priorities.see(&Event { time, ..event(kind) });
        };
        switch(100, thread(0, 120), thread(7, 59));
        // Thread 7 has returned its inherited priority between the two.
        switch(200, thread(7, 120), thread(8, 98));
        assert_eq!(priorities.own(7), Some(120));
        assert!(priorities.was_not_below(7, 98, 200) && priorities.was_not_below(7, 59, 150));
        assert!(!priorities.was_not_below(7, 98, 201) && !priorities.was_not_below(7, 58, 150));
        assert!(!priorities.was_not_below(8, 98, 0), "it has not been switched from yet");
    }

    #[test]
    fn distinguishes_own_from_inherited_priority() {
        let mut priorities = Priorities::default();
        let task = |priority| Task { id: 7, priority };
        priorities.see(&event(Kind::Waking { task: task(60), cpu: 0 }));
        priorities.see(&event(Kind::Inherit { task: 7, old: 60, new: 50 }));
        priorities.see(&event(Kind::Switch {
            from: task(50),
            reason: SwitchOut::Runnable,
            to: Task { id: 0, priority: 120 },
        }));
        assert_eq!(priorities.own(7), Some(60));
        priorities.see(&event(Kind::Inherit { task: 7, old: 50, new: 60 }));
        priorities.see(&event(Kind::Waking { task: task(40), cpu: 0 }));
        assert_eq!(priorities.own(7), Some(40));
    }

    #[test]
    fn sorts_causes_by_priority() {
        let mut priorities = Priorities::default();
        for (id, priority) in [(1, 40), (2, 50), (3, 60), (4, 120)] {
            priorities.see(&event(Kind::Waking { task: Task { id, priority }, cpu: 0 }));
        }
        let cause = |actor, ns| Cause { actor, ns, times: 1 };
        let threads = [(1, 1), (2, 10), (3, 100), (4, 1_000), (0, 1_000), (9, 1_000)];
        let mut causes: Vec<Cause> = threads.map(|(id, ns)| cause(Actor::Thread(id), ns)).into();
        causes.push(cause(Actor::Softirq(1), 10_000));
        causes.push(cause(Actor::Others, 1_000));
        assert_eq!(priorities.sort(50, &causes), Displacement { above: 10_011, equal: 10, ordinary: 2_000 });
    }
}
