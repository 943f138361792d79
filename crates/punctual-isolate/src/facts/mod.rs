//! The properties of a machine.
//!
//! Everything is read from a [`Tree`], so that recordings work as well. Unreadable properties are
//! `None` or missing, never a guess.

mod cgroups;
mod interrupts;
mod kernel;
mod process;
mod statistics;
mod threads;
mod topology;

pub use self::cgroups::Cgroups;
pub use self::interrupts::Interrupt;
pub(crate) use self::kernel::{CLOCK_SOURCE, PERIOD, RUNTIME};
pub use self::kernel::{Kernel, Parameters, Throttling, clock_source};
pub use self::process::{Container, Process};
pub use self::statistics::{Spent, Statistics, TICK};
pub use self::threads::{Policy, Thread, real_time_threads};
pub use self::topology::{Cache, Cpu, IdleState, Topology};

use crate::cpus::Cpus;
use crate::tree::Tree;

/// The file with the hypervisor, for kernels that provide it.
const HYPERVISOR: &str = "/sys/hypervisor/type";

/// A machine, its kernel, and the rights of this process.
#[derive(Debug)]
pub struct Machine {
    /// The source of all properties.
    pub tree: Tree,
    /// The kernel, its configuration and boot parameters.
    pub kernel: Kernel,
    /// The CPUs.
    pub topology: Topology,
    /// The interrupts of devices.
    pub interrupts: Vec<Interrupt>,
    /// The kernel threads, and the real-time threads of processes.
    pub threads: Vec<Thread>,
    /// The control groups, and those of this process.
    pub cgroups: Cgroups,
    /// The rights of this process.
    pub process: Process,
    /// The hypervisor, if there is a detectable one.
    pub hypervisor: Option<String>,
}

impl Machine {
    /// Reads all properties.
    #[must_use]
    pub fn read(tree: Tree) -> Self {
        let cgroups = Cgroups::read(&tree);
        Self {
            kernel: Kernel::read(&tree),
            topology: Topology::read(&tree),
            interrupts: interrupts::read(&tree),
            threads: threads::read(&tree),
            process: Process::read(&tree),
            hypervisor: hypervisor(&tree),
            cgroups,
            tree,
        }
    }

    /// Returns the CPUs isolated by boot parameters or cpuset partitions.
    #[must_use]
    pub fn isolated(&self) -> Cpus {
        self.topology.isolated.and(&self.cgroups.isolated)
    }

    /// Returns the default CPU of an app: an isolated one, or the highest allowed one.
    #[must_use]
    pub fn usual_cpu(&self) -> Option<usize> {
        let usable =
            self.process.cpus.as_ref().unwrap_or(&self.topology.online).common(&self.topology.online);
        self.isolated().common(&self.topology.online).last().or(usable.last())
    }
}

/// Returns the hypervisor of the machine, if there is a detectable one.
#[must_use]
pub fn hypervisor(tree: &Tree) -> Option<String> {
    let declared = tree.text(HYPERVISOR).filter(|text| !text.is_empty());
    let vendor = || tree.text("/sys/class/dmi/id/sys_vendor").filter(|text| !text.is_empty());
    let is_flagged = || {
        let flags = tree.field("/proc/cpuinfo", "flags").ok().flatten();
        flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    };
    declared.or_else(|| match is_flagged() {
        true => {
            // The value of `cpuid` is not a file; a recording has it in the file where others
            // provide it.
            let name = tree.is_live().then(name_by_cpuid).flatten();
            if let Some(name) = &name {
                tree.keep(HYPERVISOR, name);
            }
            Some(name.or_else(vendor).unwrap_or_else(|| "an unknown hypervisor".into()))
        }
        false => vendor().filter(|vendor| vendor == "QEMU"),
    })
}

/// Returns the name in the `cpuid` leaf reserved for it. Only for a CPU whose hypervisor flag is
/// set.
#[cfg(target_arch = "x86_64")]
fn name_by_cpuid() -> Option<String> {
    #[allow(unused_unsafe, reason = "newer toolchains consider the instruction safe")]
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
fn name_by_cpuid() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine() {
        let machine = Machine::read(Tree::system());
        assert!(!machine.topology.online.is_empty());
        assert!(machine.topology.cpus.iter().all(|cpu| machine.topology.online.has(cpu.number)));
        assert!(!machine.kernel.release.is_empty());
        assert!(machine.usual_cpu().is_some());
    }

    #[test]
    fn finds_nothing_in_an_empty_tree() {
        let machine = Machine::read(Tree::parse(""));
        assert!(machine.topology.online.is_empty() && machine.threads.is_empty());
        assert_eq!((machine.usual_cpu(), machine.hypervisor, machine.kernel.preempt_rt), (None, None, None));
    }

    #[test]
    fn prefers_isolated_then_highest_allowed_cpu() {
        let tree = || {
            Tree::parse("")
                .with("/sys/devices/system/cpu/online", "0-3")
                .with("/proc/self/status", "Cpus_allowed_list:\t0-2")
        };
        assert_eq!(Machine::read(tree()).usual_cpu(), Some(2));
        let isolated = tree().with("/sys/devices/system/cpu/isolated", "1");
        assert_eq!(Machine::read(isolated).usual_cpu(), Some(1));
    }

    #[test]
    fn detects_hypervisor_by_cpu_flag() {
        let vm = Tree::parse("").with("/proc/cpuinfo", "model name : x\nflags\t\t: fpu hypervisor sse\n");
        assert_eq!(hypervisor(&vm).as_deref(), Some("an unknown hypervisor"));
        assert_eq!(hypervisor(&vm.with("/sys/class/dmi/id/sys_vendor", "QEMU")).as_deref(), Some("QEMU"));
        assert_eq!(hypervisor(&Tree::parse("").with("/sys/class/dmi/id/sys_vendor", "Dell Inc.")), None);
    }
}
