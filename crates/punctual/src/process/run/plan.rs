//! The plan of a run on Linux, made before anything starts: the CPU of each partition, and the
//! kernel priorities.

use punctual_core::Worker;

use super::stacks::{Stacks, list};
use crate::config::{Config, Marks, PerPartition};
use crate::port::linux::cpu::{self, Allowed};
use crate::start_error::StartError;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use punctual_core::Duration;

/// Kernel priority of level 0: above the interrupt threads of PREEMPT_RT, which have 50.
const PRIORITY_BASE: u8 = 50;

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    /// The CPU of each partition of the app, in its order; `None` for any.
    cpus: Vec<Option<usize>>,
    pub(super) priority_base: u8,
    /// The bound on the wake-up latency of CPUs, if any.
    pub(super) wake_latency: Option<Duration>,
    pub(super) strict: bool,
    pub(super) marks: Marks,
    /// True if the figures are exported to other processes.
    pub(super) metrics: bool,
    /// True if words may be biased.
    rseq: bool,
    /// The CPUs this process may use.
    pub(super) allowed: Allowed,
    partitions: &'static [&'static PartitionState],
    pub(super) stacks: Stacks,
}

impl Plan {
    pub(super) fn new(runtime: &'static Runtime, config: &Config) -> Result<Self, StartError> {
        let allowed = Allowed::of_this_thread().map_err(|error| StartError::System {
            attempt: "reading the CPU affinity",
            error: error.into(),
        })?;
        // The environment comes last, because it overrides the program.
        let from_environment = Config::from_env().platform;
        if let Some(problem) = from_environment.bad_environment {
            return Err(StartError::Environment(problem.into()));
        }
        let wishes = wishes(runtime.partitions, [&from_environment.cpus, &config.platform.cpus])?;
        let usable = cpu::usable(&allowed);
        let cpus = place(&wishes, &usable, &cpu::isolated())?;
        let base = config.platform.priority_base.or(runtime.options.priority_base).unwrap_or(PRIORITY_BASE);
        let highest = runtime.partitions.iter().map(|partition| partition.highest_level()).max().unwrap_or(0);
        if u32::from(base) + u32::from(highest) > 99 || base == 0 {
            return Err(StartError::Priority { base, highest });
        }
        let strict = from_environment.strict.or(config.platform.strict).unwrap_or(runtime.options.strict);
        let wake_latency = from_environment.wake_latency.or(config.platform.wake_latency);
        let wake_latency = wake_latency.or(runtime.options.wake_latency);
        let marks = from_environment.trace.or(config.platform.trace.clone());
        let marks = marks.unwrap_or(Marks::new(runtime.options.trace));
        let metrics = from_environment.metrics.or(config.platform.metrics).unwrap_or(true);
        let rseq = from_environment.rseq.or(config.platform.rseq).unwrap_or(true);
        let (stacks, partitions) = (Stacks::new(runtime, config)?, runtime.partitions);
        Ok(Self {
            cpus,
            priority_base: base,
            wake_latency,
            strict,
            marks,
            metrics,
            rseq,
            allowed,
            partitions,
            stacks,
        })
    }

    /// Returns the CPU of `partition`; `None` for any.
    pub(super) fn cpu(&self, partition: &PartitionState) -> Option<usize> {
        self.cpus[partition.index()]
    }

    /// Returns the CPU of each partition of the app, in its order; `None` for any.
    pub(super) fn cpus(&self) -> &[Option<usize>] {
        &self.cpus
    }

    /// Returns the CPU to which the word of the app's partition is to be biased.
    pub(super) fn biased(&self) -> Option<usize> {
        let sole = self.partitions.iter().find(|partition| partition.may_be_biased());
        sole.filter(|_| self.rseq).and_then(|sole| self.cpu(sole))
    }

    /// Returns the kernel priority of `worker`.
    pub(super) fn priority(&self, worker: &Worker) -> u8 {
        self.priority_base + worker.base()
    }

    /// Returns the highest kernel priority of any worker.
    pub(super) fn highest_priority(&self) -> u8 {
        self.priority_base
            + self.partitions.iter().map(|partition| partition.highest_level()).max().unwrap_or(0)
    }

    /// Returns the kernel priorities that belong to `partition` on its CPU: those of its levels, or
    /// all if an ordinary thread is to have a dedicated CPU.
    pub(super) fn band(&self, partition: &PartitionState) -> std::ops::RangeInclusive<u8> {
        match partition.model {
            ThreadModel::Polling => 1..=99,
            ThreadModel::Levels | ThreadModel::Anywhere => {
                self.priority_base + 1..=self.priority_base + partition.highest_level()
            }
        }
    }

    /// Returns the CPUs of threads that are not real-time.
    pub(super) fn background_cpus(&self) -> Allowed {
        let polled = |&(_, partition): &(_, &&PartitionState)| partition.model == ThreadModel::Polling;
        let all: Vec<usize> = self.cpus.iter().copied().flatten().collect();
        let polled: Vec<usize> =
            self.cpus.iter().zip(self.partitions).filter(polled).flat_map(|(cpu, _)| *cpu).collect();
        // It is better to share a CPU with real-time threads than with threads that never sleep.
        [&all, &polled]
            .into_iter()
            .find_map(|taken| self.allowed.without(taken))
            .unwrap_or(self.allowed.clone())
    }
}

/// A partition that needs a CPU.
#[derive(Debug, Clone, Copy)]
struct CpuRequest {
    name: &'static str,
    model: ThreadModel,
    cpu: Option<usize>,
}

