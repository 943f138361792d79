//! Converts the jobs of a recording to the input of the inference for each thread and interrupt.

use std::collections::{BTreeMap, HashMap, HashSet};

use punctual_analysis::infer::curves::Curves;
use punctual_analysis::infer::executions::Executions;
use punctual_analysis::infer::long::Run;
use punctual_analysis::infer::system::{Handler, InferredThread};
use punctual_analysis::infer::thread::{JOBS, Observation, RELEASES, Thread};
use punctual_report::text::listed;
use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::{Actor, Flaw, Job, JobKind, ReleasedBy, WaitTarget};
use punctual_trace::names::Names;
use punctual_trace::recorded::{Recorded, Source};

use super::actors::Priorities;

/// Maximum number of distinct kinds of waits.
const MAX_WAITS: usize = 10_000;

/// Maximum number of stored jobs of a thread.
const MAX_JOBS: usize = 1 << 20;

/// Owner of a group of jobs: a thread, in one of the uses of its ID, or a task marked by a Punctual
/// app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Whose {
    Thread(Tid, u32),
    Task(u16),
}

/// Observations of one of them.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) thread: Thread,
    /// End of its last job.
    last: u64,
    /// As the kernel counts, the least and the most urgent.
    priorities: Option<(i32, i32)>,
    cpus: Vec<u32>,
    is_unordered: bool,
    /// Number of jobs excluded because events around them are missing.
    pub(crate) flawed: u64,
    /// True if C of a job is unknown.
    is_unknown: bool,
    /// C so far of the job that was open at the end.
    unended: Option<u64>,
    /// The threads that ran it, if it is a task.
    pub(crate) workers: HashSet<Tid>,
    /// Its jobs in order, if requested.
    pub(crate) jobs: Vec<Run>,
    /// The tasks that displace it on the same thread.
    above: HashSet<u16>,
}

impl Seen {
    fn keep(&mut self, keeps: bool, start: u64, execution: Option<u64>) {
        if keeps && self.jobs.len() < MAX_JOBS {
            self.jobs.push(Run { start, execution });
        }
    }

    /// Returns all its jobs, if all were stored.
    pub(crate) fn all_jobs(&self) -> Option<&[Run]> {
        (self.jobs.len() < MAX_JOBS).then_some(&self.jobs)
    }
}

/// Waits of a thread for one object held by one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waits {
    /// Time of the last wait.
    pub(crate) last: u64,
    pub(crate) times: u64,
    pub(crate) longest: u64,
    pub(crate) total: u64,
}

/// The object waited for, and its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    pub(crate) whose: Whose,
    pub(crate) on: On,
    pub(crate) holder: Option<Tid>,
}

/// Object that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum On {
    Futex(u64),
    Lock(u64),
    Kernel,
}

/// Groups of events that a recording does not contain, by the quantity that requires them.
#[derive(Debug, Default)]
pub(crate) struct Lacks {
    /// Of I: interrupts.
    pub(crate) interrupts: Vec<&'static str>,
    /// Of B: waits for locks.
    pub(crate) waits: Vec<&'static str>,
    /// Of releases: wake-ups.
    pub(crate) wakings: bool,
}

