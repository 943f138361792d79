//! SCHED_DEADLINE threads: a job ends when its thread yields, and a thread that has used up its
//! runtime is throttled.
//!
//! No kernel event reports either. The trace shows that the thread starts the timer that
//! replenishes its runtime and is switched out while runnable, and that it can run again after that
//! timer has expired. The kernel's deadline servers have such timers as well and start them on
//! behalf of any thread, so a timer belongs to a thread only if the thread did not run until it
//! expired.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::thread::IntHasher;
use super::{Decomposer, Sink};
use crate::event::{Event, Tid};
use crate::jobs::history::State;
use crate::jobs::job::Reservation;
use crate::jobs::job::{ReleasedBy, Waker};
use crate::jobs::open_job::Wake;

/// Maximum number of timers that are distinguished.
const MAX_TIMERS: usize = 1 << 14;

/// Owner of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A thread.
    Thread(Tid),
    /// A thread, provided that it does not run before the timer expires.
    Claimed(Tid),
    /// A deadline server.
    Server,
}

/// The replenishment timers, by address, and the threads' reservations.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    timers: HashMap<u64, Owner, BuildHasherDefault<IntHasher>>,
    reserved: HashMap<Tid, Reservation, BuildHasherDefault<IntHasher>>,
    /// True if events identify these timers by their function.
    named: bool,
    /// Otherwise: the thread that yields and will start its timer next, and whether this has
    /// identified a timer.
    yielder: Tid,
    learned: bool,
}

impl Budgets {
    fn set(&mut self, timer: u64, owner: Owner) {
        if self.timers.len() >= MAX_TIMERS && !self.timers.contains_key(&timer) {
            self.timers.clear();
        }
        self.timers.insert(timer, owner);
    }

    /// Returns whether no such timer has been seen.
    #[inline]
    pub(super) fn unused(&self) -> bool {
        self.timers.is_empty()
    }

    /// Returns whether a timer started by a thread is a replenishment timer although the event does
    /// not identify it.
    #[inline]
    pub(super) fn is_one(&self, by: Tid, timer: u64) -> bool {
        (by == self.yielder && by != 0) || (self.learned && self.timers.contains_key(&timer))
    }

    pub(super) fn of(&self, thread: Tid) -> Option<Reservation> {
        self.reserved.get(&thread).copied()
    }
}

/// A timer started by a thread.
#[derive(Debug, Clone, Copy)]
struct Started {
    timer: u64,
    /// A handler found that the runtime was used up, so the thread has not yielded.
    by_handler: bool,
}

/// State of a SCHED_DEADLINE thread.
#[derive(Debug, Default)]
pub(super) struct DeadlineThread {
    started: Option<Started>,
    /// The timer that must expire before it may run.
    throttled_by: Option<u64>,
    /// Time of its last replenishment.
    renewed: Option<u64>,
}

impl DeadlineThread {
    /// Returns whether the thread is throttled, so that no other thread keeps it from its CPU.
    pub(super) fn is_throttled(&self) -> bool {
        self.throttled_by.is_some()
    }
}

impl Decomposer {
    /// Sets a thread's reservation, for its deadline. Call it before the thread's events.
    pub fn reserve(&mut self, tid: Tid, reservation: Reservation) {
        if self.budgets.reserved.len() >= MAX_TIMERS && !self.budgets.reserved.contains_key(&tid) {
            self.budgets.reserved.clear();
        }
        self.budgets.reserved.insert(tid, reservation);
        let slot = self.threads.slot(tid);
        if let Some(open) = self.threads.at(slot).open.as_mut() {
            open.reserves(Some(reservation));
        }
    }

    /// Starts a timer that replenishes the runtime of a thread or a server, as identified by its
    /// function or by the thread that starts it.
    #[cold]
    pub(super) fn budget_timer_starts(&mut self, event: &Event, timer: u64, named: bool) {
        if named {
            (self.budgets.named, self.budgets.yielder) = (true, 0);
        } else if self.cpu(event.cpu).frames.is_empty() {
            (self.budgets.learned, self.budgets.yielder) = (true, 0);
        } else if !self.budgets.timers.contains_key(&timer) {
            return;
        }
        let by_handler = !self.cpu(event.cpu).frames.is_empty();
        let running = self.running(event);
        match self.budgets.timers.get(&timer) {
            Some(Owner::Server) => return,
            // Its deadline is before the end of its period and had passed when it was woken.
            Some(&Owner::Thread(tid)) if tid != event.by => {
                let slot = self.threads.slot(tid);
                if self.threads.at(slot).state == State::Ready {
                    self.throttle(event.time, slot, timer);
                }
                return;
            }
            _ => {}
        }
        match running {
            // Its priority may become known only when it is switched out.
            Some(slot) => {
                let started = Started { timer, by_handler };
                self.threads.at(slot).deadline.get_or_insert_default().started = Some(started);
                // From here on its expiry matters.
                let known = self.budgets.timers.get(&timer).copied();
                self.budgets.set(timer, known.unwrap_or(Owner::Claimed(event.by)));
            }
            None => self.budgets.set(timer, Owner::Server),
        }
    }

    /// A thread has woken another: any timer it has started since was a server's, unless it is
    /// known to be its own.
    #[cold]
    pub(super) fn woke_another(&mut self, event: &Event) {
        let Some(slot) = self.running(event) else { return };
        let Some(deadline) = self.threads.at(slot).deadline.as_mut() else { return };
        let claimed = |started: &mut Started| {
            !started.by_handler && self.budgets.timers.get(&started.timer) == Some(&Owner::Claimed(event.by))
        };
        if let Some(started) = deadline.started.take_if(claimed) {
            self.budgets.set(started.timer, Owner::Server);
        }
    }

