//! The writes that isolate CPUs.

use std::fmt::Write as _;

use crate::change::{Change, Setting};
use crate::cpus::Cpus;
use crate::doctor::clean;
use crate::facts::Machine;

/// The names of the created groups.
const GROUP: &str = "punctual-isolated";
const SYSTEM: &str = "punctual-system";

/// The reason CPUs cannot be isolated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// sysfs is not mounted.
    #[error(
        "cannot list the CPUs, because there is no /sys/devices/system/cpu/online: mount -t sysfs none /sys (in a \
         container: start it with --privileged)"
    )]
    NoSysfs,
    /// The CPU does not exist, or is offline.
    #[error("{0} not online; online: {1}")]
    NotOnline(String, Cpus),
    /// No CPU would be left.
    #[error("isolating {0} would leave no CPU for the rest of the system: leave at least one of {1}")]
    NothingLeft(String, Cpus),
    /// Another program has isolated the CPU.
    #[error("{0} in an isolated partition of another program: remove that partition first")]
    Partitioned(String),
    /// No cpuset controller is mounted.
    #[error(
        "no cpuset controller is mounted: mount -t cgroup2 none /sys/fs/cgroup (in a container: start it with \
         --privileged --cgroupns=host)"
    )]
    NoCpuSets,
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its purpose.
    pub why: &'static str,
    /// The change.
    pub change: Change,
    /// `true` if isolation fails without it.
    pub is_required: bool,
}

/// All writes of an isolation, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The isolated CPUs.
    pub cpus: Cpus,
    /// The CPUs of the rest of the system.
    pub others: Cpus,
    /// The control group for processes on the isolated CPUs. `None` if boot parameters isolate the
    /// CPUs already.
    pub group: Option<String>,
    /// The writes.
    pub steps: Vec<Step>,
    /// Remaining disturbances that writes cannot remove.
    pub notes: Vec<String>,
}

impl Plan {
    /// Plans the isolation of CPUs. Other hardware threads of their cores are taken offline.
    ///
    /// # Errors
    /// The CPUs cannot be isolated.
    pub fn new(machine: &Machine, cpus: &Cpus) -> Result<Self, Refusal> {
        let online = &machine.topology.online;
        let is_or_are =
            |cpus: &Cpus| format!("{} {}", cpus.named(), if cpus.len() == 1 { "is" } else { "are" });
        if online.is_empty() {
            return Err(Refusal::NoSysfs);
        }
        let missing = cpus.without(online);
        if !missing.is_empty() {
            return Err(Refusal::NotOnline(is_or_are(&missing), online.clone()));
        }
        // Linux 6.12 lists those of isolcpus= with those of partitions.
        let taken = cpus.common(&machine.cgroups.isolated).without(&machine.topology.isolated);
        if !taken.is_empty() {
            return Err(Refusal::Partitioned(is_or_are(&taken)));
        }
        let mut parked = Cpus::default();
        for cpu in machine.topology.cpus.iter().filter(|cpu| cpus.has(cpu.number)) {
            parked = parked.and(&cpu.siblings.common(online).without(cpus));
        }
        let others = online.without(cpus).without(&parked);
        if others.is_empty() {
            return Err(Refusal::NothingLeft(cpus.and(&parked).named(), online.clone()));
        }
        let mut plan = Self { cpus: cpus.clone(), others, group: None, steps: Vec::new(), notes: Vec::new() };
        plan.park(&parked);
        plan.interrupts(machine);
        plan.masks(machine);
        plan.settings(machine);
        plan.groups(machine)?;
        plan.remarks(machine);
        Ok(plan)
    }

    fn optional(&mut self, why: &'static str, change: Change) {
        self.steps.push(Step { why, change, is_required: false });
    }

    fn required(&mut self, why: &'static str, change: Change) {
        self.steps.push(Step { why, change, is_required: true });
    }

    fn park(&mut self, parked: &Cpus) {
        for cpu in parked.iter() {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
            self.required("the sibling hardware thread is taken offline", Change::file(&path, "0"));
        }
    }

    /// Moves interrupts to other CPUs, including those of drivers loaded later.
    fn interrupts(&mut self, machine: &Machine) {
        for interrupt in &machine.interrupts {
            if !interrupt.allowed.meets(&self.cpus) {
                continue;
            }
            let path = format!("/proc/irq/{}/smp_affinity_list", interrupt.number);
            let mut rest = interrupt.allowed.without(&self.cpus).common(&self.others);
            if rest.is_empty() {
                rest = self.others.clone();
            }
            self.optional("the interrupt is moved to other CPUs", Change::file(&path, &rest.to_string()));
        }
        self.mask(
            machine,
            "/proc/irq/default_smp_affinity",
            "interrupts of drivers loaded later go to other CPUs",
        );
    }

    /// Removes the CPUs from a mask.
    fn mask(&mut self, machine: &Machine, path: &str, why: &'static str) {
        let Some(set) = machine.tree.text(path).map(|mask| Cpus::of_mask(&mask)) else { return };
        let rest = set.without(&self.cpus);
        if set.meets(&self.cpus) && !rest.is_empty() {
            self.optional(why, Change::file(path, &rest.mask()));
        }
    }

