//! Interrupts of devices.

use super::*;

/// Interrupts of devices on real-time CPUs.
pub(super) const INTERRUPTS: Check =
    Check { name: "interrupts", examines: "device interrupts on real-time CPUs", run: interrupts };

/// The maximum number of interrupts listed by name.
const NAMED: usize = 4;

fn interrupts(scene: &Scene, report: &mut Report) {
    let others = scene.others();
    let there = |interrupt: &&crate::facts::Interrupt| interrupt.goes_to(&scene.cpus);
    let mut here: Vec<_> = scene.machine.interrupts.iter().filter(there).collect();
    // An interrupt that never came is unlikely to come.
    let count = |interrupt: &crate::facts::Interrupt| {
        scene.cpus.iter().map(|cpu| interrupt.count(cpu)).fold(0, u64::saturating_add)
    };
    here.retain(|interrupt| count(interrupt) > 0);
    here.sort_by_key(|interrupt| std::cmp::Reverse(count(interrupt)));
    report.value(format_counted(here.len() as u64, "interrupt"));
    // The kernel refuses to move interrupts that it manages. Only root with debugfs sees which.
    let is_managed = |interrupt: &&&crate::facts::Interrupt| {
        let state = scene.machine.tree.text(&format!("/sys/kernel/debug/irq/irqs/{}", interrupt.number));
        state.is_some_and(|state| state.contains("IRQD_AFFINITY_MANAGED"))
    };
    let (managed, movable): (Vec<_>, Vec<_>) = here.into_iter().partition(|interrupt| is_managed(&interrupt));
    let names = |interrupts: &[&crate::facts::Interrupt]| {
        let named = interrupts.iter().take(NAMED).map(|interrupt| {
            format!("{} ({}, {} so far)", interrupt.number, interrupt.name, format_count(count(interrupt)))
        });
        let mut names: Vec<String> = named.collect();
        if interrupts.len() > NAMED {
            names.push(format!("{} more", interrupts.len() - NAMED));
        }
        names.join(", ")
    };
    let handle = if scene.cpus.len() == 1 { "handles" } else { "handle" };
    let finding = |what: &str, interrupts: &[&crate::facts::Interrupt]| {
        Finding::new(
            Severity::Medium,
            format!("{} {handle} {what}: {}", scene.cpus.named(), names(interrupts)),
        )
        .why("Each interrupts the running thread, including real-time threads, for the duration of its handler.")
        .costs(Cost::typical(10_000, "for each"))
    };
    if !managed.is_empty() {
        let finding = finding("interrupts that the kernel manages and refuses to move", &managed);
        report.add(match others.is_empty() {
            true => finding,
            false => finding
                .advise(Lasts::FromReboot, format!("boot with isolcpus=managed_irq,domain,{}", scene.cpus)),
        });
    }
    let Some(worst) = movable.first() else { return };
    let finding = finding("interrupts", &movable);
    if others.is_empty() {
        report.add(finding);
        return;
    }
    let path = |number: u32| format!("/proc/irq/{number}/smp_affinity_list");
    let changes =
        movable.iter().map(|interrupt| Change::file(&path(interrupt.number), &others.to_string())).collect();
    report.add(finding.set(format!("echo {others} > {}   # and so on", path(worst.number)), changes).advise(
        Lasts::FromReboot,
        format!("boot with irqaffinity={others} isolcpus=managed_irq,domain,{}", scene.cpus),
    ));
}

/// A daemon that moves interrupts between CPUs.
pub(super) const IRQBALANCE: Check =
    Check { name: "irqbalance", examines: "the balancer of interrupts", run: irqbalance };

fn irqbalance(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    let runs = tree.numbers("/proc").into_iter().any(|process| {
        let path = format!("/proc/{process}/comm");
        let is_it = tree.glance(&path).is_some_and(|name| name.trim() == "irqbalance");
        // Reads the file, so that a recording contains it.
        is_it && tree.text(&path).is_some()
    });
    report.value(if runs { "running" } else { "not running" });
    if runs {
        let banned = scene.cpus.mask();
        report.add(
            Finding::new(Severity::Medium, "irqbalance runs")
                .why("It moves interrupts to idle CPUs, and undoes manual settings.")
                .costs(Cost::typical(20_000, "for each interrupt on a real-time CPU"))
                .fix(Lasts::UntilReboot, "systemctl stop irqbalance")
                .fix(Lasts::Always, "systemctl disable --now irqbalance")
                .fix(Lasts::Always, format!("echo IRQBALANCE_BANNED_CPUS={banned} >> /etc/default/irqbalance; systemctl restart irqbalance")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: &str = "/proc/interrupts";
    const AFFINITY: &str = "/proc/irq/24/effective_affinity_list";

    #[test]
    fn finds_interrupts_on_real_time_cpus() {
        let rows = "CPU0 CPU1 CPU2 CPU3\n24: 5 0 0 1234 PCI-MSI eth0\x1b[2J\n25: 9 9 9 0 GPIO y\n";
        let files = [(COUNTS, rows), (AFFINITY, "3"), ("/proc/irq/25/effective_affinity_list", "3")];
        assert_eq!(found(INTERRUPTS, &files), ["medium"]);
        assert_eq!(fixed(INTERRUPTS, &files), [("/proc/irq/24/smp_affinity_list", "0-2")]);
        let printed = text(INTERRUPTS, &files);
        assert!(
            printed.contains("24 (PCI-MSI eth0\\u{1b}[2J, 1 234 so far)") && !printed.contains('\x1b'),
            "{printed}"
        );
        assert_eq!(found(INTERRUPTS, &[(COUNTS, rows), (AFFINITY, "0")]), NOTHING);
    }

    #[test]
    fn promises_no_change_of_managed_interrupts() {
        let rows = "CPU0 CPU1 CPU2 CPU3\n24: 5 0 0 1234 PCI-MSI nvme0q4\n25: 9 9 9 7 GPIO y\n";
        let managed = ("/sys/kernel/debug/irq/irqs/24", "dstate: 0x1\n IRQD_AFFINITY_MANAGED\n");
        let files = [(COUNTS, rows), (AFFINITY, "3"), ("/proc/irq/25/effective_affinity_list", "3"), managed];
        assert_eq!(found(INTERRUPTS, &files), ["medium", "medium"]);
        assert_eq!(fixed(INTERRUPTS, &files), [("/proc/irq/25/smp_affinity_list", "0-2")]);
        assert!(
            text(INTERRUPTS, &files)
                .contains("that the kernel manages and refuses to move: 24 (PCI-MSI nvme0q4")
        );
    }

    #[test]
    fn finds_irqbalance() {
        assert_eq!(found(IRQBALANCE, &[("/proc/71/comm", "irqbalance\n")]), ["medium"]);
        assert_eq!(found(IRQBALANCE, &[("/proc/71/comm", "irqbalanced")]), NOTHING);
        assert!(text(IRQBALANCE, &[("/proc/71/comm", "irqbalance")]).contains("IRQBALANCE_BANNED_CPUS=8 "));
    }
}
