//! Routes each event to the affected state, and reports jobs.

mod cpu;
mod deadline;
mod holders;
mod interrupts;
mod locks;
mod lost;
mod marks;
mod offline;
mod open;
mod running;
mod switches;
mod thread;
mod timers;
mod untraced;
mod wakes;

use self::cpu::Cpus;
use self::deadline::Budgets;
pub(crate) use self::thread::IntHasher;
use self::thread::Threads;
use self::timers::Timers;
use super::cause::Actor;
use super::config::Config;
use super::futexes::Futexes;
use super::job::{Job, JobKind};
use super::known::Known;
use super::open_job::OpenJob;
use crate::event::{Comm, Event, Kind, Noise, Tid};

/// Receiver of jobs.
type Sink<'a> = &'a mut dyn FnMut(&Job);

/// Counters of a decomposer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events, without reports of gaps.
    pub events: u64,
    /// Reported jobs.
    pub jobs: u64,
    /// Reported jobs that have a flaw.
    pub flawed: u64,
    /// Gaps in the trace.
    pub gaps: u64,
    /// Switches between threads.
    pub switches: u64,
    /// Switches that must be missing: a thread was switched out that was not the last one switched
    /// in, without a gap.
    pub unseen_switches: u64,
    /// Missing switches from the idle thread, bounded by its last event and the first event of the
    /// next thread.
    pub bounded_switches: u64,
    /// Events that contradict earlier ones.
    pub contradictions: u64,
    /// Timers that expired without a recorded start, so that their due times are unknown.
    pub unknown_timers: u64,
    /// Events older than their predecessor, which are treated as simultaneous with it.
    pub disordered: u64,
    /// Jobs on CPUs without Linux that their app could not report.
    pub offline_lost: u64,
}

impl Counters {
    /// Ends a job and reports it.
    fn hand_out(&mut self, open: &mut OpenJob, time: u64, cpu: u16, sink: Sink<'_>) {
        let job = open.finish(self.jobs, time, cpu);
        self.jobs += 1;
        self.flawed += u64::from(!job.complete());
        sink(job);
    }
}

/// A thread that leaves contends for locks right behind the event of its switch.
#[inline]
fn is_contention(event: &Event) -> bool {
    matches!(event.kind, Kind::ContentionBegin { .. } | Kind::ContentionEnd { .. })
}

/// Decomposes a stream of events into jobs. See the [module](super).
///
/// The events begin in the middle of jobs. Unless they show the contrary, the first job of a thread
/// counts as a whole one: the thread did not sleep in the kernel for a lock before its first
/// wake-up, and no timer that expired earlier caused that wake-up. Otherwise, terms of that job are
/// wrong.
#[derive(Debug)]
pub struct Decomposer {
    config: Config,
    known: Known,
    cpus: Cpus,
    threads: Threads,
    /// Slots of the selected threads.
    wanted: Vec<u32>,
    timers: Timers,
    budgets: Budgets,
    futexes: Futexes,
    counters: Counters,
    /// Number of CPUs in a gap.
    gaps: u32,
    /// For the jobs of handlers.
    handler_job: Job,
    time: u64,
}

