//! Interruptions of a loop on a CPU in ten seconds: ticks, device interrupts, function calls from
//! other CPUs, other threads. Before and after the CPU is isolated; and on one isolated by boot
//! parameters.

use std::path::Path;

use xtask_support::Result;
use xtask_support::process::Outcome;

use super::{Built, CGROUPS, Case, Setup, demand, punctual};
use crate::driver::stage::in_guest;

/// The duration of the loop, in s.
const SECONDS: u64 = 10;
/// The tick rate of Debian's kernel, in Hz.
const TICKS: u64 = 250;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>, bench: Option<&Path>) -> Result<Vec<Case>> {
    let punctual = punctual(built, bench)?;
    Ok(vec![taken(punctual), booted(punctual)])
}

/// Returns a loop that starts no program while it is watched, and prints the interruptions of its
/// CPU.
fn watched() -> String {
    format!(
        "cat >/tmp/case/watched <<'end'
            cpu=$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)
            state() {{
                awk -v cpu=$cpu '
                    function of(name) {{ return name in count ? count[name] : 0 }}
                    {{ count[$1] = $(cpu + 2) }}
                    $1 ~ /^[0-9]+:/ {{ devices += $(cpu + 2) }}
                    END {{ print of(\"LOC:\"), devices + 0, of(\"CAL:\"), of(\"RES:\") }}' /proc/interrupts
                sed -n 's/^nonvoluntary_ctxt_switches:.//p' /proc/$$/status
            }}
            sleep 1
            set -- $(state)
            read -r from rest </proc/uptime
            until=$((${{from%.*}} + {SECONDS}))
            while read -r now rest </proc/uptime; [ ${{now%.*}} -lt $until ]; do
                # Files that are closed give the kernel work on this CPU.
                turn=0; while [ $turn -lt 20000 ]; do turn=$((turn + 1)); done
            done
            for before; do echo $before; done >/tmp/case/before
            state | tr ' ' '\\n' | paste /tmp/case/before - | awk '{{ print $2 - $1 }}' | tr '\\n' ' '
            echo of $cpu
end
"
    )
}

/// The activity of other CPUs, which would disturb the CPU if it were not isolated.
const OTHERS: &str = "
        forks() { while :; do (:) & wait; usleep 2000; done; }
        files() { while :; do dd if=/dev/zero of=/results/file bs=64k count=4 2>/dev/null; sync; usleep 20000; done; }
        for load in forks files; do $load & loads=\"$loads $!\"; done
";

/// The interruptions in the ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Came {
    ticks: u64,
    devices: u64,
    /// Function calls from other CPUs.
    calls: u64,
    /// Reschedule interrupts from other CPUs.
    reschedulings: u64,
    /// Switches from the loop to other threads.
    switches: u64,
}

/// Parses the output of the loops, in order.
fn seen(outcome: &Outcome) -> Result<Vec<Came>> {
    let came = |line: &str| {
        let (counts, _) = line.split_once(" of ")?;
        let counts: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [ticks, devices, calls, reschedulings, switches] = counts[..] else { return None };
        Some(Came { ticks, devices, calls, reschedulings, switches })
    };
    let all: Option<Vec<Came>> = outcome.stdout.lines().map(came).collect();
    all.filter(|all| !all.is_empty()).ok_or_else(|| "a line for each loop was expected".into())
}

fn figure(all: &[Came]) -> String {
    let one = |came: &Came| {
        let Came { ticks, devices, calls, reschedulings, switches } = came;
        format!("{ticks} ticks, {devices} + {calls} + {reschedulings} interrupts, {switches} switches")
    };
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Without boot parameters the tick remains, and the kernel's thread for RCU callbacks: while other
/// threads free memory, each tick wakes it.
fn is_left_alone(outcome: &Outcome) -> Result {
    let all = seen(outcome)?;
    let [before, after] = all[..] else { return demand(false, "two loops were expected") };
    demand(before.calls > 0 && before.reschedulings > 0, "the others had nothing for the CPU")?;
    for came in [before, after] {
        // The loop ends with a whole second of the clock and with an iteration.
        let whole = ((SECONDS - 1) * TICKS..=(SECONDS + 1) * TICKS).contains(&came.ticks);
        demand(whole, "the tick does not come as often as it should")?;
    }
    let nothing =
        Came { ticks: after.ticks, switches: after.switches, devices: 0, calls: 0, reschedulings: 0 };
    demand(after == nothing, "interrupts come to the taken CPU")?;
    demand(after.switches <= after.ticks, "other threads run on the taken CPU")
}

/// With boot parameters there is no tick either. About once per second the kernel checks the CPU.
fn is_hardly_disturbed(outcome: &Outcome) -> Result {
    let all = seen(outcome)?;
    let [other, before, after] = all[..] else { return demand(false, "three loops were expected") };
    demand(other.ticks >= (SECONDS - 1) * TICKS && other.switches >= SECONDS, "the other CPU is idle")?;
    for (came, name) in [(before, "free"), (after, "taken")] {
        let Came { ticks, devices, calls, reschedulings, switches } = came;
        demand(devices == 0, &format!("interrupts of devices come to the {name} CPU"))?;
        demand(ticks <= SECONDS * 5, &format!("the {name} CPU has too many ticks"))?;
        let rare = [calls, reschedulings, switches].iter().all(|&count| count <= SECONDS * 2);
        demand(rare, &format!("too much comes to the {name} CPU"))?;
    }
    Ok(())
}

fn taken(punctual: &Path) -> Case {
    let name = "interruptions of a CPU before and after it is isolated";
    case(name, &[Setup::COUNTED_FOUR], &[3], punctual, is_left_alone)
        .lacking("a CPU that no other program needs")
}

fn booted(punctual: &Path) -> Case {
    let name = "interruptions of a CPU with boot parameters, before and after it is isolated";
    case(name, &[Setup::ISOLATED], &[0, 1], punctual, is_hardly_disturbed)
        .lacking("boot parameters that isolate a CPU")
}

/// Returns a case that watches these CPUs in turn, and then the last of them isolated.
fn case(
    name: &str,
    on: &'static [Setup],
    cpus: &[u32],
    punctual: &Path,
    judge: fn(&Outcome) -> Result,
) -> Case {
    let watch = |cpu: &u32| format!("taskset -c {cpu} sh /tmp/case/watched\n");
    let script = format!(
        "{CGROUPS}
        {watched}{OTHERS}
        {turns}
        {program} isolate run --no-record --cpus {last} -- sh /tmp/case/watched
        kill $loads
        wait 2>/dev/null
        rm -f /results/file",
        watched = watched(),
        turns = cpus.iter().map(watch).collect::<String>(),
        program = in_guest(punctual),
        last = cpus[cpus.len() - 1],
    );
    Case::new(name, on, script, Some(punctual), judge).saying(|outcome| Ok(figure(&seen(outcome)?)))
}

#[cfg(test)]
mod tests {
    use super::super::rejects;
    use super::*;

    #[test]
    fn rejects_interrupts_other_than_tick_on_isolated_cpu() {
        rejects(
            is_left_alone,
            "2642 0 472 487 3040 of 3\n2639 0 0 0 2635 of 3\n",
            &[
                ("472", "0"),
                ("2639 0 0 0 2635", "1200 0 0 0 600"),
                ("2639 0 0 0", "2639 1 0 0"),
                ("2639 0 0 0", "2639 0 1 0"),
                ("2639 0 0 0", "2639 0 0 1"),
                ("2635", "2640"),
                ("2639 0 0 0 2635 of 3\n", ""),
                ("487 3040", "487"),
            ],
        );
    }

    #[test]
    fn rejects_tick_on_nohz_cpu() {
        rejects(
            is_hardly_disturbed,
            "3144 5455 0 0 1694 of 0\n17 0 9 9 7 of 1\n26 0 8 8 4 of 1\n",
            &[
                ("26 0 8 8 4 of 1\n", ""),
                ("26 0", "51 0"),
                ("26 0", "26 1"),
                ("26 0 8", "26 0 21"),
                ("9 9 7", "9 9 21"),
            ],
        );
    }
}
