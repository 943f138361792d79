//! Names of threads, interrupts and tasks.
//!
//! ```
//! use punctual_trace::jobs::Actor;
//! use punctual_trace::names::Names;
//!
//! let mut names = Names::new();
//! names.thread(411, "logger");
//! assert_eq!(names.of(Actor::Thread(411)), "logger/411");
//! assert_eq!(names.of(Actor::Softirq(3)), "softirq NET_RX");
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use punctual_report::escape::Printable;

use crate::event::{Comm, Event, Kind, Tid};
use crate::jobs::Actor;

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Name of a thread whose switches may not all be recorded.
pub const UNKNOWN_THREAD: &str = "somebody unseen";

/// Maximum number of names of a kind, so that the names of dead threads in a trace of days cannot
/// fill the memory.
const MAX_NAMES: usize = 65_536;
/// Maximum number of changes of names of all threads. Beyond it, only the last name of each thread
/// is kept.
const MAX_CHANGES: usize = 1 << 18;

/// Names from a trace.
///
/// A thread has the name that the last [event](Kind::Named) gave it; [`at`](Self::at) selects the
/// time. Names from other sources apply only to threads that no event names.
///
/// Any process can name a thread, so a name may contain line breaks or terminal escapes. The names
/// returned here are [printable](Printable).
#[derive(Debug, Clone, Default)]
pub struct Names {
    // Shared by the names of all times.
    tables: Arc<Tables>,
    /// Selected time; `None` is the latest.
    at: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Tables {
    threads: HashMap<Tid, Thread>,
    changes: usize,
    irqs: HashMap<u32, String>,
    vectors: HashMap<u16, String>,
    tasks: HashMap<u16, String>,
    events: HashMap<u16, String>,
    calls: HashMap<u32, String>,
    processes: HashMap<Tid, Tid>,
}

/// Names of the threads that have had an ID.
#[derive(Debug, Clone, Default)]
struct Thread {
    /// From other sources than events.
    listed: Option<String>,
    /// Ordered by time.
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
struct Change {
    time: u64,
    name: String,
    /// Another thread got the ID at this time.
    is_created: bool,
}

impl Thread {
    /// Returns the change that applies at a time, or the first one after it.
    fn change_at(&self, at: Option<u64>) -> usize {
        let later = self.changes.partition_point(|change| at.is_none_or(|at| change.time <= at));
        later.saturating_sub(1)
    }

    fn name(&self, at: Option<u64>) -> Option<&str> {
        let change = self.changes.get(self.change_at(at));
        change.map(|change| change.name.as_str()).or(self.listed.as_deref())
    }

    /// Returns all names of the thread that has the ID at a time.
    fn all(&self, at: Option<u64>) -> impl Iterator<Item = &str> {
        let place = self.change_at(at);
        let is_start = |change: &Change| change.is_created;
        let (before, after) = self.changes.split_at((place + 1).min(self.changes.len()));
        let start = before.iter().rposition(is_start).unwrap_or(0);
        let end = after.iter().position(is_start).unwrap_or(after.len());
        let names = before[start..].iter().chain(&after[..end]).map(|change| change.name.as_str());
        names.chain(self.listed.as_deref().filter(|_| self.changes.is_empty()))
    }
}

impl Names {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&mut self) -> &mut Tables {
        Arc::make_mut(&mut self.tables)
    }

    /// Returns the names of threads at a time, in ns on the trace's clock.
    #[must_use]
    pub fn at(&self, time: u64) -> Self {
        Self { tables: self.tables.clone(), at: Some(time) }
    }

    /// Names a thread until an event does.
    pub fn thread(&mut self, tid: Tid, name: &str) {
        let tables = self.tables();
        if tables.threads.len() >= MAX_NAMES && !tables.threads.contains_key(&tid) {
            (tables.threads, tables.changes) = (HashMap::new(), 0);
        }
        tables.threads.entry(tid).or_default().listed = Some(printable(name));
    }

    /// Adds the name that an event shows, if any. Call it with the events in the order of time.
    #[inline]
    pub fn see(&mut self, event: &Event) {
        match event.kind {
            Kind::Named { thread, name } => self.named(event.time, thread, name),
            Kind::Wakeup { task, new: true, .. } => self.created(event.time, task.id),
            _ => {}
        }
    }

    #[cold]
    fn named(&mut self, time: u64, tid: Tid, name: Comm) {
        let name = printable(&name.text());
        let known = self.tables.threads.get(&tid).and_then(|thread| thread.changes.last());
        if known.is_none_or(|last| last.name != name) {
            self.change(tid, Change { time, name, is_created: false });
        }
    }

