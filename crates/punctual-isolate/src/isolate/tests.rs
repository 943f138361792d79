use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::change::{Change, Setting};
use crate::cpus::Cpus;
use crate::facts::Machine;
use crate::tree::Tree;

/// Loads a recorded machine of `tests/machines`.
fn machine(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines").join(name).with_extension("txt");
    Machine::read(Tree::parse(&std::fs::read_to_string(path).unwrap()))
}

/// A version 2 machine of four CPUs.
fn small() -> Tree {
    Tree::parse(
        "==> /sys/devices/system/cpu/online <==\n0-3
==> /proc/self/mounts <==\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0
==> /sys/fs/cgroup/cgroup.controllers <==\ncpuset cpu
==> /proc/interrupts <==\nCPU0 CPU1 CPU2 CPU3\n 24: 1 2 3 4 eth0\n 25: 0 0 0 9 nvme0q3
==> /proc/irq/24/smp_affinity_list <==\n0-3
==> /proc/irq/25/smp_affinity_list <==\n3
==> /proc/irq/default_smp_affinity <==\nf
==> /sys/devices/virtual/workqueue/cpumask <==\nf
==> /proc/sys/kernel/timer_migration <==\n1
",
    )
}

/// The settings of a machine in memory, with control groups like the kernel's, which dies at a
/// write.
#[derive(Clone, Default)]
struct Fake {
    values: BTreeMap<Setting, String>,
    writes: usize,
    dies_at: Option<usize>,
    refuses: Option<Setting>,
}

const GROUP: &str = "/sys/fs/cgroup/punctual-isolated";

impl Fake {
    fn of(plan: &Plan, machine: &Machine) -> Self {
        let mut values = BTreeMap::new();
        for step in &plan.steps {
            let value = match &step.change.setting {
                Setting::File(path) => machine.tree.text(path),
                Setting::Group(_) => Some("absent".into()),
                Setting::Controller { .. } => Some("off".into()),
                Setting::Members(_) => Some("none".into()),
                _ => None,
            };
            values.extend(value.map(|value| (step.change.setting.clone(), value)));
        }
        Self { values, ..Self::default() }
    }
}

impl Settings for Fake {
    fn get(&self, setting: &Setting) -> io::Result<String> {
        self.values.get(setting).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn set(&mut self, setting: &Setting, value: &str) -> io::Result<()> {
        if self.refuses.as_ref() == Some(setting) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        if matches!(setting, Setting::Members(_)) && !self.values.contains_key(setting) {
            // No process is in it.
            return Ok(());
        }
        let dies = self.dies_at == Some(self.writes);
        self.writes += 1;
        self.values.insert(setting.clone(), value.to_owned());
        if let Setting::Group(path) = setting {
            let file = |name: &str| Setting::File(format!("{path}/{name}"));
            let files = [
                ("cpuset.cpus", ""),
                ("cpuset.mems", ""),
                ("cpuset.cpus.partition", "member"),
                ("cpuset.sched_load_balance", "1"),
            ];
            for (name, initial) in files {
                match value {
                    "there" => drop(self.values.insert(file(name), initial.into())),
                    _ => drop(self.values.remove(&file(name))),
                }
            }
        }
        if dies {
            std::panic::resume_unwind(Box::new("killed"));
        }
        Ok(())
    }
}

fn scratch() -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Store::at(directory.path()), directory)
}

#[test]
fn plan_isolates_all_movable_work() {
    let plan = Plan::new(&Machine::read(small()), &Cpus::of_list("3")).unwrap();
    assert_eq!(
        plan.text(),
        "isolating CPU 3, leaving CPUs 0-2 to the rest of the system
# the interrupt is moved to other CPUs
/proc/irq/24/smp_affinity_list = 0-2
/proc/irq/25/smp_affinity_list = 0-2
# interrupts of drivers loaded later go to other CPUs
/proc/irq/default_smp_affinity = 7
# unbound work runs on other CPUs
/sys/devices/virtual/workqueue/cpumask = 7
# timers of other CPUs are not migrated here
/proc/sys/kernel/timer_migration = 0
# enable the cpuset controller for groups
the controller cpuset of /sys/fs/cgroup = on
# a group for the isolated processes
the control group /sys/fs/cgroup/punctual-isolated = there
# the group's CPUs
/sys/fs/cgroup/punctual-isolated/cpuset.cpus = 3
# no other thread runs there, and no load balancing
/sys/fs/cgroup/punctual-isolated/cpuset.cpus.partition = isolated
note: interrupt 25 (nvme0q3), possibly of a disk, is bound to CPU 3; if the kernel manages it, it cannot be moved (9 so far). \
         Boot with isolcpus=managed_irq,domain,3 to keep it off
note: CPU 3 keeps the tick, which only boot parameters remove (punctual isolate boot)
"
    );
}

