//! Preemption of the kernel by real-time threads.

use super::*;

/// Checks that the kernel bounds the delays of real-time threads.
pub(super) const PREEMPT_RT: Check = Check { name: "preempt-rt", examines: "PREEMPT_RT", run: preempt_rt };

fn preempt_rt(scene: &Scene, report: &mut Report) {
    if let Some(preempt_rt) = scene.machine.kernel.preempt_rt {
        report.value(if preempt_rt { "PREEMPT_RT" } else { "not PREEMPT_RT" });
    }
    match scene.machine.kernel.preempt_rt {
        Some(true) => {}
        Some(false) => report.add(
            Finding::new(Severity::High, "the kernel is not PREEMPT_RT")
                .why(
                    "Interrupt handlers, soft interrupts and kernel critical sections run to completion before a \
                     real-time thread, and their length is unbounded.",
                )
                .costs(Cost::typical(1_000_000, "now and then, under load"))
                .fix(Lasts::FromReboot, "apt install linux-image-rt-$(dpkg --print-architecture)   # Debian; others: docs/book/src/guides/setup.md"),
        ),
        None => report.unknown("PREEMPT_RT of the kernel", "neither /sys/kernel/realtime nor /proc/version shows it"),
    }
}

/// The preemption mode of a kernel that can change it (PREEMPT_DYNAMIC).
pub(super) const PREEMPTION: Check =
    Check { name: "preemption", examines: "the mode of PREEMPT_DYNAMIC (`preempt=`)", run: preemption };

/// The modes, with the current one in parentheses.
const MODE: &str = "/sys/kernel/debug/sched/preempt";

fn preemption(scene: &Scene, report: &mut Report) {
    let kernel = &scene.machine.kernel;
    if kernel.preempt_rt == Some(true) {
        return report.not_applicable("PREEMPT_RT preempts the kernel in every mode");
    }
    if kernel.option("CONFIG_PREEMPT_DYNAMIC") == Some("n") {
        return report.not_applicable("the kernel has a fixed mode");
    }
    let current = scene.machine.tree.text(MODE);
    let current = current.as_deref().and_then(|modes| Some(modes.split_once('(')?.1.split_once(')')?.0));
    let built = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    let built =
        || built.into_iter().find(|(option, _)| kernel.option(option) == Some("y")).map(|(_, mode)| mode);
    let Some(mode) = current.or(kernel.parameters.value("preempt")).or_else(built) else {
        return report.unknown(
            "the preemption mode",
            "neither the boot parameters nor the configuration names it; as root, with debugfs mounted: cat \
             /sys/kernel/debug/sched/preempt",
        );
    };
    report.value(mode);
    if mode == "full" {
        return;
    }
    let mount = if current.is_some() { "" } else { "mount -t debugfs none /sys/kernel/debug; " };
    report.add(
        Finding::new(Severity::Medium, format!("the kernel preempts its own code in the mode `{mode}` only"))
            .why("A real-time thread waits until the running system call reaches a preemption point or ends.")
            .costs(Cost::typical(500_000, "for a long system call"))
            .fix(Lasts::UntilReboot, format!("{mount}echo full > {MODE}"))
            .advise(Lasts::FromReboot, "boot with preempt=full"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kernel_without_preempt_rt() {
        assert_eq!(found(PREEMPT_RT, &[("/proc/version", "Linux 6.1 SMP PREEMPT_DYNAMIC")]), ["high"]);
        assert_eq!(found(PREEMPT_RT, &[("/proc/version", "Linux 6.1 SMP PREEMPT_RT")]), NOTHING);
        assert_eq!(found(PREEMPT_RT, &[]), ["unknown"]);
    }

    #[test]
    fn finds_modes_other_than_full() {
        assert_eq!(found(PREEMPTION, &[(MODE, "none (voluntary) full")]), ["medium"]);
        assert_eq!(found(PREEMPTION, &[(MODE, "none voluntary (full)")]), NOTHING);
        assert_eq!(found(PREEMPTION, &[("/proc/cmdline", "preempt=none")]), ["medium"]);
        let unmounted = text(PREEMPTION, &[("/proc/cmdline", "preempt=none")]);
        assert!(unmounted.contains("boot with preempt=full"));
        assert!(unmounted.contains("mount -t debugfs none /sys/kernel/debug; echo full >"), "{unmounted}");
        assert!(!text(PREEMPTION, &[(MODE, "none (voluntary) full")]).contains("mount"));
        assert_eq!(found(PREEMPTION, &[]), ["unknown"]);
    }

    #[test]
    fn does_not_apply_to_preempt_rt_and_fixed_modes() {
        let rt = [("/sys/kernel/realtime", "1"), ("/proc/cmdline", "preempt=none")];
        assert_eq!(status(PREEMPTION, &rt), "not applicable: PREEMPT_RT preempts the kernel in every mode");
        let fixed = [("/proc/sys/kernel/osrelease", "6.1"), ("/boot/config-6.1", "CONFIG_HZ=250")];
        assert_eq!(status(PREEMPTION, &fixed), "not applicable: the kernel has a fixed mode");
    }
}
