//! Polling for corrected errors of the hardware (machine checks).

use super::*;

pub(super) const CHECK: Check =
    Check { name: "machine-checks", examines: "polling for corrected hardware errors", run };

/// The interval of all CPUs in s; 0 is off.
const INTERVAL: &str = "/sys/devices/system/machinecheck/machinecheck0/check_interval";

fn run(scene: &Scene, report: &mut Report) {
    if scene.machine.kernel.parameters.value("mce") == Some("ignore_ce") {
        return report.value("off (mce=ignore_ce)");
    }
    let Some(text) = report.read(scene, INTERVAL) else {
        return report.not_applicable("the kernel does not poll for hardware errors");
    };
    // The kernel writes it in base 10 or 16.
    let interval =
        text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    let Ok(interval) = interval else { return };
    report.value(if interval == 0 { "off".into() } else { format!("every {interval} s") });
    if interval == 0 {
        return;
    }
    report.add(
        Finding::new(Severity::Low, format!("every CPU polls for hardware errors every {interval} s"))
            .why("A timer reads the registers of all error banks. Without polling, errors that the hardware corrected go unnoticed.")
            .costs(Cost::typical(50_000, "for each poll"))
            .write(INTERVAL, "0")
            .advise(Lasts::FromReboot, "boot with mce=ignore_ce"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_polling_that_is_on() {
        assert_eq!(fixed(CHECK, &[(INTERVAL, "300")]), [(INTERVAL, "0")]);
        assert_eq!(found(CHECK, &[(INTERVAL, "0x12c")]), ["low"]);
        assert_eq!(found(CHECK, &[(INTERVAL, "0")]), NOTHING);
        assert_eq!(found(CHECK, &[(INTERVAL, "300"), ("/proc/cmdline", "mce=ignore_ce")]), NOTHING);
        assert_eq!(status(CHECK, &[]), "not applicable: the kernel does not poll for hardware errors");
    }
}
