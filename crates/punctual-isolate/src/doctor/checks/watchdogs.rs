//! Watchdogs: they interrupt every CPU, and report threads that never sleep.

use super::*;

pub(super) const CHECK: Check = Check { name: "watchdogs", examines: "watchdogs on real-time CPUs", run };

const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";
const HARD: &str = "/proc/sys/kernel/nmi_watchdog";

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_watchdogs_on_real_time_cpus() {
        assert_eq!(fixed(CHECK, &[(WATCHDOG, "1"), (MASK, "0-3")]), [(MASK, "0-2")]);
        assert_eq!(fixed(CHECK, &[(WATCHDOG, "1"), (MASK, "3")]), [(WATCHDOG, "0")]);
        assert_eq!(found(CHECK, &[(WATCHDOG, "1"), (MASK, "0-2")]), NOTHING);
        assert_eq!(found(CHECK, &[(WATCHDOG, "0"), (MASK, "0-3")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(HARD, "1")]), [(HARD, "0")]);
    }
}
