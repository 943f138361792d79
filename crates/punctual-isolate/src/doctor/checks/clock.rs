//! The clock and its timers.

use super::*;
use crate::facts::CLOCK_SOURCE;

/// High-resolution timers: without them, releases wait for the tick.
pub(super) const TIMERS: Check = Check { name: "timers", examines: "high-resolution timers", run: timers };

/// The longest resolution of high-resolution timers; the tick takes at least 1 ms.
const FINE_NS: u64 = 1_000;

fn timers(scene: &Scene, report: &mut Report) {
    let resolution = measure::timer_resolution(&scene.machine.tree);
    // A recording may lack both the resolution and options that were not examined when it was made.
    let is_off = match resolution {
        Some(ns) => ns > FINE_NS,
        None => scene.machine.kernel.parameters.value("highres") == Some("off"),
    };
    match resolution {
        Some(ns) => report.value(format!("resolution {}", format_nanos(ns as f64))),
        None if is_off => report.value("off"),
        None => {}
    }
    if !is_off {
        return;
    }
    report.add(
        Finding::new(Severity::High, "high-resolution timers are off: timers expire with the tick only")
            .why("Each periodic release is late by up to a period of the tick, 1 to 10 ms.")
            .costs(resolution.map(|ns| Cost::stated(ns, "for each release")))
            .advise(
                Lasts::FromReboot,
                "boot without highres=off, and with a kernel with CONFIG_HIGH_RES_TIMERS",
            ),
    );
}

/// The clock: the cost of reading it, and its stability.
pub(super) const CLOCK: Check =
    Check { name: "clock", examines: "clock source, time-stamp counter, movable timers", run: clock };

const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";

fn clock(scene: &Scene, report: &mut Report) {
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
    fn finds_timers_that_expire_with_the_tick() {
        assert_eq!(found(TIMERS, &[(measure::TIMER_RESOLUTION, "4000000")]), ["high"]);
        assert!(text(TIMERS, &[(measure::TIMER_RESOLUTION, "4000000")]).contains("4.00 ms for each release"));
        assert_eq!(found(TIMERS, &[(measure::TIMER_RESOLUTION, "1")]), NOTHING);
        assert_eq!(found(TIMERS, &[("/proc/cmdline", "quiet highres=off")]), ["high"]);
        assert_eq!(status(TIMERS, &[]), "unknown");
        assert_eq!(status(TIMERS, &[(measure::TIMER_RESOLUTION, "1")]), "good: resolution 1.00 ns");
    }

    #[test]
    fn finds_slow_clock_source_and_reports_cost() {
        let slow = (CLOCK_SOURCE, "hpet");
        let available = ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet");
        assert_eq!(found(CLOCK, &[slow]), ["medium"]);
        assert_eq!(fixed(CLOCK, &[slow, available]), [(slow.0, "tsc")]);
        assert!(
            text(CLOCK, &[slow, (measure::CLOCK, "1200")]).contains("measured here: 1.20 µs for a reading")
        );
        assert_eq!(found(CLOCK, &[(slow.0, "tsc")]), NOTHING);
    }

    #[test]
    fn finds_stopping_counter_and_migrating_timers() {
        assert_eq!(found(CLOCK, &[("/proc/cpuinfo", "flags : constant_tsc")]), ["low"]);
        assert_eq!(found(CLOCK, &[("/proc/cpuinfo", "flags : constant_tsc nonstop_tsc")]), NOTHING);
        assert_eq!(fixed(CLOCK, &[(MIGRATION, "1")]), [(MIGRATION, "0")]);
    }
}
