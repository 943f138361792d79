//! Who is above whom: the priorities that threads have of their own, as far as a recording has shown them.

use std::collections::HashMap;

use punctual_trace::event::{Event, Kind, Task, Tid};
use punctual_trace::jobs::{Actor, Cause};

/// More threads than these are forgotten all at once.
const MAX_THREADS: usize = 65_536;

/// A priority as the kernel counts: the lower, the more urgent.
#[derive(Debug, Clone, Copy)]
struct Priority {
    own: i32,
    inherited: Option<i32>,
}

/// Priorities of threads.
#[derive(Debug, Default)]
pub(crate) struct Priorities(HashMap<Tid, Priority>);

/// What a stretch in which a job did not run counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Displacement {
    /// By interrupts and by threads that are not below.
    pub(crate) above: u64,
    /// Of these, by threads of the same priority.
    pub(crate) equal: u64,
}

impl Priorities {
    /// Learns from an event.
    pub(crate) fn see(&mut self, event: &Event) {
        match event.kind {
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } => self.shows(task),
            Kind::Switch { from, to, .. } => {
                self.shows(from);
                self.shows(to);
            }
            Kind::Inherit { task, old, new } => {
                let known = self.0.entry(task).or_insert(Priority { own: old.max(new), inherited: None });
                known.inherited = (new < known.own).then_some(new);
            }
            _ => {}
        }
    }

    fn shows(&mut self, Task { id, priority }: Task) {
        if self.0.len() >= MAX_THREADS && !self.0.contains_key(&id) {
            self.0.clear();
        }
        let known = self.0.entry(id).or_insert(Priority { own: priority, inherited: None });
        if known.inherited != Some(priority) {
            *known = Priority { own: priority, inherited: None };
        }
    }

    /// The thread's own priority, without what it has inherited.
    pub(crate) fn own(&self, thread: Tid) -> Option<i32> {
        self.0.get(&thread).map(|known| known.own)
    }

    /// Sorts those who kept a thread of this priority from running.
    pub(crate) fn sort(&self, priority: i32, causes: &[Cause]) -> Displacement {
        let mut sum = Displacement::default();
        for cause in causes {
            match cause.actor {
                Actor::Irq(_) | Actor::Vector(_) | Actor::Softirq(_) | Actor::Task(_) => {
                    sum.above += cause.ns
                }
                Actor::Thread(thread) => match self.own(thread) {
                    Some(other) if other <= priority && thread != 0 => {
                        sum.above += cause.ns;
                        sum.equal += if other == priority { cause.ns } else { 0 };
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
    use super::*;

    fn event(kind: Kind) -> Event {
        Event { time: 0, cpu: 0, by: 0, kind }
    }

    #[test]
    fn tells_own_priority_from_inherited() {
        let mut priorities = Priorities::default();
        let task = |priority| Task { id: 7, priority };
        priorities.see(&event(Kind::Waking { task: task(60), cpu: 0 }));
        priorities.see(&event(Kind::Inherit { task: 7, old: 60, new: 50 }));
        priorities.see(&event(Kind::Switch {
            from: task(50),
            reason: punctual_trace::event::SwitchOut::Runnable,
            to: Task { id: 0, priority: 120 },
        }));
        assert_eq!(priorities.own(7), Some(60));
        priorities.see(&event(Kind::Inherit { task: 7, old: 50, new: 60 }));
        priorities.see(&event(Kind::Waking { task: task(40), cpu: 0 }));
        assert_eq!(priorities.own(7), Some(40));
    }

    #[test]
    fn sorts_causes_by_who_is_below() {
        let mut priorities = Priorities::default();
        for (id, priority) in [(1, 40), (2, 50), (3, 60), (4, 120)] {
            priorities.see(&event(Kind::Waking { task: Task { id, priority }, cpu: 0 }));
        }
        let cause = |actor, ns| Cause { actor, ns, times: 1 };
        let threads = [(1, 1), (2, 10), (3, 100), (4, 1_000), (0, 1_000), (9, 1_000)];
        let mut causes: Vec<Cause> = threads.map(|(id, ns)| cause(Actor::Thread(id), ns)).into();
        causes.push(cause(Actor::Softirq(1), 10_000));
        causes.push(cause(Actor::Others, 1_000));
        assert_eq!(priorities.sort(50, &causes), Displacement { above: 10_011, equal: 10 });
    }
}
