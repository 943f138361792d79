//! Describes the threads of an app that do not end: their jobs, held resources, and location in the
//! kernel.

use std::fmt::{self, Write};
use std::fs;

use punctual_core::{MAX_LEVEL, Worker};

use crate::port::linux::clock::cpu_time_of;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;

/// A thread that is in a job or holds a resource. Without such threads, a thread that has not
/// ended.
struct Unfinished {
    partition: &'static PartitionState,
    worker: &'static Worker,
}

impl Unfinished {
    fn all(runtime: &Runtime) -> Vec<Self> {
        let all = || {
            runtime.partitions.iter().flat_map(|&partition| {
                partition.core.workers().iter().map(move |&worker| Self { partition, worker })
            })
        };
        let mut stuck: Vec<Self> =
            all().filter(|of| of.worker.running() > 0 || of.worker.level() > 0).collect();
        if stuck.is_empty() {
            // The thread of `idle` waits for the others.
            let waiting = runtime.home.idle.thread();
            stuck = all().filter(|of| of.exists() && of.worker.thread() != waiting).collect();
        }
        stuck.sort_by_key(|of| std::cmp::Reverse((of.worker.level(), of.worker.base())));
        stuck
    }

    fn exists(&self) -> bool {
        let thread = self.worker.thread();
        thread > 0 && cpu_time_of(thread).is_some()
    }

    fn is_idle(&self) -> bool {
        self.worker.running() == 0 && std::ptr::eq(self.worker, self.partition.runtime.home.idle)
    }

    fn holds_resource(&self) -> bool {
        self.worker.level() > self.worker.running()
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worker.running() {
            0 if self.is_idle() => f.write_str("idle")?,
            0 => f.write_str("the executor")?,
            level => write!(f, "{} at level {level}", self.partition.names_at(level))?,
        }
        if let Some(name) = self.partition.public_name() {
            write!(f, " of the partition `{name}`")?;
        }
        let thread = self.worker.thread();
        write!(f, ", thread {thread}: ")?;
        if self.worker.level() == MAX_LEVEL && self.worker.running() < MAX_LEVEL {
            // It has raised its partition to the top level for a resource that it holds or waits
            // for.
            f.write_str("holds or waits for a resource that other partitions use too, ")?;
        } else if self.holds_resource() {
            write!(f, "holds a resource of ceiling {}, ", self.worker.level())?;
        } else if self.partition.core.snapshot().level() > self.worker.level() {
            f.write_str("is below an occupied level, ")?;
        }
        let sleeps_in = fs::read_to_string(format!("/proc/self/task/{thread}/wchan")).unwrap_or_default();
        match sleeps_in.trim() {
            "" | "0" => f.write_str("is not asleep, or the kernel does not report where"),
            place => write!(f, "sleeps in the kernel, in {place}"),
        }
    }
}

/// Returns the threads that the end of the run waits for: in each partition the one at the highest
/// level, since it may rightly keep the CPU from the others.
pub(super) fn highest_threads(runtime: &Runtime) -> Vec<u32> {
    let stuck = Unfinished::all(runtime);
    let of = |partition: &&PartitionState| {
        stuck.iter().find(|of| std::ptr::eq(of.partition, *partition)).map(|of| of.worker.thread())
    };
    runtime.partitions.iter().filter_map(of).collect()
}

/// Returns the subject of "… does not end", and a line for each thread.
pub(super) fn describe(runtime: &Runtime) -> (String, Vec<String>) {
    let stuck = Unfinished::all(runtime);
    let mut levels: Vec<u8> = stuck.iter().map(|of| of.worker.running()).filter(|&level| level > 0).collect();
    levels.sort_unstable();
    let mut what = String::new();
    match (levels.as_slice(), stuck.iter().any(|of| of.is_idle() && of.holds_resource())) {
        ([], true) => what.push_str("idle, which holds a resource,"),
        ([], false) => what.push_str("a thread of the app, perhaps in a call given to `background::submit`,"),
        ([first, others @ ..], _) => {
            let _ = write!(what, "the job at level {first}");
            others.iter().for_each(|level| {
                let _ = write!(what, ", {level}");
            });
        }
    }
    (what, stuck.iter().map(Unfinished::to_string).collect())
}
