//! What is written to take CPUs.

use std::fmt::Write as _;

use crate::change::{Change, Setting};
use crate::cpus::Cpus;
use crate::doctor::clean;
use crate::facts::Machine;

/// The groups that are made.
const GROUP: &str = "punctual-isolated";
const SYSTEM: &str = "punctual-system";

/// What somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The CPUs to take.
    pub cpus: Cpus,
    /// Whether other threads of the same cores may be switched off.
    pub park: bool,
}

/// Why CPUs cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is none of that number, or it is off.
    #[error("{0} not online; online are {1}")]
    NotOnline(String, Cpus),
    /// Nothing would be left.
    #[error("{0} would be taken, and nothing be left for the rest of the system; leave at least one of {1}")]
    NothingLeft(String, Cpus),
    /// Another thread of its core would go on working.
    #[error("CPU {0} is one core with {1}: take all of them, or switch the others off with --park")]
    Sibling(usize, String),
    /// Somebody has taken it by other means.
    #[error("{0} in an isolated partition of somebody else's; give it back there first")]
    Partitioned(String),
    /// The kernel has no CPU sets here.
    #[error(
        "there are no CPU sets here; mount them: mount -t cgroup2 none /sys/fs/cgroup (in a container: start it with \
         --privileged --cgroupns=host)"
    )]
    NoCpuSets,
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is good for.
    pub why: &'static str,
    /// What is written.
    pub change: Change,
    /// Whether the CPU is not taken without.
    pub is_required: bool,
}

/// Every write that takes CPUs, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The CPUs that are taken.
    pub cpus: Cpus,
    /// Those that are left for everybody else.
    pub others: Cpus,
    /// The control group for what is to run there. None if boot parameters isolate the CPUs already.
    pub group: Option<String>,
    /// The writes.
    pub steps: Vec<Step>,
    /// What cannot be taken away by writes.
    pub notes: Vec<String>,
}

