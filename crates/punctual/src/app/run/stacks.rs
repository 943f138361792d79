//! The stacks of an app's threads: how large they are, and what is said of one that is used up.
//!
//! A spawn of a higher task is a call on the spawner's stack. So what a thread needs is the sum of what the deepest job of
//! each level takes, from its own level up: at most one job of a level is on it.

use crate::app::config::Config;
use crate::app::config::PerPartition;
use crate::app::current;
use crate::app::partition::{Part, Style};
use crate::app::runtime::Runtime;
use crate::app::start_error::{StartError, list};
use crate::port::linux::stack::{Bounds, Watched};
use crate::port::linux::{kernel_thread, stderr};

/// What a thread gets for itself, if nobody says how much it is to have, and what for each level that may run on it.
const ITSELF: usize = 1024 * 1024;
const EACH_LEVEL: usize = 256 * 1024;
/// What it gets at least, if nobody says.
const LEAST: usize = 2 * 1024 * 1024;
/// With less a thread does not get as far as its first job.
const SMALLEST: usize = 64 * 1024;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Stacks {
    runtime: &'static Runtime,
    /// By part, in the app's order.
    asked: Vec<Option<usize>>,
}

impl Stacks {
    /// Whoever runs the program has the last word, and a partition comes before the whole.
    pub(super) fn new(runtime: &'static Runtime, config: &Config) -> Result<Self, StartError> {
        let from_environment = Config::from_env();
        if let Some(problem) = from_environment.bad_environment {
            return Err(StartError::Environment(problem));
        }
        let overriding = [&from_environment.stacks, &config.stacks];
        let names: Vec<&str> =
            runtime.parts.iter().filter(|part| part.style != Style::Anywhere).map(|part| part.name).collect();
        for stacks in overriding {
            if let Some((name, _)) = stacks.named.iter().find(|(name, _)| !names.contains(&name.as_str())) {
                return Err(StartError::StackOfUnknownPartition {
                    name: name.clone(),
                    partitions: list(&names),
                });
            }
        }
        let of = |part: &Part, stacks: &PerPartition| match part.style {
            Style::Anywhere => stacks.sole,
            _ => stacks.of(part.name),
        };
        let asked = runtime.parts.iter().map(|part| {
            let overridden = overriding.iter().find_map(|stacks| of(part, stacks));
            overridden.or(part.stack).or(runtime.options.stack)
        });
        let asked: Vec<Option<usize>> = asked.collect();
        match asked.iter().flatten().find(|&&bytes| bytes < SMALLEST) {
            Some(&bytes) => Err(StartError::Stack { bytes, least: SMALLEST }),
            None => Ok(Self { runtime, asked }),
        }
    }

    /// How much a thread of `part` gets that runs jobs of `base` and above.
    pub(super) fn size(&self, part: &Part, base: u8) -> usize {
        debug_assert!(std::ptr::eq(part.runtime, self.runtime));
        self.asked[part.index()].unwrap_or_else(|| {
            let levels = part.partition.levels().iter().filter(|level| level.number() >= base).count();
            LEAST.max(ITSELF + EACH_LEVEL * levels)
        })
    }
}

/// Has an overflow of `stack`, that of the calling thread, explained while the result lives. Without it, the end is the one that
/// the process had anyhow.
pub(super) fn watch(stack: Option<Bounds>) -> Option<Watched> {
    stack.and_then(|stack| Watched::begin(stack, explain).ok())
}

/// Says whose stack is used up. Neither allocates nor takes a lock.
fn explain(stack: Bounds) {
    let (size, thread) = (stack.size() / 1024, kernel_thread());
    let Some((part, worker)) = current::get() else {
        return stderr::line(format_args!("thread {thread} has used up its stack of {size} KiB"));
    };
    let level = worker.running();
    let idle = std::ptr::eq(&*worker, part.runtime.home.idle);
    let (whose, advice) = if idle { ("idle's thread", OF_CALLER) } else { ("thread", MORE) };
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
            let tasks = part.names_at(level);
            stderr::line(format_args!(
                "{tasks} at level {level} has used up the stack of {whose} {thread}, {size} KiB{below}; {advice}"
            ));
        }
    }
}

const MORE: &str = "set a larger one with `#[app(stack = ..)]`, `Config::stack` or PUNCTUAL_STACK, in KiB";
const OF_CALLER: &str = "it is the thread that runs the app: raise its stack with `ulimit -s`, or run the app on one with a larger stack";
