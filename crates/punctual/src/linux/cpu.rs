//! Which CPU a partition runs on.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use.
#[derive(Clone)]
pub(crate) struct Allowed(CpuSet);

impl Allowed {
    /// Those of the calling thread.
    pub(crate) fn of_this_thread() -> rustix::io::Result<Self> {
        sched_getaffinity(None).map(Self)
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        cpu < CpuSet::MAX_CPU && self.0.is_set(cpu)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu))
    }

    /// Puts the calling thread back on these CPUs.
    pub(crate) fn apply(&self) -> rustix::io::Result<()> {
        sched_setaffinity(None, &self.0)
    }

    /// These without `cpu`, unless that leaves none.
    pub(crate) fn without(&self, cpu: usize) -> Self {
        let mut set = self.0;
        set.unset(cpu);
        if set.count() == 0 { self.clone() } else { Self(set) }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cpus: Vec<String> = self.iter().map(|cpu| cpu.to_string()).collect();
        f.write_str(&cpus.join(","))
    }
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// The CPU to use when none was asked for: an isolated one if this process may use it, else the highest.
pub(crate) fn default(allowed: &Allowed) -> Option<usize> {
    let isolated = isolated();
    allowed.iter().rev().find(|cpu| isolated.contains(cpu)).or_else(|| allowed.iter().next_back())
}

/// CPUs kept free by boot parameters or by an isolated cpuset partition.
fn isolated() -> Vec<usize> {
    // With a cpuset partition the first file stays empty and the second tells.
    ["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|list| parse_list(&list))
        .collect()
}

/// Parses the kernel's list format, `0-2,5`; what it does not understand it leaves out.
fn parse_list(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(CpuSet::MAX_CPU))
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists() {
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_list("\n"), [0_usize; 0]);
        assert_eq!(parse_list("3-1,x,7"), [7]);
    }

    #[test]
    fn the_default_is_allowed() {
        let allowed = Allowed::of_this_thread().unwrap();
        assert!(allowed.contains(default(&allowed).unwrap()));
        assert!(!allowed.contains(CpuSet::MAX_CPU + 5));
    }
}
