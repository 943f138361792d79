//! Boot parameters that isolate a CPU: the remaining ticks, and the report of an app. And `punctual
//! isolate`, which needs no boot parameters and restores everything.

use std::path::Path;

use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};
use xtask_support::{Result, golden};

use super::{Built, CGROUPS, Case, Setup, demand, find, punctual};
use crate::driver::stage::in_guest;

/// Isolates the second of two CPUs: from the scheduler, the tick, RCU callbacks and interrupts.
pub(super) const PARAMETERS: &str = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0";

/// The duration for which ticks are counted, in seconds.
const SECONDS: u32 = 3;

/// The maximum fraction of ticks on an isolated CPU relative to another CPU. The kernel keeps about
/// one per second, for work that cannot run elsewhere.
const PART: u64 = 20;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>, bench: Option<&Path>) -> Result<Vec<Case>> {
    let punctual = punctual(built, bench)?;
    let periodic = find(built, Purpose::Example, golden::PACKAGE, "periodic")?;
    let polling = find(built, Purpose::Example, golden::PACKAGE, "polling")?;
    Ok(vec![ticks(), reported(periodic), given_back(punctual), under_load(punctual), partitioned(polling)])
}

/// The note in an app's report about a shared polling CPU.
const SHARED: &str = "is not isolated, so other threads take turns";

/// A polling app runs in an isolated cpuset partition, as its report advises outside of one, where
/// it also runs. A partition with one CPU lacks a CPU for the app's other threads, and the
/// message names the reason.
fn partitioned(program: &Path) -> Case {
    let script = format!(
        "{CGROUPS}
        cd /sys/fs/cgroup && echo +cpuset >cgroup.subtree_control && mkdir polls || exit 9
        partition() {{
            echo $1 >polls/cpuset.cpus && echo isolated >polls/cpuset.cpus.partition && cat polls/cpuset.cpus.partition
        }}
        inside() {{ sh -c 'echo $$ >/sys/fs/cgroup/polls/cgroup.procs && PUNCTUAL_REPORT=1 exec {program}'; }}
        partition 2-3
        echo inside >&2; inside; echo inside $?
        echo outside >&2; PUNCTUAL_REPORT=1 {program}; echo outside $?
        echo member >polls/cpuset.cpus.partition
        partition 3
        echo alone >&2; inside; echo alone $?
        cd / && echo member >/sys/fs/cgroup/polls/cpuset.cpus.partition
        rmdir /sys/fs/cgroup/polls && echo -cpuset >/sys/fs/cgroup/cgroup.subtree_control",
        program = in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        let printed = |line: &str| outcome.stdout.lines().filter(|&other| other == line).count();
        demand(printed("isolated") == 2, "a partition is not valid")?;
        demand(printed("inside 0") == 1, "inside it did not run")?;
        demand(printed("outside 0") == 1, "outside it did not run")?;
        demand(printed("alone 2") == 1, "with one CPU it was not refused")?;
        let parts = outcome.stderr.split_once("outside\n").zip(outcome.stderr.split_once("alone\n"));
        let Some(((inside, _), (outside, alone))) = parts else {
            return demand(false, "its reports are missing");
        };
        demand(!inside.contains(SHARED), "inside, the report calls its CPU not isolated")?;
        demand(outside.contains(SHARED), "outside, the report does not call its CPU shared")?;
        demand(alone.contains("allow it more CPUs"), "the refusal gives no advice")
    };
    Case::new("an app polls inside and outside a partition", &[Setup::FOUR], script, Some(program), judge)
        .lacking("four CPUs that no other program needs")
}

/// The number of times that `punctual` is killed, and the random moments in µs as shell words: the
/// odd ones since the start, the even ones since the first write. In a guest all writes take about
/// 0.3 s.
const KILLS: usize = 50;
const MOMENTS: &str = "$(awk 'BEGIN { srand(); for (n = 0; n < 50; n++) print int(rand() * 300000) }')";
/// At least one in this many kills leaves settings to be restored.
const EACH_LEAVES: usize = 5;

