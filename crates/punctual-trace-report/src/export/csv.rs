//! CSV export, one line per job.

use std::borrow::Cow;
use std::io::{self, Write};

use punctual_trace::jobs::{Actor, Blocking, Bounds, Job, Term};
use punctual_trace::names::Names;
use punctual_trace::priority::Priority;

use super::{VERSION, flaw_name, kind_name, release_name};

/// A column. Times are in ns: instants on the trace's clock, and for each term its lower and upper
/// bound, which are equal if it is exact and both empty if it is unknown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Column {
    /// Name in the header line.
    pub name: Cow<'static, str>,
    /// Meaning, as in the book.
    pub meaning: Cow<'static, str>,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Number(fn(&Job) -> Option<u64>),
    Text(fn(&Job, &Names) -> String),
    Least(fn(&Job) -> Bounds),
    Most(fn(&Job) -> Bounds),
}

fn number(name: &'static str, meaning: &'static str, value: fn(&Job) -> Option<u64>) -> Column {
    Column { name: name.into(), meaning: meaning.into(), value: Value::Number(value) }
}

fn text(name: &'static str, meaning: &'static str, value: fn(&Job, &Names) -> String) -> Column {
    Column { name: name.into(), meaning: meaning.into(), value: Value::Text(value) }
}

/// Returns the columns of both bounds of a term or of a part of one.
fn bounds(name: &str, of: &str, value: fn(&Job) -> Bounds) -> [Column; 2] {
    [
        Column {
            name: format!("{name}_min_ns").into(),
            meaning: format!("lower bound of {of}").into(),
            value: Value::Least(value),
        },
        Column {
            name: format!("{name}_max_ns").into(),
            meaning: "upper bound; empty if unbounded".into(),
            value: Value::Most(value),
        },
    ]
}

