//! Export for the Perfetto viewer.
//!
//! One track per CPU shows its occupants, with handlers nested in threads. One track per task shows
//! its jobs, with a nested slice for each segment; segments exist only if the decomposition was
//! configured to produce them. An arrow leads from the waker to the job it woke. Switches and
//! wake-ups are also written as kernel events, from which the viewer builds its own views, together
//! with threads and their processes. System calls are slices of the thread's track, and events
//! unknown to the analysis appear where they happened.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Write};

use punctual_trace::event::{Event, Kind, SwitchOut, Task, Tid};
use punctual_trace::jobs::{Actor, Job, JobKind};
use punctual_trace::names::{Names, UNKNOWN_THREAD};
use punctual_trace::stats::Key;

use super::json::phase_name;
use super::proto::Message;
use crate::explain;

/// Field numbers of the messages of `perfetto_trace.proto` used here.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) const PACKET_FTRACE: u32 = 1;
    pub(super) const PACKET_PROCESS_TREE: u32 = 2;
    pub(super) const PACKET_TIMESTAMP: u32 = 8;
    pub(super) const PACKET_SEQUENCE: u32 = 10;
    pub(super) const PACKET_EVENT: u32 = 11;
    pub(super) const PACKET_TRACK: u32 = 60;
    pub(super) const TRACK_UUID: u32 = 1;
    pub(super) const TRACK_NAME: u32 = 2;
    pub(super) const TRACK_PARENT: u32 = 5;
    pub(super) const TRACK_THREAD: u32 = 4;
    pub(super) const THREAD_PROCESS: u32 = 1;
    pub(super) const THREAD_ID: u32 = 2;
    pub(super) const THREAD_NAME: u32 = 5;
    pub(super) const TREE_PROCESS: u32 = 1;
    pub(super) const TREE_THREAD: u32 = 2;
    pub(super) const TREE_PROCESS_ID: u32 = 1;
    pub(super) const TREE_PROCESS_COMMAND: u32 = 3;
    pub(super) const TREE_THREAD_ID: u32 = 1;
    pub(super) const TREE_THREAD_NAME: u32 = 2;
    pub(super) const TREE_THREAD_PROCESS: u32 = 3;
    pub(super) const FTRACE_CPU: u32 = 1;
    pub(super) const FTRACE_EVENT: u32 = 2;
    pub(super) const FTRACE_TIMESTAMP: u32 = 1;
    pub(super) const FTRACE_PID: u32 = 2;
    pub(super) const FTRACE_SWITCH: u32 = 4;
    pub(super) const FTRACE_WAKEUP: u32 = 17;
    pub(super) const FTRACE_WAKING: u32 = 20;
    pub(super) const FTRACE_WAKEUP_NEW: u32 = 114;
    pub(super) const EVENT_ANNOTATION: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_TRACK: u32 = 11;
    pub(super) const EVENT_NAME: u32 = 23;
    pub(super) const EVENT_FLOW: u32 = 47;
    pub(super) const EVENT_LAST_FLOW: u32 = 48;
    pub(super) const ANNOTATION_TEXT: u32 = 6;
    pub(super) const ANNOTATION_NAME: u32 = 10;
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// All packets have one writer.
const SEQUENCE: u64 = 1;

/// Thread ID in scheduling events for all threads whose switches may be missing. No real thread has
/// this ID.
const UNSEEN: Tid = Tid::MAX >> 1;

const CPUS: u64 = 1;
const TASKS: u64 = 2;
const FIRST_CPU: u64 = 0x1_0000;
const FIRST_TASK: u64 = 0x10_0000;
const FIRST_THREAD: u64 = 0x1_0000_0000;

/// Maximum number of open handlers on a CPU.
const MAX_OPEN: usize = 8;

/// Writes a Perfetto trace from a stream of events and jobs.
#[derive(Debug)]
pub struct Perfetto<W> {
    to: W,
    /// Open slices of each CPU: the thread, then handlers.
    open: BTreeMap<u16, Vec<Actor>>,
    /// Tracks of tasks, and the end of the last job on each. Handlers have one track per CPU
    /// because they can run in parallel.
    tasks: BTreeMap<(Key, Option<u16>), (u64, u64)>,
    declared: BTreeSet<u64>,
    /// Names written for threads.
    threads: HashMap<Tid, String>,
    /// Threads inside a system call.
    calling: HashSet<Tid>,
    flows: u64,
}

