//! Interrupts of devices on real-time CPUs.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "interrupts", examines: "device interrupts on real-time CPUs", look };

/// The maximum number of interrupts listed by name.
const NAMED: usize = 4;

fn look(scene: &Scene, report: &mut Report) {
    let others = scene.others();
    let there = |interrupt: &&crate::facts::Interrupt| interrupt.goes_to(&scene.cpus);
    let mut here: Vec<_> = scene.machine.interrupts.iter().filter(there).collect();
    // An interrupt that never came is unlikely to come.
    let count = |interrupt: &crate::facts::Interrupt| {
        scene.cpus.iter().map(|cpu| interrupt.count(cpu)).fold(0, u64::saturating_add)
    };
    here.retain(|interrupt| count(interrupt) > 0);
    here.sort_by_key(|interrupt| std::cmp::Reverse(count(interrupt)));
    let Some(worst) = here.first() else { return };
    let mut names: Vec<String> = here
        .iter()
        .take(NAMED)
        .map(|interrupt| {
            format!("{} ({}, {} so far)", interrupt.number, interrupt.name, format_count(count(interrupt)))
        })
        .collect();
    if here.len() > NAMED {
        names.push(format!("{} more", here.len() - NAMED));
    }
    let finding = Finding::new(
        Severity::Medium,
        format!("{} handle interrupts: {}", scene.cpus.named(), names.join(", ")),
    )
    .why("Each interrupts the running thread, including real-time threads, for the duration of its handler.")
    .costs(Cost::typical(10_000, "for each"));
    if others.is_empty() {
        report.add(finding);
        return;
    }
    let path = |number: u32| format!("/proc/irq/{number}/smp_affinity_list");
    let changes =
        here.iter().map(|interrupt| Change::file(&path(interrupt.number), &others.to_string())).collect();
    report.add(finding.set(format!("echo {others} > {}   # and so on", path(worst.number)), changes).fix(
        Lasts::FromReboot,
        format!("boot with irqaffinity={others} isolcpus=managed_irq,domain,{}", scene.cpus),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: &str = "/proc/interrupts";
    const GOES: &str = "/proc/irq/24/effective_affinity_list";

    #[test]
    fn finds_interrupts_that_come_to_real_time_cpus() {
        let rows = "CPU0 CPU1 CPU2 CPU3\n24: 5 0 0 1234 PCI-MSI eth0\x1b[2J\n25: 9 9 9 0 GPIO y\n";
        let files = [(COUNTS, rows), (GOES, "3"), ("/proc/irq/25/effective_affinity_list", "3")];
        assert_eq!(found(CHECK, &files), ["medium"]);
        assert_eq!(fixed(CHECK, &files), [("/proc/irq/24/smp_affinity_list", "0-2")]);
        let said = text(CHECK, &files);
        assert!(
            said.contains("24 (PCI-MSI eth0\\u{1b}[2J, 1 234 so far)") && !said.contains('\x1b'),
            "{said}"
        );
        assert_eq!(found(CHECK, &[(COUNTS, rows), (GOES, "0")]), NOTHING);
    }
}