/// A CPU is isolated, has no device interrupts during a computation, and all settings are restored:
/// after the command's end, after its crash, and after `punctual` was killed at some moment and
/// called again.
///
/// Nothing is recorded: see `tracing` about recordings in the host's time.
fn given_back(program: &Path) -> Case {
    // The softirq of an interrupt runs at its old CPU until its next interrupt, so a host file is
    // written first.
    let script = format!(
        "{CGROUPS}
        state() {{
            for file in /proc/irq/*/smp_affinity_list /proc/irq/default_smp_affinity \
                /sys/devices/virtual/workqueue/cpumask /sys/devices/virtual/workqueue/writeback/cpumask \
                /sys/class/net/*/queues/*/?ps_cpus /proc/sys/kernel/watchdog_cpumask \
                /proc/sys/kernel/timer_migration /proc/sys/vm/stat_interval \
                /sys/kernel/debug/sched/fair_server/cpu*/runtime \
                /sys/fs/cgroup/cgroup.subtree_control /sys/fs/cgroup/cpuset.cpus.isolated; do
                echo \"$file $(cat $file 2>/dev/null)\"
            done
            find /sys/fs/cgroup -type d
        }}
        compare() {{ state >/tmp/after; cmp -s /tmp/before /tmp/after && echo $1 same || echo $1 differs; }}
        state >/tmp/before
        {program} isolate run --no-record --cpus 3 -- sh -c '
            devices() {{ awk \"\\$1 ~ /^[0-9]+:/ {{ n += \\$5 }} END {{ print n + 0 }}\" /proc/interrupts; }}
            grep Cpus_allowed_list /proc/self/status
            cat /sys/fs/cgroup/cpuset.cpus.isolated
            for n in 1 2 3; do echo $n >/results/written; sync; done
            before=$(devices)
            i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done
            echo $(($(devices) - before)) interrupts
            exit 7'
        echo ended $?
        compare ended
        {program} isolate run --no-record --cpus 3 -- sh -c 'kill -SEGV $$'
        echo crashed $?
        compare crashed
        for moment in {MOMENTS}; do
            {program} isolate run --no-record --cpus 3 -- sleep 60 &
            [ $((moment % 2)) = 1 ] || until [ -s /run/punctual/isolate.journal ]; do usleep 1000; done
            usleep $moment
            kill -KILL $!
            wait $! 2>/dev/null
            {program} isolate status >/dev/null
            compare killed
        done",
        program = in_guest(program)
    );
    let name = format!("punctual isolate takes a CPU and gives it back, killed {KILLS} times");
    Case::new(&name, &[Setup::FOUR], script, Some(program), was_given_back)
        .lacking("a CPU that no other program needs")
}

/// The duration of the computation on an isolated CPU under load, in seconds.
const LOADED: u32 = 60;

/// A CPU is isolated while the others process forks, files, packets and pipes. The load must not
/// reach it, except for the tick and unavoidable kernel work; there must be no stall, and the other
/// CPUs must continue.
fn under_load(program: &Path) -> Case {
    let script = format!(
        "{CGROUPS}
        forks() {{ while :; do (:) & (:) & wait; echo >>/tmp/case/forks; done; }}
        files() {{ while :; do dd if=/dev/zero of=/results/file bs=64k count=64 2>/dev/null; sync; done; }}
        packets() {{ while :; do ping -q -c 100 -i 0.01 -s 8000 127.0.0.1 >/dev/null; done; }}
        pipes() {{ while :; do dd if=/dev/zero bs=100 count=20000 2>/dev/null | cat >/dev/null; done; }}
        dmesg -c >/dev/null
        for load in forks files packets pipes pipes; do $load & loads=\"$loads $!\"; done
        {program} isolate run --no-record --cpus 3 -- sh -c '
            read -r from rest </proc/uptime
            count() {{ awk \"\\$1 == name {{ print \\$5 }}\" name=$1 /proc/interrupts; }}
            devices() {{ awk \"\\$1 ~ /^[0-9]+:/ {{ n += \\$5 }} END {{ print n + 0 }}\" /proc/interrupts; }}
            sleep 1
            before=$(devices)
            calls=$(count CAL:)
            until=$((${{from%.*}} + {LOADED}))
            while read -r now rest </proc/uptime; [ ${{now%.*}} -lt $until ]; do :; done
            echo $(($(devices) - before)) interrupts
            echo $(($(count CAL:) - calls)) calls'
        echo ended $?
        before=$(wc -l </tmp/case/forks)
        sleep 2
        [ $(wc -l </tmp/case/forks) -gt $before ] && echo others work
        kill $loads
        wait 2>/dev/null
        dmesg | grep -i -e stall -e lockup -e 'blocked for more'
        rm -f /results/file",
        program = in_guest(program)
    );
    Case::new("a taken CPU under load", &[Setup::FOUR], script, Some(program), was_left_alone)
        .lacking("a CPU that no other program needs")
        .saying(|outcome| Ok(outcome.stdout.lines().take(2).collect::<Vec<_>>().join(", ")))
}

/// Checks the interruptions of an isolated CPU under load.
fn was_left_alone(outcome: &Outcome) -> Result {
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let [devices, calls, ended, others] = lines[..] else {
        return demand(false, "it did not end, or something has stalled");
    };
    demand(devices == "0 interrupts", "the CPU has interrupts of devices")?;
    demand(calls.ends_with(" calls"), "calls from other CPUs were not counted")?;
    demand(ended == "ended 0", "the command failed")?;
    demand(others == "others work", "the other CPUs do not")
}

/// Checks the output of [`given_back`]'s command and comparisons.
fn was_given_back(outcome: &Outcome) -> Result {
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    demand(lines.first() == Some(&"Cpus_allowed_list:\t3"), "the command is not on the CPU")?;
    demand(lines.get(1) == Some(&"3"), "the CPU is not isolated")?;
    demand(lines.get(2) == Some(&"0 interrupts"), "the CPU has interrupts of devices")?;
    demand(lines.contains(&"ended 7"), "the command's status was lost")?;
    demand(lines.contains(&"crashed 139"), "the crash was lost")?;
    let count = |line: &str| lines.iter().filter(|&&printed| printed == line).count();
    let same = [count("ended same"), count("crashed same"), count("killed same")];
    demand(same == [1, 1, KILLS], "a setting was not restored")?;
    let left = outcome.stderr.matches("given back first").count();
    demand(left * EACH_LEAVES >= KILLS, "hardly a kill has left anything")
}

/// A loop on the isolated CPU is rarely interrupted by the tick; the same loop on the other CPU
/// always.
fn ticks() -> Case {
    // From field 2 on, the local timer interrupts of each CPU. Both are read from the CPU that is
    // not measured, except that it is busy itself at that time.
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
        demand(parameters == ["1", "1"], "the CPU is not isolated")?;
        demand(ticks[0] >= u64::from(SECONDS) * 50, "the other CPU has no tick either")?;
        demand(ticks[1] * PART <= ticks[0], "the isolated CPU has too many ticks")
    };
    let figure = |outcome: &Outcome| {
        let (_, ticks) = read(outcome)?;
        Ok(format!("{} ticks in {SECONDS} s, {} on the other CPU", ticks[1], ticks[0]))
    };
    Case::new("an isolated CPU has hardly a tick", &[Setup::ISOLATED], script, None, judge)
        .saying(figure)
        .lacking("boot parameters that isolate a CPU")
}

/// Returns the kernel's parameters, and the ticks of a loop on CPU 0 and on CPU 1.
fn read(outcome: &Outcome) -> Result<(Vec<&str>, [u64; 2])> {
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let [isolated, without_tick, zero, one] = lines[..] else {
        return Err("four lines were expected".into());
    };
    Ok((vec![isolated, without_tick], [zero.parse()?, one.parse()?]))
}

/// An app uses the isolated CPU automatically, and reports that it is isolated.
fn reported(program: &Path) -> Case {
    let script = format!("PUNCTUAL_REPORT=1 exec {}", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        demand(outcome.stderr.contains("note: CPU 1 is isolated"), "the report lacks the isolation")?;
        demand(outcome.stderr.contains("it has no tick"), "the report does not name the tick")?;
        let level = outcome.stderr.lines().find(|line| line.starts_with("level "));
        let cpu = level.and_then(|line| line.split_whitespace().nth(4));
        demand(cpu == Some("1"), "the task is on another CPU")
    };
    let name = "the report names the isolated CPU";
    Case::new(name, &[Setup::ISOLATED], script, Some(program), judge)
        .lacking("boot parameters that isolate a CPU")
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects, requires_each_line};
    use super::*;

    #[test]
    fn judges_ticks_as_ratio() {
        let case = ticks();
        let good = "1\n1\n750\n6\n";
        rejects(&case.judge, good, &[("6\n", "700\n"), ("750", "6"), ("1\n", "(null)\n"), ("6\n", "")]);
        assert_eq!(case.printed(&outcome(good, "")).unwrap(), "6 ticks in 3 s, 750 on the other CPU");
    }

    #[test]
    fn rejects_app_on_another_cpu() {
        let judge = reported(Path::new("/x")).judge;
        let report = "level 1  SCHED_FIFO  51  1\nnote: CPU 1 is isolated: x; it has no tick\n";
        judge(&outcome("", report)).unwrap();
        for (text, other) in [("51  1", "51  0"), ("is isolated", ""), ("no tick", "a tick")] {
            assert!(judge(&outcome("", &report.replace(text, other))).is_err(), "{other}");
        }
    }

    #[test]
    fn rejects_polling_on_one_side_of_a_partition_only() {
        let judge = partitioned(Path::new("/x")).judge;
        let stdout = "isolated\ninside 0\noutside 0\nisolated\nalone 2\n";
        let stderr =
            format!("inside\noutside\nCPU 1 {SHARED} with it\nalone\nit needs: allow it more CPUs\n");
        requires_each_line(|changed| judge(&outcome(&changed.stdout, &stderr)), stdout);
        let shared = format!("inside\nCPU 3 {SHARED}\n");
        for (text, other) in [("inside\n", shared.as_str()), (SHARED, ""), ("more CPUs", "")] {
            assert!(judge(&outcome(stdout, &stderr.replace(text, other))).is_err(), "{other}");
        }
    }

    #[test]
    fn rejects_foreign_work_on_isolated_cpu() {
        let stall = "work\nrcu: INFO: rcu_preempt detected stalls\n";
        rejects(
            was_left_alone,
            "0 interrupts\n3 calls\nended 0\nothers work\n",
            &[("0 inter", "1 inter"), ("ended 0", "ended 2"), ("others work\n", ""), ("work\n", stall)],
        );
    }

    #[test]
    fn rejects_unrestored_settings() {
        let whole = format!(
            "Cpus_allowed_list:\t3\n3\n0 interrupts\nended 7\nended same\ncrashed 139\ncrashed same\n{}",
            "killed same\n".repeat(KILLS)
        );
        let left = |times| "given back first: x\n".repeat(times);
        let judge = |stdout: &str, times| was_given_back(&outcome(stdout, &left(times)));
        judge(&whole, 9).unwrap_err();
        rejects(
            |changed| judge(&changed.stdout, 10),
            &whole,
            &[
                ("list:\t3", "list:\t0-3"),
                ("\n3\n", "\n\n"),
                ("0 inter", "2 inter"),
                ("ended 7", "ended 0"),
                ("ended same", "ended differs"),
                ("killed same", "killed differs"),
            ],
        );
    }
}
