//! Threads, as reported by the kernel.
#![allow(dead_code, reason = "each test wants to know another part of it")]

use std::fs;
use std::path::Path;

/// A thread: its number, its name, its policy as a number, and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) cpus: String,
}

/// Returns all present threads of this process.
pub(crate) fn all() -> Vec<Thread> {
    of_process(std::process::id())
}

/// Returns all present threads of a process.
pub(crate) fn of_process(process: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it is there");
    // A thread that has ended is skipped.
    tasks.filter_map(|task| of(&task.ok()?.path())).collect()
}

/// Returns the calling thread.
pub(crate) fn this() -> Thread {
    of(Path::new("/proc/thread-self")).expect("the kernel tells")
}

fn of(directory: &Path) -> Option<Thread> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let (id, name) = stat.split_once('(')?;
    // After the name, which may contain spaces: the policy is the 41st field of all.
    let (name, behind) = name.rsplit_once(')')?;
    let policy = behind.split_whitespace().nth(38)?.to_owned();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Thread { id: id.trim().parse().ok()?, name: name.to_owned(), policy, cpus: cpus.trim().to_owned() })
}