impl Lacks {
    pub(crate) fn of(recorded: &Recorded) -> Self {
        let absent = |sources: &[(Source, &'static str)]| {
            let absent = sources.iter().filter(|(source, _)| !recorded.has(*source));
            absent.map(|&(_, group)| group).collect()
        };
        let interrupts =
            [(Source::Interrupts, "irq"), (Source::Vectors, "irq_vectors"), (Source::Softirqs, "softirq")];
        Self {
            interrupts: absent(&interrupts),
            waits: absent(&[(Source::Contention, "lock"), (Source::Futexes, "futex")]),
            wakings: !recorded.has(Source::Wakings) && !recorded.has(Source::Wakeups),
        }
    }

    /// Returns the reason why C is unknown, with the command that records the missing events.
    fn of_execution(&self) -> String {
        let remedy = "punctual trace record --events usual";
        match (self.interrupts.as_slice(), self.waits.as_slice()) {
            ([], []) => format!(
                "its system calls were not recorded, so its C is unknown; record all threads, by {remedy}, or exclude waits for \
                 locks by --futex suspend"
            ),
            ([], waits) => format!(
                "the recording does not contain its waits for locks, so its C is unknown; record {} as well, by {remedy}, or \
                 exclude such waits by --futex suspend",
                listed(waits)
            ),
            (interrupts, _) => format!(
                "the recording does not contain its interrupts, so its C is unknown; record {} as well, by {remedy}",
                listed(interrupts)
            ),
        }
    }
}

/// Processes jobs and events.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub(crate) priorities: Priorities,
    pub(crate) threads: BTreeMap<Whose, Seen>,
    handlers: HashMap<(Actor, u16), ObservedHandler>,
    pub(crate) waits: HashMap<WaitKey, Waits>,
    /// Throttling of real-time threads on each CPU.
    throttling: BTreeMap<u16, ObservedHandler>,
    /// CPUs on which a thread of ordinary priority is running softirqs, which displace no relevant
    /// thread.
    in_thread: HashSet<u16>,
    softirq_threads: HashSet<Tid>,
    /// If true, stores every job.
    pub(crate) keeps_jobs: bool,
    /// Groups of events that the recording does not contain.
    pub(crate) lacks: Lacks,
    /// If true, threads wait for kernel locks only in uninterruptible sleeps and by spinning.
    pub(crate) assumes_no_locks: bool,
}

#[derive(Debug)]
struct ObservedHandler {
    curves: Curves,
    executions: Executions,
    is_unknown: bool,
}

impl Default for ObservedHandler {
    fn default() -> Self {
        Self { curves: Curves::new(RELEASES), executions: Executions::new(JOBS), is_unknown: false }
    }
}

impl ObservedHandler {
    fn handler(&self, name: String, cpu: u16) -> Handler {
        let (curves, executions) = (self.curves.clone(), self.executions.clone());
        Handler { name, cpu: u32::from(cpu), curves, executions, is_unknown: self.is_unknown }
    }
}

impl Observer {
    /// Sets the name of a thread.
    pub(crate) fn name(&mut self, thread: Tid, name: &str) {
        if name.starts_with("ksoftirqd/") {
            self.softirq_threads.insert(thread);
        } else {
            self.softirq_threads.remove(&thread);
        }
    }

    /// Processes an event, before the jobs that end by it.
    pub(crate) fn event(&mut self, event: &Event) {
        self.priorities.see(event);
        match event.kind {
            Kind::Named { thread, name } => self.name(thread, &name.text()),
            Kind::SoftirqEntry { .. } if self.softirq_threads.contains(&event.by) => {
                self.in_thread.insert(event.cpu);
            }
            Kind::SoftirqEntry { .. } => {
                self.in_thread.remove(&event.cpu);
            }
            Kind::Lost { .. } => {
                let handlers = self.handlers.iter_mut().map(|((_, cpu), handler)| (cpu, handler));
                for (cpu, handler) in handlers.chain(&mut self.throttling) {
                    if *cpu == event.cpu {
                        handler.curves.interrupt();
                        handler.executions.interrupt();
                    }
                }
            }
            _ => {}
        }
    }

    /// Processes a job.
    pub(crate) fn job(&mut self, job: &Job) {
        match job.kind {
            JobKind::Thread | JobKind::IrqThread => self.of_thread(job),
            // It displaces nothing here.
            JobKind::Offline => {}
            JobKind::Irq | JobKind::Vector | JobKind::Softirq => self.of_handler(job),
        }
    }

    fn of_handler(&mut self, job: &Job) {
        if job.kind == JobKind::Softirq && self.in_thread.contains(&job.first_cpu) {
            return;
        }
        let handler = self.handlers.entry((job.actor, job.first_cpu)).or_default();
        if !job.complete() {
            handler.curves.interrupt();
            handler.executions.interrupt();
            return;
        }
        handler.curves.push((job.start, job.start));
        // A handler does not sleep: it spins for locks, which is part of its C.
        match own_time(job, true) {
            Some(execution) => handler.executions.push(execution),
            None => handler.is_unknown = true,
        }
    }

