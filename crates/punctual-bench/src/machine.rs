//! The machine of a run: all properties that determine whether two runs are comparable.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::cpus;
use punctual_isolate::cpus::Cpus;
use punctual_isolate::facts::{self, Cache, Kernel, Statistics, TICK, Topology};
use punctual_isolate::tree::Tree;
use serde::{Deserialize, Serialize};

use crate::clock::{self, Clock};
use crate::rt;

/// The machine, its kernel, and the privileges of this process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// `true` for a PREEMPT_RT kernel.
    pub preempt_rt: bool,
    /// The processor architecture.
    pub architecture: String,
    /// The CPU's model name.
    pub cpu_model: String,
    /// Family, model and stepping of an x86 CPU; empty for others. Hypervisors give different CPUs
    /// the same name.
    #[serde(default)]
    pub cpu_family: String,
    /// The clock rate of the measured CPU, in MHz, as reported by the kernel: on a virtual machine
    /// that of its counter.
    #[serde(default)]
    pub cpu_mhz: Option<f64>,
    /// The time of a locked instruction, the median of windows.
    #[serde(default)]
    pub locked_ns: Option<f64>,
    /// The number of online CPUs.
    pub cpus: usize,
    /// The hypervisor, if any. `none` is no guarantee: some hypervisors are undetectable.
    pub hypervisor: String,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The clock of short measurements.
    pub clock: String,
    /// The smallest step of that clock.
    pub clock_step_ns: f64,
    /// CPUs isolated by boot parameters or a cpuset partition; empty if none.
    pub isolated_cpus: String,
    /// CPUs without a periodic tick, by boot parameter; empty if none.
    pub tickless_cpus: String,
    /// The frequency governor of the measured CPU; empty if it has none.
    pub governor: String,
    /// The share of a CPU available to real-time threads, or `off`.
    pub rt_throttling: String,
    /// The reason why this process may not use SCHED_FIFO; empty if it may.
    pub fifo_refused: Option<String>,
    /// Other conditions that affect the figures.
    pub notes: Vec<String>,
}

impl Machine {
    /// Describes this machine. `cpu` is the CPU to measure.
    pub(crate) fn read(cpu: usize, clock: &Clock) -> Self {
        let tree = Tree::system();
        let kernel = Kernel::read(&tree);
        let topology = Topology::read(&tree);
        let measured = topology.cpu(cpu).cloned().unwrap_or_default();
        let rt_throttling = kernel.throttling.map_or_else(String::new, |it| it.to_string());
        let mut machine = Self {
            kernel: kernel.release,
            preempt_rt: kernel.preempt_rt == Some(true),
            architecture: std::env::consts::ARCH.into(),
            cpu_model: measured.model.unwrap_or_else(|| "unknown".into()),
            cpu_family: measured.family.unwrap_or_default(),
            cpu_mhz: measured.mhz,
            locked_ns: locked_ns(cpu, clock),
            cpus: std::thread::available_parallelism().map_or(1, usize::from).max(topology.online.len()),
            hypervisor: facts::hypervisor(&tree).unwrap_or_else(|| "none".into()),
            clock_source: kernel.clock_source.unwrap_or_default(),
            clock: clock.name().into(),
            clock_step_ns: clock.step_ns(),
            isolated_cpus: isolated().to_string(),
            tickless_cpus: topology.tickless.to_string(),
            governor: measured.governor.unwrap_or_default(),
            rt_throttling,
            fifo_refused: rt::fifo_refused(),
            notes: Vec::new(),
        };
        machine.notes = machine.remarks();
        machine
    }

    fn remarks(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(why) = &self.fifo_refused {
            notes.push(format!("{why}. Rows that need real-time scheduling are marked as invalid."));
        }
        if self.hypervisor != "none" {
            notes.push(format!(
                "A virtual machine ({}): the host may take the CPU at any time, and causes most maxima.",
                self.hypervisor
            ));
        }
        if !self.preempt_rt {
            notes.push("Not a PREEMPT_RT kernel: it does not bound latencies.".into());
        }
        if !matches!(self.governor.as_str(), "" | "performance") {
            notes.push(format!(
                "The frequency governor is `{}`: the CPU slows down when it idles (cpupower frequency-set -g \
                 performance).",
                self.governor
            ));
        }
        if self.rt_throttling != "off" && !self.rt_throttling.is_empty() {
            notes.push(format!(
                "Real-time threads may use {} (kernel.sched_rt_runtime_us); from Linux 6.12 on, the fair server \
                 gives ordinary threads their share regardless.",
                self.rt_throttling
            ));
        }
        notes
    }

