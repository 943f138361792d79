//! The machine of a run: everything that decides whether two runs are comparable.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::cpus;
use serde::{Deserialize, Serialize};

use crate::clock::{self, Clock};
use crate::rt;

/// The machine, its kernel, and what this process may do on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// Whether the kernel is PREEMPT_RT.
    pub preempt_rt: bool,
    /// The processor architecture.
    pub architecture: String,
    /// The CPU's model name.
    pub cpu_model: String,
    /// Family, model and stepping of an x86 CPU; empty of others. Hypervisors give different CPUs one name.
    #[serde(default)]
    pub cpu_family: String,
    /// The clock of the measured CPU, in MHz, as the kernel gives it: on a virtual machine that of its counter.
    #[serde(default)]
    pub cpu_mhz: Option<f64>,
    /// One locked instruction, the median of windows.
    #[serde(default)]
    pub locked_ns: Option<f64>,
    /// CPUs that are online.
    pub cpus: usize,
    /// The hypervisor, if any. `none` is no guarantee: some hide.
    pub hypervisor: String,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The clock of the short measurements.
    pub clock: String,
    /// The smallest step of that clock.
    pub clock_step_ns: f64,
    /// CPUs that are kept free by boot parameters or a cpuset partition; empty if none.
    pub isolated_cpus: String,
    /// CPUs without a periodic tick, by boot parameter; empty if none.
    pub tickless_cpus: String,
    /// The frequency governor of the measured CPU; empty if it has none.
    pub governor: String,
    /// How much of a CPU real-time threads may take, or `off`.
    pub rt_throttling: String,
    /// Why this process may not use SCHED_FIFO; empty if it may.
    pub fifo_refused: Option<String>,
    /// What else affects the figures.
    pub notes: Vec<String>,
}

