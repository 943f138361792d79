//! The command line of `punctual trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use punctual_analysis::time::Nanos;
use punctual_isolate::cpus::Cpus;
use punctual_trace::jobs::FutexWaits;
use punctual_trace::recorded::Recorded;

use super::parse::{ChainOf, Events, Priorities};
use super::window::Moment;
use crate::output::Json;
use crate::parse::{Deadline, duration, nonzero, time};

/// Show where every microsecond of every job went
///
/// Records what the kernel does with threads and splits every job into the terms of response-time
/// analysis: R (response time) = J (release jitter) + W (busy window), and W = B (blocking) + I
/// (interference) + SS (scheduling overhead) + C (execution time). Works for any real-time thread,
/// not only those of Punctual apps. docs/book/src/internals/tracing.md explains where each term
/// comes from and how exact it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace record -- ./my-app   record my-app into trace.dat
  punctual trace report trace.dat     tables, and the longest jobs explained
  punctual trace watch -- ./my-app    both live")]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Record),
    Report(Report),
    Watch(Watch),
    Convert(Convert),
    Merge(Merge),
    Exchange(Exchange),
    Latency(LatencyArgs),
}

/// What to record.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Trace this process or thread and everything it starts; may be repeated
    #[arg(long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,

    /// Trace threads with real-time priorities in this range; 99 is the highest
    #[arg(long = "priority", value_name = "LOW..HIGH")]
    pub(crate) priorities: Option<Priorities>,

    /// Stop after this time, ending the command [default: when the command ends, otherwise on
    /// Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Duration>,

    /// Event groups to record: sched, irq, irq_vectors, softirq, timer, lock, futex, sleep,
    /// preemptirq, function_graph, schedule, osnoise; `usual` stands for the first eight, and
    /// schedule where this is built with BPF programs, `all` for every group. Other kernel events,
    /// `syscalls` or GROUP:EVENT such as net:*, appear on timelines and in exports
    #[arg(long, value_name = "GROUP,…", default_value = "usual")]
    pub(crate) events: Events,

    /// Kernel buffer size per CPU, in KiB
    #[arg(long = "buffer", value_name = "KIB", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub(crate) buffer_kib: u32,

    /// Record only these CPUs, such as 1,3-5; the recorder runs on the others
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    pub(crate) cpus: Option<Cpus>,

    /// Skip scheduler events of threads that are not traced: smaller recordings, but preempting
    /// threads and lock holders may stay unnamed
    #[arg(long)]
    pub(crate) narrow: bool,

    /// Run this command and trace it and everything it starts
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Which jobs to show, and how to interpret waits.
#[derive(Debug, Args)]
pub(crate) struct Analysis {
    /// Show this task of a Punctual app, or this thread, by name or TID; `name*` matches a prefix,
    /// `*` is all threads and interrupt handlers; may be repeated [default: real-time threads and
    /// tasks of Punctual apps]
    #[arg(long = "task", value_name = "NAME|TID")]
    pub(crate) tasks: Vec<String>,

    /// Number of longest jobs to explain per task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) worst: u16,

    /// Which futex waits count as blocking
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Futex::Auto)]
    pub(crate) futex: Futex,

    /// Deadline from release to end, of a task or of every task without its own; later jobs count
    /// as misses; may be repeated
    #[arg(long = "deadline", value_name = "[NAME=]TIME")]
    pub(crate) deadlines: Vec<Deadline>,
}

/// Selects all threads and interrupt handlers.
pub(crate) const EVERYTHING: &str = "*";

impl Analysis {
    /// Returns whether all threads and handlers are shown.
    pub(crate) fn shows_everything(&self) -> bool {
        self.tasks.iter().any(|task| task == EVERYTHING)
    }
}

/// Which futex waits count as blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Futex {
    /// Waits on apparent locks; the report lists the assumptions
    Auto,
    /// All waits
    Block,
    /// Only waits on mutexes
    MutexesBlock,
    /// No waits
    Suspend,
}