impl Plan {
    /// Plans how to take CPUs.
    ///
    /// # Errors
    /// They cannot be taken.
    pub fn new(machine: &Machine, request: &Request) -> Result<Self, Refusal> {
        let cpus = &request.cpus;
        let online = &machine.topology.online;
        let is_or_are =
            |cpus: &Cpus| format!("{} {}", cpus.named(), if cpus.len() == 1 { "is" } else { "are" });
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
            let siblings = cpu.siblings.common(online).without(cpus);
            if !siblings.is_empty() && !request.park {
                return Err(Refusal::Sibling(cpu.number, siblings.named()));
            }
            parked = parked.and(&siblings);
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
            self.required("the other thread of the core is switched off", Change::file(&path, "0"));
        }
    }

    /// Sends interrupts elsewhere, from now on and those of drivers to come.
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
            self.optional("an interrupt goes elsewhere", Change::file(&path, &rest.to_string()));
        }
        self.mask(machine, "/proc/irq/default_smp_affinity", "interrupts of drivers to come go elsewhere");
    }

    /// Takes the CPUs out of a mask.
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
            self.mask(machine, &path, "work that is bound to no CPU is done elsewhere");
        }
        let tree = &machine.tree;
        for device in tree.list("/sys/class/net") {
            let queues = format!("/sys/class/net/{device}/queues");
            for queue in tree.list(&queues) {
                let (name, why) = match queue.starts_with("rx-") {
                    true => ("rps_cpus", "packets that came are handled elsewhere"),
                    false => ("xps_cpus", "packets are sent from elsewhere"),
                };
                self.mask(machine, &format!("{queues}/{queue}/{name}"), why);
            }
        }
        let watchdog = "/proc/sys/kernel/watchdog_cpumask";
        if let Some(set) = tree.text(watchdog).map(|list| Cpus::of_list(&list)) {
            let rest = set.without(&self.cpus);
            if set.meets(&self.cpus) && !rest.is_empty() {
                self.optional("no watchdog comes", Change::file(watchdog, &rest.to_string()));
            }
        }
    }

    fn settings(&mut self, machine: &Machine) {
        for cpu in self.cpus.clone().iter() {
            let server = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
            if machine.tree.number::<u64>(&server).is_some_and(|ns| ns > 0) {
                self.optional("the fair server displaces nobody", Change::file(&server, "0"));
            }
        }
        let wanted = [
            ("/proc/sys/kernel/timer_migration", "0", "timers of others stay where they are"),
            ("/proc/sys/vm/stat_interval", "60", "statistics of memory are gathered once a minute"),
        ];
        for (path, value, why) in wanted {
            if machine.tree.text(path).is_some_and(|old| old != value) {
                self.optional(why, Change::file(path, value));
            }
        }
    }

    fn groups(&mut self, machine: &Machine) -> Result<(), Refusal> {
        if self.cpus.without(&machine.topology.isolated).is_empty() {
            // A partition of CPUs that isolcpus= has would be invalid.
            self.notes.push(format!("boot parameters keep other threads off {} already", self.cpus.named()));
            return Ok(());
        }
        let cpus = self.cpus.to_string();
        let file = |group: &str, name: &str, value: &str| Change::file(&format!("{group}/{name}"), value);
        let there = |group: &str| Change { setting: Setting::Group(group.to_owned()), new: "there".into() };
        if let (Some(root), true) = (&machine.cgroups.unified, machine.cgroups.has_cpuset) {
            let group = format!("{root}/{GROUP}");
            let controller = Setting::Controller { group: root.clone(), name: "cpuset".into() };
            self.required("groups have CPU sets", Change { setting: controller, new: "on".into() });
            self.required("a group for what runs there", there(&group));
            self.required("its CPUs", file(&group, "cpuset.cpus", &cpus));
            self.required(
                "no other thread runs there, and nothing is balanced",
                file(&group, "cpuset.cpus.partition", "isolated"),
            );
            self.group = Some(group);
            return Ok(());
        }
        let root = machine.cgroups.cpuset.clone().ok_or(Refusal::NoCpuSets)?;
        let memory = machine.tree.text(&format!("{root}/cpuset.mems")).unwrap_or_else(|| "0".into());
        let (group, system) = (format!("{root}/{GROUP}"), format!("{root}/{SYSTEM}"));
        for (group, cpus, why) in [
            (&system, self.others.to_string(), "a group for everybody else"),
            (&group, cpus, "a group for what runs there"),
        ] {
            self.required(why, there(group));
            self.required("its CPUs", file(group, "cpuset.cpus", &cpus));
            self.required("its memory", file(group, "cpuset.mems", &memory));
        }
        let all = Change { setting: Setting::Members(system), new: "some".into() };
        self.required("everybody else is elsewhere", all);
        self.optional("nothing is balanced onto it", file(&root, "cpuset.sched_load_balance", "0"));
        self.optional("nothing is balanced within it", file(&group, "cpuset.sched_load_balance", "0"));
        self.notes.push(
            "control groups of version 1: threads in other groups than the topmost stay where they may run, and who has \
             an affinity of its own may lose it"
                .into(),
        );
        self.group = Some(group);
        Ok(())
    }

    /// What stays.
    fn remarks(&mut self, machine: &Machine) {
        for interrupt in &machine.interrupts {
            let is_bound = !interrupt.allowed.is_empty() && interrupt.allowed.without(&self.cpus).is_empty();
            if is_bound {
                let comes = self.cpus.iter().map(|cpu| interrupt.count(cpu)).fold(0, u64::saturating_add);
                let disk = ["nvme", "ahci", "sata", "virtio", "mmc", "scsi"];
                let of = if disk.iter().any(|name| interrupt.name.contains(name)) {
                    ", maybe of a disk,"
                } else {
                    ""
                };
                self.notes.push(clean(&format!(
                    "interrupt {} ({}){of} is for {} only; if the kernel manages it, it stays ({comes} so far). Boot \
                     with isolcpus=managed_irq,domain,{} to keep it from working there",
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
                "{} the tick, which only boot parameters take away (punctual isolate boot)",
                if ticking.len() == 1 {
                    format!("CPU {ticking} keeps")
                } else {
                    format!("CPUs {ticking} keep")
                }
            ));
        }
    }

    /// The plan as text: a line for each write.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out =
            format!("{} taken, {} left for everybody else\n", self.cpus.named(), self.others.named());
        let mut said = "";
        for step in &self.steps {
            if step.why != said {
                said = step.why;
                let _ = writeln!(out, "# {said}");
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
