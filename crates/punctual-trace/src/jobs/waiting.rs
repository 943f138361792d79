//! The account of a job while it waits for a lock.

use super::MAX_BLOCKINGS;
use super::blocking::{Blocking, WaitTarget};
use super::cause::Cause;
use super::job::Phase;
use super::open::{Open, SchedulerSide, Stage, Sums};

/// A futex call that can wait.
#[derive(Debug)]
pub(crate) struct FutexCall {
    pub(crate) word: u64,
    pub(crate) entered: u64,
    pub(crate) blocks: bool,
    pub(crate) slept: bool,
    /// The sums as it was entered: once it sleeps, all that came after was the wait.
    sums: Sums,
    /// Who displaced it since.
    pub(super) causes: Vec<Cause>,
}

impl Open {
    pub(crate) fn enter_futex(&mut self, time: u64, word: u64, blocks: bool) {
        self.outside_scheduler(time);
        if self.stage == Stage::Active && self.wait.is_none() {
            let causes = Vec::new();
            self.boosted_holders.clear();
            self.futex =
                Some(FutexCall { word, entered: time, blocks, slept: false, sums: self.sums, causes });
        }
    }

    /// Begins a wait for a lock; `time` may lie back, at the entry of a futex call.
    pub(crate) fn begin_wait(&mut self, time: u64, target: WaitTarget) -> &mut Blocking {
        self.settle(time);
        // To spin proves nothing: the scheduler contends for run queues.
        if self.edge == SchedulerSide::Out && self.stage == Stage::Active && !target.may_spin() {
            self.sums.execution += std::mem::take(&mut self.window);
        }
        self.wait.insert(Blocking {
            start: time,
            end: time,
            target,
            slept: false,
            owners: Vec::new(),
            woken: None,
            waker: None,
            shares: Vec::new(),
        })
    }

    /// The futex call goes to sleep: everything since its entry was waiting.
    pub(crate) fn futex_sleeps(&mut self, time: u64) {
        self.settle(time);
        let Some(call) = self.futex.as_mut() else { return };
        call.slept = true;
        let (entered, word) = (call.entered, call.word);
        self.sums = call.sums;
        self.sums.blocking += time.saturating_sub(entered);
        // When the call returns, the thread is out of the scheduler.
        (self.window, self.edge) = (0, SchedulerSide::Out);
        for undone in std::mem::take(&mut call.causes) {
            if let Some(cause) = self.job.interference_causes.iter_mut().find(|c| c.actor == undone.actor) {
                cause.ns = cause.ns.saturating_sub(undone.ns);
                cause.times = cause.times.saturating_sub(undone.times);
            }
        }
        self.job.interference_causes.retain(|cause| cause.ns > 0);
        self.job.blockings.retain(|blocking| blocking.start < entered);
        self.track.undo(&mut self.job.segments, entered);
        self.track.until(&mut self.job.segments, Phase::Blocking, time, self.job.last_cpu);
        self.begin_wait(time, WaitTarget::Futex { word }).start = entered;
    }

    /// Ends the wait. The caller has filled in whom to blame.
    pub(crate) fn end_wait(&mut self, time: u64) {
        self.settle(time);
        let Some(mut wait) = self.wait.take() else { return };
        wait.end = time.max(wait.start);
        if self.job.blockings.len() < MAX_BLOCKINGS {
            self.job.blockings.push(wait);
        } else {
            self.job.blockings_left_out += 1;
        }
    }
}
