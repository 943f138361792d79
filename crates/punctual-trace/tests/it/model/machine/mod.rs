//! The CPUs, and the clock that drives everything.

use punctual_trace::event::{Event, Kind as E, SwitchOut, Task};
use punctual_trace::jobs::{Actor, HolderState};

use super::threads::{Kind, Lock, State, Step, Thread, effective};
use super::{HandlerTruth, Random, TICK, Truth, WaitTruth};

/// Features of a run.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub cpus: usize,
    pub threads: usize,
    pub locks: usize,
    /// Entries and exits of the scheduler are traced.
    pub edges: bool,
    pub interrupts: bool,
    /// Timers release jobs, some too late.
    pub timers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Normal,
    /// On the way to sleep for a lock, with preemption disabled.
    Contending(u64),
    /// In the scheduler, before the switch.
    Exiting(u64, SwitchOut),
    /// In the scheduler, after the switch.
    Entering(u64),
}

struct Cpu {
    current: Option<usize>,
    mode: Mode,
    /// Running handlers, innermost last, with their remaining ticks.
    handlers: Vec<(HandlerTruth, u64)>,
}

pub struct Machine {
    pub events: Vec<Event>,
    pub truths: Vec<Truth>,
    pub handlers: Vec<HandlerTruth>,
    style: Style,
    random: Random,
    now: u64,
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    locks: Vec<Lock>,
}

impl Machine {
    pub fn new(seed: u64, style: Style) -> Self {
        let mut random = Random::new(seed);
        let kinds = [Kind::PiFutex, Kind::PlainFutex, Kind::RtMutex];
        let threads = (0..style.threads).map(|i| Thread::new(i, &mut random, style.cpus)).collect();
        let lock = |_| Lock { kind: kinds[random.range(0, 2) as usize], owner: None };
        let locks = (0..style.locks).map(lock).collect();
        let cpu = |_| Cpu { current: None, mode: Mode::Normal, handlers: Vec::new() };
        let cpus = (0..style.cpus).map(cpu).collect();
        Self {
            events: Vec::new(),
            truths: Vec::new(),
            handlers: Vec::new(),
            style,
            random,
            now: 100,
            cpus,
            threads,
            locks,
        }
    }

    pub fn run(&mut self, ticks: u64) {
        // Shows that the CPUs idle.
        (0..self.cpus.len()).for_each(|cpu| self.emit(cpu, E::TimerExpired { timer: 1 }));
        for _ in 0..ticks {
            for cpu in 0..self.cpus.len() {
                while self.transition(cpu) {}
            }
            self.count();
            self.now += 1;
        }
    }

    fn time(&self) -> u64 {
        self.now * TICK
    }

    fn emit(&mut self, cpu: usize, kind: E) {
        let by = self.cpus[cpu].current.map_or(0, |thread| self.threads[thread].tid);
        self.events.push(Event { time: self.time(), cpu: cpu as u16, by, kind });
    }

    fn task(&self, thread: Option<usize>) -> Task {
        let shown = |i: usize| Task { id: self.threads[i].tid, priority: self.threads[i].shown };
        thread.map_or(Task { id: 0, priority: 120 }, shown)
    }

    /// Performs one instantaneous change of a CPU; returns false if none exists at this instant.
    fn transition(&mut self, cpu: usize) -> bool {
        if let Some((handler, left)) = self.cpus[cpu].handlers.last().cloned() {
            if left == 0 {
                self.cpus[cpu].handlers.pop();
                self.handlers.push(HandlerTruth { end: self.time(), ..handler });
                self.emit(cpu, exit(handler.actor));
                return true;
            }
            if self.random.once_in(12) && self.cpus[cpu].handlers.len() < 3 {
                self.interrupt(cpu);
            }
            return false;
        }
        let scheduler = matches!(self.cpus[cpu].mode, Mode::Exiting(..) | Mode::Entering(_));
        let may = self.style.interrupts && (self.style.edges || !scheduler);
        if may && self.random.once_in(if scheduler { 60 } else { 20 }) {
            self.interrupt(cpu);
            return false;
        }
        match self.cpus[cpu].mode {
            Mode::Exiting(0, left) => self.switch(cpu, left),
            Mode::Entering(0) => {
                if self.style.edges {
                    self.emit(cpu, E::ScheduleExit);
                }
                self.cpus[cpu].mode = Mode::Normal;
            }
            Mode::Contending(0) => {
                let thread = self.cpus[cpu].current.expect("only threads contend");
                let lock = self.threads[thread].waits.expect("it contends");
                let left = if self.locks[lock].kind == Kind::RtMutex {
                    SwitchOut::Uninterruptible
                } else {
                    SwitchOut::Sleeping
                };
                self.schedule(cpu, left);
                return false;
            }
            Mode::Exiting(..) | Mode::Entering(_) | Mode::Contending(_) => return false,
            Mode::Normal => return self.normal(cpu),
        }
        true
    }

    fn normal(&mut self, cpu: usize) -> bool {
        let mine = self.cpus[cpu].current.map_or(i32::MAX, |thread| self.threads[thread].shown);
        if self.best(cpu).is_some_and(|best| self.threads[best].shown < mine) {
            self.schedule(cpu, SwitchOut::Runnable);
            return false;
        }
        let Some(thread) = self.cpus[cpu].current else {
            if self.random.once_in(8) && !self.style.interrupts {
                self.release_any(cpu, false);
                return self.best(cpu).is_some();
            }
            return false;
        };
        if self.threads[thread].granted {
            self.returned(cpu, thread);
            return true;
        }
        match self.threads[thread].script.get(self.threads[thread].step).copied() {
            None => {
                self.schedule(cpu, SwitchOut::Sleeping);
                return false;
            }
            Some(Step::Compute(_)) if self.threads[thread].left > 0 => return false,
            Some(Step::Compute(_)) => self.threads[thread].advance(),
            Some(Step::Lock(lock)) => return self.lock(cpu, thread, lock),
            Some(Step::Unlock(lock)) => return self.unlock(cpu, thread, lock),
        }
        true
    }

