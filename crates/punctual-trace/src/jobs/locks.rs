//! Locks of the kernel, futexes and inherited priorities: waits begin and end.

use super::blocking::WaitTarget;
use super::config::FutexWaits;
use super::decomposer::Decomposer;
use super::job::Flaw;
use crate::event::{Event, Tid};

/// Holders noted of one wait, along the chain that priorities are inherited.
const MAX_OWNERS: usize = 8;

const FUTEX_COMMAND: u32 = 0x7f;

/// How a futex operation waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FutexWait {
    No,
    Plain,
    /// Until it owns the word, whose holder inherits its priority.
    Inheriting,
}

fn waits(operation: u32) -> FutexWait {
    match operation & FUTEX_COMMAND {
        // FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI: the last waits for a condition first.
        0 | 9 | 11 => FutexWait::Plain,
        // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
        6 | 13 => FutexWait::Inheriting,
        _ => FutexWait::No,
    }
}

impl Decomposer {
    pub(super) fn futex_enter(&mut self, event: &Event, word: u64, operation: u32, value: u32) {
        let Some(slot) = self.running(event) else { return };
        let waits = waits(operation);
        let blocks = match self.config.futex {
            FutexWaits::Block => true,
            FutexWaits::MutexesBlock => waits == FutexWait::Inheriting || value == 2,
            FutexWaits::Suspend => false,
        };
        let thread = self.threads.at(slot);
        thread.in_lock = waits != FutexWait::No;
        thread.futex_entered = true;
        thread.boosted_holder = None;
        if let Some(open) = thread.open.as_mut() {
            if waits == FutexWait::No {
                open.outside_scheduler(event.time);
            } else {
                open.enter_futex(event.time, word, blocks);
            }
        }
    }

    pub(super) fn futex_exit(&mut self, event: &Event) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.in_lock = false;
        thread.boosted_holder = None;
        let entered = std::mem::take(&mut thread.futex_entered);
        let Some(open) = thread.open.as_mut() else { return };
        if !entered {
            // Its release was the end of a wait that began unseen.
            open.flaw(Flaw::Contradiction);
        }
        let slept = open.futex.as_ref().is_some_and(|call| call.slept);
        if slept && open.wait.as_ref().is_some_and(|wait| matches!(wait.target, WaitTarget::Futex { .. })) {
            self.end_wait(event.time, slot);
        }
        if let Some(open) = self.threads.at(slot).open.as_mut() {
            open.futex = None;
            open.outside_scheduler(event.time);
        }
    }

    pub(super) fn contention_begin(&mut self, event: &Event, lock: u64, flags: u32) {
        let cpu = self.cpu(event.cpu);
        if let Some(frame) = cpu.frames.last_mut() {
            // It is the handler that waits, not the thread below it.
            frame.waits.get_or_insert((lock, event.time));
            return;
        }
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.boosted_holder = None;
        thread.in_lock = true;
        // A mutex first spins and then announces itself again before it sleeps. Locks met while waiting for another are
        // part of that wait.
        if let Some(open) = thread.open.as_mut().filter(|open| open.wait.is_none() && open.active()) {
            open.boosted_holders.clear();
            open.begin_wait(event.time, WaitTarget::Lock { address: lock, flags });
        }
    }

    pub(super) fn contention_end(&mut self, event: &Event, lock: u64) {
        let cpu = self.cpu(event.cpu);
        if let Some(frame) = cpu.frames.last_mut() {
            if let Some((_, since)) = frame.waits.take_if(|waits| waits.0 == lock) {
                frame.blocked += event.time.saturating_sub(since);
            }
            return;
        }
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        // One met inside a futex call is over before the call is.
        thread.in_lock = thread.futex_entered;
        let Some(open) = thread.open.as_mut() else { return };
        let waited_for = |on| matches!(on, WaitTarget::Lock { address, .. } if address == lock);
        match open.wait.as_ref().map(|wait| waited_for(wait.target)) {
            Some(true) => self.end_wait(event.time, slot),
            // A lock met while waiting for another.
            Some(false) => {}
            None => open.flaw(Flaw::Contradiction),
        }
    }

    /// A thread inherits a priority or gives one back. The waiter does the former, on behalf of the holder; along a chain
    /// of holders in its order.
    pub(super) fn inherit(&mut self, event: &Event, task: Tid, old: i32, new: i32) {
        if task == 0 {
            return;
        }
        let slot = self.threads.slot(task);
        let thread = self.threads.at(slot);
        if new < old {
            if !thread.boosted {
                thread.observe_priority(old);
            }
            thread.boosted = true;
            if let Some(open) = thread.open.as_mut() {
                open.job.highest = open.job.highest.min(new);
            }
            if event.by != task && self.cpu(event.cpu).frames.is_empty() {
                self.note_boosted_holder(event, task);
            }
        } else {
            // Unless another waiter's priority is left, this is the thread's own.
            thread.boosted = new < thread.priority;
            thread.observe_priority(new);
            thread.deboosted = event.time;
        }
    }

    fn note_boosted_holder(&mut self, event: &Event, holder: Tid) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        if thread.futex_entered && !thread.in_lock {
            // It hands a lock over, and the next holder inherits from those who still wait.
            return;
        }
        thread.boosted_holder.get_or_insert(holder);
        if let Some(open) = thread.open.as_mut()
            && open.boosted_holders.len() < MAX_OWNERS
        {
            open.boosted_holders.push(holder);
        }
    }
}