    fn of_thread(&mut self, job: &Job) {
        let Actor::Thread(tid) = job.actor else { return };
        let whose = job.task.map_or(Whose::Thread(tid, job.incarnation), Whose::Task);
        let seen = self.threads.entry(whose).or_default();
        seen.last = job.end;
        if job.task.is_some() {
            seen.workers.insert(tid);
        }
        for cpu in [job.first_cpu, job.last_cpu].map(u32::from) {
            if job.started && !seen.cpus.contains(&cpu) {
                seen.cpus.push(cpu);
            }
        }
        let priority = job.priority;
        let (least, most) = seen.priorities.unwrap_or((priority, priority));
        seen.priorities = Some((least.max(priority), most.min(priority)));
        if !job.complete() {
            if job.flaw == Some(Flaw::Cut) {
                seen.unended = job.execution.lo();
            } else {
                seen.flawed += 1;
            }
            seen.thread.interrupt();
            seen.keep(self.keeps_jobs, job.start, None);
            return;
        }
        for cause in &job.interference_causes {
            if let (Some(_), Actor::Task(other)) = (job.task, cause.actor) {
                // The caller of another task's job is below it, although both have the priority of
                // the thread.
                seen.above.insert(other);
            }
        }
        let released =
            job.released.filter(|_| job.jitter.hi().is_some() && job.released_by != ReleasedBy::Unseen);
        let Some(execution) = own_time(job, self.assumes_no_locks) else {
            seen.is_unknown = true;
            seen.keep(self.keeps_jobs, job.start, None);
            match released {
                Some(window) => seen.thread.release(window, job.released_by == ReleasedBy::Timer),
                None => seen.thread.interrupt(),
            }
            return;
        };
        seen.keep(self.keeps_jobs, job.start, Some(execution));
        let before = self.priorities.sort(priority, &job.jitter_causes);
        let within = self.priorities.sort(priority, &job.interference_causes);
        seen.is_unordered |= within.equal > 0;
        let blocked = job.blocking.hi().or(job.blocking.lo()).unwrap_or(0);
        let displaced = job.interference.hi().unwrap_or(0);
        let above = within.above.min(displaced);
        // A job that runs is displaced by an ordinary thread only if the kernel throttles it.
        let throttled = within.ordinary.min(displaced - above);
        let waited = displaced - above - throttled;
        let lateness = released
            .map_or(0, |(earliest, _)| job.start.saturating_sub(earliest).saturating_sub(before.above));
        let waits = job.blockings.len() as u64 + u64::from(job.blockings_left_out);
        seen.thread.push(&Observation {
            number: job.number,
            released,
            by_timer: job.released_by == ReleasedBy::Timer,
            end: job.end,
            lateness,
            execution,
            waiting: blocked + waited,
            waits: waits + u64::from(waited > 0),
            suspended: 0,
            suspensions: 0,
            displaced: before.above + above + throttled,
        });
        if throttled > 0 {
            let throttling = self.throttling.entry(job.last_cpu).or_default();
            throttling.curves.push((job.end, job.end));
            throttling.executions.push(throttled);
        }
        for wait in &job.blockings {
            let on = match wait.target {
                WaitTarget::Futex { word } => On::Futex(word),
                WaitTarget::Lock { address, .. } => On::Lock(address),
                WaitTarget::Kernel => On::Kernel,
            };
            let key = WaitKey { whose, on, holder: wait.owners.first().copied() };
            if self.waits.len() >= MAX_WAITS && !self.waits.contains_key(&key) {
                continue;
            }
            let waits = self.waits.entry(key).or_default();
            waits.last = job.end;
            waits.times += 1;
            waits.longest = waits.longest.max(wait.ns());
            waits.total += wait.ns();
        }
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self) {
        self.threads.values_mut().for_each(|seen| seen.thread.finish());
    }

    /// Returns the throttling of real-time threads on each CPU, as a source like an interrupt: RT
    /// throttling, or the fair server since Linux 6.12, runs ordinary threads instead.
    pub(crate) fn throttling(&self, names: &Names) -> impl Iterator<Item = Handler> {
        let name = names.of(Actor::Throttling);
        self.throttling.iter().map(move |(&cpu, seen)| seen.handler(name.clone(), cpu))
    }

    /// Returns the assumption on locks that were not recorded, if there is one.
    pub(crate) fn assumption(&self) -> Option<String> {
        let sentence = "Waits for kernel locks were not recorded: threads are taken to spin for them, which is part of \
                        C, or to sleep uninterruptibly.";
        self.assumes_no_locks.then(|| sentence.to_owned())
    }