    pub(super) fn yield_begins(&mut self, event: &Event) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.yields = true;
        if thread.priority.own < 0 && !self.budgets.named {
            self.budgets.yielder = event.by;
        }
        if let Some(open) = thread.open.as_mut() {
            open.has_calls();
            open.outside_scheduler(event.time);
        }
    }

    /// If the thread has not left its CPU during the call, its next job was already due.
    pub(super) fn yield_ends(&mut self, event: &Event, sink: Sink<'_>) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        if let Some(open) = thread.open.as_mut() {
            open.has_calls();
            open.outside_scheduler(event.time);
        }
        let yields = std::mem::take(&mut thread.yields) && thread.priority.own < 0;
        if yields && thread.open.as_ref().is_some_and(|open| open.is_active() && open.task().is_none()) {
            let (due, priority) = (self.next_due(slot, event.time), self.threads.at(slot).priority.own);
            let Some(mut open) = self.threads.at(slot).open.take() else { return };
            self.counters.hand_out(&mut open, event.time, event.cpu, sink);
            open.renewed(event.time, due, priority);
            open.goes_on(event);
            self.threads.at(slot).open = Some(open);
        }
    }

    /// A ready thread leaves its CPU. Returns whether it has yielded or is throttled; both have
    /// then been processed.
    #[cold]
    pub(super) fn leaves_by_deadline(
        &mut self,
        event: &Event,
        slot: u32,
        seen: bool,
        sink: Sink<'_>,
    ) -> bool {
        let time = event.time;
        let thread = self.threads.at(slot);
        let yields = std::mem::take(&mut thread.yields);
        let started = thread.deadline.as_mut().and_then(|deadline| deadline.started.take());
        if thread.priority.own >= 0 {
            // It ran while a server's timer was started.
            thread.deadline = None;
            if let Some(Started { timer, .. }) = started {
                self.budgets.set(timer, Owner::Server);
            }
            return false;
        }
        let (marks, priority) = (thread.marks, thread.priority.own);
        // Without timer events, displacement is indistinguishable from throttling or a yield.
        let untold = started.map_or(!self.known.timers, |started| !started.by_handler);
        let unsure = untold && thread.open.as_ref().is_some_and(|open| !open.records_yields());
        if !yields && !unsure && started.is_none() {
            return false;
        }
        let open = thread.open.take();
        let unmarked = open.as_ref().is_none_or(|open| open.task().is_none());
        let ends = unmarked && (yields || unsure);
        if let Some(mut open) = open {
            if !ends {
                open.is_throttled(event, seen);
            } else if open.yields(event, (seen, marks), !yields) {
                self.counters.hand_out(&mut open, time, event.cpu, sink);
            }
            if ends && started.is_none() {
                open.renewed(time, self.next_due(slot, time), priority);
            }
            self.threads.at(slot).open = Some(open);
        }
        if let Some(started) = started {
            let thread = self.threads.at(slot);
            thread.history.push(time, (State::Asleep, event.cpu));
            thread.deadline.get_or_insert_default().throttled_by = Some(started.timer);
            if ends {
                // The next job begins with the next period.
                thread.state = State::Asleep;
            }
        }
        true
    }

    /// Returns the release of the next job of a thread that yields after its next period has begun.
    fn next_due(&mut self, slot: u32, now: u64) -> Option<u64> {
        let tid = self.threads.at(slot).tid;
        let period = self.budgets.of(tid).filter(|_| self.known.timers && self.config.monotonic)?.period;
        let deadline = self.threads.at(slot).deadline.as_mut()?;
        let due = deadline.renewed?.checked_add(period)?;
        deadline.renewed = Some(due).filter(|&due| due <= now);
        deadline.renewed
    }

    /// Prevents a thread from running until the timer expires.
    fn throttle(&mut self, time: u64, slot: u32, timer: u64) {
        self.blame_occupants(time, slot);
        let thread = self.threads.at(slot);
        thread.deadline.get_or_insert_default().throttled_by = Some(timer);
        thread.history.push(time, (State::Asleep, thread.cpu));
    }

    /// A replenishment timer has expired.
    #[cold]
    pub(super) fn budget_timer_expires(
        &mut self,
        event: &Event,
        timer: u64,
        due: Option<(u64, u64)>,
        sink: Sink<'_>,
    ) {
        let Some(&(Owner::Thread(tid) | Owner::Claimed(tid))) = self.budgets.timers.get(&timer) else {
            return;
        };
        let slot = self.threads.slot(tid);
        let thread = self.threads.at(slot);
        let cpu = thread.cpu;
        let Some(deadline) = thread.deadline.as_mut() else { return };
        if deadline.throttled_by.take_if(|by| *by == timer).is_none() {
            return;
        }
        deadline.renewed = due.map(|due| due.0);
        self.budgets.set(timer, Owner::Thread(tid));
        let thread = self.threads.at(slot);
        if thread.state == State::Asleep {
            let actor = self.actor(event);
            let waker = Waker { actor, thread: event.by, cpu: event.cpu, time: event.time };
            let wake = Wake { waker, nominal: due, by: ReleasedBy::Budget, late: false, timer: true };
            return self.wake(event, slot, Some(wake), cpu, sink);
        }
        thread.history.push(event.time, (State::Ready, cpu));
        if let Some(open) = thread.open.as_mut() {
            open.throttled_until(event.time);
        }
    }

    /// A thread is switched in. If its timer has not expired, it was not throttled.
    #[cold]
    pub(super) fn is_due_by_deadline(&mut self, slot: u32) {
        let thread = self.threads.at(slot);
        let timer = thread.deadline.as_mut().and_then(|deadline| deadline.throttled_by.take());
        if let Some(timer) = timer {
            self.budgets.set(timer, Owner::Server);
        }
    }
}
