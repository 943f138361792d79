//! Selection and isolation of the CPU of a partition.

use std::fs;

use punctual_core::cpus;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use.
#[derive(Debug, Clone)]
pub(crate) struct Allowed(CpuSet);

impl Allowed {
    /// Returns the CPUs of the calling thread.
    pub(crate) fn of_this_thread() -> rustix::io::Result<Self> {
        sched_getaffinity(None).map(Self)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu))
    }

    /// Restricts the calling thread to these CPUs again.
    pub(crate) fn apply(&self) -> rustix::io::Result<()> {
        sched_setaffinity(None, &self.0)
    }

    /// Returns these CPUs without `cpus`; `None` if none remain.
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

/// Returns the CPUs that threads of this process can be pinned to, in order.
///
/// The kernel excludes CPUs isolated by boot parameters from the affinity of new processes,
/// although a thread may request them. An affinity of exactly the other CPUs is therefore not a
/// deliberate choice for this process, and the isolated ones that it may use are included.
pub(crate) fn usable(allowed: &Allowed) -> Vec<usize> {
    let allowed: Vec<usize> = allowed.iter().collect();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let left_out = left_out(&allowed, &listed(&online), &isolated());
    // On a short-lived thread, so that this one keeps its affinity.
    let may_have = |cpu: &usize| {
        let cpu = *cpu;
        std::thread::Builder::new()
            .spawn(move || pin(cpu).is_ok())
            .is_ok_and(|attempt| attempt.join().unwrap_or(false))
    };
    let mut usable: Vec<usize> = left_out.into_iter().filter(may_have).chain(allowed).collect();
    usable.sort_unstable();
    usable
}

/// Returns the isolated CPUs that `allowed` lacks, if it lacks no others.
fn left_out(allowed: &[usize], online: &[usize], isolated: &[usize]) -> Vec<usize> {
    let lacking: Vec<usize> = online.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    if lacking.iter().all(|cpu| isolated.contains(cpu)) { lacking } else { Vec::new() }
}

/// Describes the isolation of `cpu`, if it is isolated.
pub(crate) fn isolation(cpu: usize) -> Option<String> {
    let without_tick = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    describe(cpu, isolated().contains(&cpu), listed(&without_tick).contains(&cpu))
}

/// Describes the isolation of `cpu` for a message.
fn describe(cpu: usize, isolated: bool, without_tick: bool) -> Option<String> {
    let alone = "is isolated: the scheduler runs only threads on it that request it";
    let tickless = "has no tick while only one thread runs on it";
    match (isolated, without_tick) {
        (false, false) => None,
        (true, false) => Some(format!("CPU {cpu} {alone}")),
        (false, true) => Some(format!("CPU {cpu} {tickless}, but is not isolated")),
        (true, true) => Some(format!("CPU {cpu} {alone}; it {tickless}")),
    }
}

/// Returns CPUs reserved by boot parameters or by an isolated cpuset partition.
pub(crate) fn isolated() -> Vec<usize> {
    cpus::ISOLATED
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|list| listed(&list))
        .collect()
}

/// Returns the CPUs of a kernel list, up to the maximum of affinities.
fn listed(list: &str) -> Vec<usize> {
    cpus::list(list).filter(|&cpu| cpu < CpuSet::MAX_CPU).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_isolated_cpus_unless_affinity_was_set() {
        assert_eq!(left_out(&[0, 1], &[0, 1, 2, 3], &[2, 3]), [2, 3]);
        // CPU 1 has been excluded as well.
        assert_eq!(left_out(&[0], &[0, 1, 2, 3], &[2, 3]), [0_usize; 0]);
        assert_eq!(left_out(&[0, 1, 2, 3], &[0, 1, 2, 3], &[2, 3]), [0_usize; 0]);
        assert_eq!(left_out(&[0, 1], &[], &[]), [0_usize; 0]);
    }

    #[test]
    fn allowed_settings_are_usable() {
        let allowed = Allowed::of_this_thread().unwrap();
        let usable = usable(&allowed);
        assert!(allowed.iter().all(|cpu| usable.contains(&cpu)));
        assert!(usable.is_sorted());
    }

    #[test]
    fn describes_isolation() {
        assert_eq!(describe(1, false, false), None);
        let printed =
            |isolated, without_tick| describe(1, isolated, without_tick).expect("there is something");
        assert!(printed(true, false).starts_with("CPU 1 is isolated:"));
        assert!(printed(true, true).ends_with("; it has no tick while only one thread runs on it"));
        assert!(printed(false, true).ends_with("but is not isolated"));
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