impl Futex {
    /// Returns the interpretation for the decomposition of jobs.
    pub(crate) fn waits(self) -> FutexWaits {
        match self {
            Self::Auto => FutexWaits::Judged,
            Self::Block => FutexWaits::Block,
            Self::MutexesBlock => FutexWaits::MutexesBlock,
            Self::Suspend => FutexWaits::Suspend,
        }
    }

    /// Returns the limits of a recording under this assumption.
    pub(crate) fn limits(self, recorded: &Recorded) -> Recorded {
        match self {
            Self::Suspend => recorded.clone().without_futex_locks(),
            _ => recorded.clone(),
        }
    }
}

/// Record a trace.dat, which KernelShark and `trace-cmd report` also read
///
/// With a command, recording ends when the command does, with the command's exit status. Ctrl-C
/// stops recording and saves the file. Needs root.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace record -- ./my-app        my-app, until it ends
  punctual trace record --duration 10s     all threads, for 10 s
  punctual trace record --pid 411          a running process, until Ctrl-C")]
pub(crate) struct Record {
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) source: Source,

    /// Trace threads with this name; may be repeated
    #[arg(long = "task", value_name = "NAME")]
    pub(crate) tasks: Vec<String>,

    /// Keep only the newest events, as many as fit into the buffers, and write them at the end: a
    /// flight recorder, which may run for days
    #[arg(long)]
    pub(crate) newest: bool,

    /// Trace clock that counts ns, such as `boot`; with any but `mono`, timers and marks give
    /// release times only within bounds
    #[arg(long, value_name = "NAME", default_value = "mono")]
    pub(crate) clock: String,
}

/// Explain where the time of every job in a recording went
///
/// Prints the maximum, the 99.9th and 50th percentile and the mean in µs and the number of jobs,
/// for every task and term, then explains the longest job of each task, one sentence per term.
/// JSON is one object per job and line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace report trace.dat
  punctual trace report trace.dat --task control --worst 3
  punctual trace report trace.dat --html report.html
  punctual trace report trace.dat --chain irq/24-eth0,reader,control
  punctual trace report trace.dat --from +2.5s --to +3s
  punctual trace report trace.dat --csv jobs.csv --perfetto jobs.pftrace")]
pub(crate) struct Report {
    /// A trace.dat, a perf.data with tracepoints, the directory of a kernel trace of LTTng or of an
    /// unfinished recording
    #[arg(value_name = "FILE|DIR")]
    pub(crate) trace: PathBuf,

    /// Report only jobs that end at this time or later: by the trace's clock, after the first event
    /// (+2.5s), or before the last one (-1s)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<Moment>,

    /// Report only jobs that end by this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<Moment>,

    #[command(flatten)]
    pub(crate) analysis: Analysis,

    /// Report the end-to-end latency of a chain of tasks or threads, each of which wakes the next;
    /// `auto` finds chains, which takes a second pass over the trace; may be repeated
    #[arg(long = "chain", value_name = "A,B,…")]
    pub(crate) chains: Vec<ChainOf>,

    /// Write one CSV line per job; `-` writes to standard output instead of the tables
    #[arg(long, value_name = "FILE", long_help = csv_help())]
    pub(crate) csv: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,

    /// Write a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write an HTML page: tables, timelines of the longest jobs, histograms, and every job over
    /// time
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Print live statistics and raise alarms, in constant memory
///
/// Prints a line per task at intervals, and the output of `report` at the end. With --deadline,
/// each job that takes longer is explained at once, and the exit status is 1. JSON is one object
/// per line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace watch                     all real-time threads, until Ctrl-C
  punctual trace watch --deadline 500us --stop -- ./my-app
  punctual trace watch --deadline 500us --exec 'logger \"$PUNCTUAL_SUMMARY\"'
  punctual trace watch --json --every 60s >> watch.jsonl

Environment of the --exec command: PUNCTUAL_TASK, PUNCTUAL_RESPONSE_NS,
PUNCTUAL_LIMIT_NS, PUNCTUAL_END_NS, PUNCTUAL_SUMMARY (one sentence),
PUNCTUAL_EXPLANATION (one sentence per line) and PUNCTUAL_JOB (JSON).")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) source: Source,

