//! Measures the activity that takes CPUs from their dedicated threads: interrupts, softirqs and
//! other threads, by cause.
//!
//! Every instant of a CPU is attributed to the innermost activity in progress. So the times of
//! nested activities add up, and none is counted twice. Memory use does not grow with time.
//!
//! ```
//! use punctual_trace::event::{Event, Kind};
//! use punctual_trace::jobs::Actor;
//! use punctual_trace::noise::Noise;
//!
//! let mut noise = Noise::new([3]);
//! let at = |time, kind| Event { time, cpu: 3, by: 411, kind };
//! noise.event(&at(1_000, Kind::VectorEntry { vector: 236 }), |thread| thread == 411);
//! noise.event(&at(1_700, Kind::VectorExit { vector: 236 }), |thread| thread == 411);
//! let (actor, cause) = noise.causes()[0];
//! assert_eq!((actor, cause.count, cause.total), (Actor::Vector(236), 1, 700));
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::event::{Event, Kind, Task, Tid};
use crate::jobs::Actor;

/// Maximum number of distinct causes; further ones count as [`Actor::Others`].
const CAUSES: usize = 4096;

/// Time taken by one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of occurrences. A thread occurs when it is switched in.
    pub count: u64,
    /// Total time, in ns.
    pub total: u64,
    /// Longest single occurrence, without nested activities, in ns.
    pub longest: u64,
}

/// Noise of a set of CPUs.
#[derive(Debug, Clone)]
pub struct Noise {
    cpus: Vec<(u16, Cpu)>,
    causes: HashMap<Actor, Share>,
    lost: u64,
}

/// State of a CPU.
#[derive(Debug, Clone, Default)]
struct Cpu {
    /// Time of its last event; `None` if the activity since then is unknown.
    last: Option<u64>,
    /// The foreign thread that runs there, and its run time so far.
    thread: Option<(Tid, u64)>,
    /// Handlers in progress, innermost last.
    entered: Vec<(Actor, u64)>,
}

impl Noise {
    /// Creates an empty measurement of these CPUs.
    #[must_use]
    pub fn new(cpus: impl IntoIterator<Item = u16>) -> Self {
        let cpus = cpus.into_iter().map(|cpu| (cpu, Cpu::default())).collect();
        Self { cpus, causes: HashMap::new(), lost: 0 }
    }

    /// Processes the next event, in time order. `is_own` returns whether the CPUs are dedicated to
    /// a thread; the idle thread is never noise.
    pub fn event(&mut self, event: &Event, mut is_own: impl FnMut(Tid) -> bool) {
        let Some((_, cpu)) = self.cpus.iter_mut().find(|(number, _)| *number == event.cpu) else { return };
        if let Kind::Lost { count } = event.kind {
            *cpu = Cpu::default();
            self.lost += count;
            return;
        }
        let mut is_foreign = |thread: Tid| thread != 0 && !is_own(thread);
        match cpu.last.replace(event.time) {
            Some(last) => {
                let passed = event.time.saturating_sub(last);
                let innermost = cpu.entered.last_mut().map(|(_, own)| own);
                if let Some(own) = innermost.or(cpu.thread.as_mut().map(|(_, own)| own)) {
                    *own += passed;
                }
            }
            // The first event names the thread that was running.
            None => cpu.thread = is_foreign(event.by).then_some((event.by, 0)),
        }
        match event.kind {
            Kind::IrqEntry { irq } => cpu.entered.push((Actor::Irq(irq), 0)),
            Kind::VectorEntry { vector } => cpu.entered.push((Actor::Vector(vector), 0)),
            Kind::SoftirqEntry { softirq } => cpu.entered.push((Actor::Softirq(softirq), 0)),
            Kind::IrqExit { irq } => leave(cpu, &mut self.causes, Actor::Irq(irq)),
            Kind::VectorExit { vector } => leave(cpu, &mut self.causes, Actor::Vector(vector)),
            Kind::SoftirqExit { softirq } => leave(cpu, &mut self.causes, Actor::Softirq(softirq)),
            Kind::Switch { to: Task { id: to, .. }, .. } => {
                // Softirqs processed by a thread, as all are under PREEMPT_RT, pause with that
                // thread; their remaining time is attributed to the thread.
                for (actor, own) in cpu.entered.drain(..) {
                    add(&mut self.causes, actor, own);
                }
                if let Some((thread, own)) = cpu.thread.take() {
                    add(&mut self.causes, Actor::Thread(thread), own);
                }
                cpu.thread = is_foreign(to).then_some((to, 0));
            }
            _ => {}
        }
    }

    /// Returns every cause, largest total time first.
    #[must_use]
    pub fn causes(&self) -> Vec<(Actor, Share)> {
        let mut causes: Vec<_> = self.causes.iter().map(|(actor, cause)| (*actor, *cause)).collect();
        causes.sort_by_key(|(actor, cause)| (Reverse((cause.total, cause.count)), *actor));
        causes
    }

