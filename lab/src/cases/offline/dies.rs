//! Either of two programs dies or hangs: the other one reaches its safe state within the time that
//! they declare, and Linux takes its CPU back.

use xtask_support::Result;
use xtask_support::process::Outcome;

use super::{Case, case, level};
use crate::cases::demand;

/// The time in which both programs detect a stall, see `lab/programs/examples/shared/level.rs`;
/// half of it passes in any case.
const DECLARED_MS: u64 = 8_000;

/// The failures, with their exit codes.
const WAYS: [(&str, &str); 6] = [
    ("Linux is killed", "1"),
    ("Linux stops", "1"),
    ("all of Linux stops", "1"),
    ("the command stops", "0"),
    ("the other one faults", "101"),
    ("the other one hangs", "101"),
];

/// Prints for each failure its name, the time until the other program was safe, and the exit code.
pub(super) fn dies() -> Case {
    let script = format!(
        "cd /tmp
        run=\"$punctual isolate run --offline --heartbeat 30s --grace 2s --cpus 2 -- $level $level_ui\"
        now() {{ read up idle </proc/uptime; echo $((${{up%.*}}${{up#*.}}0)); }}
        until_said() {{ until grep -q \"$1\" out || ! kill -0 $command; do usleep 20000; done; }}
        begin() {{ : >out; $run $1 >out 2>&1 & command=$!; until_said \"ui: $2\"; linux=$(pidof level_ui); from=$(now); }}
        say() {{ till=$(now); wait $command; echo \"$1: $((till - from)) ms, $?, online $(cat /sys/devices/system/cpu/online)\"; }}
        begin runs 3; kill -KILL $linux; until_said 'control: safe'; say 'Linux is killed'
        begin runs 3; kill -STOP $linux; until_said 'control: safe'; say 'Linux stops'
        begin runs 3; kill -STOP $command $linux; sleep {seconds}
        kill -CONT $command; until_said 'control: safe'; kill -KILL $linux; say 'all of Linux stops'
        begin runs 3; kill -STOP $command; sleep {seconds}; kill -CONT $command; grep -c 'control: safe' out; kill -INT $command; say 'the command stops'
        begin other-faults 5; until_said 'ui: ends'; say 'the other one faults'; grep 'data abort' out
        begin other-hangs 5; until_said 'ui: ends'; say 'the other one hangs'
        $run ends >out 2>&1; echo \"again $?\"",
        seconds = DECLARED_MS / 1_000 + 1,
    );
    let figure = |outcome: &Outcome| {
        let times = WAYS.iter().filter_map(|(way, _)| Some(format!("{way} {} ms", took(outcome, way)?.0)));
        Ok(times.collect::<Vec<_>>().join(", "))
    };
    let name = "whichever program dies or hangs, the other one is safe in time";
    case(name, &script, &level(), judge).saying(figure)
}

/// Returns the time, and the rest of the line.
fn took<'a>(outcome: &'a Outcome, way: &str) -> Option<(u64, &'a str)> {
    let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(way)?.strip_prefix(": "))?;
    let (ms, rest) = line.split_once(" ms, ")?;
    Some((ms.parse().ok()?, rest))
}

fn judge(outcome: &Outcome) -> Result {
    for (way, code) in WAYS {
        let Some((ms, rest)) = took(outcome, way) else {
            return demand(false, &format!("{way}: nothing is said"));
        };
        demand(rest == format!("{code}, online 0-2"), &format!("{way}: it did not end so"))?;
        let most = match way {
            // It is reported when the command continues, a second after the time has elapsed.
            "all of Linux stops" | "the command stops" => DECLARED_MS + 2_000,
            _ => DECLARED_MS,
        };
        demand(ms <= most, &format!("{way}: it took longer than declared"))?;
    }
    let printed = |line: &str| outcome.stdout.lines().any(|printed| printed == line);
    demand(printed("0"), "it ended though only the command had stopped")?;
    demand(outcome.stdout.contains("data abort"), "a fault was not said")?;
    demand(printed("again 0"), "the CPU cannot be had again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rejects;

    #[test]
    fn demands_each_end_in_time() {
        let ends: Vec<String> =
            WAYS.iter().map(|(way, code)| format!("{way}: 7999 ms, {code}, online 0-2\n")).collect();
        rejects(
            judge,
            &format!("{}0\npunctual: data abort\nagain 0\nonline 0-2\n", ends.concat()),
            &[
                ("Linux is killed: 7999", "Linux is killed: 8001"),
                ("all of Linux stops: 7999", "all of Linux stops: 10001"),
                ("Linux stops: 7999 ms, 1,", "Linux stops: 7999 ms, 0,"),
                (
                    "the other one faults: 7999 ms, 101, online 0-2",
                    "the other one faults: 7999 ms, 101, online 0-1",
                ),
                ("the other one hangs: 7999", "the other one hangs: "),
                ("\n0\n", "\n1\n"),
                ("data abort", ""),
                ("again 0", "again 2"),
            ],
        );
    }
}
