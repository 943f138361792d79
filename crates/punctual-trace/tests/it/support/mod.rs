//! Traces written by hand.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod worked;

use punctual_trace::event::{Event, Kind, SwitchOut, Task, Tid};
use punctual_trace::jobs::{Config, Decomposer, Job};
use punctual_trace::read::{ReadError, Trace};

/// Returns whether an event has a separate record; only names do not.
pub fn is_record(event: &Event) -> bool {
    !matches!(event.kind, Kind::Named { .. })
}

/// Returns the events of a trace that have separate records.
pub fn records(trace: &Trace) -> Result<impl Iterator<Item = Result<Event, ReadError>>, ReadError> {
    Ok(trace.events()?.filter(|event| event.as_ref().map_or(true, is_record)))
}

pub const IDLE: Task = Task { id: 0, priority: 120 };

pub const fn task(id: Tid, priority: i32) -> Task {
    Task { id, priority }
}

/// Writes events, and tracks the thread that runs on each CPU.
#[derive(Default)]
pub struct Script {
    pub events: Vec<Event>,
    running: Vec<(u16, Task)>,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn on(&self, cpu: u16) -> Task {
        self.running.iter().find(|(c, _)| *c == cpu).map_or(IDLE, |(_, task)| *task)
    }

    pub fn at(&mut self, time: u64, cpu: u16, kind: Kind) -> &mut Self {
        self.events.push(Event { time, cpu, by: self.on(cpu).id, kind });
        self
    }

    pub fn waking(&mut self, time: u64, cpu: u16, task: Task, to: u16) -> &mut Self {
        self.at(time, cpu, Kind::Waking { task, cpu: to })
    }

    pub fn wakeup(&mut self, time: u64, cpu: u16, task: Task, to: u16) -> &mut Self {
        self.at(time, cpu, Kind::Wakeup { task, cpu: to, new: false })
    }

    pub fn switch(&mut self, time: u64, cpu: u16, reason: SwitchOut, to: Task) -> &mut Self {
        let from = self.on(cpu);
        self.at(time, cpu, Kind::Switch { from, reason, to });
        self.running.retain(|(c, _)| *c != cpu);
        self.running.push((cpu, to));
        self
    }

    /// The thread that runs on this CPU appears with this priority from now on.
    pub fn priority(&mut self, cpu: u16, priority: i32) -> &mut Self {
        if let Some((_, task)) = self.running.iter_mut().find(|(c, _)| *c == cpu) {
            task.priority = priority;
        }
        self
    }

    pub fn schedule(&mut self, time: u64, cpu: u16) -> &mut Self {
        self.at(time, cpu, Kind::ScheduleEnter)
    }

    pub fn scheduled(&mut self, time: u64, cpu: u16) -> &mut Self {
        self.at(time, cpu, Kind::ScheduleExit)
    }

    pub fn jobs(&self, config: Config) -> Vec<Job> {
        jobs(config, &self.events)
    }
}

pub fn jobs(config: Config, events: &[Event]) -> Vec<Job> {
    let mut decomposer = Decomposer::new(config);
    let mut jobs = Vec::new();
    for event in events {
        decomposer.feed(event, &mut |job: &Job| jobs.push(job.clone()));
    }
    for job in jobs.iter().filter(|job| job.complete()) {
        assert_eq!(job.check(), Ok(()), "{job:?}");
    }
    jobs
}

/// Returns the jobs of one thread.
pub fn of(jobs: &[Job], tid: Tid) -> Vec<&Job> {
    jobs.iter().filter(|job| job.actor == punctual_trace::jobs::Actor::Thread(tid)).collect()
}
