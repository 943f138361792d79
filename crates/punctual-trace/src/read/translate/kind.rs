//! The meaning of a record, and other information learned from it.

use super::entry::{Entry, Head};
use super::interrupts::Interrupts;
use super::names::{Calls, Threads};
use super::state::States;
use crate::event::{Comm, Event, Kind, Noise, Section, Task};
use crate::format::page::Record;
use crate::format::recipe::Code;
use crate::read::{Order, marker};

/// Information about a trace beyond the current event.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) states: States,
    /// The addresses of the kernel's functions that enter the scheduler.
    pub(super) schedule: Vec<u64>,
    /// The address of the function of the timers that give deadline threads their runtime, or 0.
    pub(super) budget_timer: u64,
    pub(super) threads: Threads,
    pub(super) tasks: marker::Tasks,
    pub(super) interrupts: Interrupts,
    pub(super) calls: Calls,
    /// The number of skipped records, by event ID.
    pub(super) skipped: Vec<u64>,
    /// True if events that the analysis does not understand are passed on.
    pub(super) others: bool,
}

impl Known {
    /// Returns the meaning of a record of event `id`, if the analysis uses it. Callers pass a
    /// constant `order`.
    #[inline(always)]
    pub(super) fn kind(
        &mut self,
        order: Order,
        id: u16,
        entry: &Entry,
        head: &Head,
        record: &Record<'_>,
    ) -> Option<Kind> {
        let get = |slot: usize| entry.slots[slot].load(order, head);
        let task = |slot| Task { id: get(slot) as u32, priority: get(slot + 1) as i32 };
        Some(match entry.code {
            Code::Switch => {
                Kind::Switch { from: task(0), reason: self.states.switch_out(get(2)), to: task(3) }
            }
            Code::Waking => Kind::Waking { task: task(0), cpu: get(2) as u16 },
            Code::Wakeup => Kind::Wakeup { task: task(0), cpu: get(2) as u16, new: false },
            Code::WakeupNew => Kind::Wakeup { task: task(0), cpu: get(2) as u16, new: true },
            Code::Migrate => Kind::Migrate { task: task(0), from: get(2) as u16, to: get(3) as u16 },
            Code::Inherit => Kind::Inherit { task: get(0) as u32, old: get(1) as i32, new: get(2) as i32 },
            Code::IrqEntry => {
                let irq = get(0) as u32;
                self.interrupts.note_irq(irq, order, record.window, record.length());
                Kind::IrqEntry { irq }
            }
            Code::IrqExit => Kind::IrqExit { irq: get(0) as u32 },
            Code::VectorEntry => {
                let vector = get(0) as u16;
                self.interrupts.note_vector(vector, id);
                Kind::VectorEntry { vector }
            }
            Code::VectorExit => Kind::VectorExit { vector: get(0) as u16 },
            Code::SoftirqEntry => Kind::SoftirqEntry { softirq: get(0) as u8 },
            Code::SoftirqExit => Kind::SoftirqExit { softirq: get(0) as u8 },
            Code::TimerStart if self.budget_timer != 0 && get(2) == self.budget_timer => {
                Kind::BudgetTimerStart { timer: get(0), expires: get(1) }
            }
            Code::TimerStart => Kind::TimerStart { timer: get(0), expires: get(1) },
            Code::TimerExpire => Kind::TimerExpire { timer: get(0), now: get(1) },
            Code::TimerExpired => Kind::TimerExpired { timer: get(0) },
            Code::ContentionBegin => Kind::ContentionBegin { lock: get(0), flags: get(1) as u32 },
            Code::ContentionEnd => Kind::ContentionEnd { lock: get(0) },
            Code::FutexEnter => {
                Kind::FutexEnter { word: get(0), operation: get(1) as u32, value: get(2) as u32 }
            }
            Code::FutexWait => futex2(FUTEX_WAIT_BITSET, get(0), get(1), get(2)),
            Code::FutexWake => futex2(FUTEX_WAKE_BITSET, get(0), get(1), get(2)),
            Code::FutexExit => Kind::FutexExit { result: get(0) as i64 },
            Code::YieldEnter => Kind::YieldEnter,
            Code::YieldExit => Kind::YieldExit,
            Code::SyscallEnter => {
                let number = get(0) as u32;
                self.calls.see(number, id);
                Kind::SyscallEnter { number }
            }
            Code::SyscallExit => Kind::SyscallExit { number: get(0) as u32 },
            Code::GraphEntry if self.schedule.contains(&get(0)) => Kind::ScheduleEnter,
            Code::GraphExit if self.schedule.contains(&get(0)) => Kind::ScheduleExit,
            Code::ScheduleEnter => Kind::ScheduleEnter,
            Code::ScheduleExit => Kind::ScheduleExit,
            Code::JobStart => Kind::JobStart { task: get(0) as u16, released: get(1) },
            Code::JobEnd => Kind::JobEnd { task: get(0) as u16 },
            Code::IrqOff => Kind::Disable { section: Section::Interrupts, caller: get(0) as i32 },
            Code::IrqOn => Kind::Enable { section: Section::Interrupts, caller: get(0) as i32 },
            Code::PreemptOff => Kind::Disable { section: Section::Preemption, caller: get(0) as i32 },
            Code::PreemptOn => Kind::Enable { section: Section::Preemption, caller: get(0) as i32 },
            Code::NoiseNmi => Kind::Noise { source: Noise::Nmi, ns: get(0) },
            Code::NoiseIrq => Kind::Noise { source: Noise::Irq(get(1) as i32), ns: get(0) },
            Code::NoiseSoftirq => Kind::Noise { source: Noise::Softirq(get(1) as i32), ns: get(0) },
            Code::NoiseThread => Kind::Noise { source: Noise::Thread(get(1) as u32), ns: get(0) },
            Code::Marker => {
                let content = &record.data()[usize::from(entry.needs)..];
                return self.tasks.decode(order, get(0) as u32, content);
            }
            Code::GraphEntry | Code::GraphExit => {
                self.skip(id);
                return None;
            }
            Code::Unknown => return self.other(id),
        })
    }

