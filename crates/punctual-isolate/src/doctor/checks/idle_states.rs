//! Idle states with a long exit latency.

use super::*;

pub(super) const CHECK: Check = Check { name: "idle-states", examines: "slow idle states", run };

/// Approximately the other latencies of a real-time kernel, in µs.
const LONG: u64 = 20;

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_enabled_deep_idle_states() {
        let state = "/sys/devices/system/cpu/cpu3/cpuidle/state2";
        let files = [format!("{state}/name"), format!("{state}/latency"), format!("{state}/disable")];
        let with = |latency, disable| [(&*files[0], "C6"), (&*files[1], latency), (&*files[2], disable)];
        assert_eq!(found(CHECK, &with("133", "0")), ["high"]);
        assert_eq!(fixed(CHECK, &with("133", "0")), [(&*files[2], "1")]);
        assert_eq!(found(CHECK, &with("133", "1")), NOTHING);
        assert_eq!(found(CHECK, &with("20", "0")), NOTHING);
        assert!(text(CHECK, &with("18446744073709551615", "0")).contains("CPU 3 may enter idle state C6"));
    }
}
