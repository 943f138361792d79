//! Takes events and hands out jobs.

use super::cause::Actor;
use super::config::Config;
use super::cpu::Cpu;
use super::history::State;
use super::job::{Flaw, Job, JobKind, blank};
use super::open::{Open, SchedulerSide, Stage};
use super::thread::{Thread, Threads};
use super::timers::Timers;
use crate::event::{Event, Kind, Noise, Tid};

/// CPUs with higher numbers are ignored: Linux knows no more.
const MAX_CPUS: usize = 8192;

/// Where jobs go.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&Job);

/// What a decomposer has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events.
    pub events: u64,
    /// Jobs handed out.
    pub jobs: u64,
    /// Those of them that have a flaw.
    pub flawed: u64,
    /// Gaps in the trace.
    pub gaps: u64,
    /// Switches between threads.
    pub switches: u64,
    /// How often one must have been left out: who left a CPU is not who came last, and there is no gap.
    pub unseen_switches: u64,
    /// Events that contradict earlier ones.
    pub contradictions: u64,
    /// Events older than the one before; they are taken as if they were of the same time.
    pub disordered: u64,
}

/// Decomposes a stream of events into jobs. See the [module](super).
#[derive(Debug)]
pub struct Decomposer {
    pub(super) config: Config,
    pub(super) cpus: Vec<Option<Box<Cpu>>>,
    pub(super) threads: Threads,
    /// Slots of threads whose jobs are wanted.
    pub(super) wanted: Vec<u32>,
    pub(super) timers: Timers,
    pub(super) counters: Counters,
    /// How many CPUs are in a gap.
    pub(super) gaps: u32,
    /// For the jobs of handlers.
    pub(super) handler_job: Job,
    time: u64,
}

