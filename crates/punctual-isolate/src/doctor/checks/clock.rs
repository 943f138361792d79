//! The clock: the cost of reading it, and its stability.

use super::*;
use crate::facts::CLOCK_SOURCE;

pub(super) const CHECK: Check =
    Check { name: "clock", examines: "clock source, time-stamp counter, movable timers", run };

const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";

fn run(scene: &Scene, report: &mut Report) {
    if let Some(source) = report.read(scene, CLOCK_SOURCE) {
        report.value(&source);
        let is_slow = matches!(source.as_str(), "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies");
        if is_slow {
            let cost = measure::clock(&scene.machine.tree).map(|ns| Cost::measured(ns, "for a reading"));
            let available = scene.machine.tree.text(AVAILABLE).unwrap_or_default();
            let finding = Finding::new(Severity::Medium, format!("the clock source is {source}"))
                .why(
                    "Reading the clock takes a system call that reads a device. The kernel falls back to it if the \
                     time-stamp counter is unstable (dmesg | grep -i tsc).",
                )
                .costs(cost.or_else(|| Some(Cost::typical(1_500, "for a reading"))));
            report.add(match available.split(' ').any(|source| source == "tsc") {
                true => finding.write(CLOCK_SOURCE, "tsc"),
                false => finding.advise(
                    Lasts::FromReboot,
                    "boot with tsc=reliable, if the hardware's counter is known to be reliable",
                ),
            });
        }
    }
    let flags = scene.machine.tree.field("/proc/cpuinfo", "flags").ok().flatten().unwrap_or_default();
    let has = |flag: &str| flags.split(' ').any(|word| word == flag);
    if !flags.is_empty() && ["constant_tsc", "nonstop_tsc"].iter().any(|flag| !has(flag)) {
        report.add(
            Finding::new(Severity::Low, "the time-stamp counter changes its rate or stops in idle states")
                .why("The kernel may change the clock source at any time, and polling partitions cannot use the counter."),
        );
    }
    if report.number(scene, MIGRATION) == Some(1) {
        report.add(
            Finding::new(Severity::Low, "timers may move to other CPUs (kernel.timer_migration)")
                .why("Timers of ordinary threads on idle CPUs expire on busy ones, and interrupt the threads there.")
                .costs(Cost::typical(5_000, "for each timer"))
                .write(MIGRATION, "0")
                .fix(Lasts::Always, "echo kernel.timer_migration=0 > /etc/sysctl.d/90-timers.conf"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slow_clock_source_and_reports_cost() {
        let slow = (CLOCK_SOURCE, "hpet");
        let available = ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet");
        assert_eq!(found(CHECK, &[slow]), ["medium"]);
        assert_eq!(fixed(CHECK, &[slow, available]), [(slow.0, "tsc")]);
        assert!(
            text(CHECK, &[slow, (measure::CLOCK, "1200")]).contains("measured here: 1.20 µs for a reading")
        );
        assert_eq!(found(CHECK, &[(slow.0, "tsc")]), NOTHING);
    }

    #[test]
    fn finds_stopping_counter_and_migrating_timers() {
        assert_eq!(found(CHECK, &[("/proc/cpuinfo", "flags : constant_tsc")]), ["low"]);
        assert_eq!(found(CHECK, &[("/proc/cpuinfo", "flags : constant_tsc nonstop_tsc")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(MIGRATION, "1")]), [(MIGRATION, "0")]);
    }
}
