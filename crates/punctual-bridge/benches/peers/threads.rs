//! What the kernel says of this process.

use std::fs;

/// A thread: its number, its name, its policy as a number, and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) cpus: String,
}

/// All threads at present.
pub(crate) fn all() -> Vec<Thread> {
    let tasks = fs::read_dir("/proc/self/task").expect("it is there");
    let of = |path: std::path::PathBuf| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let status = fs::read_to_string(path.join("status")).ok()?;
        let (id, name) = stat.split_once('(')?;
        // Behind the name, which may have spaces: the policy is the 41st field of all.
        let (name, behind) = name.rsplit_once(')')?;
        let policy = behind.split_whitespace().nth(38)?.to_owned();
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(Thread {
            id: id.trim().parse().ok()?,
            name: name.to_owned(),
            policy,
            cpus: cpus.trim().to_owned(),
        })
    };
    tasks.filter_map(|task| of(task.ok()?.path())).collect()
}

/// How much memory is resident.
pub(crate) fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("the kernel tells")
}
