//! Which CPU a partition runs on.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use.
#[derive(Debug, Clone)]
pub(crate) struct Allowed(CpuSet);

impl Allowed {
    /// Those of the calling thread.
    pub(crate) fn of_this_thread() -> rustix::io::Result<Self> {
        sched_getaffinity(None).map(Self)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu))
    }

    /// Puts the calling thread back on these CPUs.
    pub(crate) fn apply(&self) -> rustix::io::Result<()> {
        sched_setaffinity(None, &self.0)
    }

    /// These without `cpus`; `None` if that leaves none.
    pub(crate) fn without(&self, cpus: &[usize]) -> Option<Self> {
        let mut set = self.0;
        cpus.iter().for_each(|&cpu| set.unset(cpu));
        (set.count() > 0).then_some(Self(set))
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

/// CPUs kept free by boot parameters or by an isolated cpuset partition.
pub(crate) fn isolated() -> Vec<usize> {
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
    fn taking_cpus_away_leaves_some_or_none() {
        let allowed = Allowed::of_this_thread().unwrap();
        let all: Vec<usize> = allowed.iter().collect();
        assert!(allowed.without(&all).is_none());
        let rest = allowed.without(&all[1..]).expect("one is left");
        assert_eq!(rest.iter().collect::<Vec<_>>(), all[..1]);
    }
}
