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

use std::borrow::Cow;
use std::collections::HashMap;

use punctual_report::escape::Printable;

use crate::event::Tid;
use crate::jobs::Actor;

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Name of a thread that was not observed.
pub(crate) const SOMEBODY_UNSEEN: &str = "somebody unseen";

/// Maximum number of names of a kind, so that the names of dead threads in a trace of days cannot
/// fill the memory.
const MAX_NAMES: usize = 65_536;

/// Names from a trace.
///
/// Any process can name a thread, so a name may contain line breaks or terminal escapes. The names
/// returned here are [printable](Printable).
#[derive(Debug, Clone, Default)]
pub struct Names {
    threads: HashMap<Tid, String>,
    irqs: HashMap<u32, String>,
    vectors: HashMap<u16, String>,
    tasks: HashMap<u16, String>,
    events: HashMap<u16, String>,
    calls: HashMap<u32, String>,
    processes: HashMap<Tid, Tid>,
}

impl Names {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a thread. A reused ID gets the newer name.
    pub fn thread(&mut self, tid: Tid, name: &str) {
        put(&mut self.threads, tid, name);
    }

    /// Names a device interrupt.
    pub fn irq(&mut self, irq: u32, name: &str) {
        put(&mut self.irqs, irq, name);
    }

    /// Names an interrupt vector.
    pub fn vector(&mut self, vector: u16, name: &str) {
        put(&mut self.vectors, vector, name);
    }

    /// Names a task of a Punctual app.
    pub fn task(&mut self, task: u16, name: &str) {
        put(&mut self.tasks, task, name);
    }

    /// Names an event that is unknown to the analysis.
    pub fn event(&mut self, event: u16, name: &str) {
        put(&mut self.events, event, name);
    }

    /// Names a system call.
    pub fn call(&mut self, number: u32, name: &str) {
        put(&mut self.calls, number, name);
    }

    /// Sets the process of a thread.
    pub fn process(&mut self, tid: Tid, process: Tid) {
        if self.processes.len() < MAX_NAMES {
            self.processes.insert(tid, process);
        }
    }

    /// Returns the process of a thread, if it was recorded.
    #[must_use]
    pub fn process_of(&self, tid: Tid) -> Option<Tid> {
        self.processes.get(&tid).copied()
    }

    /// Returns the name of an event that is unknown to the analysis.
    #[must_use]
    pub fn of_event(&self, event: u16) -> String {
        self.events.get(&event).cloned().unwrap_or(format!("event {event}"))
    }

    /// Returns the name of a system call.
    #[must_use]
    pub fn of_call(&self, number: u32) -> String {
        self.calls.get(&number).cloned().unwrap_or(format!("system call {number}"))
    }

    /// Returns these names with another name for one thread.
    pub(crate) fn with_thread(&self, tid: Tid, name: &str) -> Cow<'_, Self> {
        let mut known = HashMap::new();
        put(&mut known, tid, name);
        if known.get(&tid).map(String::as_str) == self.of_thread(tid) {
            return Cow::Borrowed(self);
        }
        let mut names = self.clone();
        names.thread(tid, name);
        Cow::Owned(names)
    }

    /// Returns the name of a thread without its number.
    #[must_use]
    pub fn of_thread(&self, tid: Tid) -> Option<&str> {
        self.threads.get(&tid).map(String::as_str)
    }

    /// Returns the name of an actor in a list of several, as at the head of a table: as
    /// [`of`](Self::of), with its number if tasks of several apps share that name.
    #[must_use]
    pub fn listed(&self, actor: Actor) -> String {
        let name = self.of(actor);
        let Actor::Task(task) = actor else { return name };
        match self.tasks.iter().any(|(other, known)| *other != task && *known == name) {
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
                let name = self.threads.get(&tid).filter(|name| !name.is_empty());
                name.map_or(tid.to_string(), |name| format!("{name}/{tid}"))
            }
            Actor::Irq(irq) => {
                self.irqs.get(&irq).map_or(format!("irq {irq}"), |name| format!("irq {irq} {name}"))
            }
            Actor::Vector(vector) => self.vectors.get(&vector).cloned().unwrap_or(format!("vector {vector}")),
            Actor::Softirq(softirq) => match SOFTIRQS.get(usize::from(softirq)) {
                Some(name) => format!("softirq {name}"),
                None => format!("softirq {softirq}"),
            },
            Actor::Task(task) => self.tasks.get(&task).cloned().unwrap_or(format!("task {task}")),
            Actor::Throttling => "throttling".into(),
            Actor::Others => "others".into(),
            Actor::Unseen => SOMEBODY_UNSEEN.into(),
        }
    }
}

fn put<K: std::hash::Hash + Eq>(names: &mut HashMap<K, String>, key: K, name: &str) {
    if names.len() >= MAX_NAMES && !names.contains_key(&key) {
        names.clear();
    }
    match names.get_mut(&key) {
        Some(known) if known == name => {}
        Some(known) => *known = Printable(name).to_string(),
        None => drop(names.insert(key, Printable(name).to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_tasks_of_one_name_apart_by_their_numbers() {
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
