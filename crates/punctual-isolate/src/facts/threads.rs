//! The threads relevant to real-time threads: kernel threads, and others with a real-time policy.

use crate::cpus::Cpus;
use crate::tree::Tree;

/// Flag of kernel threads (`PF_KTHREAD`).
const KERNEL: u64 = 0x0020_0000;
/// Flag of unmovable threads (`PF_NO_SETAFFINITY`).
const UNMOVABLE: u64 = 0x0400_0000;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its TID.
    pub id: u32,
    /// Its PID.
    pub process: u32,
    /// Its name: any text.
    pub name: String,
    /// `true` for a kernel thread.
    pub is_kernel: bool,
    /// `true` if it may be moved to other CPUs.
    pub is_movable: bool,
    /// Its scheduling policy.
    pub policy: Policy,
    /// Its start time in ticks since boot, which distinguishes threads with the same TID.
    pub started: u64,
    /// The allowed CPUs, if known.
    pub cpus: Option<Cpus>,
    /// The CPU that it ran on last.
    pub last_cpu: usize,
}

/// A scheduling policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Fair sharing: SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
    Fair,
    /// SCHED_FIFO with a priority.
    Fifo(u8),
    /// SCHED_RR with a priority.
    RoundRobin(u8),
    /// SCHED_DEADLINE.
    Deadline,
}

impl Policy {
    /// Returns the priority of a real-time thread.
    #[must_use]
    pub fn priority(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Fair | Self::Deadline => None,
        }
    }
}

impl Thread {
    /// Returns `true` if it may run on one of these CPUs, as far as known.
    #[must_use]
    pub fn may_run_on(&self, cpus: &Cpus) -> bool {
        self.cpus.as_ref().is_some_and(|own| own.meets(cpus))
    }

    /// Parses a line of `/proc/PID/task/TID/stat`.
    fn parse(process: u32, stat: &str) -> Option<Self> {
        // The name may contain parentheses and line feeds.
        let (before, after) = stat.rsplit_once(')')?;
        let (id, name) = before.split_once(" (")?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        // Field 3 of proc_pid_stat(5) is the first after the name.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let flags = field(9)?;
        let priority = u8::try_from(field(40)?).ok()?;
        let policy = match field(41)? {
            1 => Policy::Fifo(priority),
            2 => Policy::RoundRobin(priority),
            6 => Policy::Deadline,
            _ => Policy::Fair,
        };
        Some(Self {
            id: id.trim().parse().ok()?,
            process,
            name: name.to_owned(),
            is_kernel: flags & KERNEL != 0,
            is_movable: flags & UNMOVABLE == 0,
            policy,
            started: field(22)?,
            cpus: None,
            last_cpu: usize::try_from(field(39)?).ok()?,
        })
    }

    /// Reads the thread with this TID.
    pub(crate) fn read(tree: &Tree, process: u32, id: u32) -> Option<Self> {
        let directory = format!("/proc/{process}/task/{id}");
        let mut thread = Self::parse(process, &tree.text(&format!("{directory}/stat"))?)?;
        let cpus = tree.field(&format!("{directory}/status"), "Cpus_allowed_list").ok().flatten();
        thread.cpus = cpus.map(|list| Cpus::of_list(&list));
        Some(thread)
    }
}

/// Returns the number of real-time threads of a process of this machine.
#[must_use]
pub fn real_time_threads(process: u32) -> usize {
    let tree = Tree::system();
    let threads = tree.numbers(&format!("/proc/{process}/task")).into_iter();
    let threads = threads.filter_map(|id| Thread::read(&tree, process, id));
    threads.filter(|thread| thread.policy != Policy::Fair).count()
}

pub(super) fn read(tree: &Tree) -> Vec<Thread> {
    let mut threads = Vec::new();
    for process in tree.numbers("/proc") {
        for id in tree.numbers(&format!("/proc/{process}/task")) {
            let path = format!("/proc/{process}/task/{id}/stat");
            let is_of_interest = |thread: &Thread| thread.is_kernel || thread.policy != Policy::Fair;
            let stat = tree.glance(&path).and_then(|stat| Thread::parse(process, &stat));
            if stat.as_ref().is_some_and(is_of_interest) {
                threads.extend(Thread::read(tree, process, id));
            }
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a line of `stat` with this name, flags, priority and policy.
    fn stat(name: &str, flags: u64, priority: u8, policy: u8) -> String {
        format!(
            "7 ({name}) S 2 0 0 0 -1 {flags} {} 33 {} 5 {priority} {policy} 0",
            "0 ".repeat(12),
            "0 ".repeat(16)
        )
    }

    #[test]
    fn reads_threads_with_any_name() {
        let name = "irq/9) S (a\nb";
        let thread = Thread::parse(1, &stat(name, KERNEL | UNMOVABLE, 50, 1)).unwrap();
        assert_eq!((thread.id, &*thread.name, thread.started, thread.last_cpu), (7, name, 33, 5));
        assert_eq!((thread.is_kernel, thread.is_movable, thread.policy), (true, false, Policy::Fifo(50)));
        for length in 0..20 {
            assert_eq!(Thread::parse(1, &stat("x", 0, 0, 0)[..length]), None);
        }
    }

    #[test]
    fn records_kernel_and_real_time_threads() {
        let tree = Tree::parse("")
            .with("/proc/2/task/2/stat", &stat("kthreadd", KERNEL, 0, 0))
            .with("/proc/2/task/2/status", "Cpus_allowed_list:\t0-3")
            .with("/proc/9/task/9/stat", &stat("shell", 0, 0, 0))
            .with("/proc/9/task/10/stat", &stat("control", 0, 60, 1))
            .with("/proc/9/task/11/stat", "gone");
        let threads = read(&tree.recorded());
        let names: Vec<&str> = threads.iter().map(|thread| &*thread.name).collect();
        assert_eq!(names, ["kthreadd", "control"]);
        assert!(threads[0].may_run_on(&Cpus::from([3])));
        // Its CPUs are unknown.
        assert!(!threads[1].may_run_on(&Cpus::from([3])));
    }
}
