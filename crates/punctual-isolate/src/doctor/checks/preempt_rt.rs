//! Checks that the kernel bounds the delays of real-time threads.

use super::*;

pub(super) const CHECK: Check = Check { name: "preempt-rt", examines: "PREEMPT_RT", run };

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kernel_without_preempt_rt() {
        assert_eq!(found(CHECK, &[("/proc/version", "Linux 6.1 SMP PREEMPT_DYNAMIC")]), ["high"]);
        assert_eq!(found(CHECK, &[("/proc/version", "Linux 6.1 SMP PREEMPT_RT")]), NOTHING);
        assert_eq!(found(CHECK, &[]), ["unknown"]);
    }
}
