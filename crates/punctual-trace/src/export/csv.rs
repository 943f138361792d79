//! CSV export, one line per job.

use std::io::{self, Write};

use super::{VERSION, flaw_name, kind_name, release_name};
use crate::jobs::{Actor, Bounds, Job};
use crate::names::Names;
use crate::priority::Priority;
use crate::stats::Term;

/// The columns. Times are in ns: instants on the trace's clock, and for each term its lower and
/// upper bound, which are equal if it is exact and both empty if it is unknown.
pub const COLUMNS: [&str; 53] = [
    "version",
    "number",
    "sort",
    "id",
    "name",
    "task",
    "task_name",
    "priority",
    "highest_priority",
    "released_by",
    "released_min_ns",
    "released_max_ns",
    "woken_ns",
    "waker",
    "start_ns",
    "end_ns",
    "first_cpu",
    "last_cpu",
    "migrations",
    "preemptions",
    "r_min_ns",
    "r_max_ns",
    "j_min_ns",
    "j_max_ns",
    "ss_min_ns",
    "ss_max_ns",
    "w_min_ns",
    "w_max_ns",
    "b_min_ns",
    "b_max_ns",
    "i_min_ns",
    "i_max_ns",
    "c_min_ns",
    "c_max_ns",
    "ss_entry_min_ns",
    "ss_entry_max_ns",
    "ss_exit_min_ns",
    "ss_exit_max_ns",
    "suspended_ns",
    "blockings",
    "longest_blocking_ns",
    "longest_blocking_holder",
    "top_interference",
    "flaw",
    "ss_likely_ns",
    "c_likely_ns",
    "nice",
    "runtime_ns",
    "deadline_ns",
    "period_ns",
    "missed",
    "throttled_ns",
    "throttles",
];

/// Writes CSV (RFC 4180, with lines terminated by LF).
#[derive(Debug)]
pub struct Csv<W> {
    to: W,
    line: String,
}

impl<W: Write> Csv<W> {
    /// Writes the header line.
    ///
    /// # Errors
    /// Returns the error of writing to `to`.
    pub fn new(mut to: W) -> io::Result<Self> {
        writeln!(to, "{}", COLUMNS.join(","))?;
        Ok(Self { to, line: String::new() })
    }

    /// Writes a job.
    ///
    /// # Errors
    /// Returns the error of writing it.
    pub fn job(&mut self, job: &Job, names: &Names) -> io::Result<()> {
        self.line.clear();
        self.number(u64::from(VERSION));
        self.number(job.number);
        self.text(kind_name(job.kind));
        self.number(id(job.actor));
        self.text(&name(job.actor, names));
        self.some(job.task.map(u64::from));
        self.text(&job.task.map_or(String::new(), |task| names.of(Actor::Task(task))));
        let priority = Priority::of_kernel(job.priority);
        self.number(priority.number().into());
        self.number(Priority::of_kernel(job.highest).number().into());
        self.text(release_name(job.released_by));
        self.some(job.released.map(|released| released.0));
        self.some(job.released.map(|released| released.1));
        self.some(job.woken);
        self.text(&job.waker.map_or(String::new(), |waker| names.of(waker.actor)));
        self.number(job.start);
        self.number(job.end);
        self.number(u64::from(job.first_cpu));
        self.number(u64::from(job.last_cpu));
        self.number(u64::from(job.migrations));
        self.number(u64::from(job.preemptions));
        Term::ALL.into_iter().for_each(|term| self.value(term.of(job)));
        self.value(job.overhead_entry);
        self.value(job.overhead_exit);
        self.number(job.suspended);
        self.number(job.blockings.len() as u64 + u64::from(job.blockings_left_out));
        let longest = job.blockings.iter().max_by_key(|wait| wait.ns());
        self.some(longest.map(|wait| wait.ns()));
        let holder = longest.and_then(|wait| wait.owners.first());
        self.text(&holder.map_or(String::new(), |&tid| names.of(Actor::Thread(tid))));
        let top = job.interference_causes.iter().max_by_key(|cause| cause.ns);
        self.text(&top.map_or(String::new(), |cause| names.of(cause.actor)));
        self.text(flaw_name(job.flaw));
        self.some(job.likely_overhead);
        self.some(job.likely_execution());
        self.text(&priority.nice().map_or(String::new(), |nice| nice.to_string()));
        self.some(job.reservation.map(|reservation| reservation.runtime));
        self.some(job.reservation.map(|reservation| reservation.deadline));
        self.some(job.reservation.map(|reservation| reservation.period));
        self.text(job.missed().map_or("", |missed| if missed { "yes" } else { "no" }));
        self.number(job.throttled);
        self.number(job.throttles.into());
        self.line.pop();
        self.line.push('\n');
        self.to.write_all(self.line.as_bytes())
    }

    /// Flushes the output and returns the writer.
    ///
    /// # Errors
    /// Returns the error of flushing it.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn number(&mut self, number: u64) {
        self.line += &number.to_string();
        self.line.push(',');
    }

    fn some(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => self.line.push(','),
        }
    }

    fn value(&mut self, value: Bounds) {
        self.some(value.lo());
        self.some(value.hi());
    }

    fn text(&mut self, text: &str) {
        if text.contains(['"', ',', '\n', '\r']) {
            self.line.push('"');
            self.line += &text.replace('"', "\"\"");
            self.line.push('"');
        } else {
            self.line += text;
        }
        self.line.push(',');
    }
}

/// Returns the kernel's number of a thread or handler.
pub(super) fn id(actor: Actor) -> u64 {
    match actor {
        Actor::Thread(id) | Actor::Irq(id) => u64::from(id),
        Actor::Vector(id) | Actor::Task(id) => u64::from(id),
        Actor::Softirq(id) => u64::from(id),
        Actor::Others | Actor::Unseen | Actor::Throttling => 0,
    }
}

/// Returns the bare name of a thread, whose number has its own column, or the name of another
/// actor.
fn name(actor: Actor, names: &Names) -> String {
    match actor {
        Actor::Thread(tid) => names.of_thread(tid).map_or_else(|| names.of(actor), str::to_owned),
        _ => names.of(actor),
    }
}
