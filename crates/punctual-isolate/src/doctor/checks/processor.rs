//! Properties of the processor.

use super::*;

/// Hardware threads of one core share its execution units and caches.
pub(super) const SMT: Check = Check { name: "smt", examines: "sibling threads of the core", run: smt };

fn smt(scene: &Scene, report: &mut Report) {
    let shared =
        scene.machine.topology.cpus.iter().any(|cpu| scene.cpus.has(cpu.number) && cpu.siblings.len() > 1);
    report.value(if shared { "cores with several threads" } else { "one thread per core" });
    for cpu in scene.machine.topology.cpus.iter().filter(|cpu| scene.cpus.has(cpu.number)) {
        let others = cpu.siblings.without(&scene.cpus).common(&scene.machine.topology.online);
        if others.is_empty() {
            continue;
        }
        let offline =
            others.iter().map(|cpu| Change::file(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0"));
        let commands: Vec<String> =
            others.iter().map(|cpu| format!("echo 0 > /sys/devices/system/cpu/cpu{cpu}/online")).collect();
        report.add(
            Finding::new(
                Severity::Medium,
                format!("CPU {} shares a core with {}, on which other threads run", cpu.number, others.named()),
            )
            .why("They share execution units and caches: a job takes up to twice as long while the sibling is busy.")
            .set(commands.join("; "), offline.collect())
            .advise(Lasts::FromReboot, "boot with nosmt, or disable SMT in the firmware"),
        );
    }
}

/// The cost per system call of mitigations against leaks between processes.
pub(super) const MITIGATIONS: Check = Check {
    name: "mitigations",
    examines: "the measured cost of mitigations per system call",
    run: mitigations,
};

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

fn mitigations(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    // Those that act at each entry to the kernel or exit from it.
    let costly = [
        "meltdown",
        "mds",
        "retbleed",
        "spectre_v2",
        "spec_rstack_overflow",
        "tsx_async_abort",
        "mmio_stale_data",
        "l1tf",
    ];
    let active = costly.into_iter().filter(|name| {
        tree.text(&format!("{DIRECTORY}/{name}")).is_some_and(|text| text.starts_with("Mitigation"))
    });
    let active: Vec<&str> = active.collect();
    if !tree.list(DIRECTORY).is_empty() {
        report.value(format!("{} at system calls", format_counted(active.len() as u64, "mitigation")));
    }
    if active.is_empty() {
        return;
    }
    report.add(
        Finding::new(
            Severity::Note,
            format!("each system call is slowed down by mitigations of {}", active.join(", ")),
        )
        .why("Only a machine that runs only trusted programs can disable them.")
        .costs(measure::system_call(tree).map(|ns| Cost::measured(ns, "for a null system call")))
        .advise(Lasts::FromReboot, "boot with mitigations=off, where every program is trusted"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIBLINGS: &str = "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list";

    #[test]
    fn finds_busy_smt_siblings() {
        assert_eq!(found(SMT, &[(SIBLINGS, "1,3")]), ["medium"]);
        assert_eq!(fixed(SMT, &[(SIBLINGS, "1,3")]), [("/sys/devices/system/cpu/cpu1/online", "0")]);
        assert_eq!(found(SMT, &[(SIBLINGS, "3")]), NOTHING);
        // The sibling is offline.
        assert_eq!(found(SMT, &[(SIBLINGS, "3,7")]), NOTHING);
    }

    #[test]
    fn reports_cost_of_mitigations() {
        let path = "/sys/devices/system/cpu/vulnerabilities/meltdown";
        assert_eq!(found(MITIGATIONS, &[(path, "Mitigation: PTI")]), ["note"]);
        assert!(
            text(MITIGATIONS, &[(path, "Mitigation: PTI"), (measure::SYSTEM_CALL, "310")])
                .contains("measured here: 310 ns")
        );
        assert_eq!(found(MITIGATIONS, &[(path, "Not affected")]), NOTHING);
    }
}