    /// Returns the kernel in one line.
    pub fn kernel_line(&self) -> String {
        if self.kernel.starts_with("punctual-kernel ") {
            return format!("{}, no operating system", self.kernel);
        }
        let rt = if self.preempt_rt { "PREEMPT_RT" } else { "not PREEMPT_RT" };
        format!("Linux {}, {rt}, clock source {}", self.kernel, self.clock_source)
    }

    /// Returns the hardware in one line.
    pub fn hardware_line(&self) -> String {
        let on = if self.hypervisor == "none" { String::new() } else { format!(", {}", self.hypervisor) };
        let family =
            if self.cpu_family.is_empty() { String::new() } else { format!(", family {}", self.cpu_family) };
        let clock = self.cpu_mhz.map_or(String::new(), |mhz| format!(", {:.2} GHz", mhz / 1e3));
        format!("{} × {} ({}{family}{clock}{on})", self.cpus, self.cpu_model, self.architecture)
    }
}

/// Returns the trimmed contents of a small file, or an empty text.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

/// Returns the CPUs isolated by boot parameters or by cpuset partitions.
pub(crate) fn isolated() -> Cpus {
    cpus::ISOLATED
        .iter()
        .map(|file| Cpus::of_list(&read(file)))
        .fold(Cpus::default(), |all, cpus| all.and(&cpus))
}

/// Returns the current CPUs.
pub(crate) fn topology() -> Topology {
    Topology::read(&Tree::system())
}

/// Returns the data caches of a CPU, smallest first; empty if the kernel does not report them.
pub(crate) fn caches(cpu: usize) -> Vec<Cache> {
    topology().cpu(cpu).map_or_else(Vec::new, |cpu| cpu.caches.clone())
}

/// Returns the total time for which the host of a virtual machine ran others while its CPUs had
/// work (steal time).
pub(crate) fn stolen_s() -> Option<f64> {
    Some(Statistics::read(&Tree::system()).all.stolen? as f64 * TICK.as_secs_f64())
}

/// The same for one CPU, in ns, in steps of 10 ms.
pub(crate) fn stolen_ns(cpu: usize) -> Option<u64> {
    let ticks = Statistics::read(&Tree::system()).cpu(cpu)?.stolen?;
    Some(ticks.saturating_mul(TICK.as_nanos() as u64))
}

/// Returns the time of an instruction with a bus lock: the median of windows of many, on `cpu` with
/// real-time priority if granted.
fn locked_ns(cpu: usize, clock: &Clock) -> Option<f64> {
    const WINDOWS: usize = 101;
    const OPERATIONS: u64 = 1000;
    let windows = rt::try_on_thread(cpu, rt::PRIORITY, |_| {
        let word = AtomicU64::new(0);
        let window = |_| {
            let from = clock::now();
            (0..OPERATIONS).for_each(|_| {
                black_box(&word).fetch_add(1, Ordering::AcqRel);
            });
            clock::now() - from
        };
        (0..WINDOWS).map(window).collect::<Vec<_>>()
    });
    let mut windows = windows.ok()?;
    windows.sort_unstable();
    Some(clock.ps(windows[WINDOWS / 2]) as f64 / 1e3 / OPERATIONS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_machine() {
        let machine = Machine::read(0, &crate::clock::use_best());
        assert!(!machine.kernel.is_empty() && machine.cpus > 0);
        assert!(machine.kernel_line().contains("PREEMPT_RT"));
        assert!(machine.hardware_line().contains(&machine.architecture));
        assert!(machine.locked_ns.is_some_and(|ns| ns > 0.0));
        assert!(stolen_s().is_none_or(|stolen| stolen >= 0.0));
    }
}