impl Decomposer {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            threads: Threads::new(config.threads),
            cpus: Vec::new(),
            wanted: Vec::new(),
            timers: Timers::new(),
            gaps: 0,
            counters: Counters::default(),
            handler_job: blank(Actor::Unseen, JobKind::Irq),
            time: 0,
            config,
        }
    }

    /// Tells the name of a thread: before its events, for the choice of threads by name and for what a name says of the
    /// thread's duty.
    pub fn name(&mut self, tid: Tid, name: &str) {
        if tid == 0 {
            return;
        }
        let chosen = self.config.select.by_name(name) || self.config.select.tids.contains(&tid);
        let slot = self.threads.slot(tid);
        let thread = self.threads.at(slot);
        thread.chosen = chosen;
        thread.kind = if name.starts_with("irq/") { JobKind::IrqThread } else { JobKind::Thread };
        thread.softirqs = name.starts_with("ksoftirqd/") || name.starts_with("ktimers/");
    }

    /// What has been seen so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes the next event; hands the jobs that it ends to `sink`.
    #[inline]
    pub fn feed(&mut self, event: &Event, sink: &mut dyn FnMut(&Job)) {
        self.counters.events += 1;
        if event.time >= self.time {
            self.time = event.time;
            self.take(event, sink);
        } else {
            self.counters.disordered += 1;
            self.take(&Event { time: self.time, ..*event }, sink);
        }
    }

    #[inline]
    fn take(&mut self, event: &Event, sink: Sink<'_>) {
        let index = usize::from(event.cpu);
        let Some(Some(cpu)) = self.cpus.get_mut(index) else { return self.take_first(event, sink) };
        cpu.before = std::mem::replace(&mut cpu.last, event.time);
        if self.gaps > 0
            && !matches!(event.kind, Kind::Lost { .. })
            && let Some(since) = cpu.gap.take()
        {
            self.gap_ends(event, since);
        }
        self.dispatch(event, sink);
    }

    /// The first event of a CPU.
    #[cold]
    fn take_first(&mut self, event: &Event, sink: Sink<'_>) {
        let cpu = usize::from(event.cpu);
        if cpu < MAX_CPUS {
            if self.cpus.len() <= cpu {
                self.cpus.resize_with(cpu + 1, || None);
            }
            let new = self.cpus[cpu].insert(Box::new(Cpu::new(self.config.history)));
            new.occupants.push(event.time, Actor::Thread(event.by));
            self.take(event, sink);
        }
    }

    /// Hands out the jobs that are still open, as cut.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&Job)) {
        let time = self.time;
        for slot in std::mem::take(&mut self.wanted) {
            let Some(mut open) = self.threads.at(slot).open.take() else { continue };
            if open.stage == Stage::Active {
                open.flaw(Flaw::Cut);
                let cpu = open.job.last_cpu;
                self.hand_out(&mut open, time, cpu, sink);
            }
            self.cut_outer(slot, time, Flaw::Cut, sink);
        }
    }

    #[inline]
    fn dispatch(&mut self, event: &Event, sink: Sink<'_>) {
        let (time, cpu) = (event.time, event.cpu);
        match event.kind {
            Kind::Switch { from, reason, to } => self.switch(event, from, reason, to, sink),
            Kind::Waking { task, cpu: target } => self.waking(event, task, target, sink),
            Kind::Wakeup { task, cpu: target, new } => self.wakeup(event, task, target, new, sink),
            Kind::Migrate { task, to, .. } => self.migrate(time, task, to),
            Kind::IrqEntry { irq } => self.enter(event, Actor::Irq(irq)),
            Kind::IrqExit { irq } => self.leave(event, Actor::Irq(irq), sink),
            Kind::VectorEntry { vector } => self.enter(event, Actor::Vector(vector)),
            Kind::VectorExit { vector } => self.leave(event, Actor::Vector(vector), sink),
            Kind::SoftirqEntry { softirq } => self.enter(event, Actor::Softirq(softirq)),
            Kind::SoftirqExit { softirq } => self.leave(event, Actor::Softirq(softirq), sink),
            Kind::TimerStart { timer, expires } => self.timers.start(timer, expires),
            Kind::TimerExpire { timer, now } => self.timer_expires(event, timer, now),
            Kind::TimerExpired { timer } => self.timer_expired(cpu, timer),
            Kind::Inherit { task, old, new } => self.inherit(event, task, old, new),
            Kind::ContentionBegin { lock, flags } => self.contention_begin(event, lock, flags),
            Kind::ContentionEnd { lock } => self.contention_end(event, lock),
            Kind::FutexEnter { word, operation, value } => self.futex_enter(event, word, operation, value),
            Kind::FutexExit { .. } => self.futex_exit(event),
            Kind::SyscallEnter { .. } | Kind::SyscallExit { .. } => {
                self.with_running(event, |open| open.outside_scheduler(time));
            }
            Kind::ScheduleEnter => self.with_running(event, |open| open.scheduler_entered(time)),
            Kind::ScheduleExit => self.with_running(event, |open| open.scheduler_left(time)),
            Kind::JobStart { task, released } => self.job_start(event, task, released, sink),
            Kind::JobEnd { task } => self.job_end(event, task, sink),
            Kind::Disable { section, caller } => self.section(event, section, caller, true),
            Kind::Enable { section, caller } => self.section(event, section, caller, false),
            // Of all noise, that of NMIs alone is told by no other event.
            Kind::Noise { source: Noise::Nmi, ns } => self.with_running(event, |open| open.nmi(ns)),
            Kind::Noise { .. } => {}
            Kind::Lost { .. } => self.lost(event),
        }
    }

    /// The CPU of the event being handled.
    #[inline]
    pub(super) fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        self.cpus[usize::from(cpu)].as_mut().expect("feed has added it")
    }

    /// The slot of the thread that caused an event, which shows that it runs there.
    #[inline]
    pub(super) fn running(&mut self, event: &Event) -> Option<u32> {
        let current = self.cpu(event.cpu).current;
        let contends = matches!(event.kind, Kind::ContentionBegin { .. } | Kind::ContentionEnd { .. });
        match current {
            None if event.by == 0 => None,
            Some(slot) if self.threads.at(slot).tid == event.by => current,
            // The event of a switch comes before the switch itself, which contends for locks on behalf of who leaves.
            _ if self.cpu(event.cpu).switched_out == event.by && (event.by != 0 || contends) => None,
            Some(slot) if event.by == 0 => {
                self.found_idle(event, slot);
                None
            }
            _ => Some(self.found_running(event, current)),
        }
    }

    /// A CPU is found idle, of which nobody saw how its thread left. Kernels leave out a switch now and then, without
    /// counting it.
    #[cold]
    fn found_idle(&mut self, event: &Event, instead_of: u32) {
        self.contradicted(instead_of);
        let cpu = self.cpu(event.cpu);
        cpu.current = None;
        cpu.occupants.push(event.time, Actor::Thread(0));
    }

    /// A thread is found running that was not known to.
    #[cold]
    fn found_running(&mut self, event: &Event, instead_of: Option<u32>) -> u32 {
        if let Some(slot) = instead_of {
            self.contradicted(slot);
        }
        let slot = self.threads.slot(event.by);
        if self.threads.at(slot).state != State::Unknown {
            self.contradicted(slot);
        }
        let thread = self.threads.at(slot);
        thread.set_state(event.time, State::Running, event.cpu);
        if let Some(open) = thread.open.as_mut() {
            open.settle(event.time);
            open.state = State::Running;
            if open.stage == Stage::Released {
                // It has started at some time, and will end.
                open.flaw(Flaw::Contradiction);
                open.start(event.time, event.cpu, SchedulerSide::Out);
            }
        }
        let cpu = self.cpu(event.cpu);
        cpu.current = Some(slot);
        cpu.occupants.push(event.time, Actor::Thread(event.by));
        slot
    }

    /// What was known of a thread turns out wrong.
    #[cold]
    pub(super) fn contradicted(&mut self, slot: u32) {
        self.counters.contradictions += 1;
        let thread = self.threads.at(slot);
        let time = thread.since;
        thread.set_state(time, State::Unknown, thread.cpu);
        for open in thread.open.as_deref_mut().into_iter().chain(&mut thread.outer) {
            open.flaw(Flaw::Contradiction);
        }
    }

    /// Does something with the job of the thread that caused the event, if one is open.
    #[inline]
    pub(super) fn with_running(&mut self, event: &Event, act: impl FnOnce(&mut Open)) {
        if let Some(slot) = self.running(event)
            && let Some(open) = self.threads.at(slot).open.as_mut()
        {
            act(open);
        }
    }

    /// Whether jobs of this thread are wanted; if so, there is an account for them.
    #[inline]
    pub(super) fn want(&mut self, slot: u32) -> bool {
        let thread = self.threads.at(slot);
        if thread.open.is_some() {
            return true;
        }
        let select = &self.config.select;
        let by_priority = select.priorities.as_ref().is_some_and(|range| range.contains(&thread.priority));
        let by_marks = select.marked && thread.marks;
        if !(by_priority || by_marks || thread.chosen || select.tids.contains(&thread.tid)) {
            return false;
        }
        if !(select.among.is_empty() || thread.descends || select.among.contains(&thread.tid)) {
            return false;
        }
        let actor = Actor::Thread(thread.tid);
        let mut open = Box::new(Open::new(actor, thread.kind, &self.config));
        if self.counters.gaps > 0 {
            // Its first wake-up may have been in a gap.
            open.flaw(Flaw::Lost);
        }
        thread.open = Some(open);
        if !self.wanted.contains(&slot) {
            self.wanted.push(slot);
        }
        true
    }

    /// A thread has been started by the one that caused the event.
    #[cold]
    pub(super) fn thread_created(&mut self, event: &Event, slot: u32) {
        let among = &self.config.select.among;
        let descends = |parent: &Thread| parent.descends || among.contains(&parent.tid);
        let descends = !among.is_empty() && self.threads.get(event.by).is_some_and(descends);
        // What had the number before is gone.
        let thread = self.threads.at(slot);
        (thread.descends, thread.marks) = (descends, false);
        thread.open.take_if(|open| open.idle());
    }

    /// Finishes a job and hands it out.
    pub(super) fn hand_out(&mut self, open: &mut Open, time: u64, cpu: u16, sink: Sink<'_>) {
        open.job.number = self.counters.jobs;
        let job = open.finish(time, cpu);
        self.counters.jobs += 1;
        self.counters.flawed += u64::from(!job.complete());
        sink(job);
    }
}
