//! High-resolution timers: without them, releases wait for the tick.

use super::*;

pub(super) const CHECK: Check = Check { name: "timers", examines: "high-resolution timers", run };

/// The longest resolution of high-resolution timers; the tick takes at least 1 ms.
const FINE_NS: u64 = 1_000;

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_timers_that_expire_with_the_tick() {
        assert_eq!(found(CHECK, &[(measure::TIMER_RESOLUTION, "4000000")]), ["high"]);
        assert!(text(CHECK, &[(measure::TIMER_RESOLUTION, "4000000")]).contains("4.00 ms for each release"));
        assert_eq!(found(CHECK, &[(measure::TIMER_RESOLUTION, "1")]), NOTHING);
        assert_eq!(found(CHECK, &[("/proc/cmdline", "quiet highres=off")]), ["high"]);
        assert_eq!(status(CHECK, &[]), "unknown");
        assert_eq!(status(CHECK, &[(measure::TIMER_RESOLUTION, "1")]), "good: resolution 1.00 ns");
    }
}
