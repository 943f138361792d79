//! What the holders of a lock did while somebody waited for it.

use super::blocking::{Blocking, Doing};
use super::cause::Actor;
use super::decomposer::Decomposer;
use super::history::State;
use crate::event::Tid;

/// Chains of holders are followed no further.
const MAX_DEPTH: u8 = 4;

impl Decomposer {
    /// Ends the wait a thread's job is in, and says who was to blame for it.
    pub(super) fn end_wait(&mut self, time: u64, slot: u32) {
        let Some(mut open) = self.threads.at(slot).open.take() else { return };
        let waiter = self.threads.at(slot).tid;
        let lent = std::mem::take(&mut open.lent);
        if let Some(wait) = open.wait.as_mut() {
            wait.owners = lent;
            wait.end = time.max(wait.start);
            if wait.slept {
                self.explain_wait(wait, waiter);
            }
        }
        open.end_wait(time);
        self.threads.at(slot).open = Some(open);
    }

    fn explain_wait(&self, wait: &mut Blocking, waiter: Tid) {
        let woken = wait.woken.unwrap_or(wait.end).clamp(wait.start, wait.end);
        let releaser = match wait.waker {
            Some(Actor::Thread(tid)) if tid != waiter && tid != 0 => Some(tid),
            _ => None,
        };
        if wait.owners.is_empty() {
            // Nobody inherited: whoever handed the lock over held it, as far as can be known.
            wait.owners.extend(releaser);
        }
        match wait.owners.first().copied() {
            None => wait.share(0, None, Doing::Unseen, woken - wait.start),
            Some(first) => {
                // The first holder may have passed it on to another before it came to this waiter.
                let passed = releaser.filter(|&tid| tid != first && !wait.owners.contains(&tid)).map(|tid| {
                    let given_back = self.threads.get(first).map_or(0, |thread| thread.deboosted);
                    (tid, given_back)
                });
                let until =
                    passed.map_or(woken, |(_, at)| if at > wait.start && at < woken { at } else { woken });
                self.trace_holder(wait, first, (wait.start, until), 0);
                if let Some((tid, _)) = passed.filter(|_| until < woken) {
                    wait.owners.push(tid);
                    self.trace_holder(wait, tid, (until, woken), 0);
                }
            }
        }
        wait.share(0, None, Doing::Granted, wait.end - woken);
    }

    fn trace_holder(&self, wait: &mut Blocking, holder: Tid, (from, to): (u64, u64), depth: u8) {
        let Some(thread) = self.threads.get(holder) else {
            return wait.share(depth, Some(holder), Doing::Unseen, to.saturating_sub(from));
        };
        thread.deeds.walk(from, to, |deed, from, to| match deed {
            Some((State::Running | State::Ready, cpu)) => {
                self.trace_cpu(wait, holder, cpu, (from, to), depth)
            }
            Some((State::Asleep, _)) => self.trace_sleep(wait, holder, (from, to), depth),
            Some((State::Unknown, _)) | None => wait.share(depth, Some(holder), Doing::Unseen, to - from),
        });
    }

    fn trace_cpu(&self, wait: &mut Blocking, holder: Tid, cpu: u16, (from, to): (u64, u64), depth: u8) {
        let Some(Some(cpu)) = self.cpus.get(usize::from(cpu)) else {
            return wait.share(depth, Some(holder), Doing::Unseen, to - from);
        };
        cpu.occupants.walk(from, to, |actor, from, to| {
            let doing = match actor {
                Some(Actor::Thread(tid)) if tid == holder => Doing::Running,
                Some(Actor::Unseen) | None => Doing::Unseen,
                Some(by) => Doing::Preempted { by },
            };
            wait.share(depth, Some(holder), doing, to - from);
        });
    }

    /// A holder that sleeps may wait for a lock in turn.
    fn trace_sleep(&self, wait: &mut Blocking, holder: Tid, (from, to): (u64, u64), depth: u8) {
        let next = self.threads.get(holder).and_then(|thread| {
            let during = |w: &&super::thread::Wait| w.holder != 0 && w.start < to && from < w.end;
            thread.waits.iter().filter(during).max_by_key(|w| w.start).map(|w| w.holder)
        });
        // Without a record of that wait, the chain along which this waiter's priority went tells who is next.
        let inherited = wait.owners.get(usize::from(depth) + 1).copied();
        match next.or(inherited) {
            Some(next) if next != holder && depth + 1 < MAX_DEPTH => {
                self.trace_holder(wait, next, (from, to), depth + 1);
            }
            _ => wait.share(depth, Some(holder), Doing::Asleep, to - from),
        }
    }
}
