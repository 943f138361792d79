//! Wake-ups and migrations: jobs are released, waits end.

use super::thread::{Purpose, Wait};
use super::{Decomposer, Sink};
use crate::event::{Event, Kind, Task};
use crate::jobs::cause::Actor;
use crate::jobs::config::Release;
use crate::jobs::history::State;
use crate::jobs::job::{Flaw, ReleasedBy, Waker};
use crate::jobs::open_job::Wake;

impl Decomposer {
    /// A wake-up begins. Its first event is the release: everything on the way to the run queue
    /// delays the job.
    #[inline(never)]
    pub(super) fn waking(&mut self, event: &Event, sink: Sink<'_>) {
        let Kind::Waking { task, cpu: target } = event.kind else { return };
        // On its way out, the scheduler itself wakes the migration threads, which have the highest
        // priority. If handlers are not recorded, one of them may be the waker.
        if self.cpu(event.cpu).frames.is_empty() && task.priority != 0 && self.known.handlers() {
            self.with_running(event, |open| open.wakes_another(event.time));
        }
        if task.id == 0 {
            return;
        }
        let slot = self.threads.slot(task.id);
        self.shows(slot, task, false);
        let thread = self.threads.at(slot);
        thread.observe_priority(task.priority);
        match thread.state {
            State::Asleep | State::Unknown => self.wake(event, slot, None, target, sink),
            // The thread has not gone to sleep yet; if it does, this wakes it.
            State::Running => {
                let wake = self.wake_of(event);
                self.threads.at(slot).early = Some(wake);
            }
            // A started job may have been displaced on its way to sleep; one that has not started
            // cannot.
            State::Ready => {
                if let Some(open) = thread.open.as_mut().filter(|open| open.is_released()) {
                    open.flaw(Flaw::Contradiction);
                }
            }
        }
    }

    /// A thread has been put into a run queue.
    #[inline(never)]
    pub(super) fn wakeup(&mut self, event: &Event, sink: Sink<'_>) {
        let Kind::Wakeup { task, cpu: target, new } = event.kind else { return };
        if task.id == 0 {
            return;
        }
        let slot = self.threads.slot(task.id);
        if new {
            self.thread_created(event, slot);
        }
        self.shows(slot, task, false);
        let mut thread = self.threads.at(slot);
        thread.observe_priority(task.priority);
        match thread.state {
            State::Asleep | State::Unknown => {
                let early = thread.early.take();
                self.wake(event, slot, early, target, sink);
                thread = self.threads.at(slot);
            }
            State::Ready if thread.cpu != target => {
                thread.early = None;
                self.moved(event.time, slot, target);
                thread = self.threads.at(slot);
            }
            // Running, the thread was about to sleep and stays awake.
            State::Ready | State::Running => thread.early = None,
        }
        thread.queued = thread.state == State::Ready;
        if !self.budgets.unused() {
            self.woke_another(event);
        }
    }

    pub(super) fn migrate(&mut self, time: u64, task: Task, to: u16) {
        if task.id == 0 {
            return;
        }
        let slot = self.threads.slot(task.id);
        self.threads.at(slot).observe_priority(task.priority);
        self.moved(time, slot, to);
    }

    /// A thread is assigned to another CPU from now on.
    fn moved(&mut self, time: u64, slot: u32, to: u16) {
        if self.threads.at(slot).cpu == to {
            return;
        }
        self.blame_occupants(time, slot);
        let thread = self.threads.at(slot);
        match thread.state {
            State::Running => return,
            State::Ready => {
                thread.history.push(time, (State::Ready, to));
                // Awake for longer than ready, it was displaced, and so has always been in a queue.
                thread.queued |= thread.awake_since < thread.since;
            }
            State::Asleep | State::Unknown => {}
        }
        thread.cpu = to;
        if let Some(open) = thread.open.as_mut() {
            open.migrated();
        }
    }

    /// If a thread is ready, attributes its waiting time to the occupants of its CPU.
    pub(super) fn blame_occupants(&mut self, time: u64, slot: u32) {
        let thread = self.threads.at(slot);
        if thread.state == State::Ready
            && thread.deadline.as_ref().is_none_or(|deadline| !deadline.is_throttled())
            && let Some(open) = thread.open.as_mut()
        {
            let cpu = self.cpus.get(thread.cpu);
            open.blame_occupants(time, cpu.map(|cpu| &cpu.occupants));
        }
    }

    /// Returns the actor that causes an event: the innermost handler, or the thread.
    #[inline]
    pub(super) fn actor(&mut self, event: &Event) -> Actor {
        self.cpu(event.cpu).handler().unwrap_or(Actor::Thread(event.by))
    }

