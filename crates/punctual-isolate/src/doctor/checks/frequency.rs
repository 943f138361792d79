//! Changing frequencies: a CPU that was idle is slow at first.

use super::*;

pub(super) const CHECK: Check = Check { name: "frequency", examines: "governors and boost", run };

const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

fn run(scene: &Scene, report: &mut Report) {
    let cpus = scene.machine.topology.cpus.iter().filter(|cpu| scene.cpus.has(cpu.number));
    let governors = cpus.clone().find_map(|cpu| cpu.governor.clone());
    match governors {
        Some(governor) => report.value(format!("governor {governor}")),
        None => report.not_applicable("the kernel does not control the frequency"),
    }
    let slow = |governor: &String| governor != "performance" && governor != "userspace";
    let slowed: Vec<_> = cpus.filter(|cpu| cpu.governor.as_ref().is_some_and(slow)).collect();
    if let Some(first) = slowed.first() {
        let which: Cpus = slowed.iter().map(|cpu| cpu.number).collect();
        let governor = first.governor.as_deref().unwrap_or_default();
        let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        report.add(
            Finding::new(Severity::Medium, format!("the governor of {} is `{governor}`", which.named()))
                .why("The CPU slows down under low load, and is slow when a job begins. C is longer than measured.")
                .costs(Cost::typical(200_000, "until the frequency is up again"))
                .set(
                    format!("cpupower -c {which} frequency-set -g performance"),
                    which.iter().map(|cpu| Change::file(&path(cpu), "performance")).collect(),
                )
                .fix(Lasts::Always, "echo 'GOVERNOR=\"performance\"' > /etc/default/cpufrequtils   # with cpufrequtils"),
        );
    }
    let ways = [(BOOST, "1", "0"), (NO_TURBO, "0", "1")];
    let way = ways.into_iter().find(|(path, on, _)| report.read(scene, path).is_some_and(|text| text == *on));
    if let Some((path, _, value)) = way {
        report.add(
            Finding::new(Severity::Low, "CPUs boost: they are faster while others are idle")
                .why("A job's execution time depends on the load of other CPUs and on the temperature, so its C is uncertain.")
                .write(path, value),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";

    #[test]
    fn finds_slow_frequency_governor() {
        assert_eq!(found(CHECK, &[(GOVERNOR, "schedutil")]), ["medium"]);
        assert_eq!(found(CHECK, &[(GOVERNOR, "performance")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(GOVERNOR, "powersave")]), [(GOVERNOR, "performance")]);
    }

    #[test]
    fn finds_boost_of_both_drivers() {
        assert_eq!(fixed(CHECK, &[(BOOST, "1")]), [(BOOST, "0")]);
        assert_eq!(fixed(CHECK, &[(NO_TURBO, "0")]), [(NO_TURBO, "1")]);
        assert_eq!(found(CHECK, &[(BOOST, "0"), (NO_TURBO, "1")]), NOTHING);
    }
}
