//! Boot parameters and partitions that take CPUs from the scheduler, and their consistency.

use super::*;

pub(super) const CHECK: Check = Check {
    name: "isolation",
    examines: "isolcpus, nohz_full, rcu_nocbs, irqaffinity, partitions, and their consistency",
    run,
};

fn run(scene: &Scene, report: &mut Report) {
    let machine = scene.machine;
    let parameters = &machine.kernel.parameters;
    report.value(match machine.isolated() {
        isolated if isolated.is_empty() => "no CPU isolated".into(),
        isolated => format!("{} isolated", isolated.named()),
    });
    let open = scene.cpus.without(&machine.isolated());
    if !open.is_empty() && !scene.others().is_empty() {
        report.add(
            Finding::new(Severity::Medium, format!("{} not isolated: any thread may run there", is_or_are(&open)))
                .why(
                    "The scheduler moves other threads onto it. Real-time threads preempt them, at the cost of a context \
                     switch, cold caches and non-preemptible sections of those threads in the kernel.",
                )
                .costs(Cost::typical(20_000, "for each time"))
                .fix(Lasts::ThisStart, format!("punctual isolate run --cpus {open} -- COMMAND"))
                .advise(Lasts::FromReboot, format!("boot with isolcpus=managed_irq,domain,{open}")),
        );
    }
    let listed = |name: &str| {
        let value = parameters.value(name)?;
        // The flags of isolcpus precede the CPUs.
        let cpus = value.split(',').skip_while(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
        Some(Cpus::of_list(&cpus.collect::<Vec<_>>().join(",")))
    };
    let tickless = &machine.topology.tickless;
    let shared = tickless.without(&machine.isolated());
    if !shared.is_empty() {
        report.add(
            Finding::new(
                Severity::Low,
                format!("nohz_full has {}, but nothing isolates {}", shared.named(), it(&shared)),
            )
            .why("As soon as a second thread runs there, the tick returns, and each kernel entry costs more.")
            .advise(Lasts::FromReboot, format!("boot with isolcpus=managed_irq,domain,{shared} as well")),
        );
    }
    let callbacks = listed("rcu_nocbs").unwrap_or_default().and(tickless);
    let called = scene.cpus.common(&machine.isolated()).without(&callbacks);
    if !called.is_empty() && parameters.value("rcu_nocbs") != Some("all") {
        report.add(
            Finding::new(Severity::Low, format!("RCU callbacks run on {}", called.named()))
                .why("Memory freed by other threads is released there by a soft interrupt, in batches.")
                .costs(Cost::typical(50_000, "for a batch"))
                .advise(Lasts::FromReboot, format!("boot with rcu_nocbs={called}")),
        );
    }
    let both = listed("isolcpus").unwrap_or_default().common(&machine.cgroups.isolated);
    if !both.is_empty() {
        report.add(
            Finding::new(
                Severity::Medium,
                format!("{} isolated by isolcpus and by a cpuset partition", is_or_are(&both)),
            )
            .why("The kernel declares such a partition invalid, and does not enforce it.")
            .advise(
                Lasts::FromReboot,
                "use one of them: remove isolcpus from the boot parameters, or end the partition",
            ),
        );
    }
    let all = listed("irqaffinity");
    if let Some(wrong) = all.map(|cpus| cpus.common(&scene.cpus)).filter(|cpus| !cpus.is_empty()) {
        report.add(
            Finding::new(Severity::Medium, format!("irqaffinity= sends new interrupts to {}", wrong.named()))
                .why("Drivers loaded later will have their interrupts there.")
                .advise(Lasts::FromReboot, format!("boot with irqaffinity={}", scene.others())),
        );
    }
}

fn it(cpus: &Cpus) -> &'static str {
    if cpus.len() == 1 { "it" } else { "them" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISOLATED: (&str, &str) = ("/sys/devices/system/cpu/isolated", "3");

    #[test]
    fn finds_unisolated_cpus() {
        assert_eq!(found(CHECK, &[]), ["medium"]);
        assert_eq!(found(CHECK, &[ISOLATED, ("/proc/cmdline", "rcu_nocbs=3")]), NOTHING);
        assert_eq!(found(CHECK, &[ISOLATED, ("/proc/cmdline", "rcu_nocbs=all")]), NOTHING);
    }

    #[test]
    fn finds_contradicting_boot_parameters() {
        assert!(text(CHECK, &[ISOLATED]).contains("RCU callbacks run on CPU 3"));
        assert!(
            text(CHECK, &[("/sys/devices/system/cpu/nohz_full", "2-3")]).contains("nothing isolates them")
        );
        assert!(
            text(CHECK, &[ISOLATED, ("/proc/cmdline", "irqaffinity=2-3")])
                .contains("new interrupts to CPU 3")
        );
        let both = [
            ("/proc/cmdline", "isolcpus=managed_irq,domain,3"),
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
            ("/sys/fs/cgroup/cpuset.cpus.isolated", "3"),
        ];
        assert!(text(CHECK, &both).contains("by isolcpus and by a cpuset partition"));
    }
}
