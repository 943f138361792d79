//! Clock rates reduced because of heat or low voltage.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "thermal", examines: "throttling by heat and by low voltage", run };

/// State of a Raspberry Pi's firmware, a hexadecimal bit set.
const FIRMWARE: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";
/// Bits of that state; the upper half is the same since boot.
const LOW_VOLTAGE: u64 = 0x1_0001;
const SLOWED: u64 = 0xe_000e;

fn run(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    let mut is_known = false;
    let mut slowed = 0_u64;
    for cpu in scene.cpus.iter() {
        for kind in ["core", "package"] {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{kind}_throttle_count");
            if let Some(count) = tree.number::<u64>(&path) {
                is_known = true;
                slowed = slowed.saturating_add(count);
            }
        }
    }
    let state =
        tree.text(FIRMWARE).and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    if !is_known && state.is_none() {
        return report.not_applicable("the kernel does not count throttling");
    }
    let state = state.unwrap_or(0);
    report.value(match (slowed, state) {
        (0, 0) => "never throttled".into(),
        (0, state) => format!("firmware state {state:#x}"),
        (times, _) => format!("throttled {}", format_counted(times, "time")),
    });
    if slowed > 0 || state & SLOWED != 0 {
        let times = if slowed > 0 { format!(" {}", format_counted(slowed, "time")) } else { String::new() };
        report.add(
            Finding::new(
                Severity::Medium,
                format!("{} slowed down{times} because of heat since boot", scene.cpus.named()),
            )
            .why("The hardware lowers the clock rate, so C becomes longer than measured on a cool machine.")
            .costs(Cost::typical(10_000_000, "and more, while it is hot"))
            .advise(
                Lasts::Always,
                "improve the cooling, or lower the highest frequency: cpupower frequency-set -u FREQUENCY",
            ),
        );
    }
    if state & LOW_VOLTAGE != 0 {
        report.add(
            Finding::new(Severity::High, "the supply voltage was too low since boot")
                .why("The firmware lowers the clock rate until the voltage recovers, without a bound.")
                .advise(Lasts::Always, "use a power supply and a cable for the current of this board"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cpus_that_were_throttled() {
        let count = "/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count";
        assert_eq!(found(CHECK, &[(count, "17")]), ["medium"]);
        assert!(text(CHECK, &[(count, "17")]).contains("CPU 3 slowed down 17 times because of heat"));
        assert_eq!(status(CHECK, &[(count, "0")]), "good: never throttled");
        assert_eq!(status(CHECK, &[]), "not applicable: the kernel does not count throttling");
    }

    #[test]
    fn reads_the_state_of_a_raspberry_pi() {
        assert_eq!(found(CHECK, &[(FIRMWARE, "50005")]), ["medium", "high"]);
        assert_eq!(found(CHECK, &[(FIRMWARE, "0x10000")]), ["high"]);
        assert_eq!(found(CHECK, &[(FIRMWARE, "0")]), NOTHING);
    }
}
