//! Time that a hypervisor or the firmware takes from a CPU; Linux cannot prevent it.

use super::*;
use crate::facts::Statistics;

/// Time taken by a hypervisor.
pub(super) const STEAL: Check =
    Check { name: "steal", examines: "a hypervisor and its share of the CPU", run: steal };

fn steal(scene: &Scene, report: &mut Report) {
    let machine = scene.machine;
    let Some(name) = &machine.hypervisor else {
        return report.not_applicable("no hypervisor was detected");
    };
    report.value(name);
    let statistics = Statistics::read(&machine.tree);
    let spent = scene.cpus.iter().filter_map(|cpu| {
        let spent = statistics.cpu(cpu)?;
        Some((spent.stolen?, spent.busy))
    });
    let (stolen, busy) = spent
        .fold((0_u64, 0_u64), |(s, b), (stolen, busy)| (s.saturating_add(stolen), b.saturating_add(busy)));
    let share = match busy {
        0 => String::new(),
        _ => format!(
            "; it took {1:.1} % of the runnable time of {0} since boot",
            scene.cpus.named(),
            stolen as f64 / busy as f64 * 100.0
        ),
    };
    report.add(
        Finding::new(Severity::High, format!("this machine is a guest of {name}{share}"))
            .why("The host may preempt the virtual CPU at any time, without a bound. No setting of the guest prevents that.")
            .costs(Cost::typical(10_000_000, "now and then"))
            .advise(Lasts::Always, "on the host: a dedicated, isolated CPU for each virtual CPU, and SCHED_FIFO for its thread"),
    );
}

/// Time taken by the firmware (system-management interrupts), which the kernel can only measure.
pub(super) const HARDWARE: Check =
    Check { name: "hardware", examines: "firmware interrupts found by the hwlat tracer", run: hardware };

/// The threshold of the kernel's own tool, in µs.
const LONG: i64 = 10;

fn hardware(scene: &Scene, report: &mut Report) {
    let machine = scene.machine;
    if machine.hypervisor.is_some() || machine.tree.text("/sys/class/dmi/id/sys_vendor").is_none() {
        // A guest sees only its host's interruptions, and boards without such firmware have none.
        return report.not_applicable("the firmware of guests and boards does not interrupt CPUs");
    }
    let tracing = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let latency =
        tracing.iter().find_map(|place| machine.tree.number::<i64>(&format!("{place}/hwlat_detector/max")));
    if let Some(us) = latency {
        report.value(format!("{} at most", micros(us.unsigned_abs())));
    }
    // Written by the tracer when it has run.
    match latency {
        Some(us) if us > LONG => report.add(
            Finding::new(
                Severity::High,
                format!("the firmware took up to {} from a CPU", micros(us.unsigned_abs())),
            )
            .why("System-management interrupts stop every CPU, and Linux cannot defer them.")
            .costs(Cost::measured(us.unsigned_abs().saturating_mul(1_000), "at most"))
            .advise(
                Lasts::Always,
                "in the firmware setup: disable legacy USB, power management and error reporting by SMI",
            ),
        ),
        Some(us) if us > 0 => {}
        _ => {
            let how = match machine.kernel.option("CONFIG_HWLAT_TRACER") {
                Some("n") => {
                    "this kernel has no hwlat tracer; boot a kernel with it, such as Debian's, for a minute"
                }
                _ => "run the hwlat tracer for a minute, as root: rtla hwnoise -d 60s",
            };
            report.unknown("the duration of system-management interrupts of the firmware", how);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hypervisor_and_steal_time() {
        let guest = ("/proc/cpuinfo", "flags : hypervisor");
        assert_eq!(found(STEAL, &[]), NOTHING);
        assert_eq!(found(STEAL, &[guest]), ["high"]);
        let stat = ("/proc/stat", "cpu 0\ncpu3 60 10 10 900 100 0 10 10 0 0\n");
        assert!(
            text(STEAL, &[guest, stat]).contains("it took 10.0 % of the runnable time of CPU 3 since boot")
        );
        let absurd = ("/proc/stat", "cpu3 18446744073709551615 18446744073709551615 0 0 0 0 0 1");
        assert_eq!(found(STEAL, &[guest, absurd]), ["high"]);
    }

    const VENDOR: (&str, &str) = ("/sys/class/dmi/id/sys_vendor", "Dell Inc.");
    const LATENCY: &str = "/sys/kernel/tracing/hwlat_detector/max";

    #[test]
    fn finds_long_interrupts_or_names_the_measurement() {
        assert_eq!(found(HARDWARE, &[VENDOR, (LATENCY, "240")]), ["high"]);
        assert_eq!(found(HARDWARE, &[VENDOR, (LATENCY, "3")]), NOTHING);
        assert_eq!(found(HARDWARE, &[VENDOR]), ["unknown"]);
        assert_eq!(found(HARDWARE, &[]), NOTHING);
        assert_eq!(found(HARDWARE, &[VENDOR, ("/proc/cpuinfo", "flags : hypervisor")]), NOTHING);
    }
}
