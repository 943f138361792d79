//! Start and end of waits: kernel locks, futexes and inherited priorities.

use super::Decomposer;
use super::thread::{Contention, FutexCall};
use crate::event::{Event, Tid};
use crate::jobs::blocking::WaitTarget;
use crate::jobs::config::FutexWaits;
use crate::jobs::futexes::FutexRole;
use crate::jobs::job::Flaw;

impl Decomposer {
    pub(super) fn futex_enter(&mut self, event: &Event, word: u64, operation: u32, value: u32) {
        let Some(slot) = self.running(event) else { return };
        let role = self.futexes.call(word, operation, value);
        let blocks = role.is_some_and(|role| match self.config.futex {
            FutexWaits::Judged => role.is_lock(),
            FutexWaits::Block => true,
            FutexWaits::MutexesBlock => role == FutexRole::Lock || value == 2,
            FutexWaits::Suspend => false,
        });
        let thread = self.threads.at(slot);
        thread.calls = true;
        thread.locks.call = match role {
            None => FutexCall::Passing,
            Some(role) if blocks => FutexCall::Blocking { word, role },
            Some(_) => FutexCall::Waiting,
        };
        thread.locks.contention = Contention::None;
        thread.locks.boosted_holder = None;
        if let Some(open) = thread.open.as_mut() {
            open.has_calls();
            match role {
                None => open.outside_scheduler(event.time),
                Some(role) => open.enter_futex(event.time, word, role, blocks),
            }
        }
    }

    pub(super) fn futex_exit(&mut self, event: &Event) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.calls = true;
        let entered = std::mem::replace(&mut thread.locks.call, FutexCall::None) != FutexCall::None;
        thread.locks.contention = Contention::None;
        thread.locks.boosted_holder = None;
        let Some(open) = thread.open.as_mut() else { return };
        open.has_calls();
        if !entered {
            // Its apparent release ended a wait whose start was not recorded.
            open.flaw(Flaw::Contradiction);
        }
        if open.waits_for_futex() {
            self.end_wait(event.time, slot);
        }
        if let Some(open) = self.threads.at(slot).open.as_mut() {
            open.leave_futex(event.time);
        }
    }

    pub(super) fn contention_begin(&mut self, event: &Event, lock: u64, flags: u32) {
        let cpu = self.cpu(event.cpu);
        if let Some(frame) = cpu.frames.last_mut() {
            // The handler waits, not the interrupted thread.
            frame.waits.get_or_insert((lock, event.time));
            return;
        }
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        thread.locks.boosted_holder = None;
        let target = WaitTarget::Lock { address: lock, flags };
        thread.locks.contention =
            if target.may_spin() { Contention::Spinning } else { Contention::Sleeping(target) };
        if let Some(open) = thread.open.as_mut() {
            open.contends(event.time, target);
        }
    }

    pub(super) fn contention_end(&mut self, event: &Event, lock: u64) {
        let cpu = self.cpu(event.cpu);
        if let Some(frame) = cpu.frames.last_mut() {
            frame.contention_ends(lock, event.time);
            return;
        }
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        // A lock contended inside a futex call is acquired before the call returns.
        thread.locks.contention = Contention::None;
        if thread.locks.call == FutexCall::Passing {
            thread.locks.call = FutexCall::Waiting;
        }
        let Some(open) = thread.open.as_mut() else { return };
        match open.waits_for_lock(lock) {
            Some(true) => self.end_wait(event.time, slot),
            // A lock contended while waiting for another.
            Some(false) => {}
            None if open.may_have_spun() => {}
            None => open.flaw(Flaw::Contradiction),
        }
    }

    /// A thread inherits a priority or loses one. The waiter causes the former, on behalf of the
    /// holder, and along a chain of holders in their order.
    pub(super) fn inherit(&mut self, event: &Event, task: Tid, old: i32, new: i32) {
        if task == 0 {
            return;
        }
        let slot = self.threads.slot(task);
        let thread = self.threads.at(slot);
        if new < old {
            if !thread.priority.is_boosted {
                thread.observe_priority(old);
            }
            thread.priority.is_boosted = true;
            if let Some(open) = thread.open.as_mut() {
                open.inherits(new);
            }
            if event.by != task && self.cpu(event.cpu).frames.is_empty() {
                self.note_boosted_holder(event, task);
            }
        } else {
            // Unless another waiter's priority remains, this is the thread's own.
            thread.priority.is_boosted = new < thread.priority.own;
            thread.observe_priority(new);
            thread.priority.deboosted = event.time;
        }
    }

    fn note_boosted_holder(&mut self, event: &Event, holder: Tid) {
        let Some(slot) = self.running(event) else { return };
        let thread = self.threads.at(slot);
        if thread.locks.call == FutexCall::Passing && !thread.locks.may_wait() {
            // It hands over a lock, and the next holder inherits from the remaining waiters.
            return;
        }
        thread.locks.boosted_holder.get_or_insert(holder);
        if let Some(open) = thread.open.as_mut() {
            open.boosts(holder);
        }
    }
}
