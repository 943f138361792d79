//! Periodic checks by the kernel.

use super::*;

/// Watchdogs: they interrupt every CPU, and report threads that never sleep.
pub(super) const WATCHDOGS: Check =
    Check { name: "watchdogs", examines: "watchdogs on real-time CPUs", run: watchdogs };

const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";
const HARD: &str = "/proc/sys/kernel/nmi_watchdog";

fn watchdogs(scene: &Scene, report: &mut Report) {
    let hard = report.number(scene, HARD);
    let soft = report.number(scene, WATCHDOG);
    let word = |value: Option<i64>| match value {
        Some(0) => "off",
        Some(_) => "on",
        None => "absent",
    };
    if soft.is_some() || hard.is_some() {
        report.value(format!("soft-lockup {}, hard-lockup {}", word(soft), word(hard)));
    }
    if soft == Some(1)
        && let Some(watched) = report.read(scene, MASK)
    {
        let watched = Cpus::of_list(&watched).common(&scene.cpus);
        if !watched.is_empty() {
            let rest = Cpus::of_list(&scene.machine.tree.text(MASK).unwrap_or_default()).without(&scene.cpus);
            let finding = Finding::new(Severity::Low, format!("the soft-lockup watchdog runs on {}", watched.named()))
                .why(
                    "Its timer and a thread of the highest priority run every few seconds, and it reports a real-time \
                     thread that runs for longer than its threshold.",
                )
                .costs(Cost::typical(10_000, "every 4 s"));
            report.add(match rest.is_empty() {
                true => finding.write(WATCHDOG, "0"),
                false => finding.write(MASK, &rest.to_string()),
            });
        }
    }
    if hard == Some(1) {
        report.add(
            Finding::new(Severity::Low, "the hard-lockup watchdog is enabled")
                .why("It occupies a performance counter and sends busy CPUs non-maskable interrupts.")
                .costs(Cost::typical(5_000, "every 10 s"))
                .write(HARD, "0")
                .advise(Lasts::FromReboot, "boot with nmi_watchdog=0"),
        );
    }
}

/// Detection of hung tasks: a scan of all threads.
pub(super) const HUNG_TASKS: Check =
    Check { name: "hung-tasks", examines: "detection of hung tasks", run: hung_tasks };

const TIMEOUT: &str = "/proc/sys/kernel/hung_task_timeout_secs";

fn hung_tasks(scene: &Scene, report: &mut Report) {
    let Some(timeout) = report.number(scene, TIMEOUT) else {
        return report.not_applicable("the kernel does not detect hung tasks");
    };
    report.value(if timeout == 0 { "off".into() } else { format!("every {timeout} s") });
    if timeout <= 0 {
        return;
    }
    report.add(
        Finding::new(Severity::Low, format!("the kernel scans all threads for hung ones every {timeout} s"))
            .why("The scan holds RCU locks, and delays the release of memory on every CPU.")
            .costs(Cost::typical(20_000, "for each scan"))
            .write(TIMEOUT, "0")
            .fix(Lasts::Always, "echo kernel.hung_task_timeout_secs=0 > /etc/sysctl.d/90-hung-tasks.conf"),
    );
}

/// Polling for corrected errors of the hardware (machine checks).
pub(super) const MACHINE_CHECKS: Check =
    Check { name: "machine-checks", examines: "polling for corrected hardware errors", run: machine_checks };

/// The interval of all CPUs in s; 0 is off.
const INTERVAL: &str = "/sys/devices/system/machinecheck/machinecheck0/check_interval";

fn machine_checks(scene: &Scene, report: &mut Report) {
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
    fn finds_watchdogs_on_real_time_cpus() {
        assert_eq!(fixed(WATCHDOGS, &[(WATCHDOG, "1"), (MASK, "0-3")]), [(MASK, "0-2")]);
        assert_eq!(fixed(WATCHDOGS, &[(WATCHDOG, "1"), (MASK, "3")]), [(WATCHDOG, "0")]);
        assert_eq!(found(WATCHDOGS, &[(WATCHDOG, "1"), (MASK, "0-2")]), NOTHING);
        assert_eq!(found(WATCHDOGS, &[(WATCHDOG, "0"), (MASK, "0-3")]), NOTHING);
        assert_eq!(fixed(WATCHDOGS, &[(HARD, "1")]), [(HARD, "0")]);
    }

    #[test]
    fn finds_detection_that_is_on() {
        assert_eq!(fixed(HUNG_TASKS, &[(TIMEOUT, "120")]), [(TIMEOUT, "0")]);
        assert_eq!(found(HUNG_TASKS, &[(TIMEOUT, "0")]), NOTHING);
        assert_eq!(status(HUNG_TASKS, &[]), "not applicable: the kernel does not detect hung tasks");
    }

    #[test]
    fn finds_polling_that_is_on() {
        assert_eq!(fixed(MACHINE_CHECKS, &[(INTERVAL, "300")]), [(INTERVAL, "0")]);
        assert_eq!(found(MACHINE_CHECKS, &[(INTERVAL, "0x12c")]), ["low"]);
        assert_eq!(found(MACHINE_CHECKS, &[(INTERVAL, "0")]), NOTHING);
        assert_eq!(found(MACHINE_CHECKS, &[(INTERVAL, "300"), ("/proc/cmdline", "mce=ignore_ce")]), NOTHING);
        assert_eq!(
            status(MACHINE_CHECKS, &[]),
            "not applicable: the kernel does not poll for hardware errors"
        );
    }
}
