//! Output of `watch`, as text or as JSON lines.
//!
//! Objects have `type`, `version`, and `elapsed_ns` since the start. `summary`: `task`, `jobs`,
//! `flawed`, `misses`, and for each of `R`, `J`, `SS`, `W`, `B`, `I`, `C` an object with `max_ns`,
//! `p999_ns`, `p50_ns`, `mean_ns`, `count`, `bounded`, `at_least`, `unknown`, all since the start.
//! `alarm` and, at the end, `worst` have a `job` in the format of `report --json`, with `events`;
//! `alarm` has `limit_ns` too. `more_alarms` has a `count`.

use std::io;
use std::time::{Duration, Instant};

use punctual_trace::names::Names;
use punctual_trace::recorded::Recorded;
use punctual_trace::stats::{CapturedJob, Summary, TaskStats, Term};
use punctual_trace_report::export;
use serde::Serialize;
use serde_json::json;

use super::analysis::Analyzer;
use super::args::Watch;
use super::{Failure, alarm, text};
use crate::output::Sink;

/// Number of lines after which the column heads are repeated.
const LINES_PER_HEAD: usize = 40;

/// Prints in the format of the command line.
pub(crate) struct Lines {
    json: bool,
    sink: Sink,
    worst: usize,
    start: Instant,
    /// Lines since the last column heads.
    since_head: usize,
    closed: bool,
}

impl Lines {
    pub(crate) fn new(arguments: &Watch, sink: Sink) -> Self {
        let (json, worst) = (arguments.json.json.is_some(), usize::from(arguments.analysis.worst));
        Self { json, sink, worst, start: Instant::now(), since_head: LINES_PER_HEAD, closed: false }
    }

    /// Returns whether there is no reader anymore.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn print(&mut self, text: &str) -> Result<(), Failure> {
        match self.sink.write(text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                return Err(format!("standard output: {error}; redirect it elsewhere").into());
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// Prints the gaps of the watched events, before anything else.
    pub(crate) fn missing(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let out = if self.json {
            let missing = recorded.missing();
            let missing: Vec<_> = missing
                .iter()
                .map(|missing| json!({ "what": missing.what, "meaning": missing.meaning }))
                .collect();
            object("recording", self.start.elapsed(), json!({ "missing": missing }))
        } else {
            text::absent(recorded)
        };
        self.print(&out)
    }

    /// Prints a line for each task.
    pub(crate) fn summary(&mut self, analyzer: &Analyzer, elapsed: Duration) -> Result<(), Failure> {
        let tasks = analyzer.tasks();
        let mut out = String::new();
        if self.json {
            out.extend(tasks.iter().map(|stats| summary(stats, analyzer.names(), elapsed)));
            return self.print(&out);
        }
        let table = text::overview(&tasks, analyzer.names());
        for line in table.body().lines() {
            if self.since_head >= LINES_PER_HEAD {
                self.since_head = 0;
                out += &format!("{:>8}  {}", "time", table.head());
            }
            self.since_head += 1;
            out += &format!("{}  {line}\n", time(elapsed));
        }
        self.print(&out)
    }

    /// Prints a job that took too long.
    pub(crate) fn alarm(&mut self, captured: &CapturedJob, limit: u64, names: &Names) -> Result<(), Failure> {
        let elapsed = self.start.elapsed();
        let out = if self.json {
            object(
                "alarm",
                elapsed,
                Alarm { limit_ns: limit, job: export::captured_job_object(captured, names) },
            )
        } else {
            let head = alarm::summary(&captured.job, limit, names);
            format!(
                "{}  ALARM: {head}\n{}{}",
                time(elapsed),
                text::explained(&captured.job, names, text::width()),
                text::system_calls(captured, names, text::width())
            )
        };
        self.print(&out)
    }

    /// Prints the number of alarms without an explanation.
    pub(crate) fn more_alarms(&mut self, count: u64) -> Result<(), Failure> {
        let elapsed = self.start.elapsed();
        let out = if self.json {
            object("more_alarms", elapsed, json!({ "count": count }))
        } else {
            format!("{}  ALARM: {count} more jobs took too long at the same time\n", time(elapsed))
        };
        self.print(&out)
    }

    /// Prints the tables, and the worst jobs.
    pub(crate) fn end(&mut self, analyzer: &Analyzer, elapsed: Duration) -> Result<(), Failure> {
        if !self.json {
            return self.print(&text::tasks(analyzer, self.worst));
        }
        self.summary(analyzer, elapsed)?;
        for stats in analyzer.tasks() {
            for captured in stats.worst().iter().take(self.worst) {
                let names = stats.names(analyzer.names());
                let job = export::captured_job_object(captured, &names);
                self.print(&object("worst", elapsed, Worst { job }))?;
            }
        }
        Ok(())
    }
}

/// Formats hours, minutes and seconds.
fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[derive(Serialize)]
struct Alarm<T> {
    limit_ns: u64,
    job: T,
}

#[derive(Serialize)]
struct Worst<T> {
    job: T,
}

/// Returns a line: the members that every object has, and its own.
fn object(kind: &'static str, elapsed: Duration, members: impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<T> {
        r#type: &'static str,
        version: u32,
        elapsed_ns: u64,
        #[serde(flatten)]
        members: T,
    }
    let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let line = Line { r#type: kind, version: export::VERSION, elapsed_ns, members };
    serde_json::to_string(&line).expect("the keys are texts") + "\n"
}

fn summary(stats: &TaskStats, names: &Names, elapsed: Duration) -> String {
    let mut members = json!({
        "task": stats.names(names).listed(stats.key().actor),
        "ordinary": stats.id().ordinary,
        "incarnation": stats.id().incarnation,
        "jobs": stats.jobs(),
        "flawed": stats.flawed(),
        "misses": stats.misses(),
    });
    for term in Term::ALL {
        let Summary { max, p999, p50, mean, count, bounded, at_least, unknown } = stats.summary(term);
        members[term.letter()] = json!({
            "max_ns": max, "p999_ns": p999, "p50_ns": p50, "mean_ns": mean,
            "count": count, "bounded": bounded, "at_least": at_least, "unknown": unknown,
        });
    }
    object("summary", elapsed, members)
}
