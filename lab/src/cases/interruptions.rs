//! What comes to a loop on a CPU in ten seconds: ticks, interrupts of devices, calls from other CPUs, other threads. Before the CPU
//! is taken, and after; and on one that boot parameters keep free.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Artifact;
use xtask_support::process::Outcome;

use super::{CGROUPS, Case, Setup, demand, punctual};
use crate::driver::stage::in_guest;

/// How long the loop runs, in s.
const SECONDS: u64 = 10;
/// How often Debian's kernel ticks, in Hz.
const TICKS: u64 = 250;

/// The cases of this file.
pub(super) fn cases(built: &[Artifact], bench: Option<&Path>) -> Result<Vec<Case>> {
    let punctual = punctual(built, bench)?;
    Ok(vec![taken(punctual), booted(punctual)])
}

/// A loop that starts no program while it is watched, and prints what came to its CPU meanwhile.
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

/// What the others do: enough that something of it would come.
const OTHERS: &str = "
        forks() { while :; do (:) & wait; usleep 2000; done; }
        files() { while :; do dd if=/dev/zero of=/results/file bs=64k count=4 2>/dev/null; sync; usleep 20000; done; }
        for load in forks files; do $load & loads=\"$loads $!\"; done
";

/// What came in the ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Came {
    ticks: u64,
    devices: u64,
    /// Function calls of other CPUs.
    calls: u64,
    /// Reschedulings by other CPUs.
    reschedulings: u64,
    /// Switches from the loop to other threads.
    switches: u64,
}

/// What the loops printed, one after the other.
fn seen(outcome: &Outcome) -> Result<Vec<Came>> {
    let came = |line: &str| {
        let (counts, _) = line.split_once(" of ")?;
        let counts: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [ticks, devices, calls, reschedulings, switches] = counts[..] else { return None };
        Some(Came { ticks, devices, calls, reschedulings, switches })
    };
    let all: Option<Vec<Came>> = outcome.stdout.lines().map(came).collect();
    all.filter(|all| !all.is_empty()).ok_or_else(|| {
        format!("a line for each loop was expected\n{}{}", outcome.stdout, outcome.stderr).into()
    })
}

