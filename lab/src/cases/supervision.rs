//! Misbehaving apps under `punctual supervise`: each ends as declared, within the required time,
//! and the other CPU stays usable.
//!
//! In counted time, where the host adds no delays to the long ones.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Purpose;
use xtask_support::process::Outcome;

use super::{Built, CGROUPS, Case, Setup, demand, find, punctual};
use crate::driver::stage::in_guest;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>, bench: Option<&Path>) -> Result<Vec<Case>> {
    let punctual = punctual(built, bench)?;
    // One of the command's tests is the misbehaving app.
    Ok(vec![misbehaves(punctual, find(built, Purpose::Test, "punctual-cli", "supervise")?)])
}

/// An app's error.
struct Mistake {
    /// The app's name for it.
    name: &'static str,
    options: &'static str,
    /// The exit status.
    status: u32,
    /// The supervisor's first and last message about it; and the maximum time between the two, in
    /// s.
    from: &'static str,
    until: &'static str,
    within: f64,
}

/// Between two messages of the supervisor are its check of the app, at most 50 ms, and the two
/// shells that timestamp its output, on the CPU that the loop does not use. The first stack takes
/// half a second more, for reading the app's unwind tables.
const MISTAKES: [Mistake; 7] = [
    Mistake {
        name: "loop and be killed",
        options: "",
        status: 137,
        from: "watches app every",
        until: "its budget is 100 ms; the process is killed",
        within: 1.0,
    },
    Mistake {
        name: "loop and be stopped",
        options: "--grace 200ms",
        status: 137,
        from: "the app is asked to stop",
        until: "kills the process: it did not end after a request to stop",
        within: 0.4,
    },
    Mistake {
        name: "fault",
        options: "",
        status: 139,
        from: "watches app every",
        until: "SIGSEGV in a job of other",
        within: 0.4,
    },
    Mistake {
        name: "overflow",
        options: "",
        status: 134,
        from: "watches app every",
        until: "SIGSEGV in a job of other",
        within: 0.4,
    },
    Mistake {
        name: "abort",
        options: "",
        status: 134,
        from: "watches app every",
        until: "SIGABRT in a job of other",
        within: 0.4,
    },
    Mistake {
        name: "be stopped by a signal",
        options: "--stopped 100ms",
        status: 137,
        from: "the process was stopped by a signal",
        until: "kills the process: it was stopped by a signal, and not continued in time",
        within: 0.3,
    },
    Mistake {
        name: "use up memory",
        options: "",
        status: 137,
        from: "watches app every",
        until: "ended: killed by the kernel, out of memory",
        within: 5.0,
    },
];

/// The maximum time after which a job with a budget of 100 ms is caught: the check runs every 10
/// ms, and may wait for a turn of the CPUs. In ms.
const CAUGHT: u32 = 120;

/// The maximum time for a shell's answer while a loop at real-time priority occupies the other CPU,
/// in s.
const ANSWER: f64 = 1.0;