    fn schedule(&mut self, cpu: usize, reason: SwitchOut) {
        if self.style.edges {
            self.emit(cpu, E::ScheduleEnter);
        }
        self.cpus[cpu].mode = Mode::Exiting(self.random.range(1, 3), reason);
    }

    /// Returns the highest-priority thread that waits for this CPU.
    fn best(&self, cpu: usize) -> Option<usize> {
        let waiting = |&i: &usize| self.threads[i].state == State::Ready && self.threads[i].cpu == cpu;
        (0..self.threads.len()).filter(waiting).min_by_key(|&i| self.threads[i].shown)
    }

    fn switch(&mut self, cpu: usize, reason: SwitchOut) {
        let other = (cpu + 1) % self.cpus.len();
        // Not the next choice of another CPU's scheduler, which would then have been called for
        // nothing.
        if other != cpu
            && !matches!(self.cpus[other].mode, Mode::Exiting(..))
            && self.random.once_in(3)
            && let Some(pulled) = self.best(other).filter(|&i| !self.threads[i].pinned)
        {
            let task = self.task(Some(pulled));
            self.emit(cpu, E::Migrate { task, from: other as u16, to: cpu as u16 });
            self.threads[pulled].cpu = cpu;
        }
        let from = self.cpus[cpu].current;
        let mut to = self.best(cpu);
        // Another CPU may have taken the thread meant for this one.
        if reason == SwitchOut::Runnable && to.is_none() {
            to = from;
        }
        if to != from {
            let (from_task, to_task) = (self.task(from), self.task(to));
            self.emit(cpu, E::Switch { from: from_task, reason, to: to_task });
            if let Some(from) = from {
                self.threads[from].state =
                    if reason == SwitchOut::Runnable { State::Ready } else { State::Asleep };
                if self.threads[from].waits.is_none() && reason != SwitchOut::Runnable {
                    let mut job = self.threads[from].job.take().expect("it had a job");
                    job.end = self.time();
                    self.truths.push(job);
                }
            }
        }
        self.cpus[cpu].current = to;
        self.cpus[cpu].mode = Mode::Entering(self.random.range(1, 3));
        if let Some(to) = to {
            (self.threads[to].state, self.threads[to].cpu) = (State::Running, cpu);
            let time = self.time();
            let job = self.threads[to].job.as_mut().expect("it has a job");
            if job.start == 0 {
                job.start = time;
            }
        }
    }

    fn interrupt(&mut self, cpu: usize) {
        let actor = match self.random.range(0, 2) {
            0 => Actor::Irq(self.random.range(20, 24) as u32),
            1 => Actor::Vector(236),
            _ => Actor::Softirq(self.random.range(1, 3) as u8),
        };
        // A handler does not interrupt itself.
        if self.cpus[cpu].handlers.iter().any(|handler| handler.0.actor == actor) {
            return;
        }
        let truth = HandlerTruth { actor, start: self.time(), end: 0, interference: 0 };
        self.cpus[cpu].handlers.push((truth, self.random.range(1, 4)));
        self.emit(cpu, entry(actor));
        self.release_any(cpu, actor == Actor::Vector(236));
    }

    /// May wake a sleeping thread for its next job.
    fn release_any(&mut self, cpu: usize, timer: bool) {
        let index = self.random.range(0, self.threads.len() as u64 - 1) as usize;
        if self.threads[index].job.is_some() {
            return;
        }
        let late = if timer && self.style.timers { self.random.range(0, 9) } else { 0 };
        let release = self.time() - late * TICK;
        if timer && self.style.timers {
            self.emit(cpu, E::TimerStart { timer: 0xbeef, expires: release });
            let now = self.time();
            self.emit(cpu, E::TimerExpire { timer: 0xbeef, now });
        }
        self.threads[index].job = Some(Truth { tid: self.threads[index].tid, release, ..Truth::default() });
        self.threads[index].plan(&mut self.random, self.locks.len());
        self.wake(cpu, index);
        if timer && self.style.timers {
            self.emit(cpu, E::TimerExpired { timer: 0xbeef });
        }
    }

    fn wake(&mut self, cpu: usize, index: usize) {
        let target = if self.threads[index].pinned {
            self.threads[index].cpu
        } else {
            self.random.range(0, self.cpus.len() as u64 - 1) as usize
        };
        let before = self.threads[index].cpu;
        let task = self.task(Some(index));
        self.emit(cpu, E::Waking { task, cpu: before as u16 });
        if target != before {
            self.emit(cpu, E::Migrate { task, from: before as u16, to: target as u16 });
        }
        self.emit(cpu, E::Wakeup { task, cpu: target as u16, new: false });
        (self.threads[index].state, self.threads[index].cpu) = (State::Ready, target);
    }
}

mod locks;
mod tally;

fn entry(actor: Actor) -> E {
    match actor {
        Actor::Irq(irq) => E::IrqEntry { irq },
        Actor::Vector(vector) => E::VectorEntry { vector },
        Actor::Softirq(softirq) => E::SoftirqEntry { softirq },
        other => unreachable!("{other:?} is no handler"),
    }
}

fn exit(actor: Actor) -> E {
    match actor {
        Actor::Irq(irq) => E::IrqExit { irq },
        Actor::Vector(vector) => E::VectorExit { vector },
        Actor::Softirq(softirq) => E::SoftirqExit { softirq },
        other => unreachable!("{other:?} is no handler"),
    }
}