impl Machine {
    /// Describes this machine. `cpu` is the one to be measured.
    pub(crate) fn look(cpu: usize, clock: &Clock) -> Self {
        let runtime = read("/proc/sys/kernel/sched_rt_runtime_us");
        let period = read("/proc/sys/kernel/sched_rt_period_us");
        let rt_throttling = match runtime.as_str() {
            "-1" => "off".into(),
            "" => String::new(),
            _ => format!("{runtime} of {period} µs"),
        };
        let hypervisor = hypervisor();
        let mut machine = Self {
            kernel: read("/proc/sys/kernel/osrelease"),
            // Not every kernel that is one has the file.
            preempt_rt: read("/sys/kernel/realtime") == "1" || read("/proc/version").contains("PREEMPT_RT"),
            architecture: std::env::consts::ARCH.into(),
            cpu_model: cpu_model(),
            cpu_family: cpu_family(),
            cpu_mhz: cpu_mhz(cpu),
            locked_ns: Some(locked_ns(cpu, clock)),
            cpus: std::thread::available_parallelism().map_or(1, usize::from).max(online()),
            hypervisor,
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock: clock.name().into(),
            clock_step_ns: clock.step_ns(),
            isolated_cpus: isolated(),
            tickless_cpus: read("/sys/devices/system/cpu/nohz_full").replace("(null)", ""),
            governor: read(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")),
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
            notes.push(format!("{why}. Rows that need real-time scheduling are marked and mean little."));
        }
        if self.hypervisor != "none" {
            notes.push(format!(
                "A virtual machine ({}): the host takes the CPU away when it likes, and maxima are mostly its.",
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
                "Real-time threads may use {} (kernel.sched_rt_runtime_us); from Linux 6.12 on ordinary threads get \
                 their share in any case (fair server).",
                self.rt_throttling
            ));
        }
        notes
    }

    /// The kernel in one line.
    pub fn kernel_line(&self) -> String {
        if self.kernel.starts_with("punctual-kernel ") {
            return format!("{}, no operating system", self.kernel);
        }
        let rt = if self.preempt_rt { "PREEMPT_RT" } else { "not PREEMPT_RT" };
        format!("Linux {}, {rt}, clock source {}", self.kernel, self.clock_source)
    }

    /// The hardware in one line.
    pub fn hardware_line(&self) -> String {
        let on = if self.hypervisor == "none" { String::new() } else { format!(", {}", self.hypervisor) };
        let family =
            if self.cpu_family.is_empty() { String::new() } else { format!(", family {}", self.cpu_family) };
        let clock = self.cpu_mhz.map_or(String::new(), |mhz| format!(", {:.2} GHz", mhz / 1e3));
        format!("{} × {} ({}{family}{clock}{on})", self.cpus, self.cpu_model, self.architecture)
    }
}

/// The contents of a small file without white space around them, or nothing.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

fn online() -> usize {
    cpu_list(&read("/sys/devices/system/cpu/online")).len()
}

/// CPUs kept free, as the kernel lists them.
pub(crate) fn isolated() -> String {
    cpus::ISOLATED.iter().map(read).find(|list| !list.is_empty()).unwrap_or_default()
}

/// The CPUs of a list of the kernel's.
pub(crate) fn cpu_list(list: &str) -> Vec<usize> {
    cpus::list(list).collect()
}

fn cpu_model() -> String {
    let info = read("/proc/cpuinfo");
    let named = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    named("model name").or_else(|| named("Model")).or_else(|| named("CPU part")).unwrap_or("unknown".into())
}

/// As `family-model-stepping`.
fn cpu_family() -> String {
    let info = read("/proc/cpuinfo");
    let number = |name: &str| {
        let (_, number) =
            info.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
        Some(number.trim().to_owned())
    };
    let numbers = ["cpu family", "model", "stepping"].map(number);
    numbers.into_iter().collect::<Option<Vec<_>>>().map_or_else(String::new, |numbers| numbers.join("-"))
}

/// The frequency of a CPU: the current one where the kernel scales it, else the one in its description.
fn cpu_mhz(cpu: usize) -> Option<f64> {
    let khz = read(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
    if let Ok(khz) = khz.parse::<f64>() {
        return Some(khz / 1e3);
    }
    let info = read("/proc/cpuinfo");
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    let mut of_cpu =
        lines.skip_while(|(key, number)| key.trim() != "processor" || number.trim().parse() != Ok(cpu));
    let (_, mhz) = of_cpu.find(|(key, _)| key.trim() == "cpu MHz")?;
    mhz.trim().parse().ok().filter(|mhz| *mhz > 0.0)
}

/// The time that the host of a virtual machine has given to others than its CPUs although they had work, so far.
pub(crate) fn stolen_s() -> Option<f64> {
    stolen_ticks(&read("/proc/stat"))
        .map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The eighth number of all CPUs (`proc_stat(5)`).
fn stolen_ticks(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace().nth(7)?.parse().ok()
}

/// What an instruction with a bus lock takes: the median of windows of many, on `cpu` with real-time priority if that is granted.
fn locked_ns(cpu: usize, clock: &Clock) -> f64 {
    const WINDOWS: usize = 101;
    const OPERATIONS: u64 = 1000;
    let mut windows = rt::on_thread(cpu, rt::PRIORITY, |_| {
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
    windows.sort_unstable();
    clock.ps(windows[WINDOWS / 2]) as f64 / 1e3 / OPERATIONS as f64
}

fn hypervisor() -> String {
    let declared = read("/sys/hypervisor/type");
    let flagged = || {
        let info = read("/proc/cpuinfo");
        let flags = info.lines().find(|line| line.starts_with("flags"));
        flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    };
    match declared {
        declared if !declared.is_empty() => declared,
        _ if flagged() => hypervisors_name().unwrap_or("unknown hypervisor".into()),
        _ if read("/sys/class/dmi/id/sys_vendor") == "QEMU" => "QEMU".into(),
        _ => "none".into(),
    }
}

/// The hypervisor's name in the `cpuid` leaf reserved for it.
#[cfg(target_arch = "x86_64")]
fn hypervisors_name() -> Option<String> {
    #[allow(unused_unsafe, reason = "newer toolchains hold the instruction to be safe")]
    // SAFETY: every x86-64 CPU has `cpuid`.
    let leaf = unsafe { core::arch::x86_64::__cpuid(0x4000_0000) };
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    let name = String::from_utf8(bytes).ok()?;
    match name.trim_matches(|c: char| !c.is_ascii_graphic()) {
        "" => None,
        "KVMKVMKVM" => Some("KVM".into()),
        "VMwareVMware" => Some("VMware".into()),
        "Microsoft Hv" => Some("Hyper-V".into()),
        "XenVMMXenVMM" => Some("Xen".into()),
        "TCGTCGTCGTCG" => Some("QEMU without KVM".into()),
        other => Some(other.into()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisors_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_stolen_time_of_all_cpus() {
        let stat = "cpu  1 2 3 4 5 6 7 81 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(stolen_ticks(stat), Some(81));
        // A kernel that does not count it.
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7\n"), None);
        assert!(stolen_s().is_none_or(|stolen| stolen >= 0.0));
    }

    #[test]
    fn describes_machine() {
        let machine = Machine::look(0, &crate::clock::use_best());
        assert!(!machine.kernel.is_empty() && machine.cpus > 0);
        assert!(machine.kernel_line().contains("PREEMPT_RT"));
        assert!(machine.hardware_line().contains(&machine.architecture));
        assert!(machine.locked_ns.is_some_and(|ns| ns > 0.0));
    }
}