    /// Another thread has the ID from now on. The event that shows its name precedes this one.
    #[cold]
    fn created(&mut self, time: u64, tid: Tid) {
        let last = self.tables.threads.get(&tid).and_then(|thread| thread.changes.last());
        if let Some(name) = last.map(|last| last.name.clone()) {
            self.change(tid, Change { time, name, is_created: true });
        }
    }

    fn change(&mut self, tid: Tid, change: Change) {
        let tables = self.tables();
        if tables.threads.len() >= MAX_NAMES && !tables.threads.contains_key(&tid) {
            (tables.threads, tables.changes) = (HashMap::new(), 0);
        }
        if tables.changes >= MAX_CHANGES {
            for thread in tables.threads.values_mut() {
                thread.changes.drain(..thread.changes.len().saturating_sub(1));
            }
            tables.changes = tables.threads.len();
        }
        let changes = &mut tables.threads.entry(tid).or_default().changes;
        // The first name of a new thread is not a change of the previous thread's name.
        let replaced = changes.pop_if(|last| change.is_created && last.time == change.time);
        tables.changes += usize::from(replaced.is_none());
        changes.push(change);
    }

    /// Names a device interrupt.
    pub fn irq(&mut self, irq: u32, name: &str) {
        put(&mut self.tables().irqs, irq, name);
    }

    /// Names an interrupt vector.
    pub fn vector(&mut self, vector: u16, name: &str) {
        put(&mut self.tables().vectors, vector, name);
    }

    /// Names a task of a Punctual app.
    pub fn task(&mut self, task: u16, name: &str) {
        put(&mut self.tables().tasks, task, name);
    }

    /// Names an event that is unknown to the analysis.
    pub fn event(&mut self, event: u16, name: &str) {
        put(&mut self.tables().events, event, name);
    }

    /// Names a system call.
    pub fn call(&mut self, number: u32, name: &str) {
        put(&mut self.tables().calls, number, name);
    }

    /// Sets the process of a thread.
    pub fn process(&mut self, tid: Tid, process: Tid) {
        if self.tables.processes.len() < MAX_NAMES {
            self.tables().processes.insert(tid, process);
        }
    }

    /// Returns the process of a thread, if it was recorded.
    #[must_use]
    pub fn process_of(&self, tid: Tid) -> Option<Tid> {
        self.tables.processes.get(&tid).copied()
    }

    /// Returns the name of an event that is unknown to the analysis.
    #[must_use]
    pub fn of_event(&self, event: u16) -> String {
        self.tables.events.get(&event).cloned().unwrap_or(format!("event {event}"))
    }

    /// Returns the name of a system call.
    #[must_use]
    pub fn of_call(&self, number: u32) -> String {
        self.tables.calls.get(&number).cloned().unwrap_or(format!("system call {number}"))
    }

    /// Returns the name of a thread without its number.
    #[must_use]
    pub fn of_thread(&self, tid: Tid) -> Option<&str> {
        self.tables.threads.get(&tid)?.name(self.at)
    }

    /// Returns every name of the thread that has the ID at the selected time.
    pub fn all_of_thread(&self, tid: Tid) -> impl Iterator<Item = &str> {
        self.tables.threads.get(&tid).into_iter().flat_map(|thread| thread.all(self.at))
    }

    /// Returns the name of an actor in a list of several, as at the head of a table: as
    /// [`of`](Self::of), with its number if tasks of several apps share that name.
    #[must_use]
    pub fn listed(&self, actor: Actor) -> String {
        let name = self.of(actor);
        let Actor::Task(task) = actor else { return name };
        match self.tables.tasks.iter().any(|(other, known)| *other != task && *known == name) {
            true => format!("{name} (task {task})"),
            false => name,
        }
    }

