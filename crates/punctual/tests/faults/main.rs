//! Between a fault and the end of the app nothing may fail: not because something cannot be printed, nor because a destructor
//! panics, nor because `idle` is still there.

mod callbacks;
mod destructors;
mod idle;
#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;
mod process_end;
mod sections;
mod unwritable;

use std::env;
use std::process::Command;

/// Where an app of these tests runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Partition,
    Polling,
    Global,
}

const EXECUTORS: [Executor; 3] = [Executor::Partition, Executor::Polling, Executor::Global];

/// Those that this machine has the CPUs for.
fn executors() -> impl Iterator<Item = Executor> {
    let cpus = rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count());
    EXECUTORS.into_iter().filter(move |executor| cpus > 1 || *executor != Executor::Polling)
}

/// The value of `list` whose name a test has put into the environment.
fn chosen<T: std::fmt::Debug>(name: &str, list: impl IntoIterator<Item = T>) -> T {
    let wanted = env::var(name).expect("the test that runs this program sets it");
    let known = list.into_iter().find(|value| format!("{value:?}") == wanted);
    known.expect("programs and their tests know the same values")
}

/// The program `path` as it is, and without privileges.
fn with_and_without_privileges(path: &str) -> [Command; 2] {
    let mut program = process::program(path);
    let mut unprivileged = privileges::unprivileged(&program);
    [&mut program, &mut unprivileged].into_iter().for_each(privileges::no_runaways);
    [program, unprivileged]
}
