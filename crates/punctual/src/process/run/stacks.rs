//! The stacks of an app's threads: their sizes, and the message on overflow.
//!
//! A spawn of a higher task is a call on the spawner's stack. So a thread needs the sum of the
//! stack usage of each level's deepest job, from its own level up: it holds at most one job of each
//! level.

use crate::config::Config;
use crate::config::PerPartition;
use crate::port::linux::stack::{Bounds, Watched};
use crate::port::linux::{kernel_thread, stderr};
use crate::report::Text;
use crate::start_error::StartError;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use crate::state::thread;

/// The default for the thread itself, and for each level that may run on it.
const BASE_STACK: usize = 1024 * 1024;
const STACK_PER_LEVEL: usize = 256 * 1024;
/// The smallest default.
const MIN_DEFAULT_STACK: usize = 2 * 1024 * 1024;
/// With less, a thread does not reach its first job.
const MIN_STACK: usize = 64 * 1024;

/// The requested sizes.
#[derive(Debug)]
pub(super) struct Stacks {
    runtime: &'static Runtime,
    /// By partition, in the app's order.
    asked: Vec<Option<usize>>,
}

impl Stacks {
    /// The environment overrides the program, and the value for a partition overrides that for all.
    pub(super) fn new(runtime: &'static Runtime, config: &Config) -> Result<Self, StartError> {
        let from_environment = Config::from_env().platform;
        if let Some(problem) = from_environment.bad_environment {
            return Err(StartError::Environment(problem.into()));
        }
        let overriding = [&from_environment.stacks, &config.platform.stacks];
        let names: Vec<&str> = runtime
            .partitions
            .iter()
            .filter(|partition| partition.model != ThreadModel::Anywhere)
            .map(|partition| partition.name)
            .collect();
        for stacks in overriding {
            if let Some((name, _)) = stacks.named.iter().find(|(name, _)| !names.contains(&name.as_str())) {
                return Err(StartError::StackOfUnknownPartition {
                    name: name.clone().into(),
                    partitions: list(&names),
                });
            }
        }
        let of = |partition: &PartitionState, stacks: &PerPartition| match partition.model {
            ThreadModel::Anywhere => stacks.sole,
            _ => stacks.of(partition.name),
        };
        let asked = runtime.partitions.iter().map(|partition| {
            let overridden = overriding.iter().find_map(|stacks| of(partition, stacks));
            overridden.or(partition.host.stack).or(runtime.options.stack)
        });
        let asked: Vec<Option<usize>> = asked.collect();
        match asked.iter().flatten().find(|&&bytes| bytes < MIN_STACK) {
            Some(&bytes) => Err(StartError::Stack { bytes, least: MIN_STACK }),
            None => Ok(Self { runtime, asked }),
        }
    }

    /// Returns the stack size of a thread of `partition` that runs jobs of `base` and above.
    pub(super) fn size(&self, partition: &PartitionState, base: u8) -> usize {
        debug_assert!(std::ptr::eq(partition.runtime, self.runtime));
        self.asked[partition.index()].unwrap_or_else(|| {
            let levels = partition.core.levels().iter().filter(|level| level.number() >= base).count();
            MIN_DEFAULT_STACK.max(BASE_STACK + STACK_PER_LEVEL * levels)
        })
    }
}

/// Explains an overflow of `stack`, that of the calling thread, while the result exists. Otherwise
/// the process ends without an explanation.
pub(super) fn watch(stack: Option<Bounds>) -> Option<Watched> {
    stack.and_then(|stack| Watched::begin(stack, explain).ok())
}

/// Prints the owner of an overflowed stack. Neither allocates nor takes a lock.
fn explain(stack: Bounds) {
    let (size, thread) = (stack.size() / 1024, kernel_thread());
    let Some((partition, worker)) = thread::get() else {
        return stderr::line(format_args!("thread {thread} has used up its stack of {size} KiB"));
    };
    let level = worker.running();
    let idle = std::ptr::eq(&*worker, partition.runtime.home.idle);
    let (whose, advice) = if idle { ("idle's thread", CALLER_REMEDY) } else { ("thread", MORE) };
    let below = if level > worker.base() { ", on top of what it has preempted" } else { "" };
    match (level, idle) {
        (0, true) => {
            stderr::line(format_args!("idle has used up the stack of {whose} {thread}, {size} KiB; {advice}"))
        }
        (0, false) => {
            stderr::line(format_args!(
                "the executor has used up the stack of {whose} {thread}, {size} KiB; {advice}"
            ));
        }
        _ => {
            let tasks = partition.names_at(level);
            stderr::line(format_args!(
                "{tasks} at level {level} has used up the stack of {whose} {thread}, {size} KiB{below}; {advice}"
            ));
        }
    }
}

const MORE: &str = "set a larger one with `#[app(stack = ..)]`, `Config::stack` or PUNCTUAL_STACK, in KiB";
const CALLER_REMEDY: &str = "it is the thread that runs the app: raise its stack with `ulimit -s`, or run the app on one with a larger stack";

/// Joins items for a message.
pub(super) fn list<T: ToString>(items: &[T]) -> Text {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ").into()
}