fn figure(all: &[Came]) -> String {
    let one = |came: &Came| {
        let Came { ticks, devices, calls, reschedulings, switches } = came;
        format!("{ticks} ticks, {devices} + {calls} + {reschedulings} interrupts, {switches} switches")
    };
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Without boot parameters the tick is left, and with it the kernel's thread for RCU callbacks: while others free memory, the tick
/// wakes it each time.
fn is_left_alone(outcome: &Outcome) -> Result {
    let all = seen(outcome)?;
    let [before, after] = all[..] else { return demand(outcome, false, "two loops were expected") };
    demand(outcome, before.calls > 0 && before.reschedulings > 0, "the others had nothing for the CPU")?;
    for came in [before, after] {
        // The loop ends with a whole second of the clock and with a round of its own.
        let whole = ((SECONDS - 1) * TICKS..=(SECONDS + 1) * TICKS).contains(&came.ticks);
        demand(outcome, whole, "the tick does not come as often as it should")?;
    }
    let nothing =
        Came { ticks: after.ticks, switches: after.switches, devices: 0, calls: 0, reschedulings: 0 };
    demand(outcome, after == nothing, "interrupts come to the taken CPU")?;
    demand(outcome, after.switches <= after.ticks, "other threads run on the taken CPU")
}

/// With boot parameters the tick is gone as well. About once a second the kernel looks after the CPU.
fn is_hardly_disturbed(outcome: &Outcome) -> Result {
    let all = seen(outcome)?;
    let [other, before, after] = all[..] else { return demand(outcome, false, "three loops were expected") };
    demand(
        outcome,
        other.ticks >= (SECONDS - 1) * TICKS && other.switches >= SECONDS,
        "the other CPU is idle",
    )?;
    for (came, name) in [(before, "free"), (after, "taken")] {
        let Came { ticks, devices, calls, reschedulings, switches } = came;
        demand(outcome, devices == 0, &format!("interrupts of devices come to the {name} CPU"))?;
        demand(outcome, ticks <= SECONDS * 5, &format!("the {name} CPU has too many ticks"))?;
        let rare = [calls, reschedulings, switches].iter().all(|&count| count <= SECONDS * 2);
        demand(outcome, rare, &format!("too much comes to the {name} CPU"))?;
    }
    Ok(())
}

fn taken(punctual: &Path) -> Case {
    let script = format!(
        "{CGROUPS}
        {watched}{OTHERS}
        taskset -c 3 sh /tmp/case/watched
        {program} isolate run --no-record --cpus 3 -- sh /tmp/case/watched
        kill $loads
        wait 2>/dev/null
        rm -f /results/file",
        watched = watched(),
        program = in_guest(punctual)
    );
    Case::new(
        "what comes to a CPU before and after it is taken",
        &[Setup::CountedFour],
        script,
        Some(punctual),
        Box::new(is_left_alone),
    )
    .saying(|outcome| Ok(figure(&seen(outcome)?)))
    .lacking("a CPU that nobody else needs")
}

fn booted(punctual: &Path) -> Case {
    let script = format!(
        "{CGROUPS}
        {watched}{OTHERS}
        taskset -c 0 sh /tmp/case/watched
        taskset -c 1 sh /tmp/case/watched
        {program} isolate run --no-record --cpus 1 -- sh /tmp/case/watched
        kill $loads
        wait 2>/dev/null
        rm -f /results/file",
        watched = watched(),
        program = in_guest(punctual)
    );
    Case::new(
        "what comes to a CPU that boot parameters keep free, before and after it is taken",
        &[Setup::Isolated],
        script,
        Some(punctual),
        Box::new(is_hardly_disturbed),
    )
    .saying(|outcome| Ok(figure(&seen(outcome)?)))
    .lacking("boot parameters that isolate a CPU")
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn demands_that_nothing_comes_to_a_taken_cpu_but_the_tick() {
        let said = |text: &str| is_left_alone(&outcome(text, ""));
        said("2642 0 472 487 3040 of 3\n2639 0 0 0 2635 of 3\n").unwrap();
        for wrong in [
            "2642 0 0 487 3040 of 3\n2639 0 0 0 2635 of 3\n",
            "2642 0 472 487 3040 of 3\n1200 0 0 0 600 of 3\n",
            "2642 0 472 487 3040 of 3\n2639 1 0 0 2635 of 3\n",
            "2642 0 472 487 3040 of 3\n2639 0 1 0 2635 of 3\n",
            "2642 0 472 487 3040 of 3\n2639 0 0 1 2635 of 3\n",
            "2642 0 472 487 3040 of 3\n2639 0 0 0 2640 of 3\n",
            "2642 0 472 487 3040 of 3\n",
            "",
            "2642 0 472 487 of 3\n2639 0 0 0 2635 of 3\n",
        ] {
            said(wrong).unwrap_err();
        }
    }

    #[test]
    fn demands_that_boot_parameters_take_the_tick() {
        let said = |text: &str| is_hardly_disturbed(&outcome(text, ""));
        let other = "3144 5455 0 0 1694 of 0\n";
        said(&format!("{other}17 0 9 9 7 of 1\n26 0 8 8 4 of 1\n")).unwrap();
        for wrong in [
            "17 0 9 9 7 of 1\n",
            "17 0 9 9 7 of 1\n51 0 8 8 4 of 1\n",
            "17 0 9 9 7 of 1\n26 1 8 8 4 of 1\n",
            "17 0 9 9 7 of 1\n26 0 21 8 4 of 1\n",
            "17 0 9 9 21 of 1\n26 0 8 8 4 of 1\n",
        ] {
            said(&format!("{other}{wrong}")).unwrap_err();
        }
    }
}
