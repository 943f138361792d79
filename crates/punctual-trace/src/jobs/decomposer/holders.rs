//! Activity of a lock's holders during a wait.

use super::Decomposer;
use crate::event::Tid;
use crate::jobs::blocking::{Blocking, HolderState};
use crate::jobs::cause::Actor;
use crate::jobs::history::State;

/// Maximum length of a chain of holders.
const MAX_DEPTH: u8 = 4;

impl Decomposer {
    /// Ends the current wait of a thread's job, and records the causes.
    pub(super) fn end_wait(&mut self, time: u64, slot: u32) {
        let Some(mut open) = self.threads.at(slot).open.take() else { return };
        let waiter = self.threads.at(slot).tid;
        if let Some(wait) = open.ending_wait(time).filter(|wait| wait.slept) {
            self.explain_wait(wait, waiter);
        }
        open.end_wait(time);
        self.threads.at(slot).open = Some(open);
    }

    pub(super) fn explain_wait(&self, wait: &mut Blocking, waiter: Tid) {
        let woken = wait.woken.unwrap_or(wait.end).clamp(wait.start, wait.end);
        let releaser = match wait.waker {
            Some(Actor::Thread(tid)) if tid != waiter && tid != 0 => Some(tid),
            _ => None,
        };
        if wait.owners.is_empty() {
            // No thread inherited: as far as known, the thread that handed over the lock held it.
            wait.owners.extend(releaser);
        }
        match wait.owners.first().copied() {
            None => wait.share(0, None, HolderState::Unseen, woken - wait.start),
            Some(first) => {
                let passed = releaser.filter(|tid| !wait.owners.contains(tid));
                let until = self.passed_on(first, passed, wait.start, woken).unwrap_or(woken);
                self.trace_holder(wait, first, (wait.start, until), 0);
                if let Some(tid) = passed.filter(|_| until < woken) {
                    wait.owners.push(tid);
                    self.trace_holder(wait, tid, (until, woken), 0);
                }
            }
        }
        self.trace_return(wait, waiter, (woken, wait.end));
    }

    /// Attributes the return of a waiter that has acquired the lock: others may still keep it from
    /// the CPU.
    fn trace_return(&self, wait: &mut Blocking, waiter: Tid, (from, to): (u64, u64)) {
        let Some(thread) = self.threads.get(waiter) else { return };
        thread.history.walk(from, to, |deed, from, to| {
            let cpu = match deed {
                Some((State::Ready, cpu)) => self.cpus.get(cpu),
                _ => None,
            };
            let Some(cpu) = cpu else { return wait.share(0, None, HolderState::Granted, to - from) };
            cpu.occupants.walk(from, to, |actor, from, to| {
                let state = match actor {
                    None | Some(Actor::Unseen | Actor::Thread(0)) => HolderState::Granted,
                    Some(by) => HolderState::Preempted { by },
                };
                wait.share(0, None, state, to - from);
            });
        });
    }

    /// Returns the time at which the first holder passed a lock to the thread that finally released
    /// it: when it lost its inherited priority. Without inheritance it is unknown.
    pub(super) fn passed_on(&self, first: Tid, last: Option<Tid>, from: u64, to: u64) -> Option<u64> {
        last.filter(|&last| last != first && last != 0)?;
        Some(self.threads.get(first)?.priority.deboosted).filter(|at| (from..to).contains(at))
    }

    fn trace_holder(&self, wait: &mut Blocking, holder: Tid, (from, to): (u64, u64), depth: u8) {
        let Some(thread) = self.threads.get(holder) else {
            return wait.share(depth, Some(holder), HolderState::Unseen, to.saturating_sub(from));
        };
        thread.history.walk(from, to, |deed, from, to| match deed {
            Some((State::Running | State::Ready, cpu)) => {
                self.trace_cpu(wait, holder, cpu, (from, to), depth)
            }
            Some((State::Asleep, _)) => self.trace_sleep(wait, holder, (from, to), depth),
            Some((State::Unknown, _)) | None => {
                wait.share(depth, Some(holder), HolderState::Unseen, to - from)
            }
        });
    }

    fn trace_cpu(&self, wait: &mut Blocking, holder: Tid, cpu: u16, (from, to): (u64, u64), depth: u8) {
        let Some(cpu) = self.cpus.get(cpu) else {
            return wait.share(depth, Some(holder), HolderState::Unseen, to - from);
        };
        cpu.occupants.walk(from, to, |actor, from, to| {
            let state = match actor {
                Some(Actor::Thread(tid)) if tid == holder => HolderState::Running,
                Some(Actor::Unseen) | None => HolderState::Unseen,
                Some(by) => HolderState::Preempted { by },
            };
            wait.share(depth, Some(holder), state, to - from);
        });
    }

    /// Follows a sleeping holder, which may itself wait for a lock.
    fn trace_sleep(&self, wait: &mut Blocking, holder: Tid, (from, to): (u64, u64), depth: u8) {
        let recorded = self.threads.get(holder).and_then(|thread| {
            let during = |w: &&super::thread::Wait| w.holder != 0 && w.start < to && from < w.end;
            thread.locks.waits.iter().filter(during).max_by_key(|w| w.start)
        });
        // Without a record of that wait, the inheritance chain of this waiter's priority gives the
        // next holder.
        let next = recorded.map(|w| w.holder).or(wait.owners.get(usize::from(depth) + 1).copied());
        let Some(next) = next.filter(|&next| next != holder && depth + 1 < MAX_DEPTH) else {
            return wait.share(depth, Some(holder), HolderState::Asleep, to - from);
        };
        let passed = recorded.and_then(|w| Some((w.releaser, w.passed?)));
        let until = passed.map_or(to, |(_, at)| at.clamp(from, to));
        self.trace_holder(wait, next, (from, until), depth + 1);
        if let Some((releaser, _)) = passed.filter(|_| until < to) {
            self.trace_holder(wait, releaser, (until, to), depth + 1);
        }
    }
}