    /// Returns the interrupts, by their names.
    pub(crate) fn handlers(&self, names: &Names) -> Vec<Handler> {
        let mut handlers: Vec<Handler> = self
            .handlers
            .iter()
            .filter(|(_, seen)| seen.is_unknown || seen.curves.releases() > 0)
            .map(|(&(actor, cpu), seen)| seen.handler(names.of(actor), cpu))
            .collect();
        handlers.sort_by(|a, b| (a.cpu, &a.name).cmp(&(b.cpu, &b.name)));
        handlers
    }

    /// Returns the threads whose own priority is real-time, and the tasks that apps mark; the most
    /// urgent first.
    pub(crate) fn threads(&self, names: &Names) -> Vec<(Whose, InferredThread)> {
        let mut threads: Vec<(Whose, InferredThread)> =
            self.threads.iter().map(|(&whose, seen)| (whose, self.thread(whose, seen, names))).collect();
        threads.sort_by(|a, b| (-a.1.urgency, &a.1.name).cmp(&(-b.1.urgency, &b.1.name)));
        threads
    }

    /// Names at the end of the last job of one of them.
    pub(crate) fn names_of(&self, whose: Whose, names: &Names) -> Names {
        names.at(self.threads.get(&whose).map_or(u64::MAX, |seen| seen.last))
    }

    fn thread(&self, whose: Whose, seen: &Seen, names: &Names) -> InferredThread {
        let (least, most) = seen.priorities.unwrap_or((0, 0));
        let names = names.at(seen.last);
        let name = match whose {
            Whose::Thread(tid, 0) => names.of(Actor::Thread(tid)),
            Whose::Thread(tid, incarnation) => {
                format!("{}, {}", names.of(Actor::Thread(tid)), incarnation + 1)
            }
            Whose::Task(task) => names.of(Actor::Task(task)),
        };
        let changed = matches!(whose, Whose::Thread(..)) && least != most;
        let longest = seen.thread.seen(seen.thread.reading()).executions.max();
        let unended = seen.unended.filter(|&so_far| longest.is_none_or(|longest| so_far > longest));
        let unknown = if changed {
            Some("its priority changed while it was recorded".to_owned())
        } else if seen.is_unknown {
            Some(self.lacks.of_execution())
        } else if self.lacks.wakings && seen.thread.seen(seen.thread.reading()).curves.releases() == 0 {
            let why = "the recording does not contain wake-ups, so its releases are unknown; record sched as well, by \
                       punctual trace record --events usual";
            Some(why.to_owned())
        } else {
            unended.map(|so_far| {
                format!("a job of it had executed for {so_far} ns when the recording ended, longer than any that ended")
            })
        };
        let depth = if let Whose::Task(task) = whose { self.depth(task, 0) } else { 0 };
        InferredThread {
            name,
            // A called task displaces its caller on the same thread.
            urgency: -i64::from(most) * MAX_CALLS - depth,
            cpus: seen.cpus.clone(),
            thread: seen.thread.clone(),
            reading: seen.thread.reading(),
            deadline: None,
            is_unordered: seen.is_unordered,
            execution: None,
            unknown,
        }
    }

    /// Returns the number of tasks above this one on its thread, each called by the one before.
    fn depth(&self, task: u16, so_far: i64) -> i64 {
        if so_far >= MAX_CALLS - 1 {
            return 0;
        }
        let above = self.threads.get(&Whose::Task(task)).map(|seen| &seen.above);
        above.into_iter().flatten().map(|&other| 1 + self.depth(other, so_far + 1)).max().unwrap_or(0)
    }
}

/// Calls of jobs on one thread are no deeper than the number of an app's levels.
pub(crate) const MAX_CALLS: i64 = 32;

/// Returns the maximum possible C of a job with its switches: its window without the time of
/// others. `None` if unknown. If it only `spins`, its window contains no unrecorded wait for a
/// lock.
fn own_time(job: &Job, spins: bool) -> Option<u64> {
    let (window, displaced) = (job.window.hi()?, job.interference.hi()?);
    let others = match (job.blocking.hi(), spins) {
        // Displacement on the way to an unrecorded wait would be part of that wait.
        (None, true) => job.blocking.lo().unwrap_or(0).checked_add(displaced)?,
        (None, false) => return None,
        (Some(_), _) => job.blocking.lo()?.checked_add(job.interference.lo()?)?,
    };
    window.checked_sub(others)
}
