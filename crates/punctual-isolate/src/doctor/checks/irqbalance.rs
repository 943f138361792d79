//! A daemon that moves interrupts between CPUs.

use super::*;

pub(super) const CHECK: Check = Check { name: "irqbalance", examines: "the balancer of interrupts", run };

fn run(scene: &Scene, report: &mut Report) {
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

    #[test]
    fn finds_irqbalance() {
        assert_eq!(found(CHECK, &[("/proc/71/comm", "irqbalance\n")]), ["medium"]);
        assert_eq!(found(CHECK, &[("/proc/71/comm", "irqbalanced")]), NOTHING);
        assert!(text(CHECK, &[("/proc/71/comm", "irqbalance")]).contains("IRQBALANCE_BANNED_CPUS=8 "));
    }
}
