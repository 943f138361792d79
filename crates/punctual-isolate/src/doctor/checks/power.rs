//! Power saving.

use super::*;

/// Idle states with a long exit latency.
pub(super) const IDLE_STATES: Check =
    Check { name: "idle-states", examines: "slow idle states", run: idle_states };

/// Approximately the other latencies of a real-time kernel, in µs.
const LONG: u64 = 20;

fn idle_states(scene: &Scene, report: &mut Report) {
    let cpus = scene.machine.topology.cpus.iter().filter(|cpu| scene.cpus.has(cpu.number));
    let states = cpus.flat_map(|cpu| cpu.idle_states.iter().map(move |state| (cpu.number, state)));
    let states: Vec<_> = states.collect();
    match states.iter().filter(|(_, state)| !state.is_disabled).map(|(_, state)| state.exit_us).max() {
        Some(us) => report.value(format!("{} to leave the deepest enabled state", micros(us))),
        None => report.not_applicable("there are no enabled idle states"),
    }
    let deep: Vec<_> =
        states.into_iter().filter(|(_, state)| !state.is_disabled && state.exit_us > LONG).collect();
    let Some((_, deepest)) = deep.iter().max_by_key(|(_, state)| state.exit_us) else { return };
    let which: Cpus = deep.iter().map(|&(cpu, _)| cpu).collect();
    let disable = |&(cpu, state): &(usize, &crate::facts::IdleState)| {
        Change::file(&format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/disable", state.number), "1")
    };
    report.add(
        Finding::new(Severity::High, format!("{} may enter idle state {}", which.named(), deepest.name))
            .why("Leaving that state comes before the first instruction of a job.")
            .costs(Cost::stated(deepest.exit_us.saturating_mul(1_000), "for each wake-up from it"))
            .set(format!("cpupower -c {which} idle-set -D {LONG}"), deep.iter().map(disable).collect())
            .advise(
                Lasts::ThisStart,
                format!("bound it in the app: PUNCTUAL_WAKE={LONG}us, or Config::wake_latency"),
            ),
    );
}

/// Changing frequencies: a CPU that was idle is slow at first.
pub(super) const FREQUENCY: Check =
    Check { name: "frequency", examines: "governors and boost", run: frequency };

const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

fn frequency(scene: &Scene, report: &mut Report) {
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

    #[test]
    fn finds_enabled_deep_idle_states() {
        let state = "/sys/devices/system/cpu/cpu3/cpuidle/state2";
        let files = [format!("{state}/name"), format!("{state}/latency"), format!("{state}/disable")];
        let with = |latency, disable| [(&*files[0], "C6"), (&*files[1], latency), (&*files[2], disable)];
        assert_eq!(found(IDLE_STATES, &with("133", "0")), ["high"]);
        assert_eq!(fixed(IDLE_STATES, &with("133", "0")), [(&*files[2], "1")]);
        assert_eq!(found(IDLE_STATES, &with("133", "1")), NOTHING);
        assert_eq!(found(IDLE_STATES, &with("20", "0")), NOTHING);
        assert!(
            text(IDLE_STATES, &with("18446744073709551615", "0")).contains("CPU 3 may enter idle state C6")
        );
    }

    const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";

    #[test]
    fn finds_slow_frequency_governor() {
        assert_eq!(found(FREQUENCY, &[(GOVERNOR, "schedutil")]), ["medium"]);
        assert_eq!(found(FREQUENCY, &[(GOVERNOR, "performance")]), NOTHING);
        assert_eq!(fixed(FREQUENCY, &[(GOVERNOR, "powersave")]), [(GOVERNOR, "performance")]);
    }

    #[test]
    fn finds_boost_of_both_drivers() {
        assert_eq!(fixed(FREQUENCY, &[(BOOST, "1")]), [(BOOST, "0")]);
        assert_eq!(fixed(FREQUENCY, &[(NO_TURBO, "0")]), [(NO_TURBO, "1")]);
        assert_eq!(found(FREQUENCY, &[(BOOST, "0"), (NO_TURBO, "1")]), NOTHING);
    }
}
