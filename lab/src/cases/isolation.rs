//! Boot parameters that take a CPU away from Linux: what is left of the tick, and what an app says of it.

use std::path::Path;

use xtask_support::cargo::{Artifact, Purpose};
use xtask_support::process::{End, Outcome};
use xtask_support::{Result, golden};

use super::{Case, Setup, demand, find};
use crate::driver::stage::in_guest;

/// The second of two CPUs is taken away: from the scheduler, from the tick, from RCU's callbacks, from interrupts.
pub(super) const PARAMETERS: &str = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0";

/// For so long ticks are counted, in seconds.
const SECONDS: u32 = 3;

/// A CPU that is left alone has at most this part of the ticks that another has. The kernel keeps one a second or so, for
/// what it can do nowhere else.
const PART: u64 = 20;

/// The cases of this file.
pub(super) fn cases(built: &[Artifact]) -> Result<Vec<Case>> {
    Ok(vec![ticks(), reported(find(built, Purpose::Example, golden::PACKAGE, "periodic")?)])
}

/// A loop on the isolated CPU is hardly ever interrupted by the tick; the same loop on the other CPU always.
fn ticks() -> Case {
    // From field 2 on, the local timer interrupts of each CPU. Both are read from the CPU that is not measured, except
    // that it is then busy itself.
    let script = format!(
        "cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full
        count() {{ awk -v cpu=$1 '$1 == \"LOC:\" {{ print $(cpu + 2) }}' /proc/interrupts; }}
        for cpu in 0 1; do
            taskset -c $cpu sh -c 'while :; do :; done' &
            loop=$!
            sleep 1
            before=$(count $cpu)
            sleep {SECONDS}
            after=$(count $cpu)
            kill $loop
            echo $((after - before))
        done"
    );
    let judge = |outcome: &Outcome| {
        let (parameters, ticks) = read(outcome)?;
        demand(outcome, parameters == ["1", "1"], "the CPU is not isolated")?;
        demand(outcome, ticks[0] >= u64::from(SECONDS) * 50, "the other CPU has no tick either")?;
        demand(outcome, ticks[1] * PART <= ticks[0], "the isolated CPU has too many ticks")
    };
    let figure = |outcome: &Outcome| {
        let (_, ticks) = read(outcome)?;
        Ok(format!("{} ticks in {SECONDS} s, {} on the other CPU", ticks[1], ticks[0]))
    };
    Case::new("an isolated CPU has hardly a tick", &[Setup::Isolated], script, None, Box::new(judge))
        .saying(figure)
        .lacking("boot parameters that isolate a CPU")
        .quick(&[Setup::Isolated])
}

/// What the kernel says of its parameters, and the ticks of a loop on CPU 0 and on CPU 1.
fn read(outcome: &Outcome) -> Result<(Vec<&str>, [u64; 2])> {
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let [isolated, without_tick, zero, one] = lines[..] else {
        return Err(format!("four lines were expected\n{}{}", outcome.stdout, outcome.stderr).into());
    };
    Ok((vec![isolated, without_tick], [zero.parse()?, one.parse()?]))
}

/// An app takes the isolated CPU by itself, and says that it is isolated.
fn reported(program: &Path) -> Case {
    let script = format!("PUNCTUAL_REPORT=1 exec {}", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome, outcome.end == End::Exited(0), "it failed")?;
        demand(outcome, outcome.stderr.contains("note: CPU 1 is isolated"), "the report does not say so")?;
        demand(outcome, outcome.stderr.contains("it has no tick"), "the report does not name the tick")?;
        let level = outcome.stderr.lines().find(|line| line.starts_with("level "));
        let cpu = level.and_then(|line| line.split_whitespace().nth(4));
        demand(outcome, cpu == Some("1"), "the task is on another CPU")
    };
    let name = "the report says that the CPU is isolated";
    Case::new(name, &[Setup::Isolated], script, Some(program), Box::new(judge))
        .lacking("boot parameters that isolate a CPU")
        .quick(&[Setup::Isolated])
}

#[cfg(test)]
mod tests {
    use super::super::outcome;
    use super::*;

    #[test]
    fn judges_ticks_as_a_ratio() {
        let case = ticks();
        let said = |text: &str| (case.judge)(&outcome(text, ""));
        said("1\n1\n750\n6\n").unwrap();
        assert!(said("1\n1\n750\n700\n").unwrap_err().to_string().contains("too many ticks"));
        assert!(said("1\n1\n6\n0\n").unwrap_err().to_string().contains("no tick either"));
        assert!(said("\n(null)\n750\n6\n").unwrap_err().to_string().contains("not isolated"));
        assert!(said("1\n1\n750\n").unwrap_err().to_string().contains("four lines"));
        assert_eq!(
            case.said(&outcome("1\n1\n750\n6\n", "")).unwrap(),
            "6 ticks in 3 s, 750 on the other CPU"
        );
    }

    #[test]
    fn refuses_app_on_another_cpu() {
        let judge = reported(Path::new("/x")).judge;
        let report = |cpu| {
            format!(
                "level 1  SCHED_FIFO  51  {cpu}\nidle  SCHED_OTHER 0 1\nnote: CPU 1 is isolated: x; it has no tick\n"
            )
        };
        judge(&outcome("", &report("1"))).unwrap();
        assert!(judge(&outcome("", &report("0"))).is_err());
        assert!(judge(&outcome("", "level 1  SCHED_FIFO  51  1\n")).is_err());
    }
}