/// The requested CPU: the first of `overriding` takes precedence over the next, and all over the
/// program.
fn wishes(
    partitions: &[&'static PartitionState],
    overriding: [&PerPartition; 2],
) -> Result<Vec<CpuRequest>, StartError> {
    let placed = || partitions.iter().filter(|partition| partition.model != ThreadModel::Anywhere);
    let names: Vec<&str> = placed().map(|partition| partition.name).collect();
    for cpus in overriding {
        if let Some((name, _)) = cpus.named.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(StartError::UnknownPartition { name: name.clone().into(), partitions: list(&names) });
        }
        if let (Some(cpu), true) = (cpus.sole, names.len() != 1) {
            return Err(StartError::WhichPartition { cpu, partitions: list(&names) });
        }
    }
    let asked = |partition: &PartitionState| match partition.model {
        ThreadModel::Anywhere => None,
        _ => overriding.iter().find_map(|cpus| cpus.of(partition.name)).or(partition.host.cpu),
    };
    Ok(partitions
        .iter()
        .map(|&partition| CpuRequest { name: partition.name, model: partition.model, cpu: asked(partition) })
        .collect())
}

/// Assigns a separate CPU to every partition: the requested one, or else an isolated one, or else
/// the highest left. Polling partitions choose first. `None` for those that need no CPU.
fn place(
    wishes: &[CpuRequest],
    usable: &[usize],
    isolated: &[usize],
) -> Result<Vec<Option<usize>>, StartError> {
    let mut given: Vec<Option<usize>> = Vec::new();
    for (index, request) in wishes.iter().enumerate() {
        if let Some(cpu) = request.cpu {
            if !usable.contains(&cpu) {
                let partition = (wishes.len() > 1).then_some(request.name);
                return Err(StartError::Cpu { cpu, partition, allowed: list(usable) });
            }
            if let Some(other) = given[..index].iter().position(|&other| other == Some(cpu)) {
                let partitions = [wishes[other].name, request.name];
                return Err(StartError::SameCpu { cpu, partitions });
            }
        }
        given.push(request.cpu);
    }
    for model in [ThreadModel::Polling, ThreadModel::Levels] {
        for (index, _) in
            wishes.iter().enumerate().filter(|(_, request)| request.model == model && request.cpu.is_none())
        {
            let free = || usable.iter().rev().filter(|cpu| !given.contains(&Some(**cpu)));
            let best = free().find(|cpu| isolated.contains(cpu)).or_else(|| free().next()).copied();
            let Some(cpu) = best else {
                let partitions = wishes
                    .iter()
                    .filter(|request| request.model != ThreadModel::Anywhere)
                    .map(|request| request.name);
                let partitions = list(&partitions.collect::<Vec<_>>());
                return Err(StartError::TooFewCpus { partitions, allowed: list(usable) });
            };
            given[index] = Some(cpu);
        }
    }
    let polled = |cpu: &usize| {
        wishes
            .iter()
            .zip(&given)
            .find(|(request, given)| request.model == ThreadModel::Polling && **given == Some(*cpu))
    };
    if let (true, Some((request, _))) =
        (usable.iter().all(|cpu| polled(cpu).is_some()), usable.last().and_then(polled))
    {
        return Err(StartError::PollsOnlyCpu { partition: request.name, allowed: list(usable) });
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &'static str, cpu: Option<usize>) -> CpuRequest {
        CpuRequest { name, model: ThreadModel::Levels, cpu }
    }

    fn polling(name: &'static str) -> CpuRequest {
        CpuRequest { model: ThreadModel::Polling, ..request(name, None) }
    }

    #[track_caller]
    fn placed(wishes: &[CpuRequest], isolated: &[usize], expected: &[usize]) {
        let expected: Vec<_> = expected.iter().copied().map(Some).collect();
        assert_eq!(place(wishes, &[0, 1, 2, 3], isolated).expect("there are CPUs enough"), expected);
    }

    #[track_caller]
    fn refused(wishes: &[CpuRequest], usable: &[usize], partitions: &[&str]) {
        let message = place(wishes, usable, &[]).expect_err("it cannot be").to_string();
        for partition in partitions {
            assert!(message.contains(partition), "{partition:?} is not in {message:?}");
        }
    }

    #[test]
    fn prefers_isolated_then_highest_cpus() {
        let free = [request("a", None), request("b", None)];
        placed(&free, &[1], &[1, 3]);
        placed(&free, &[7], &[3, 2]);
        placed(&[request("a", None), request("b", Some(3))], &[], &[2, 3]);
    }

    #[test]
    fn polling_partitions_choose_cpus_first() {
        placed(&[request("a", None), polling("b")], &[1], &[3, 1]);
        let anywhere = CpuRequest { model: ThreadModel::Anywhere, ..request("idle", None) };
        assert_eq!(place(&[polling("a"), anywhere], &[0, 1], &[]).unwrap(), [Some(1), None]);
    }

    #[test]
    fn rejects_impossible_settings_with_remedy() {
        refused(&[request("main", Some(4))], &[0, 1], &["no CPU 4", "0, 1", "Config::cpu"]);
        refused(&[request("a", None), request("b", Some(4))], &[0, 1], &["`b`", "CPU 4", "partition_cpu"]);
        refused(&[request("a", Some(1)), request("b", Some(1))], &[0, 1], &["`a`", "`b`", "CPU 1"]);
        refused(&[request("a", None), request("b", None)], &[0], &["a, b", "0"]);
        refused(&[polling("a")], &[0], &["`a`", "polls", "another CPU"]);
        refused(&[polling("a"), polling("b")], &[0, 1], &["polls"]);
    }
}