/// Returns all columns, in order.
#[must_use]
pub fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column {
            name: "version".into(),
            meaning: format!("the version of this format, {VERSION}").into(),
            value: Value::Number(|_| Some(VERSION.into())),
        },
        number("number", "of the job among all jobs of the analysis, from 0", |job| Some(job.number)),
        text(
            "sort",
            "`thread`, `irq-thread`, `irq`, `vector`, `softirq` or `offline` (on a CPU without Linux, whose \
             number is in `first_cpu`; `id` is the reporting thread)",
            |job, _| kind_name(job.kind).to_owned(),
        ),
        number("id", "the kernel's number of the thread or handler", |job| Some(id(job.actor))),
        text("name", "its name", |job, names| name(job.actor, names)),
        number("task", "the number of a task of a Punctual app, if it marked the job", |job| {
            job.task.map(u64::from)
        }),
        text("task_name", "its name", |job, names| {
            job.task.map_or(String::new(), |task| names.of(Actor::Task(task)))
        }),
        number(
            "priority",
            "of the thread when it was released; 100 is SCHED_DEADLINE, 0 an ordinary thread",
            |job| Some(Priority::of_kernel(job.priority).number().into()),
        ),
        number("highest_priority", "the highest that it had, inherited ones included", |job| {
            Some(Priority::of_kernel(job.highest).number().into())
        }),
        text("released_by", "`timer`, `mark`, `wake`, `new`, `period` or `unseen`", |job, _| {
            release_name(job.released_by).to_owned()
        }),
        number("released_min_ns", "earliest instant of the release", |job| Some(job.released?.0)),
        number("released_max_ns", "latest instant of the release", |job| Some(job.released?.1)),
        number("woken_ns", "time of the thread's wake-up", |job| job.woken),
        text("waker", "actor that woke the thread", |job, names| {
            job.waker.map_or(String::new(), |waker| names.of(waker.actor))
        }),
        number("start_ns", "time of its first run", |job| Some(job.start)),
        number("end_ns", "time of its end", |job| Some(job.end)),
        number("first_cpu", "the CPU that it started on", |job| Some(job.first_cpu.into())),
        number("last_cpu", "the CPU that it ended on", |job| Some(job.last_cpu.into())),
        number("migrations", "number of migrations to another CPU", |job| Some(job.migrations.into())),
        number("preemptions", "number of preemptions by threads", |job| Some(job.preemptions.into())),
    ];
    let rows = Term::ALL.map(|term| (term.letter(), term.definition()));
    for (letter, row) in rows {
        columns.extend(bounds(&letter.to_lowercase(), letter, row.value));
    }
    for (letter, row) in rows {
        for part in row.parts {
            let name = format!("{}_{}", letter.to_lowercase(), part.name);
            columns.extend(bounds(&name, &format!("the part of {letter} {}", part.meaning), part.value));
        }
    }
    columns.extend([
        number("suspended_ns", "self-suspension within C", |job| Some(job.suspended)),
        number("blockings", "number of waits for locks", |job| {
            Some(job.blockings.len() as u64 + u64::from(job.blockings_left_out))
        }),
        number("longest_blocking_ns", "length of the longest wait", |job| Some(longest_blocking(job)?.ns())),
        text("longest_blocking_holder", "holder of that lock", |job, names| {
            let holder = longest_blocking(job).and_then(|wait| wait.owners.first());
            holder.map_or(String::new(), |&tid| names.of(Actor::Thread(tid)))
        }),
        text("top_interference", "actor that displaced it longest", |job, names| {
            let top = job.interference_causes.iter().max_by_key(|cause| cause.ns);
            top.map_or(String::new(), |cause| names.of(cause.actor))
        }),
        text("flaw", "`lost`, `contradiction` or `cut`, for unreliable or unfinished jobs", |job, _| {
            flaw_name(job.flaw).to_owned()
        }),
    ]);
    for (letter, row) in rows {
        columns.extend(row.likely.map(|likely| Column {
            name: format!("{}_likely_ns", letter.to_lowercase()).into(),
            meaning: format!("the likely {letter} where it is bounded; not certain").into(),
            value: Value::Number(likely),
        }));
    }
    columns.extend([
        text("nice", "the nice value, of ordinary threads", |job, _| {
            Priority::of_kernel(job.priority).nice().map_or(String::new(), |nice| nice.to_string())
        }),
        number("runtime_ns", "the runtime that the thread has reserved under SCHED_DEADLINE", |job| {
            Some(job.reservation?.runtime)
        }),
        number("deadline_ns", "its deadline, from the release", |job| Some(job.reservation?.deadline)),
        number("period_ns", "its period", |job| Some(job.reservation?.period)),
        text(
            "missed",
            "`yes` or `no`: the job ended after that deadline; empty without a deadline or if uncertain",
            |job, _| job.missed().map_or("", |missed| if missed { "yes" } else { "no" }).to_owned(),
        ),
        number("throttled_ns", "throttled time within J and I", |job| Some(job.throttled)),
        number("throttles", "number of throttlings", |job| Some(job.throttles.into())),
    ]);
    columns
}

fn longest_blocking(job: &Job) -> Option<&Blocking> {
    job.blockings.iter().max_by_key(|wait| wait.ns())
}

/// Writes CSV (RFC 4180, with lines terminated by LF).
#[derive(Debug)]
pub struct Csv<W> {
    to: W,
    columns: Vec<Column>,
    line: String,
}

impl<W: Write> Csv<W> {
    /// Writes the header line.
    ///
    /// # Errors
    /// Returns the error of writing to `to`.
    pub fn new(mut to: W) -> io::Result<Self> {
        let columns = columns();
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        writeln!(to, "{}", names.join(","))?;
        Ok(Self { to, columns, line: String::new() })
    }

    /// Writes a job.
    ///
    /// # Errors
    /// Returns the error of writing it.
    pub fn job(&mut self, job: &Job, names: &Names) -> io::Result<()> {
        self.line.clear();
        for column in &self.columns {
            let number = match column.value {
                Value::Number(value) => value(job),
                Value::Least(value) => value(job).lo(),
                Value::Most(value) => value(job).hi(),
                Value::Text(value) => {
                    append(&mut self.line, &value(job, names));
                    continue;
                }
            };
            append(&mut self.line, &number.map_or(String::new(), |number| number.to_string()));
        }
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
}

/// Appends a field, in quotes if necessary, and a comma.
fn append(line: &mut String, field: &str) {
    if field.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        *line += &field.replace('"', "\"\"");
        line.push('"');
    } else {
        *line += field;
    }
    line.push(',');
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
