//! The command line of `punctual trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::parse::{Cpus, Deadline, Events, Priorities, microseconds};
use crate::args::seconds;

/// Where every microsecond of every job went
///
/// Records what the kernel does with threads, and splits every job into the terms of response-time analysis: response R =
/// release jitter J + busy window W, and W = blocking B + interference I + scheduling SS + execution C. For any real-time
/// thread, of a Punctual app or not. docs/tracing.md says where each term comes from and how exact it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace record -- ./my-app      records while my-app runs, into trace.dat
  punctual trace report trace.dat        tables, and the longest jobs explained
  punctual trace watch -- ./my-app       the same live")]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Records into a trace.dat, which KernelShark and `trace-cmd report` open as well
    Record(Record),
    /// Says of a recording where the time of every job went
    Report(Report),
    /// Says it live, in constant memory, for as long as it takes
    Watch(Watch),
}

/// What is recorded.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Traces this process or thread, and what it starts; may be given several times
    #[arg(long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,

    /// Traces threads of this name; may be given several times
    #[arg(long = "comm", value_name = "NAME")]
    pub(crate) comms: Vec<String>,

    /// Traces threads with real-time priorities in this range, 99 being the highest
    #[arg(long = "prio", value_name = "LOW..HIGH")]
    pub(crate) priorities: Option<Priorities>,

    /// Ends after so many seconds [default: when the command ends, else by Ctrl-C]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,

    /// Groups of events: sched, irq, irq_vectors, softirq, timer, lock, futex, preemptirq, function_graph, schedule, osnoise;
    /// `usual` are the first seven, `all` all of them
    #[arg(long, value_name = "GROUP,…", default_value = "usual")]
    pub(crate) events: Events,

    /// The kernel's buffer for each CPU, in KiB
    #[arg(long = "buffer", value_name = "KIB", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub(crate) buffer_kib: u32,

    /// Records these CPUs only, for instance 1,3-5
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,

    /// Where the recorder itself runs [default: CPUs that are not recorded, if there are any]
    #[arg(long, value_name = "LIST")]
    pub(crate) housekeeping: Option<Cpus>,

    /// Leaves out what the scheduler does with threads that are not traced: less to record, and preemptors and lock holders
    /// may go unnamed
    #[arg(long)]
    pub(crate) narrow: bool,

    /// Starts this command and traces it and what it starts
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Whose jobs, and what counts as what.
#[derive(Debug, Args)]
pub(crate) struct Analysis {
    /// Shows this task of a Punctual app, or thread by name or number; `name*` stands for all that begin so; may be given
    /// several times [default: real-time threads and tasks of Punctual apps]
    #[arg(long = "task", value_name = "NAME|TID")]
    pub(crate) tasks: Vec<String>,

    /// Shows all threads
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,

    /// Shows interrupt handlers and softirqs too, each run of one as a job
    #[arg(long)]
    pub(crate) handlers: bool,

    /// How many of the longest jobs of each task are kept and explained
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) worst: u16,

    /// A sleep that is no wait for a lock ends the job, or is part of it and counts as execution
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Suspension::Ends)]
    pub(crate) suspension: Suspension,

    /// Which waits on futexes block: all, or only those on mutexes, for threads that wait for work on a condition variable or
    /// semaphore; or none
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Futex::Block)]
    pub(crate) futex: Futex,

    /// Assumes that no entry or exit of the scheduler takes longer; this narrows C and SS where no event shows them
    #[arg(long, value_name = "NS")]
    pub(crate) longest_schedule: Option<u64>,

    /// Counts jobs of a task that ended later than this after their release; may be given several times
    #[arg(long = "deadline", value_name = "TASK=US")]
    pub(crate) deadlines: Vec<Deadline>,
}

/// What a sleep is that is no wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suspension {
    /// The end of the job
    Ends,
    /// Part of it
    Counts,
}

/// Which waits on futexes block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Futex {
    /// All
    Block,
    /// Those on mutexes
    MutexesBlock,
    /// None
    Suspend,
}

/// Records into a trace.dat, which KernelShark and `trace-cmd report` open as well
///
/// With a command it ends when the command ends, and with its exit status. Ctrl-C ends it and saves. It needs root.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace record -- ./my-app        what my-app does, until it ends
  punctual trace record --duration 10      all threads, for 10 s
  punctual trace record --pid 411          what runs already, until Ctrl-C")]
pub(crate) struct Record {
    /// The file that is written
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) source: Source,

    /// The kernel's clock for the trace; only by `mono` timers and marks tell exactly when a job was due
    #[arg(long, value_name = "NAME", default_value = "mono")]
    pub(crate) clock: String,
}

/// Says of a recording where the time of every job went
///
/// Per task and term: the maximum, the quantiles that 99.9 % and 50 % of the jobs keep, the mean, and the number of jobs, in
/// µs. Then the longest job of each task, a sentence for each term.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace report trace.dat
  punctual trace report trace.dat --task control --worst 3
  punctual trace report trace.dat --html report.html
  punctual trace report trace.dat --csv jobs.csv --perfetto jobs.pftrace")]
pub(crate) struct Report {
    /// A trace.dat, or the directory of a recording that did not come to its end
    #[arg(value_name = "FILE|DIR")]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) analysis: Analysis,

    /// Writes a line for each job; - is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Writes an object for each job, one a line; - is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Writes a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Writes a page for a browser: tables, timelines of the longest jobs, histograms, and every job over time
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Says it live, in constant memory, for as long as it takes
///
/// A line for each task every now and then, and at the end the same as `report`. With --max-response or --deadline a job that
/// took longer is explained at once, and the exit status is 1 in the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace watch                     all real-time threads, until Ctrl-C
  punctual trace watch --max-response 500 --stop -- ./my-app
  punctual trace watch --max-response 500 --exec 'logger \"$PUNCTUAL_SUMMARY\"'
  punctual trace watch --json --every 60 >> watch.jsonl

What --exec starts finds in its environment PUNCTUAL_TASK, PUNCTUAL_RESPONSE_NS,
PUNCTUAL_LIMIT_NS, PUNCTUAL_END_NS, PUNCTUAL_SUMMARY (a sentence),
PUNCTUAL_EXPLANATION (a sentence a line) and PUNCTUAL_JOB (JSON).")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) source: Source,

    #[command(flatten)]
    pub(crate) analysis: Analysis,

    /// Explains at once each job that took longer, of tasks that have no deadline of their own
    #[arg(long, value_name = "US", value_parser = microseconds)]
    pub(crate) max_response: Option<u64>,

    /// Runs this command, by the shell, for each job that took too long
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,

    /// Ends with the first job that took too long
    #[arg(long)]
    pub(crate) stop: bool,

    /// How often a line for each task is printed
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub(crate) every: Duration,

    /// Prints objects of JSON, one a line, instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