fn misbehaves(punctual: &Path, app: &Path) -> Case {
    let mut script = format!(
        // The kernel's messages about crashes and memory are expected, and contain addresses.
        "dmesg -n 1
        {CGROUPS}
        echo +memory >/sys/fs/cgroup/cgroup.subtree_control
        export GROUP_OF_MEMORY=/sys/fs/cgroup/little END_OF_LOOP=/tmp/case/end
        mkdir $GROUP_OF_MEMORY && echo 67108864 >$GROUP_OF_MEMORY/memory.max
        noted() {{ while read -r line; do read -r now rest </proc/uptime; echo \"$now $line\"; done; }}
        supervised() {{
            export MISTAKE=\"$1\"; shift
            {{
                echo \"mistake $MISTAKE\"
                {punctual} supervise \"$@\" -- {app} --ignored --exact --nocapture program 2>&1
                echo \"status $?\"
            }} | noted
        }}\n",
        punctual = in_guest(punctual),
        app = in_guest(app)
    );
    for mistake in &MISTAKES {
        script += &format!("supervised '{}' {}\n", mistake.name, mistake.options);
    }
    script += "supervised 'loop and be reported' >/tmp/reported &
        until grep -q 'a job of reported' /tmp/reported; do sleep 0.1; done
        read -r asked rest </proc/uptime
        taskset -c 0 sh -c 'ls /bin >/tmp/answer'
        read -r answered rest </proc/uptime
        echo \"$asked asked\"
        echo \"$answered answered\"
        : >$END_OF_LOOP
        wait
        cat /tmp/reported
        for stack in punctual-supervise-*-1.txt; do grep -o -e 'supervise::[a-z_]*' $stack | head -n 1; done
        rmdir $GROUP_OF_MEMORY && echo -memory >/sys/fs/cgroup/cgroup.subtree_control
        dmesg -n 7";
    Case::new(
        "apps that misbehave end as declared, under supervision",
        &[Setup::COUNTED_TWO],
        script,
        Some(punctual),
        ended_as_declared,
    )
    .with(app)
    .lacking("that nothing else runs short of memory")
}

/// Returns the output with times, in s.
fn printed(outcome: &Outcome) -> Vec<(f64, &str)> {
    let line = |line: &'_ str| -> Option<(f64, usize)> {
        let (time, _) = line.split_once(' ')?;
        Some((time.parse().ok()?, time.len() + 1))
    };
    outcome.stdout.lines().filter_map(|text| line(text).map(|(time, at)| (time, &text[at..]))).collect()
}

/// Returns the CPU time in ms that a job had used when it was caught, if the line contains it.
fn had_run(line: &str) -> Option<u32> {
    let (_, after) = line.split_once(", has used ")?;
    after.split_once(" ms ")?.0.parse().ok()
}

fn ended_as_declared(outcome: &Outcome) -> Result {
    let lines = printed(outcome);
    for mistake in &MISTAKES {
        let begins = format!("mistake {}", mistake.name);
        let lines = lines.iter().skip_while(|(_, line)| *line != begins).skip(1);
        let lines: Vec<_> = lines.take_while(|(_, line)| !line.starts_with("mistake ")).collect();
        let at = |what: &str| lines.iter().find(|(_, line)| line.contains(what)).map(|(time, _)| *time);
        let name = mistake.name;
        let (Some(from), Some(until)) = (at(mistake.from), at(mistake.until)) else {
            return demand(false, &format!("{name}: the events were not reported"));
        };
        demand(at(&format!("status {}", mistake.status)).is_some(), &format!("{name}: it ended otherwise"))?;
        demand(until - from <= mistake.within, &format!("{name}: it took {:.2} s", until - from))?;
    }
    let caught: Vec<u32> = lines.iter().filter_map(|(_, line)| had_run(line)).collect();
    let in_time = caught.iter().all(|ran| (100..=CAUGHT).contains(ran));
    demand(caught.len() == 3 && in_time, &format!("jobs were caught after {caught:?} ms"))?;
    let at = |what: &str| lines.iter().find(|(_, line)| *line == what).map(|(time, _)| *time);
    let answer = at("asked").zip(at("answered")).map(|(asked, answered)| answered - asked);
    demand(answer.is_some_and(|took| took <= ANSWER), "a shell on the other CPU did not answer in time")?;
    // It continues after that, until the shell has created its file.
    let last = lines.iter().rfind(|(_, line)| line.starts_with("status "));
    demand(last.is_some_and(|(_, line)| *line == "status 0"), "the loop did not end by itself")?;
    let stacks = ["supervise::loops", "supervise::fails", "supervise::deeper"];
    let shown = |stack: &&str| outcome.stdout.lines().any(|line| line == *stack);
    demand(stacks.iter().all(shown), "a stack is missing")
}

#[cfg(test)]
mod tests {
    use super::super::rejects;
    use super::*;

    /// Returns the output of a guest without failures.
    fn whole() -> String {
        let mut text = String::new();
        for mistake in &MISTAKES {
            let caught = match mistake.name.starts_with("loop") {
                true => "supervise: a job of x, level 2, has used 104 ms of CPU time in 105 ms; its budget\n",
                false => "supervise: x\n",
            };
            text += &format!(
                "1.00 mistake {}\n1.01 supervise: {}\n1.15 {caught}1.16 supervise: {}\n1.20 status {}\n",
                mistake.name, mistake.from, mistake.until, mistake.status
            );
        }
        text + "3.00 asked\n3.01 answered\n2.00 supervise: a job of reported, level 2, has used 110 ms of CPU time in 111 ms; its\n4.00 status 0\n\
                supervise::loops\nsupervise::fails\nsupervise::deeper\n"
    }

    #[test]
    fn rejects_end_other_than_declared() {
        rejects(
            ended_as_declared,
            &whole(),
            &[
                ("status 139", "status 0"),
                ("1.20 status 134", "1.20 status 139"),
                ("used 104 ms", "used 121 ms"),
                ("used 110 ms", "used 90 ms"),
                ("1.16 supervise: SIGABRT in a job of other", "1.50 supervise: SIGABRT in a job of other"),
                ("3.01 answered", "4.01 answered"),
                ("3.01 answered", ""),
                ("4.00 status 0", "4.00 status 137"),
                ("supervise::deeper\n", ""),
            ],
        );
    }
}
