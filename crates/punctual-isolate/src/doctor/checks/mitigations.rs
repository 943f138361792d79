//! The cost per system call of mitigations against leaks between processes.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "mitigations", examines: "the measured cost of mitigations per system call", run };

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

fn run(scene: &Scene, report: &mut Report) {
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

    #[test]
    fn reports_cost_of_mitigations() {
        let path = "/sys/devices/system/cpu/vulnerabilities/meltdown";
        assert_eq!(found(CHECK, &[(path, "Mitigation: PTI")]), ["note"]);
        assert!(
            text(CHECK, &[(path, "Mitigation: PTI"), (measure::SYSTEM_CALL, "310")])
                .contains("measured here: 310 ns")
        );
        assert_eq!(found(CHECK, &[(path, "Not affected")]), NOTHING);
    }
}