impl Decomposer {
    /// Creates a decomposer.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            threads: Threads::new(config.threads, config.recorded.switches_of().cloned()),
            cpus: Cpus::default(),
            wanted: Vec::new(),
            timers: Timers::new(),
            budgets: Budgets::default(),
            futexes: Futexes::new(),
            gaps: 0,
            counters: Counters::default(),
            handler_job: Job::empty(Actor::Unseen, JobKind::Irq),
            time: 0,
            known: Known::of(&config.recorded),
            config,
        }
    }

    /// Names a thread until an event [shows](Kind::Named) its name: threads are selected by name,
    /// and some names reveal the thread's purpose.
    pub fn name(&mut self, tid: Tid, name: &str) {
        if tid == 0 {
            return;
        }
        let slot = self.threads.slot(tid);
        self.set_name(slot, Comm::new(name));
    }

    /// An event shows the name of a thread.
    #[cold]
    fn named(&mut self, event: &Event) {
        let Kind::Named { thread: tid, name } = event.kind else { return };
        if tid == 0 {
            return;
        }
        let slot = self.threads.slot(tid);
        if self.threads.at(slot).name != name {
            self.set_name(slot, name);
        }
    }

    fn set_name(&mut self, slot: u32, name: Comm) {
        let (tid, text) = (self.threads.at(slot).tid, name.text());
        let chosen = self.config.select.by_name(&text) || self.config.select.tids.contains(&tid);
        self.threads.at(slot).set_name(name, chosen);
        self.is_named(slot, &text);
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Processes the next event; passes the jobs that it ends to `sink`.
    // Without `#[inline]`, which would optimize it as little as a caller that has to compile fast.
    pub fn feed(&mut self, event: &Event, sink: &mut dyn FnMut(&Job)) {
        if event.time < self.time
            || matches!(event.kind, Kind::Named { .. } | Kind::Lost { .. } | Kind::Other { .. })
        {
            return self.feed_unusual(event, sink);
        }
        self.counters.events += 1;
        self.take(event, sink);
    }

    /// Processes an event that is older than its predecessor, or not one of the kernel's.
    #[cold]
    fn feed_unusual(&mut self, event: &Event, sink: Sink<'_>) {
        match event.kind {
            Kind::Named { .. } => return self.named(event),
            Kind::Lost { .. } | Kind::Other { .. } => {}
            _ => self.counters.events += 1,
        }
        self.counters.disordered += u64::from(event.time < self.time);
        self.take(&Event { time: event.time.max(self.time), ..*event }, sink);
    }

    // `feed` and this one only jump to what processes the event: a call would save registers that
    // most events do not need.
    #[inline(always)]
    fn take(&mut self, event: &Event, sink: Sink<'_>) {
        self.time = event.time;
        let Some(cpu) = self.cpus.get_mut(event.cpu) else { return self.take_first(event, sink) };
        cpu.before = std::mem::replace(&mut cpu.last, event.time);
        let idle_until = cpu.idle_until;
        if !is_contention(event) {
            // Switches and gaps change it once more.
            cpu.idle_until = (event.by == 0).then_some(event.time);
        }
        if self.gaps > 0 || (event.by != 0 && idle_until.is_some()) {
            return self.take_after(event, idle_until, sink);
        }
        self.route(event, sink);
    }

    /// Processes an event that may follow a gap or a switch that was not recorded.
    #[cold]
    fn take_after(&mut self, event: &Event, idle_until: Option<u64>, sink: Sink<'_>) {
        let gap = self.cpu(event.cpu).gap.take_if(|_| !matches!(event.kind, Kind::Lost { .. }));
        if let Some(since) = gap {
            self.gap_ends(event, since);
        } else if let Some(idle_until) = idle_until.filter(|_| event.by != 0) {
            self.runs_after_idle(event, idle_until);
        }
        self.route(event, sink);
    }

    /// Processes the first event of a CPU.
    #[cold]
    fn take_first(&mut self, event: &Event, sink: Sink<'_>) {
        let occupant = self.occupant(event.by);
        if let Some(cpu) = self.cpus.insert(event.cpu, self.config.history) {
            cpu.occupants.push(event.time, occupant);
            self.take(event, sink);
        }
    }

    #[inline]
    fn route(&mut self, event: &Event, sink: Sink<'_>) {
        let known = &self.known;
        match event.kind {
            Kind::Switch { .. } => self.switch(event, sink),
            Kind::Waking { .. } => self.waking(event, sink),
            Kind::Wakeup { .. } => self.wakeup(event, sink),
            Kind::IrqEntry { irq } if known.interrupts => self.enter(event, Actor::Irq(irq)),
            Kind::IrqExit { irq } if known.interrupts => self.leave(event, Actor::Irq(irq), sink),
            Kind::VectorEntry { vector } if known.vectors => self.enter(event, Actor::Vector(vector)),
            Kind::VectorExit { vector } if known.vectors => self.leave(event, Actor::Vector(vector), sink),
            Kind::SoftirqEntry { softirq } if known.softirqs => self.enter(event, Actor::Softirq(softirq)),
            Kind::SoftirqExit { softirq } if known.softirqs => {
                self.leave(event, Actor::Softirq(softirq), sink)
            }
            _ => self.route_other(event, sink),
        }
    }

    /// Processes an event of a kind that is less frequent.
    #[inline(never)]
    fn route_other(&mut self, event: &Event, sink: Sink<'_>) {
        let (time, cpu, known) = (event.time, event.cpu, &self.known);
        match event.kind {
            Kind::Migrate { task, to, .. } => self.migrate(time, task, to),
            Kind::TimerStart { timer, expires } if known.timers => {
                self.timers.start(timer, expires);
                if self.budgets.is_one(event.by, timer) {
                    self.budget_timer_starts(event, timer, false);
                }
            }
            Kind::BudgetTimerStart { timer, expires } if known.timers => {
                self.timers.start(timer, expires);
                self.budget_timer_starts(event, timer, true);
            }
            Kind::TimerExpire { timer, now } if known.timers => self.timer_expires(event, timer, now, sink),
            Kind::TimerExpired { timer } if known.timers => self.timer_expired(cpu, timer),
            Kind::Inherit { task, old, new } => self.inherit(event, task, old, new),
            Kind::ContentionBegin { lock, flags } if known.contention => {
                self.contention_begin(event, lock, flags)
            }
            Kind::ContentionEnd { lock } if known.contention => self.contention_end(event, lock),
            Kind::FutexEnter { word, operation, value } if known.futexes => {
                self.futex_enter(event, word, operation, value)
            }
            Kind::FutexExit { .. } if known.futexes => self.futex_exit(event),
            Kind::YieldEnter if known.yields => self.yield_begins(event),
            Kind::YieldExit if known.yields => self.yield_ends(event, sink),
            Kind::SyscallEnter { .. }
            | Kind::YieldEnter
            | Kind::YieldExit
            | Kind::SyscallExit { .. }
            | Kind::FutexEnter { .. }
            | Kind::FutexExit { .. } => self.call(event),
            Kind::ScheduleEnter => self.with_running(event, |open| open.scheduler_entered(time)),
            Kind::ScheduleExit => self.with_running(event, |open| open.scheduler_left(time)),
            Kind::JobStart { task, released } => self.job_start(event, task, released, sink),
            Kind::JobEnd { task } => self.job_end(event, task, sink),
            Kind::OfflineJob { .. } => self.offline_job(event, sink),
            Kind::OfflineLost { count, .. } => self.counters.offline_lost += u64::from(count),
            Kind::Disable { section, caller } => self.cpu(cpu).sections.begin(time, section, caller),
            Kind::Enable { section, .. } => self.cpu(cpu).sections.end(time, section),
            // All other noise has separate events.
            Kind::Noise { source: Noise::Nmi, ns } => self.with_running(event, |open| open.nmi(ns)),
            Kind::Noise { .. } | Kind::Other { .. } | Kind::Named { .. } => {}
            Kind::Lost { .. } => self.lost(event),
            // Routed, or half of a pair, which is useless without the other half.
            Kind::Switch { .. }
            | Kind::Waking { .. }
            | Kind::Wakeup { .. }
            | Kind::IrqEntry { .. }
            | Kind::IrqExit { .. }
            | Kind::VectorEntry { .. }
            | Kind::VectorExit { .. }
            | Kind::SoftirqEntry { .. }
            | Kind::SoftirqExit { .. }
            | Kind::TimerStart { .. }
            | Kind::BudgetTimerStart { .. }
            | Kind::TimerExpire { .. }
            | Kind::TimerExpired { .. }
            | Kind::ContentionBegin { .. }
            | Kind::ContentionEnd { .. } => {}
        }
    }
}