    #[command(flatten)]
    pub(crate) analysis: Analysis,

    /// Run this shell command for each job that takes too long
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,

    /// Stop at the first job that takes too long
    #[arg(long)]
    pub(crate) stop: bool,

    /// Time between status lines
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) every: Duration,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// Finish a recording that was interrupted, or repair a trace.dat
///
/// Writes a complete trace.dat from the directory that an interrupted recording left, or from a
/// trace.dat, of any version, that is cut off or lacks its index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace convert trace.dat.raw --remove
  punctual trace convert cut-off.dat -o whole.dat")]
pub(crate) struct Convert {
    /// The directory of an unfinished recording, or a trace.dat
    #[arg(value_name = "DIR|FILE")]
    pub(crate) input: PathBuf,

    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    pub(crate) output: PathBuf,

    /// Remove the directory afterwards, or piece by piece if the disk has no room for both
    #[arg(long)]
    pub(crate) remove: bool,
}

/// Make one recording of those of several machines, or of a guest and its host
///
/// All times become those of the first. The relation of the clocks follows from messages that each
/// machine exchanged with the first while both recorded, or is known, because PTP synchronizes
/// them. In both cases the uncertainty of times is printed. The CPUs of the second machine follow
/// those of the first; its threads have numbers 10000000 higher.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  On the guest:
    punctual trace record -o guest.dat -- \\
        punctual trace exchange --listen 0.0.0.0:7070
  On the host:
    punctual trace record -o host.dat -- \\
        punctual trace exchange guest:7070 --count 2000
    punctual trace merge host.dat guest.dat -o both.dat
  Two recordings with --clock tai, which PTP keeps to 2 µs:
    punctual trace merge a.dat b.dat --shared-clock 2us")]
pub(crate) struct Merge {
    /// The recordings, that of the reference first: trace.dat or perf.data files, or directories
    #[arg(value_name = "FILE|DIR", num_args = 2.., required = true)]
    pub(crate) traces: Vec<PathBuf>,

    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "merged.dat")]
    pub(crate) output: PathBuf,

    /// Treat the clocks as one, to within this time
    #[arg(long, value_name = "TIME", value_parser = nonzero)]
    pub(crate) shared_clock: Option<Nanos>,
}

/// Exchange messages with another machine while both record, so that their recordings can be merged
///
/// Each message is marked in the recordings of both. Start the one that listens first. Marks go to
/// the recording whose command this is, or to all recordings of this machine on kernels that copy
/// marks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trace exchange --listen 0.0.0.0:7070   on one machine, first
  punctual trace exchange guest:7070              on the other")]
pub(crate) struct Exchange {
    /// The machine that listens
    #[arg(
        value_name = "HOST:PORT", value_parser = endpoint, required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub(crate) to: Option<String>,

    /// Answer the messages that arrive at this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = endpoint)]
    pub(crate) listen: Option<String>,

    /// Number of messages to send, one every 10 ms
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
}

/// Bound the scheduling latency of each CPU, and compare with the longest that was observed
///
/// Needs a recording of the event group preemptirq, from a kernel that provides it: `punctual trace
/// record --events usual,preemptirq`. A thread that waited longer than its bound, or no bound at
/// all, is a finding.
#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// A trace.dat, or the directory of an unfinished recording
    #[arg(value_name = "FILE|DIR")]
    pub(crate) trace: PathBuf,
}

/// Checks for a host or an address, and a port.
fn endpoint(text: &str) -> Result<String, String> {
    let is_valid =
        text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_valid { Ok(text.to_owned()) } else { Err("write a host and a port, such as 192.0.2.1:7070".into()) }
}

/// Returns the help of `--csv`, with the columns.
fn csv_help() -> String {
    let columns = punctual_trace_report::export::columns();
    let columns = columns.iter().map(|column| format!("\n  {}: {}", column.name, column.meaning));
    format!(
        "Write one CSV line per job; `-` writes to standard output instead of the tables. Its columns:\n{}",
        columns.collect::<String>()
    )
}