impl<W: Write> Perfetto<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Returns the error of writing to `to`.
    pub fn new(to: W) -> io::Result<Self> {
        let (open, tasks, declared) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (threads, calling) = (HashMap::new(), HashSet::new());
        let mut this = Self { to, open, tasks, declared, threads, calling, flows: 0 };
        this.declare(CPUS, None, "CPUs")?;
        this.declare(TASKS, None, "Tasks")?;
        Ok(this)
    }

    /// Writes the occupants of CPUs. `must_observe` returns whether all switches of a thread are
    /// recorded, like [`Watch::must_observe`](punctual_trace::stats::Watch::must_observe); a thread
    /// whose switch-out may be missing appears as an unseen thread.
    ///
    /// # Errors
    /// Returns the error of writing it.
    pub fn event(
        &mut self,
        event: &Event,
        names: &Names,
        must_observe: impl Fn(Tid) -> bool,
    ) -> io::Result<()> {
        let seen = |task: Task| if must_observe(task.id) { task } else { Task { id: UNSEEN, ..task } };
        let kind = match event.kind {
            // Another thread may have replaced it unseen.
            Kind::Switch { from, reason, to } => Kind::Switch { from: seen(from), reason, to: seen(to) },
            kind => kind,
        };
        let event = &Event { kind, ..*event };
        self.scheduling(event, names)?;
        let (entered, actor) = match event.kind {
            Kind::SyscallEnter { number } => return self.call_begins(event, &names.of_call(number), names),
            Kind::FutexEnter { .. } => return self.call_begins(event, "futex", names),
            Kind::YieldEnter => return self.call_begins(event, "sched_yield", names),
            Kind::SyscallExit { .. } | Kind::FutexExit { .. } | Kind::YieldExit => {
                return self.call_ends(event);
            }
            Kind::Other { event: id } => {
                let track = self.cpu(event.cpu)?;
                let by = [format!("thread: {}", names.of(Actor::Thread(event.by)))];
                return self.slice(event.time, track, INSTANT, Some(&names.of_event(id)), &by, None);
            }
            Kind::Switch { to, .. } => {
                let to = if to.id == UNSEEN { Actor::Unseen } else { Actor::Thread(to.id) };
                return self.switch(event, to, names);
            }
            Kind::IrqEntry { irq } => (true, Actor::Irq(irq)),
            Kind::IrqExit { irq } => (false, Actor::Irq(irq)),
            Kind::VectorEntry { vector } => (true, Actor::Vector(vector)),
            Kind::VectorExit { vector } => (false, Actor::Vector(vector)),
            Kind::SoftirqEntry { softirq } => (true, Actor::Softirq(softirq)),
            Kind::SoftirqExit { softirq } => (false, Actor::Softirq(softirq)),
            Kind::Lost { .. } => {
                let track = self.cpu(event.cpu)?;
                return self.slice(event.time, track, INSTANT, Some("events lost"), &[], None);
            }
            _ => return Ok(()),
        };
        let track = self.cpu(event.cpu)?;
        let open = self.open.entry(event.cpu).or_default();
        if entered {
            if open.len() >= MAX_OPEN {
                return Ok(());
            }
            open.push(actor);
            return self.slice(event.time, track, BEGIN, Some(&names.of(actor)), &[], None);
        }
        // The exits of those above it were not recorded.
        let Some(index) = open.iter().rposition(|other| *other == actor) else { return Ok(()) };
        let ends = open.len() - index;
        open.truncate(index);
        (0..ends).try_for_each(|_| self.slice(event.time, track, END, None, &[], None))
    }

    /// Writes switches and wake-ups as kernel events.
    fn scheduling(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        let name = |tid| {
            names.of_thread(tid).unwrap_or(match tid {
                0 => "swapper",
                UNSEEN => UNKNOWN_THREAD,
                _ => "",
            })
        };
        let priority = |task: Task| i64::from(task.priority) as u64;
        let woken = |task: Task, cpu: u16| {
            let message = Message::new().text(1, name(task.id)).number(2, task.id.into());
            message.number(3, priority(task)).number(4, 1).number(5, cpu.into())
        };
        let (kind, content) = match event.kind {
            Kind::Switch { from, reason, to } => {
                let state = match reason {
                    SwitchOut::Runnable => 0,
                    SwitchOut::Sleeping => 1,
                    SwitchOut::Uninterruptible => 2,
                    SwitchOut::Gone => 0x10,
                };
                let from =
                    Message::new().text(1, name(from.id)).number(2, from.id.into()).number(3, priority(from));
                let to_message = from.number(4, state).text(5, name(to.id)).number(6, to.id.into());
                self.thread(to.id, names)?;
                (field::FTRACE_SWITCH, to_message.number(7, priority(to)))
            }
            Kind::Waking { task, cpu } => (field::FTRACE_WAKING, woken(task, cpu)),
            Kind::Wakeup { task, cpu, new: false } => (field::FTRACE_WAKEUP, woken(task, cpu)),
            Kind::Wakeup { task, cpu, new: true } => (field::FTRACE_WAKEUP_NEW, woken(task, cpu)),
            _ => return Ok(()),
        };
        let recorded = Message::new().number(field::FTRACE_TIMESTAMP, event.time);
        let recorded = recorded.number(field::FTRACE_PID, event.by.into()).message(kind, content);
        let bundle = Message::new().number(field::FTRACE_CPU, event.cpu.into());
        self.packet(
            Message::new().message(field::PACKET_FTRACE, bundle.message(field::FTRACE_EVENT, recorded)),
        )
    }

    /// Writes a thread's name and process if they are new.
    fn thread(&mut self, tid: Tid, names: &Names) -> io::Result<()> {
        let Some(name) = names.of_thread(tid).filter(|_| tid != 0) else { return Ok(()) };
        if self.threads.get(&tid).is_some_and(|known| known == name) {
            return Ok(());
        }
        self.threads.insert(tid, name.to_owned());
        let Some(process) = names.process_of(tid) else { return Ok(()) };
        let command = names.of_thread(process).unwrap_or(name);
        let leader = Message::new().number(field::TREE_PROCESS_ID, process.into());
        let leader = leader.text(field::TREE_PROCESS_COMMAND, command);
        let thread =
            Message::new().number(field::TREE_THREAD_ID, tid.into()).text(field::TREE_THREAD_NAME, name);
        let thread = thread.number(field::TREE_THREAD_PROCESS, process.into());
        let tree = Message::new().message(field::TREE_PROCESS, leader).message(field::TREE_THREAD, thread);
        self.packet(Message::new().message(field::PACKET_PROCESS_TREE, tree))
    }

    fn call_begins(&mut self, event: &Event, name: &str, names: &Names) -> io::Result<()> {
        let track = FIRST_THREAD + u64::from(event.by);
        if self.declared.insert(track) {
            let mut descriptor = Message::new().number(field::TRACK_UUID, track);
            descriptor = match names.process_of(event.by) {
                // Track of that thread in the viewer's own list.
                Some(process) => {
                    let thread = Message::new().number(field::THREAD_PROCESS, process.into());
                    let thread = thread.number(field::THREAD_ID, event.by.into());
                    let thread = thread.text(field::THREAD_NAME, names.of_thread(event.by).unwrap_or(""));
                    descriptor.message(field::TRACK_THREAD, thread)
                }
                None => descriptor.text(field::TRACK_NAME, &names.of(Actor::Thread(event.by))),
            };
            let packet = Message::new().number(field::PACKET_SEQUENCE, SEQUENCE);
            self.packet(packet.message(field::PACKET_TRACK, descriptor))?;
        }
        // A call without a recorded exit ends where the next begins.
        if !self.calling.insert(event.by) {
            self.slice(event.time, track, END, None, &[], None)?;
        }
        self.slice(event.time, track, BEGIN, Some(name), &[], None)
    }

    fn call_ends(&mut self, event: &Event) -> io::Result<()> {
        match self.calling.remove(&event.by) {
            true => self.slice(event.time, FIRST_THREAD + u64::from(event.by), END, None, &[], None),
            false => Ok(()),
        }
    }

    fn switch(&mut self, event: &Event, to: Actor, names: &Names) -> io::Result<()> {
        let track = self.cpu(event.cpu)?;
        let ends = self.open.insert(event.cpu, Vec::new()).map_or(0, |open| open.len());
        (0..ends).try_for_each(|_| self.slice(event.time, track, END, None, &[], None))?;
        // An idle CPU is empty.
        if to == Actor::Thread(0) {
            return Ok(());
        }
        self.open.insert(event.cpu, vec![to]);
        self.slice(event.time, track, BEGIN, Some(&names.of(to)), &[], None)
    }

    /// Writes a job.
    ///
    /// # Errors
    /// Returns the error of writing it.
    pub fn job(&mut self, job: &Job, names: &Names) -> io::Result<()> {
        let key = Key::of(job);
        let cpu = (!matches!(job.kind, JobKind::Thread | JobKind::IrqThread)).then_some(job.first_cpu);
        let next = FIRST_TASK + self.tasks.len() as u64;
        let (track, free) = self.tasks.entry((key, cpu)).or_insert((next, 0));
        let (track, free) = (*track, std::mem::replace(free, job.end));
        let of_cpu = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        self.declare(track, Some(TASKS), &format!("{}{of_cpu}", names.listed(key.actor)))?;
        // A job released before the previous one ended is drawn from the end of that one.
        let start = job.released.map_or(job.start, |released| released.0.min(job.start)).max(free);
        let mut flow = None;
        if let Some(waker) = job.waker {
            self.flows += 1;
            flow = Some(self.flows);
            let cpu = self.cpu(waker.cpu)?;
            let wakes = format!("wakes {}", names.of(job.actor));
            let from = flow.map(|flow| (field::EVENT_FLOW, flow));
            self.slice(waker.time, cpu, INSTANT, Some(&wakes), &[], from)?;
        }
        let name = format!("job {}", job.number);
        let ends = flow.map(|flow| (field::EVENT_LAST_FLOW, flow));
        self.slice(start, track, BEGIN, Some(&name), &explain::job(job, names), ends)?;
        for segment in job.segments.iter().filter(|segment| segment.end > start) {
            let phase = phase_name(segment.phase);
            self.slice(segment.start.max(start), track, BEGIN, Some(phase), &[], None)?;
            self.slice(segment.end, track, END, None, &[], None)?;
        }
        self.slice(job.end.max(start), track, END, None, &[], None)
    }

    /// Flushes the output and returns the writer.
    ///
    /// # Errors
    /// Returns the error of flushing it.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn cpu(&mut self, cpu: u16) -> io::Result<u64> {
        let track = FIRST_CPU + u64::from(cpu);
        self.declare(track, Some(CPUS), &format!("CPU {cpu}"))?;
        Ok(track)
    }

    fn declare(&mut self, track: u64, parent: Option<u64>, name: &str) -> io::Result<()> {
        if !self.declared.insert(track) {
            return Ok(());
        }
        let mut descriptor = Message::new().number(field::TRACK_UUID, track).text(field::TRACK_NAME, name);
        if let Some(parent) = parent {
            descriptor = descriptor.number(field::TRACK_PARENT, parent);
        }
        let packet = Message::new().number(field::PACKET_SEQUENCE, SEQUENCE);
        self.packet(packet.message(field::PACKET_TRACK, descriptor))
    }

    fn slice(
        &mut self,
        time: u64,
        track: u64,
        kind: u64,
        name: Option<&str>,
        notes: &[String],
        flow: Option<(u32, u64)>,
    ) -> io::Result<()> {
        let mut event = Message::new().number(field::EVENT_TYPE, kind).number(field::EVENT_TRACK, track);
        if let Some(name) = name {
            event = event.text(field::EVENT_NAME, name);
        }
        for note in notes {
            let (term, text) = note.split_once(": ").unwrap_or(("note", note));
            let note = Message::new().text(field::ANNOTATION_NAME, term).text(field::ANNOTATION_TEXT, text);
            event = event.message(field::EVENT_ANNOTATION, note);
        }
        if let Some((field, flow)) = flow {
            event = event.fixed(field, flow);
        }
        let packet =
            Message::new().number(field::PACKET_TIMESTAMP, time).number(field::PACKET_SEQUENCE, SEQUENCE);
        self.packet(packet.message(field::PACKET_EVENT, event))
    }

    fn packet(&mut self, packet: Message) -> io::Result<()> {
        self.to.write_all(&Message::new().message(field::TRACE_PACKET, packet).done())
    }
}