    /// Sends the names of threads that a record has, unless they are known.
    #[inline(always)]
    pub(super) fn names(&mut self, entry: &Entry, record: &Record<'_>, event: &Event, into: &mut Vec<Event>) {
        let threads = &mut self.threads;
        let mut send = |thread, name: Option<Comm>| {
            if let Some(name) = name {
                into.push(Event { kind: Kind::Named { thread, name }, ..*event });
            }
        };
        let at = |index: usize| record.window.get(usize::from(entry.comms[index])..)?.first_chunk::<16>();
        match event.kind {
            Kind::Switch { from, to, .. } => {
                let (Some(out), Some(coming)) = (at(0), at(1)) else { return };
                send(from.id, threads.note_switched_out(event.cpu, from.id, out));
                send(to.id, threads.note_switched_in(event.cpu, to.id, coming));
            }
            Kind::Wakeup { task, new: true, .. } => {
                let Some(name) = at(0) else { return };
                send(task.id, threads.note_created(event.cpu, task.id, name));
            }
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } => {
                let Some(name) = at(0) else { return };
                send(task.id, threads.see(event.cpu, task.id, name));
            }
            _ => {}
        }
    }

    /// Handles an event that the analysis does not understand.
    #[cold]
    fn other(&mut self, event: u16) -> Option<Kind> {
        self.skip(event);
        self.others.then_some(Kind::Other { event })
    }

    #[cold]
    pub(super) fn skip(&mut self, id: u16) {
        let id = usize::from(id);
        if self.skipped.len() <= id {
            self.skipped.resize(id + 1, 0);
        }
        self.skipped[id] += 1;
    }
}

/// The operations of `futex(2)` equivalent to `futex_wait(2)` and `futex_wake(2)`.
const FUTEX_WAIT_BITSET: u32 = 9;
const FUTEX_WAKE_BITSET: u32 = 10;
/// The flag for private futexes has the same value in all of them.
const FUTEX_PRIVATE: u64 = 128;

fn futex2(operation: u32, word: u64, value: u64, flags: u64) -> Kind {
    Kind::FutexEnter { word, operation: operation | (flags & FUTEX_PRIVATE) as u32, value: value as u32 }
}
