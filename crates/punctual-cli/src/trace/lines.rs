//! What `watch` prints, as text or as JSON lines.
//!
//! Objects have `type`, `version`, and `elapsed_ns` since the start. `summary`: `task`, `jobs`, `flawed`, `misses`, and for
//! each of `R`, `J`, `SS`, `W`, `B`, `I`, `C` an object with `max_ns`, `p999_ns`, `p50_ns`, `mean_ns`, `count`, `bounded`,
//! `unknown`, all since the start. `alarm` and, at the end, `worst` have a `job`, which is as `report --json` writes it,
//! with `events`; `alarm` has `limit_ns` too. `more_alarms` has a `count`.

use std::io;
use std::time::{Duration, Instant};

use punctual_trace::export;
use punctual_trace::names::Names;
use punctual_trace::stats::{CapturedJob, Summary, TaskStats, Term};
use serde_json::json;

use super::analysis::Analyzer;
use super::args::Watch;
use super::{Failure, alarm, text};
use crate::output::try_print;

/// After so many lines the columns are named again.
const LINES_PER_HEAD: usize = 40;

/// Prints as the command line has it.
pub(crate) struct Lines {
    json: bool,
    worst: usize,
    start: Instant,
    /// Lines since the columns were named.
    since_head: usize,
    closed: bool,
}

impl Lines {
    pub(crate) fn new(arguments: &Watch) -> Self {
        let worst = usize::from(arguments.analysis.worst);
        Self { json: arguments.json, worst, start: Instant::now(), since_head: LINES_PER_HEAD, closed: false }
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn print(&mut self, text: &str) -> Result<(), Failure> {
        match try_print(text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                return Err(format!("standard output: {error}; what is watched has no place to go").into());
            }
            Ok(()) => {}
        }
        Ok(())
    }

    /// A line for each task.
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

    /// A job that took too long.
    pub(crate) fn alarm(&mut self, captured: &CapturedJob, limit: u64, names: &Names) -> Result<(), Failure> {
        let elapsed = self.start.elapsed();
        let out = if self.json {
            let job = export::captured_job(captured, names);
            format!("{},\"limit_ns\":{limit},\"job\":{job}}}\n", open("alarm", elapsed))
        } else {
            let head = alarm::summary(&captured.job, limit, names);
            format!(
                "{}  ALARM: {head}\n{}",
                time(elapsed),
                text::explained(&captured.job, names, text::width())
            )
        };
        self.print(&out)
    }

    /// Alarms that are not explained.
    pub(crate) fn more_alarms(&mut self, count: u64) -> Result<(), Failure> {
        let elapsed = self.start.elapsed();
        let out = if self.json {
            format!("{},\"count\":{count}}}\n", open("more_alarms", elapsed))
        } else {
            format!("{}  ALARM: {count} more jobs took too long in the same moment\n", time(elapsed))
        };
        self.print(&out)
    }

    /// The tables, and the worst jobs.
    pub(crate) fn end(&mut self, analyzer: &Analyzer, elapsed: Duration) -> Result<(), Failure> {
        if !self.json {
            return self.print(&text::tasks(analyzer, self.worst));
        }
        self.summary(analyzer, elapsed)?;
        for stats in analyzer.tasks() {
            for captured in stats.worst().iter().take(self.worst) {
                let job = export::captured_job(captured, analyzer.names());
                self.print(&format!("{},\"job\":{job}}}\n", open("worst", elapsed)))?;
            }
        }
        Ok(())
    }
}

/// Hours, minutes and seconds.
fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The members that every object has; it is not closed.
fn open(kind: &str, elapsed: Duration) -> String {
    format!("{{\"type\":\"{kind}\",\"version\":{},\"elapsed_ns\":{}", export::VERSION, elapsed.as_nanos())
}

fn summary(stats: &TaskStats, names: &Names, elapsed: Duration) -> String {
    let mut object = json!({
        "task": names.of(stats.key().actor),
        "jobs": stats.jobs(),
        "flawed": stats.flawed(),
        "misses": stats.misses(),
    });
    for term in Term::ALL {
        let Summary { max, p999, p50, mean, count, bounded, unknown } = stats.summary(term);
        object[term.letter()] = json!({
            "max_ns": max, "p999_ns": p999, "p50_ns": p50, "mean_ns": mean,
            "count": count, "bounded": bounded, "unknown": unknown,
        });
    }
    let members = object.to_string();
    format!("{},{}\n", open("summary", elapsed), &members[1..])
}