    /// Returns the name of an actor.
    #[must_use]
    pub fn of(&self, actor: Actor) -> String {
        match actor {
            Actor::Thread(0) => "idle".into(),
            Actor::Thread(tid) => {
                // A writer of a trace may record an unknown name as an empty one.
                let name = self.of_thread(tid).filter(|name| !name.is_empty());
                name.map_or(tid.to_string(), |name| format!("{name}/{tid}"))
            }
            Actor::Irq(irq) => {
                self.tables.irqs.get(&irq).map_or(format!("irq {irq}"), |name| format!("irq {irq} {name}"))
            }
            Actor::Vector(vector) => {
                self.tables.vectors.get(&vector).cloned().unwrap_or(format!("vector {vector}"))
            }
            Actor::Softirq(softirq) => match SOFTIRQS.get(usize::from(softirq)) {
                Some(name) => format!("softirq {name}"),
                None => format!("softirq {softirq}"),
            },
            Actor::Task(task) => self.tables.tasks.get(&task).cloned().unwrap_or(format!("task {task}")),
            Actor::Throttling => "throttling".into(),
            Actor::Others => "others".into(),
            Actor::Unseen => UNKNOWN_THREAD.into(),
        }
    }
}

fn printable(name: &str) -> String {
    Printable(name).to_string()
}

fn put<K: std::hash::Hash + Eq>(names: &mut HashMap<K, String>, key: K, name: &str) {
    if names.len() >= MAX_NAMES && !names.contains_key(&key) {
        names.clear();
    }
    match names.get_mut(&key) {
        Some(known) if known == name => {}
        Some(known) => *known = printable(name),
        None => drop(names.insert(key, printable(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &mut Names, time: u64, thread: Tid, name: &str) {
        names.see(&Event { time, cpu: 0, by: 0, kind: Kind::Named { thread, name: Comm::new(name) } });
    }

    fn created(names: &mut Names, time: u64, id: Tid) {
        let kind = Kind::Wakeup { task: crate::event::Task { id, priority: 120 }, cpu: 0, new: true };
        names.see(&Event { time, cpu: 0, by: 0, kind });
    }

    #[test]
    fn names_hold_from_their_events_on() {
        let mut names = Names::new();
        names.thread(7, "listed");
        names.thread(8, "listed\n");
        assert_eq!((names.of_thread(7), names.of_thread(8)), (Some("listed"), Some("listed\\n")));
        named(&mut names, 100, 7, "one");
        named(&mut names, 200, 7, "two");
        named(&mut names, 300, 7, "two");
        let at = |time| names.at(time).of(Actor::Thread(7));
        assert_eq!([0, 100, 199, 200, u64::MAX].map(at), ["one/7", "one/7", "one/7", "two/7", "two/7"]);
        assert_eq!(names.of(Actor::Thread(7)), "two/7");
        assert_eq!(names.at(0).of_thread(8), Some("listed\\n"));
    }

    #[test]
    fn separates_threads_with_reused_id() {
        let mut names = Names::new();
        let all =
            |names: &Names, time| names.at(time).all_of_thread(7).map(str::to_owned).collect::<Vec<_>>();
        named(&mut names, 100, 7, "sh");
        named(&mut names, 200, 7, "first");
        // A thread is created with the name of its parent, here that of the previous thread.
        named(&mut names, 300, 7, "first");
        created(&mut names, 300, 7);
        named(&mut names, 400, 7, "second");
        named(&mut names, 500, 7, "sh");
        created(&mut names, 500, 7);
        assert_eq!(all(&names, 150), ["sh", "first"]);
        assert_eq!(all(&names, 299), ["sh", "first"]);
        assert_eq!(all(&names, 300), ["first", "second"]);
        assert_eq!(all(&names, 450), ["first", "second"]);
        assert_eq!(all(&names, 600), ["sh"]);
        assert_eq!(names.all_of_thread(9).count(), 0);
    }

    #[test]
    fn bounds_memory_for_any_number_of_names() {
        let mut names = Names::new();
        for time in 0..2 * MAX_CHANGES as u64 {
            named(&mut names, time, 7, if time % 2 == 0 { "even" } else { "odd" });
        }
        let changes = |names: &Names| names.tables.threads.values().map(|it| it.changes.len()).sum::<usize>();
        assert!(changes(&names) <= MAX_CHANGES, "{}", changes(&names));
        (0..2 * MAX_NAMES as Tid).for_each(|thread| named(&mut names, u64::MAX, thread, "worker"));
        assert!(names.tables.threads.len() <= MAX_NAMES);
        assert_eq!(names.of_thread(2 * MAX_NAMES as Tid - 1), Some("worker"));
    }

    #[test]
    fn distinguishes_same_task_names_by_number() {
        let mut names = Names::new();
        names.task(64, "sample");
        assert_eq!(names.listed(Actor::Task(64)), "sample");
        names.task(128, "sample");
        names.task(129, "current");
        names.thread(7, "sample");
        let listed = [Actor::Task(64), Actor::Task(128), Actor::Task(129), Actor::Thread(7)];
        let listed = listed.map(|actor| names.listed(actor));
        assert_eq!(listed, ["sample (task 64)", "sample (task 128)", "current", "sample/7"]);
        assert_eq!(names.of(Actor::Task(64)), "sample");
    }
}
