//! State of each CPU.

use crate::event::Tid;
use crate::jobs::cause::Actor;
use crate::jobs::disabled::DisabledSections;
use crate::jobs::history::Occupants;

/// CPUs with higher numbers are ignored: Linux supports no more.
const MAX_CPUS: usize = 8192;

/// Maximum nesting: device or vector, softirq, NMI, with room for remnants after lost events.
const MAX_FRAMES: usize = 8;

/// A running handler.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandlerFrame {
    pub(super) actor: Actor,
    pub(super) entry: u64,
    /// Time taken by handlers nested in it.
    pub(super) displaced: u64,
    /// Time that it waited for locks.
    pub(super) blocked: u64,
    /// The lock it waits for, and the start of the wait.
    pub(super) waits: Option<(u64, u64)>,
    /// Number of waits.
    pub(super) waited: u32,
    /// Its longest wait: lock, start and end.
    pub(super) longest_wait: (u64, u64, u64),
    /// Earliest and latest due time of a timer that it serves.
    pub(super) due: Option<(u64, u64)>,
    /// Time at which it was displaced together with its thread.
    pub(super) parked: u64,
}

impl HandlerFrame {
    fn new(actor: Actor, entry: u64) -> Self {
        Self {
            actor,
            entry,
            displaced: 0,
            blocked: 0,
            waits: None,
            waited: 0,
            longest_wait: (0, 0, 0),
            due: None,
            parked: 0,
        }
    }

    /// Ends the wait if it was for this lock, which has been acquired.
    pub(super) fn contention_ends(&mut self, lock: u64, time: u64) {
        let Some((_, since)) = self.waits.take_if(|waits| waits.0 == lock) else { return };
        let ns = time.saturating_sub(since);
        self.blocked += ns;
        let (_, start, end) = self.longest_wait;
        if self.waited == 0 || ns > end - start {
            self.longest_wait = (lock, since, since + ns);
        }
        self.waited = self.waited.saturating_add(1);
    }
}

/// The running handlers of a CPU. The one that ended last stays behind them.
#[derive(Debug)]
pub(super) struct Frames {
    stack: [HandlerFrame; MAX_FRAMES],
    depth: usize,
}

impl Frames {
    fn new() -> Self {
        Self { stack: [HandlerFrame::new(Actor::Unseen, 0); MAX_FRAMES], depth: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    pub(super) fn len(&self) -> usize {
        self.depth
    }

    /// Returns the innermost handler.
    #[inline]
    pub(super) fn last(&self) -> Option<&HandlerFrame> {
        self.stack.get(self.depth.wrapping_sub(1))
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut HandlerFrame> {
        self.stack.get_mut(self.depth.wrapping_sub(1))
    }

    /// Returns the handler that ended last.
    #[inline]
    pub(super) fn ended(&self) -> &HandlerFrame {
        &self.stack[self.depth % MAX_FRAMES]
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.depth = 0;
    }

    /// Returns whether there was room. If not, all others are dropped.
    #[inline]
    pub(super) fn push(&mut self, frame: HandlerFrame) -> bool {
        let room = self.depth < MAX_FRAMES;
        if !room {
            self.clear();
        }
        self.stack[self.depth % MAX_FRAMES] = frame;
        self.depth += 1;
        room
    }

    /// Drops the innermost handler that is `actor`, and those nested in it. Returns whether there
    /// were no nested ones; `None` if there is no such handler.
    #[inline]
    fn pop(&mut self, actor: Actor) -> Option<bool> {
        let index = self.stack.get(..self.depth)?.iter().rposition(|frame| frame.actor == actor)?;
        let clean = index + 1 == self.depth;
        self.depth = index;
        Some(clean)
    }
}

/// A running timer function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Firing {
    pub(super) timer: u64,
    /// Its earliest and latest possible due time.
    pub(super) due: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct Cpu {
    /// Slot of the running thread, if it is known and not the idle one.
    pub(super) current: Option<u32>,
    /// Thread switched out at the last switch; 0 if unknown.
    pub(super) switched_out: Tid,
    /// Thread switched in at the last switch, including the idle one, if known.
    pub(super) switched_in: Option<Tid>,
    /// Running handlers, innermost last.
    pub(super) frames: Frames,
    pub(super) firing: Option<Firing>,
    /// Last reading of the timers' clock, and the earliest time at which it was taken.
    pub(super) clock: (u64, u64),
    pub(super) occupants: Occupants,
    /// Time of its last event, which is the one being processed.
    pub(super) last: u64,
    /// Time of the event before.
    pub(super) before: u64,
    /// If the idle thread ran after the last event: time of the last event that showed it running.
    pub(super) idle_until: Option<u64>,
    /// Sections with interrupts or preemption disabled.
    pub(super) sections: DisabledSections,
    /// Start of the current gap.
    pub(super) gap: Option<u64>,
}

impl Cpu {
    fn new(history: usize) -> Self {
        Self {
            current: None,
            switched_out: 0,
            switched_in: None,
            frames: Frames::new(),
            firing: None,
            clock: (0, 0),
            occupants: Occupants::new(history, Actor::Unseen),
            last: 0,
            before: 0,
            idle_until: None,
            sections: DisabledSections::default(),
            gap: None,
        }
    }

    /// Enters a handler. Returns whether there was room; if not, events have been lost.
    pub(super) fn enter(&mut self, time: u64, actor: Actor) -> bool {
        let room = self.frames.push(HandlerFrame::new(actor, time));
        self.occupants.push(time, actor);
        room
    }

    /// Exits a handler, and with it nested ones whose exits were not recorded; returns whether
    /// there were none.
    pub(super) fn leave(&mut self, time: u64, actor: Actor, thread: Actor) -> Option<bool> {
        let clean = self.frames.pop(actor)?;
        let entry = self.frames.ended().entry;
        let occupant = match self.frames.last_mut() {
            Some(outer) => {
                // A handler that waits for a lock is not displaced.
                if outer.waits.is_none() {
                    outer.displaced += time.saturating_sub(entry);
                }
                outer.actor
            }
            None => {
                // Timers expire inside handlers, even if their end events are not recorded.
                self.firing = None;
                thread
            }
        };
        self.occupants.push(time, occupant);
        Some(clean)
    }

    /// Returns the innermost running handler.
    pub(super) fn handler(&self) -> Option<Actor> {
        self.frames.last().map(|frame| frame.actor)
    }
}

/// The CPUs that have caused events.
#[derive(Debug, Default)]
pub(super) struct Cpus(Vec<Option<Box<Cpu>>>);

impl Cpus {
    #[inline]
    pub(super) fn get(&self, cpu: u16) -> Option<&Cpu> {
        self.0.get(usize::from(cpu))?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, cpu: u16) -> Option<&mut Cpu> {
        self.0.get_mut(usize::from(cpu))?.as_deref_mut()
    }

    /// Adds a CPU; returns `None` if it is ignored.
    pub(super) fn insert(&mut self, cpu: u16, history: usize) -> Option<&mut Cpu> {
        let cpu = usize::from(cpu);
        if self.0.len() <= cpu && cpu < MAX_CPUS {
            self.0.resize_with(cpu + 1, || None);
        }
        self.0.get_mut(cpu).map(|cpu| &mut **cpu.insert(Box::new(Cpu::new(history))))
    }
}
