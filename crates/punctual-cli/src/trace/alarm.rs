//! Alarms: jobs that took too long are printed at once and passed to a command.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_process::child::BoundedChild;
use punctual_report::format::{format_counted, format_part};
use punctual_trace::jobs::{Actor, Job};
use punctual_trace::names::Names;
use punctual_trace::stats::{CapturedJob, Key};
use punctual_trace_report::explain;
use punctual_trace_report::export;

use super::Failure;
use super::analysis::Analyzer;
use super::args::Watch;
use super::lines::Lines;
use super::signals::{Notice, Signals};
use crate::output::message;

/// Maximum number of alarms explained at a time; the rest are only counted, because events keep
/// arriving.
const MAX_EXPLAINED: u64 = 10;
/// Maximum number of concurrent commands, and of alarms that wait for one of them to end.
const MAX_RUNNING: usize = 4;
const MAX_QUEUED: usize = 16;

/// Time limit of a command while others wait for it.
const EXEC_TIMEOUT: Duration = Duration::from_secs(300);

/// Raises alarms.
pub(crate) struct Alarms {
    count: u64,
    /// Since the last pause.
    explained: u64,
    unexplained: u64,
    runner: Option<Runner>,
}

impl Alarms {
    pub(crate) fn new(arguments: &Watch) -> Result<Self, Failure> {
        let runner = arguments.exec.clone().map(Runner::new).transpose()?;
        Ok(Self { count: 0, explained: 0, unexplained: 0, runner })
    }

    /// The number of alarms so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Reports a job that took too long.
    pub(crate) fn raise(
        &mut self,
        captured: &CapturedJob,
        analyzer: &Analyzer,
        lines: &mut Lines,
    ) -> Result<(), Failure> {
        self.count += 1;
        let limit = analyzer.limit(&captured.job).unwrap_or(0);
        if let Some(runner) = &mut self.runner {
            runner.run(environment(&captured.job, limit, analyzer.names()));
        }
        if self.explained >= MAX_EXPLAINED {
            self.unexplained += 1;
            return Ok(());
        }
        self.explained += 1;
        lines.alarm(captured, limit, analyzer.names())
    }

    /// Called when all pending events are handled.
    pub(crate) fn pause(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        let unexplained = std::mem::take(&mut self.unexplained);
        self.explained = 0;
        match unexplained {
            0 => Ok(()),
            more => lines.more_alarms(more),
        }
    }

    /// Ends the commands, and returns whether alarms make the run a failure.
    pub(crate) fn end(self, signals: &Signals) -> bool {
        match self.runner {
            Some(runner) => {
                runner.end(signals);
                false
            }
            None => self.count > 0,
        }
    }
}

/// The alarm in one sentence.
pub(crate) fn summary(job: &Job, limit: u64, names: &Names) -> String {
    format!(
        "{} took {}; the limit is {}",
        names.of(Key::of(job).actor),
        explain::value(job.response),
        format_part(limit)
    )
}

type Environment = Vec<(&'static str, String)>;

fn environment(job: &Job, limit: u64, names: &Names) -> Environment {
    let task = names.of(job.task.map_or(job.actor, Actor::Task));
    vec![
        ("PUNCTUAL_TASK", task),
        ("PUNCTUAL_RESPONSE_NS", job.response.lo().unwrap_or(0).to_string()),
        ("PUNCTUAL_LIMIT_NS", limit.to_string()),
        ("PUNCTUAL_END_NS", job.end.to_string()),
        ("PUNCTUAL_SUMMARY", summary(job, limit, names)),
        ("PUNCTUAL_EXPLANATION", explain::job(job, names).join("\n")),
        ("PUNCTUAL_JOB", export::json(job, names)),
    ]
}

/// Runs a command for each alarm, on its own thread: starting a process would delay reading events.
struct Runner {
    queue: SyncSender<Environment>,
    thread: JoinHandle<()>,
    left_out: u64,
}

impl Runner {
    fn new(command: String) -> Result<Self, Failure> {
        let (queue, alarms) = mpsc::sync_channel(MAX_QUEUED);
        let thread = std::thread::Builder::new().name("punctual-exec".into());
        let thread = thread.spawn(move || run_all(&command, &alarms))?;
        Ok(Self { queue, thread, left_out: 0 })
    }

    fn run(&mut self, environment: Environment) {
        if self.queue.try_send(environment).is_err() {
            self.left_out += 1;
        }
    }

    fn end(self, signals: &Signals) {
        if self.left_out > 0 {
            message!(
                "warning: --exec was skipped for {}, because earlier commands were still running",
                format_counted(self.left_out, "alarm")
            );
        }
        drop(self.queue);
        while !self.thread.is_finished() {
            if let Some(Notice::End { .. }) = signals.wait(Duration::from_millis(50)) {
                message!("warning: some --exec commands are still running");
                return;
            }
        }
    }
}

fn run_all(command: &str, alarms: &Receiver<Environment>) {
    let mut running: Vec<Child> = Vec::new();
    loop {
        running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if running.len() >= MAX_RUNNING {
            end_oldest(&mut running);
            continue;
        }
        match alarms.recv_timeout(Duration::from_secs(1)) {
            Ok(environment) => match start(command, environment) {
                Ok(child) => running.push(child),
                Err(error) => message!("warning: --exec: /bin/sh: {error}"),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    while !running.is_empty() {
        end_oldest(&mut running);
    }
}

/// Waits for the oldest of the commands, and ends it if it takes too long.
fn end_oldest(running: &mut Vec<Child>) {
    let mut child = running.remove(0);
    if let Ok(None) = child.wait_within(EXEC_TIMEOUT) {
        message!(
            "warning: --exec: a command is ended, because it took longer than {} s",
            EXEC_TIMEOUT.as_secs()
        );
        let _ = child.end(Duration::from_secs(2));
    }
}

fn start(command: &str, environment: Environment) -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).envs(environment).stdin(Stdio::null());
    // Another program may be reading standard output.
    shell.stdout(io::stderr()).spawn()
}