    fn wake_of(&mut self, event: &Event) -> Wake {
        let new = matches!(event.kind, Kind::Wakeup { new: true, .. });
        let by = if new { ReleasedBy::New } else { ReleasedBy::Wake };
        let actor = self.actor(event);
        let firing = self.cpu(event.cpu).firing;
        let nominal = firing.and_then(|firing| firing.due);
        // A timer whose start was not seen may have been due earlier; so may any timer if none are
        // recorded.
        let timer = firing.is_some() || (!self.known.timers && self.may_be_timer(actor));
        // The wake-up began before an insertion, unrecorded: otherwise this would be its start.
        let began = matches!(event.kind, Kind::Wakeup { .. });
        let late = !new && (began || (timer && self.nominal()));
        let waker = Waker { actor, thread: event.by, cpu: event.cpu, time: event.time };
        Wake { waker, nominal, by, late, timer }
    }

    fn nominal(&self) -> bool {
        self.config.release == Release::Nominal
    }

    /// Returns whether this waker may have acted for a timer. Some timers expire in threads that
    /// run softirqs.
    fn may_be_timer(&self, waker: Actor) -> bool {
        match waker {
            Actor::Thread(tid) => {
                !self.known.handlers()
                    || self.threads.get(tid).is_some_and(|thread| thread.purpose == Purpose::Softirqs)
            }
            _ => true,
        }
    }

    /// A thread is woken by this event, or by an earlier one.
    pub(super) fn wake(
        &mut self,
        event: &Event,
        slot: u32,
        earlier: Option<Wake>,
        target: u16,
        sink: Sink<'_>,
    ) {
        let time = event.time;
        let thread = self.threads.at(slot);
        let (since, was) = (thread.since, thread.state);
        thread.set_state(time, State::Ready, target);
        thread.early = None;
        let continues = std::mem::take(&mut thread.continues);
        if was == State::Asleep && thread.locks.may_have_waited() {
            let waker = earlier.map_or_else(|| self.actor(event), |wake| wake.waker.actor);
            self.wait_over(time, slot, since, waker);
        }
        if !self.want(slot) {
            return;
        }
        let wake = earlier.unwrap_or_else(|| self.wake_of(event));
        let wanted = self.want_release(slot);
        if was == State::Unknown {
            self.end_unobserved(time, slot, sink);
        }
        let thread = self.threads.at(slot);
        let priority = thread.priority.own;
        let Some(open) = thread.open.as_mut() else { return };
        // A job that continues is woken; a new one only if it is selected.
        if wanted || open.is_active() {
            open.woken(time, &wake, priority, self.config.release);
            if continues {
                open.continues_unobserved();
            }
        }
        if self.gaps > 0 {
            open.flaw(Flaw::Lost);
        }
    }

    /// A woken thread slept while its state was unknown: its jobs end here, including the callers
    /// of the innermost one, whose marks may have been lost.
    #[cold]
    fn end_unobserved(&mut self, time: u64, slot: u32, sink: Sink<'_>) {
        let open = self.threads.at(slot).open.as_mut();
        if let Some(open) = open.filter(|open| open.is_active()) {
            open.flaw(Flaw::Lost);
            let cpu = open.last_cpu();
            self.counters.hand_out(open, time, cpu, sink);
            self.cut_callers(slot, time, Flaw::Lost, sink);
        }
    }

    /// A sleeping thread is woken: if it waited for a lock, the waker is its holder, at least the
    /// last one.
    fn wait_over(&mut self, time: u64, slot: u32, since: u64, waker: Actor) {
        let thread = self.threads.at(slot);
        let waker = match waker {
            Actor::Thread(tid) if tid != thread.tid => Some(tid),
            _ => None,
        };
        let Some(open) = thread.locks.waits.iter().position(|wait| wait.end == u64::MAX) else {
            if let Some(holder) = waker.filter(|_| thread.locks.may_wait()) {
                thread.locks.remember_wait(Wait {
                    start: since,
                    end: time,
                    holder,
                    releaser: holder,
                    passed: None,
                });
            }
            return;
        };
        let Wait { start, holder, .. } = thread.locks.waits[open];
        // By the time this is needed, the first holder may have lost another inherited priority.
        let passed = self.passed_on(holder, waker, start, time);
        let wait = &mut self.threads.at(slot).locks.waits[open];
        (wait.end, wait.releaser, wait.passed) = (time, waker.unwrap_or(0), passed);
    }
}