    fn masks(&mut self, machine: &Machine) {
        for name in ["cpumask", "writeback/cpumask"] {
            let path = format!("/sys/devices/virtual/workqueue/{name}");
            self.mask(machine, &path, "unbound work runs on other CPUs");
        }
        let tree = &machine.tree;
        for device in tree.list("/sys/class/net") {
            let queues = format!("/sys/class/net/{device}/queues");
            for queue in tree.list(&queues) {
                let (name, why) = match queue.starts_with("rx-") {
                    true => ("rps_cpus", "received packets are handled on other CPUs"),
                    false => ("xps_cpus", "packets are sent from other CPUs"),
                };
                self.mask(machine, &format!("{queues}/{queue}/{name}"), why);
            }
        }
        let watchdog = "/proc/sys/kernel/watchdog_cpumask";
        if let Some(set) = tree.text(watchdog).map(|list| Cpus::of_list(&list)) {
            let rest = set.without(&self.cpus);
            if set.meets(&self.cpus) && !rest.is_empty() {
                self.optional("no watchdog interrupts", Change::file(watchdog, &rest.to_string()));
            }
        }
    }

    fn settings(&mut self, machine: &Machine) {
        for cpu in self.cpus.clone().iter() {
            let server = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
            if machine.tree.number::<u64>(&server).is_some_and(|ns| ns > 0) {
                self.optional("the fair server preempts no threads", Change::file(&server, "0"));
            }
        }
        let wanted = [
            ("/proc/sys/kernel/timer_migration", "0", "timers of other CPUs are not migrated here"),
            ("/proc/sys/vm/stat_interval", "60", "memory statistics are gathered once per minute"),
        ];
        for (path, value, why) in wanted {
            if machine.tree.text(path).is_some_and(|old| old != value) {
                self.optional(why, Change::file(path, value));
            }
        }
    }

    fn groups(&mut self, machine: &Machine) -> Result<(), Refusal> {
        if self.cpus.without(&machine.topology.isolated).is_empty() {
            // A partition of CPUs in isolcpus= would be invalid.
            self.notes
                .push(format!("boot parameters already isolate {} from other threads", self.cpus.named()));
            return Ok(());
        }
        let cpus = self.cpus.to_string();
        let file = |group: &str, name: &str, value: &str| Change::file(&format!("{group}/{name}"), value);
        let there = |group: &str| Change { setting: Setting::Group(group.to_owned()), new: "there".into() };
        if let (Some(root), true) = (&machine.cgroups.unified, machine.cgroups.has_cpuset) {
            let group = format!("{root}/{GROUP}");
            let controller = Setting::Controller { group: root.clone(), name: "cpuset".into() };
            self.required(
                "enable the cpuset controller for groups",
                Change { setting: controller, new: "on".into() },
            );
            self.required("a group for the isolated processes", there(&group));
            self.required("the group's CPUs", file(&group, "cpuset.cpus", &cpus));
            self.required(
                "no other thread runs there, and no load balancing",
                file(&group, "cpuset.cpus.partition", "isolated"),
            );
            self.group = Some(group);
            return Ok(());
        }
        let root = machine.cgroups.cpuset.clone().ok_or(Refusal::NoCpuSets)?;
        let memory = machine.tree.text(&format!("{root}/cpuset.mems")).unwrap_or_else(|| "0".into());
        let (group, system) = (format!("{root}/{GROUP}"), format!("{root}/{SYSTEM}"));
        for (group, cpus, why) in [
            (&system, self.others.to_string(), "a group for all other processes"),
            (&group, cpus, "a group for the isolated processes"),
        ] {
            self.required(why, there(group));
            self.required("the group's CPUs", file(group, "cpuset.cpus", &cpus));
            self.required("the group's memory nodes", file(group, "cpuset.mems", &memory));
        }
        let all = Change { setting: Setting::Members(system), new: "some".into() };
        self.required("all other processes run on other CPUs", all);
        self.optional("no load balancing to these CPUs", file(&root, "cpuset.sched_load_balance", "0"));
        self.optional("no load balancing within the group", file(&group, "cpuset.sched_load_balance", "0"));
        self.notes.push(
            "control groups of version 1: threads in groups other than the root keep their CPUs, and threads with \
             their own affinity may lose it"
                .into(),
        );
        self.group = Some(group);
        Ok(())
    }

    /// Adds notes on the remaining disturbances.
    fn remarks(&mut self, machine: &Machine) {
        for interrupt in &machine.interrupts {
            let is_bound = !interrupt.allowed.is_empty() && interrupt.allowed.without(&self.cpus).is_empty();
            if is_bound {
                let comes = self.cpus.iter().map(|cpu| interrupt.count(cpu)).fold(0, u64::saturating_add);
                let disk = ["nvme", "ahci", "sata", "virtio", "mmc", "scsi"];
                let of = if disk.iter().any(|name| interrupt.name.contains(name)) {
                    ", possibly of a disk,"
                } else {
                    ""
                };
                self.notes.push(clean(&format!(
                    "interrupt {} ({}){of} is bound to {}; if the kernel manages it, it cannot be moved ({comes} so far). Boot \
                     with isolcpus=managed_irq,domain,{} to keep it off",
                    interrupt.number,
                    interrupt.name,
                    self.cpus.named(),
                    self.cpus
                )));
            }
        }
        let ticking = self.cpus.without(&machine.topology.tickless);
        if !ticking.is_empty() {
            self.notes.push(format!(
                "{} the tick, which only boot parameters remove (punctual isolate boot)",
                if ticking.len() == 1 {
                    format!("CPU {ticking} keeps")
                } else {
                    format!("CPUs {ticking} keep")
                }
            ));
        }
    }

    /// Returns the plan as text: one line per write.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "isolating {}, leaving {} to the rest of the system\n",
            self.cpus.named(),
            self.others.named()
        );
        let mut printed = "";
        for step in &self.steps {
            if step.why != printed {
                printed = step.why;
                let _ = writeln!(out, "# {printed}");
            }
            let _ =
                writeln!(out, "{} = {}", clean(&step.change.setting.to_string()), clean(&step.change.new));
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }
}
