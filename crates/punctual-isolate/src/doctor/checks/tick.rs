//! The periodic tick: a timer interrupt on every busy CPU, HZ times per second.

use super::*;

pub(super) const CHECK: Check = Check { name: "tick", examines: "HZ and nohz", run };

fn run(scene: &Scene, report: &mut Report) {
    let kernel = &scene.machine.kernel;
    let ticking = scene.cpus.without(&scene.machine.topology.tickless);
    report.value(match &ticking {
        ticking if ticking.is_empty() => "no tick on busy CPUs".into(),
        ticking => format!("tick on {}", ticking.named()),
    });
    if kernel.parameters.value("nohz") == Some("off") && !ticking.is_empty() {
        report.add(
            Finding::new(Severity::Low, "`nohz=off`: every CPU has a tick, even when idle")
                .why("The tick interrupts real-time threads that could run without interruption.")
                .advise(
                    Lasts::FromReboot,
                    "remove `nohz=off` from the boot parameters (punctual isolate boot shows the place)",
                ),
        );
    }
    if ticking.is_empty() {
        return;
    }
    let rate = kernel.option("CONFIG_HZ").and_then(|rate| rate.parse::<u64>().ok());
    let often = rate.map_or_else(|| "CONFIG_HZ times".into(), |rate| format!("{rate} times"));
    let finding = Finding::new(
        Severity::Low,
        format!("{} will be interrupted by the tick {often} per second", ticking.named()),
    )
    .why("It interrupts every thread that computes for longer than a tick, and shorter jobs by chance.")
    .costs(Cost::typical(5_000, "for each tick"));
    report.add(match kernel.option("CONFIG_NO_HZ_FULL") {
        Some("y") => {
            finding.advise(Lasts::FromReboot, format!("boot with nohz_full={ticking} rcu_nocbs={ticking}"))
        }
        Some(_) => finding.advise(
            Lasts::FromReboot,
            "use a kernel with CONFIG_NO_HZ_FULL, such as Debian's, and nohz_full=",
        ),
        None => finding.advise(
            Lasts::FromReboot,
            format!("boot with nohz_full={ticking} rcu_nocbs={ticking}, if the kernel has CONFIG_NO_HZ_FULL"),
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_tick_on_real_time_cpus() {
        assert_eq!(found(CHECK, &[]), ["low"]);
        assert_eq!(found(CHECK, &[("/proc/cmdline", "nohz=off")]), ["low", "low"]);
        assert_eq!(found(CHECK, &[("/sys/devices/system/cpu/nohz_full", "3")]), NOTHING);
    }

    #[test]
    fn reports_tick_frequency() {
        let files = [
            ("/proc/sys/kernel/osrelease", "6.12"),
            ("/boot/config-6.12", "CONFIG_HZ=250\nCONFIG_NO_HZ_FULL=y"),
        ];
        assert!(text(CHECK, &files).contains("CPU 3 will be interrupted by the tick 250 times per second"));
    }
}
