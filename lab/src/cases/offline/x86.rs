//! An x86-64 CPU that Linux gave up, started by INIT and a startup IPI: the prototype of
//! `docs/book/src/guides/amp.md`.

use xtask_support::Result;
use xtask_support::process::Outcome;

use super::{COMPLAINTS, Case};
use crate::cases::{Setup, demand};
use crate::kernels::modules;

/// The number of times that it is taken and returned.
const CYCLES: u32 = 10;

/// The CPU counts in memory while it is offline in Linux, and Linux gets it back.
pub(super) fn sipi() -> Case {
    let script = format!(
        "dmesg -c >/tmp/kernel
        cpu=/sys/devices/system/cpu; count=/sys/module/punctual_sipi/parameters/count
        insmod {module} 2>&1 | grep -q busy && echo 'refused'
        for cycle in $(seq {CYCLES}); do
            echo 0 >$cpu/cpu1/online && insmod {module} || break
            usleep 50000; first=$(cat $count); usleep 50000; second=$(cat $count)
            echo \"counts $first $second, online $(cat $cpu/online)\"
            echo 1 >$cpu/cpu1/online || break
            after=$(cat $count); usleep 50000
            echo \"back $((after - $(cat $count))), online $(cat $cpu/online)\"
            taskset 2 true && echo computes
            rmmod punctual_sipi
        done
        dmesg >/tmp/kernel; grep -iE '{COMPLAINTS}' /tmp/kernel && echo complaints
        true",
        module = modules::in_guest("punctual_sipi")
    );
    Case::new("a CPU of x86-64 counts without Linux", &[Setup::TWO], script, None, judge)
        .lacking("the module punctual_sipi, and a CPU that no other program needs")
}

fn judge(outcome: &Outcome) -> Result {
    let printed = |line: &str| outcome.stdout.lines().filter(|printed| *printed == line).count();
    demand(printed("refused") == 1, "a CPU was taken that Linux has")?;
    let counts =
        outcome.stdout.lines().filter_map(|line| line.strip_prefix("counts ")?.strip_suffix(", online 0"));
    let grow = counts.filter(|counts| {
        let counts =
            counts.split_once(' ').map(|(first, second)| (first.parse::<u64>(), second.parse::<u64>()));
        matches!(counts, Some((Ok(first), Ok(second))) if 0 < first && first < second)
    });
    let cycles = CYCLES as usize;
    demand(grow.count() == cycles, "it did not count")?;
    demand(printed("back 0, online 0-1") == cycles, "Linux did not get it back")?;
    demand(printed("computes") == cycles, "the CPU does not work for Linux again")?;
    demand(!outcome.stdout.ends_with("complaints\n"), "the kernel complains")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rejects;

    #[test]
    fn rejects_missing_count_or_cpu() {
        let cycle = "counts 7 9, online 0\nback 0, online 0-1\ncomputes\n";
        let good = format!("refused\n{}", cycle.repeat(CYCLES as usize));
        rejects(
            judge,
            &good,
            &[
                ("refused\n", ""),
                ("counts 7 9", "counts 9 9"),
                ("counts 7 9", "counts 0 9"),
                ("online 0\n", "online 0-1\n"),
                ("back 0", "back -4"),
                ("online 0-1", "online 0"),
                ("computes\n", ""),
                (&good, &format!("{good}[1] BUG: x\ncomplaints\n")),
            ],
        );
    }
}
