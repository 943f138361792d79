//! Time taken by the firmware (system-management interrupts), which the kernel can only measure.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "hardware", examines: "firmware interrupts found by the hwlat tracer", run };

/// The threshold of the kernel's own tool, in µs.
const LONG: i64 = 10;

fn run(scene: &Scene, report: &mut Report) {
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

    const VENDOR: (&str, &str) = ("/sys/class/dmi/id/sys_vendor", "Dell Inc.");
    const LATENCY: &str = "/sys/kernel/tracing/hwlat_detector/max";

    #[test]
    fn finds_long_interrupts_or_names_the_measurement() {
        assert_eq!(found(CHECK, &[VENDOR, (LATENCY, "240")]), ["high"]);
        assert_eq!(found(CHECK, &[VENDOR, (LATENCY, "3")]), NOTHING);
        assert_eq!(found(CHECK, &[VENDOR]), ["unknown"]);
        assert_eq!(found(CHECK, &[]), NOTHING);
        assert_eq!(found(CHECK, &[VENDOR, ("/proc/cpuinfo", "flags : hypervisor")]), NOTHING);
    }
}
