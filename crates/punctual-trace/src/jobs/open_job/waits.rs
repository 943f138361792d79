//! A job's waits for locks.

use super::account::{SchedulerSide, Sums};
use super::{OpenJob, Stage};
use crate::event::Tid;
use crate::jobs::MAX_BLOCKINGS;
use crate::jobs::blocking::{Blocking, WaitTarget};
use crate::jobs::cause::Cause;
use crate::jobs::futexes::FutexRole;
use crate::jobs::job::Phase;

/// Maximum number of holders stored per wait, along the chain of inherited priorities.
const MAX_OWNERS: usize = 8;

/// A futex call that can wait.
#[derive(Debug, Clone)]
pub(super) struct FutexCall {
    word: u64,
    role: FutexRole,
    entered: u64,
    pub(super) blocks: bool,
    slept: bool,
    /// The sums at its entry: if it sleeps, everything since then was the wait.
    sums: Sums,
    /// Actors that displaced it since.
    pub(super) causes: Vec<Cause>,
}

impl OpenJob {
    pub(in crate::jobs) fn enter_futex(&mut self, time: u64, word: u64, role: FutexRole, blocks: bool) {
        self.outside_scheduler(time);
        if self.stage == Stage::Active && self.wait.is_none() {
            let (sums, causes) = (self.sums, Vec::new());
            self.boosted_holders.clear();
            self.futex = Some(FutexCall { word, role, entered: time, blocks, slept: false, sums, causes });
        }
    }

    /// Returns the futex it waits on, if it is in a futex call that does not wait for a lock.
    pub(super) fn futex_condition(&self) -> Option<(u64, FutexRole)> {
        self.futex.as_ref().filter(|call| !call.blocks).map(|call| (call.word, call.role))
    }

    /// Returns whether it sleeps, or has slept, in a futex call that waits for a lock.
    pub(in crate::jobs) fn waits_for_futex(&self) -> bool {
        self.futex.as_ref().is_some_and(|call| call.slept)
            && self.wait.as_ref().is_some_and(|wait| matches!(wait.target, WaitTarget::Futex { .. }))
    }

    pub(in crate::jobs) fn leave_futex(&mut self, time: u64) {
        self.futex = None;
        self.outside_scheduler(time);
    }

    /// Its thread contends for a kernel lock. Locks contended while waiting for another are part of
    /// that wait.
    pub(in crate::jobs) fn contends(&mut self, time: u64, target: WaitTarget) {
        // A mutex that spins first reports contention a second time before it sleeps.
        if self.stage == Stage::Active && self.wait.is_none() {
            if target.may_spin() && !self.known.handlers() {
                // The spinning actor may be a handler.
                self.spun = true;
                return;
            }
            self.boosted_holders.clear();
            self.begin_wait(time, target);
        }
    }

    /// Its thread may have contended for a lock before the event that starts the job.
    pub(in crate::jobs) fn contended_unobserved(&mut self) {
        self.spun = true;
    }

    /// Returns whether it waits for a lock.
    pub(in crate::jobs) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns whether there may have been contention that was not recorded as a wait.
    pub(in crate::jobs) fn may_have_spun(&self) -> bool {
        self.spun
    }

    /// Returns whether it waits for this kernel lock; `None` if it does not wait.
    pub(in crate::jobs) fn waits_for_lock(&self, lock: u64) -> Option<bool> {
        let wait = self.wait.as_ref()?;
        Some(matches!(wait.target, WaitTarget::Lock { address, .. } if address == lock))
    }

    /// A holder inherits its priority.
    pub(in crate::jobs) fn boosts(&mut self, holder: Tid) {
        if self.boosted_holders.len() < MAX_OWNERS {
            self.boosted_holders.push(holder);
        }
    }