    /// Returns the number of missing events. The causes lack their time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Ends the innermost activity. An exit without an entry is ignored: the entry was before the first
/// event or in another thread's softirq.
fn leave(cpu: &mut Cpu, causes: &mut HashMap<Actor, Share>, actor: Actor) {
    if cpu.entered.last().is_some_and(|(innermost, _)| *innermost == actor) {
        let own = cpu.entered.pop().map_or(0, |(_, own)| own);
        add(causes, actor, own);
    }
}

fn add(causes: &mut HashMap<Actor, Share>, actor: Actor, own: u64) {
    let is_known = causes.len() < CAUSES || causes.contains_key(&actor);
    let cause = causes.entry(if is_known { actor } else { Actor::Others }).or_default();
    cause.count += 1;
    cause.total += own;
    cause.longest = cause.longest.max(own);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SwitchOut;

    fn noise(events: &[(u64, u16, Tid, Kind)]) -> Noise {
        let mut noise = Noise::new([3]);
        for &(time, cpu, by, kind) in events {
            noise.event(&Event { time, cpu, by, kind }, |thread| thread == 411);
        }
        noise
    }

    fn switch(from: Tid, to: Tid) -> Kind {
        let task = |id| Task { id, priority: 120 };
        Kind::Switch { from: task(from), reason: SwitchOut::Runnable, to: task(to) }
    }

    fn cause(count: u64, total: u64, longest: u64) -> Share {
        Share { count, total, longest }
    }

    #[test]
    fn counts_nested_noise_once() {
        let noise = noise(&[
            (1_000, 3, 411, Kind::VectorEntry { vector: 236 }),
            (1_200, 3, 411, Kind::IrqEntry { irq: 24 }),
            (1_500, 3, 411, Kind::IrqExit { irq: 24 }),
            (1_600, 3, 411, Kind::VectorExit { vector: 236 }),
            (9_000, 3, 411, Kind::SoftirqEntry { softirq: 1 }),
            (9_050, 3, 411, Kind::SoftirqExit { softirq: 1 }),
            (9_100, 2, 411, Kind::IrqEntry { irq: 24 }),
            (9_900, 2, 411, Kind::IrqExit { irq: 24 }),
        ]);
        let expected = [
            (Actor::Irq(24), cause(1, 300, 300)),
            (Actor::Vector(236), cause(1, 300, 300)),
            (Actor::Softirq(1), cause(1, 50, 50)),
        ];
        assert_eq!(noise.causes(), expected);
    }

    #[test]
    fn counts_only_foreign_busy_threads() {
        let noise = noise(&[
            (1_000, 3, 411, switch(411, 17)),
            (1_100, 3, 17, Kind::VectorEntry { vector: 9 }),
            (1_140, 3, 17, Kind::VectorExit { vector: 9 }),
            (1_200, 3, 17, switch(17, 0)),
            (5_000, 3, 0, switch(0, 411)),
            (6_000, 3, 411, switch(411, 17)),
            (6_500, 3, 17, switch(17, 411)),
        ]);
        let expected = [(Actor::Thread(17), cause(2, 660, 500)), (Actor::Vector(9), cause(1, 40, 40))];
        assert_eq!(noise.causes(), expected);
    }

    #[test]
    fn initially_running_thread_is_in_first_event() {
        let noise = noise(&[(1_000, 3, 17, Kind::Other { event: 1 }), (1_300, 3, 17, switch(17, 411))]);
        assert_eq!(noise.causes(), [(Actor::Thread(17), cause(1, 300, 300))]);
    }

    #[test]
    fn displaced_softirq_ends_there() {
        let noise = noise(&[
            (1_000, 3, 17, Kind::SoftirqEntry { softirq: 3 }),
            (1_100, 3, 17, switch(17, 411)),
            (2_000, 3, 411, switch(411, 17)),
            (2_050, 3, 17, Kind::SoftirqExit { softirq: 3 }),
            (2_060, 3, 17, switch(17, 411)),
        ]);
        let expected = [(Actor::Softirq(3), cause(1, 100, 100)), (Actor::Thread(17), cause(2, 60, 60))];
        assert_eq!(noise.causes(), expected);
    }

    #[test]
    fn reports_missing_noise_events() {
        let noise = noise(&[
            (1_000, 3, 411, Kind::IrqEntry { irq: 24 }),
            (1_100, 3, 0, Kind::Lost { count: 7 }),
            (9_000, 3, 411, Kind::IrqExit { irq: 24 }),
            (9_500, 3, 411, switch(411, 0)),
        ]);
        assert_eq!((noise.causes(), noise.lost()), (vec![], 7));
    }

    #[test]
    fn causes_are_bounded() {
        let mut noise = Noise::new([0]);
        for irq in 0..CAUSES as u32 + 2 {
            for (time, kind) in [(1, Kind::IrqEntry { irq }), (2, Kind::IrqExit { irq })] {
                noise.event(&Event { time: u64::from(irq) * 10 + time, cpu: 0, by: 0, kind }, |_| true);
            }
        }
        let others = noise.causes().into_iter().find(|(actor, _)| *actor == Actor::Others);
        assert_eq!(others.map(|(_, cause)| cause.count), Some(2));
    }
}