#[test]
fn plan_rejects_unavailable_cpus() {
    let refused = |tree: Tree, cpus: &str| {
        Plan::new(&Machine::read(tree), &Cpus::of_list(cpus)).unwrap_err().to_string()
    };
    assert_eq!(refused(small(), "3-4"), "CPU 4 is not online; online: 0-3");
    assert!(refused(small(), "0-3").contains("leave no CPU"));
    let siblings = small().with("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "0-3");
    assert_eq!(
        refused(siblings, "3"),
        "isolating CPUs 0-3 would leave no CPU for the rest of the system: leave at least one of 0-3"
    );
    let taken = small().with("/sys/fs/cgroup/cpuset.cpus.isolated", "3");
    assert!(refused(taken, "2-3").starts_with("CPU 3 is in an isolated partition"));
    assert!(refused(small().without("/proc/self/mounts"), "3").contains("mount -t cgroup2"));
    let no_sysfs = small().without("/sys/devices/system/cpu/online");
    assert!(refused(no_sysfs, "3").contains("no /sys/devices/system/cpu/online: mount -t sysfs none /sys"));
}

#[test]
fn plan_takes_siblings_offline() {
    let tree = small().with("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3");
    let plan = Plan::new(&Machine::read(tree), &Cpus::of_list("3")).unwrap();
    assert_eq!(plan.steps[0].change, Change::file("/sys/devices/system/cpu/cpu1/online", "0"));
    assert_eq!(plan.others, Cpus::from([0, 2]));
}

#[test]
fn plan_omits_partition_for_boot_isolated_cpus() {
    let plan = Plan::new(&machine("rt-guest-isolated"), &Cpus::of_list("3")).unwrap();
    assert_eq!(plan.group, None);
    assert!(plan.steps.iter().all(|step| matches!(step.change.setting, Setting::File(_))));
}

#[test]
fn plan_accepts_boot_isolated_cpus_in_partition_list() {
    let listed = small().with("/sys/fs/cgroup/cpuset.cpus.isolated", "3");
    let booted = listed.with("/sys/devices/system/cpu/isolated", "3");
    assert_eq!(Plan::new(&Machine::read(booted), &Cpus::of_list("3")).unwrap().group, None);
}

#[test]
fn plan_uses_cgroup_v1_if_it_has_controller() {
    let plan = Plan::new(&machine("guest"), &Cpus::of_list("1")).unwrap();
    assert_eq!(plan.group.as_deref(), Some("/sys/fs/cgroup/cpuset/punctual-isolated"));
    let moved = Setting::Members("/sys/fs/cgroup/cpuset/punctual-system".into());
    assert!(plan.steps.iter().any(|step| step.change.setting == moved));
}

#[test]
fn restores_everything_after_kill_at_any_write() {
    for (machine, cpus) in
        [(Machine::read(small()), "3"), (machine("debian"), "2-3"), (machine("guest"), "1")]
    {
        let plan = Plan::new(&machine, &Cpus::of_list(cpus)).unwrap();
        let before = Fake::of(&plan, &machine);
        let (store, _directory) = scratch();
        let mut at = 0;
        loop {
            let mut fake = Fake { dies_at: Some(at), ..before.clone() };
            let is_killed =
                catch_unwind(AssertUnwindSafe(|| take(&plan, &store, true, &mut fake).unwrap())).is_err();
            fake.dies_at = None;
            assert_ne!(fake.values, before.values);
            let undone = store.undo(JOURNAL, &mut fake).unwrap().unwrap();
            assert!(undone.left.is_empty(), "{undone:?}");
            assert_eq!(fake.values, before.values, "killed at write {at}");
            if !is_killed {
                break;
            }
            at += 1;
        }
        assert!(at >= 8, "only {at} writes");
    }
}

#[test]
fn refused_change_names_reason_and_remedy() {
    let refused = |error| {
        let (setting, new) = (Setting::Group(GROUP.into()), "there".into());
        JournalError::Refused { setting, new, error: io::Error::from_raw_os_error(error) }.to_string()
    };
    let read_only = refused(libc::EROFS);
    assert!(
        read_only.starts_with(&format!("cannot create the control group {GROUP}: Read-only file system"))
    );
    assert!(read_only.contains("; start the container with --privileged, or "), "{read_only}");
    assert!(refused(libc::EACCES).contains("; run as root"));
    assert!(refused(libc::EIO).ends_with("(os error 5)"));
}

#[test]
fn undoes_everything_if_required_setting_is_refused() {
    let machine = Machine::read(small());
    let plan = Plan::new(&machine, &Cpus::of_list("3")).unwrap();
    let before = Fake::of(&plan, &machine);
    let (store, _directory) = scratch();
    let partition = Setting::File(format!("{GROUP}/cpuset.cpus.partition"));
    let mut fake = Fake { refuses: Some(partition), ..before.clone() };
    let error = take(&plan, &store, true, &mut fake).unwrap_err().to_string();
    assert!(error.contains("cpuset.cpus.partition cannot be set to `isolated`"), "{error}");
    assert_eq!(fake.values, before.values);
    assert!(store.held().unwrap().is_empty());
    // An interrupt that the kernel manages is only reported.
    let managed = Setting::File("/proc/irq/25/smp_affinity_list".into());
    let mut fake = Fake { refuses: Some(managed), ..before };
    let (_, refused) = take(&plan, &store, true, &mut fake).unwrap();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("/proc/irq/25/smp_affinity_list was not set to `0-2`"), "{refused:?}");
}

#[test]
fn counts_interrupts_since_the_snapshot() {
    let at = |local: &str| {
        Account::read(
            &Tree::parse("")
                .with(
                    "/proc/interrupts",
                    &format!("CPU0 CPU1 CPU3\n LOC: {local} Local timer\n 9: 1 1 1 a\x1b\n"),
                )
                .with("/proc/softirqs", "CPU0 CPU1 CPU3\n TIMER: 5 6 7\n"),
        )
    };
    let rows = at("110 130 12").since(&at("10 10 10"), &Cpus::from([3]), &Cpus::from([0, 1]));
    assert_eq!(rows, [Row { name: "LOC Local timer".into(), taken: 2, others: 110 }]);
    // A count that went back, as for a device that was replaced, is omitted.
    assert!(at("1 1 1").since(&at("10 10 10"), &Cpus::from([3]), &Cpus::from([0])).is_empty());
}