    /// Begins a wait for a lock; the caller may set its start back to the entry of a futex call.
    pub(super) fn begin_wait(&mut self, time: u64, target: WaitTarget) -> &mut Blocking {
        self.settle(time);
        // Spinning proves nothing: the scheduler contends for run queues.
        if self.side == SchedulerSide::Out && self.stage == Stage::Active && !target.may_spin() {
            self.sums.execution += std::mem::take(&mut self.window);
        }
        self.wait.insert(Blocking::new(target, time, time))
    }

    /// The futex call goes to sleep: everything since its entry becomes part of the wait.
    pub(super) fn futex_sleeps(&mut self, time: u64) {
        self.settle(time);
        let Some(call) = self.futex.as_mut() else { return };
        call.slept = true;
        let (entered, word, role) = (call.entered, call.word, call.role);
        self.sums = call.sums;
        self.sums.blocking += time.saturating_sub(entered);
        // The thread has left the scheduler at the return of the call.
        (self.window, self.side) = (0, SchedulerSide::Out);
        for undone in std::mem::take(&mut call.causes) {
            if let Some(cause) = self.job.interference_causes.iter_mut().find(|c| c.actor == undone.actor) {
                cause.ns = cause.ns.saturating_sub(undone.ns);
                cause.times = cause.times.saturating_sub(undone.times);
            }
        }
        self.job.interference_causes.retain(|cause| cause.ns > 0);
        self.job.blockings.retain(|blocking| blocking.start < entered);
        self.segments.undo(&mut self.job.segments, entered);
        self.segments.until(&mut self.job.segments, Phase::Blocking, time, self.job.last_cpu);
        let wait = self.begin_wait(time, WaitTarget::Futex { word });
        (wait.start, wait.role) = (entered, Some(role));
    }

    /// The rest of a job starts in a futex call that waits for a lock, or while its thread acquires
    /// a kernel lock: until then, its time is the end of that wait.
    pub(in crate::jobs) fn resumes_wait(
        &mut self,
        time: u64,
        call: Option<(u64, FutexRole)>,
        lock: Option<WaitTarget>,
    ) {
        let target = lock.or(call.map(|(word, _)| WaitTarget::Futex { word }));
        let Some(target) = target else { return };
        self.futex = call.map(|(word, role)| FutexCall {
            word,
            role,
            entered: time,
            blocks: true,
            slept: lock.is_none(),
            sums: self.sums,
            causes: Vec::new(),
        });
        let mut wait = Blocking::new(target, time, time);
        wait.role = call.filter(|_| lock.is_none()).map(|(_, role)| role);
        (wait.slept, wait.woken) = (true, self.job.woken);
        wait.waker = self.job.waker.map(|waker| waker.actor);
        self.wait = Some(wait);
        // The thread has left the scheduler at the end of the wait.
        self.side = SchedulerSide::Out;
    }

    /// Returns the wait that is about to end, with its owners as far as priorities were inherited.
    pub(in crate::jobs) fn ending_wait(&mut self, time: u64) -> Option<&mut Blocking> {
        let owners = std::mem::take(&mut self.boosted_holders);
        let wait = self.wait.as_mut()?;
        (wait.owners, wait.end) = (owners, time.max(wait.start));
        Some(wait)
    }

    /// Ends the wait. The caller has filled in the causes.
    pub(in crate::jobs) fn end_wait(&mut self, time: u64) {
        self.settle(time);
        let Some(mut wait) = self.wait.take() else { return };
        wait.end = time.max(wait.start);
        if wait.target == WaitTarget::Kernel {
            // Such a wait ends when the thread is switched in.
            self.side = SchedulerSide::Entering;
        }
        let waits = &mut self.job.blockings;
        if waits.len() >= MAX_BLOCKINGS {
            self.job.blockings_left_out += 1;
            // Users want the longest waits, so the shortest is replaced.
            match waits.iter().enumerate().min_by_key(|(_, listed)| listed.ns()) {
                Some((shortest, listed)) if listed.ns() < wait.ns() => drop(waits.remove(shortest)),
                _ => return,
            }
        }
        waits.push(wait);
    }
}
