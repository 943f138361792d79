//! A lock delays waiters only for as long as it is held, and the kernel reports the holders of
//! contended locks: in traces, and in its lock statistics.

use std::path::Path;

use xtask_support::Result;
use xtask_support::cargo::Purpose;
use xtask_support::process::{End, Outcome};

use super::devices::{MODULES_COUNTED, NO_MODULES};
use super::{Built, Case, PROGRAMS, Setup, demand, find};
use crate::driver::stage::in_guest;
use crate::kernels::modules;

/// The cases of this file.
pub(super) fn cases(built: Built<'_>) -> Result<Vec<Case>> {
    let contention = find(built, Purpose::Example, PROGRAMS, "lock_contention")?;
    let mut cases = vec![inversion(find(built, Purpose::Test, "punctual-sync", "it")?)];
    cases.extend(HOLDERS.map(|lock| contended(lock, contention)));
    cases.push(contended_across(contention));
    cases.push(interrupts_off());
    cases.push(statistics());
    Ok(cases)
}

/// The kernel locks that the module `punctual_locks` holds.
const HOLDERS: [&str; 4] = ["raw_spinlock", "spinlock", "mutex", "rt_mutex"];

/// On one CPU: a thread that locks 4 ms before the release acquires the lock then, and the holder
/// is known. A raw spinlock is never contended there: its holder disables interrupts, so the timer
/// that releases the other thread is late by as much.
fn contended(lock: &'static str, program: &Path) -> Case {
    let script = format!(
        "insmod {module} || exit 9
        {program} /dev/punctual-{lock} 0 6
        status=$?
        rmmod punctual_locks
        exit $status",
        module = modules::in_guest("punctual_locks"),
        program = in_guest(program)
    );
    let judge = move |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        let numbers = outcome.stdout.split(' ').filter_map(|word| word.parse().ok()).collect::<Vec<u32>>();
        let [late, blocked, ..] = numbers[..] else { return demand(false, "there are no figures") };
        let (delay, other) = if lock == "raw_spinlock" { (late, blocked) } else { (blocked, late) };
        demand((3500..4500).contains(&delay), "it did not wait for as long as the lock was held")?;
        demand(other < 500, "there was another delay")?;
        let held = outcome.stdout.contains("held by low, asleep");
        demand(held != (lock == "raw_spinlock"), "the holder was mistaken")
    };
    Case::new(&format!("kernel {lock}: who waits for whom"), MODULES_COUNTED, script, Some(program), judge)
        .lacking(NO_MODULES)
}

/// On two CPUs: a thread spins for a lock whose holder runs on the other CPU. The CPUs take turns
/// that are much shorter than the lock is held; in the host's time a recording on several CPUs is
/// not safe, as the module `tracing` explains.
fn contended_across(program: &Path) -> Case {
    let script = format!(
        "insmod {module} || exit 9
        {program} /dev/punctual-spinlock 1 40
        status=$?
        rmmod punctual_locks
        exit $status",
        module = modules::in_guest("punctual_locks"),
        program = in_guest(program)
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        demand(outcome.stdout.contains("for a lock (rt) held by low"), "the holder was not seen")
    };
    let on = &[Setup::COUNTED_TWO, Setup::PROBE_COUNTED_TWO];
    Case::new("kernel spinlock: across CPUs", on, script, Some(program), judge).lacking(NO_MODULES)
}

/// The irqsoff tracer finds the code that disables interrupts, and the duration.
fn interrupts_off() -> Case {
    let script = format!(
        "insmod {module} || exit 9
        cd /sys/kernel/tracing
        echo 0 >tracing_max_latency
        echo irqsoff >current_tracer || exit 8
        exec 3<>/dev/punctual-raw_spinlock
        echo 6000 >&3
        cat <&3
        exec 3>&-
        cat tracing_max_latency
        grep -o hold_raw_spinlock trace | head -n 1
        echo nop >current_tracer
        rmmod punctual_locks",
        module = modules::in_guest("punctual_locks"),
    );
    let judge = |outcome: &Outcome| {
        let mut lines = outcome.stdout.lines();
        let us: u32 = lines.next().and_then(|line| line.parse().ok()).unwrap_or_default();
        demand((6000..6500).contains(&us), "interrupts were off for another time than commanded")?;
        demand(lines.next() == Some("hold_raw_spinlock"), "the holder is not in the trace")
    };
    Case::new("irqsoff names who has interrupts off", &[Setup::PROBE_COUNTED], script, None, judge)
}

/// The time for which the contended lock is held, and the others, in µs.
const CONTENDED_US: u32 = 40_000;
const ALONE_US: u32 = 5_000;

/// `/proc/lock_stat` contains the module's locks: the hold time of each, and the wait time of the
/// contended one. Two CPUs in the host's time may miss each other, so there are several attempts.
fn statistics() -> Case {
    let script = format!(
        "insmod {module} || exit 9
        hold() {{ taskset $1 sh -c \"exec 3<>/dev/punctual-$2; echo $3 >&3; cat <&3\"; }}
        said() {{ awk '$1 == \"'$1':\" {{ print $1, $3, $5, $9, $11 }}' /proc/lock_stat; }}
        for turn in 1 2 3 4 5; do
            echo 0 >/proc/lock_stat
            hold 1 raw_spinlock {CONTENDED_US} &
            while kill -0 $! 2>/dev/null; do hold 2 raw_spinlock 0; done
            said raw_lock | grep -q '^raw_lock: 0' || break
        done
        for lock in spinlock mutex rt_mutex; do hold 1 $lock {ALONE_US}; done
        for lock in raw_lock spin_lock_ mutex_lock_ rt_lock; do said $lock; done
        rmmod punctual_locks",
        module = modules::in_guest("punctual_locks"),
    );
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "it failed")?;
        let lines = outcome.stdout.lines().map(|line| {
            let (name, rest) = line.split_once(": ")?;
            let numbers: Vec<f64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
            Some((name, <[f64; 4]>::try_from(numbers).ok()?))
        });
        let lines: Vec<_> = lines.flatten().collect();
        let expected = [
            ("raw_lock", CONTENDED_US),
            ("spin_lock_", ALONE_US),
            ("mutex_lock_", ALONE_US),
            ("rt_lock", ALONE_US),
        ];
        demand(lines.len() == expected.len(), "a lock has no statistics")?;
        for ((name, [contentions, longest_wait, acquisitions, longest_hold]), (wanted, us)) in
            lines.into_iter().zip(expected)
        {
            demand(name == wanted && acquisitions >= 1.0, "another lock was taken")?;
            demand(longest_hold >= f64::from(us), "the lock was held for another time than commanded")?;
            let waited = contentions >= 1.0 && (1_000.0..=longest_hold).contains(&longest_wait);
            demand(waited || name != "raw_lock", "nobody waited for it")?;
        }
        Ok(())
    };
    let on = &[Setup::LOCKSTAT_TWO];
    Case::new("/proc/lock_stat has who was waited for", on, script, None, judge)
        .lacking("the kernel `rt-lockstat`")
}

/// A thread that waits for a lower-priority holder waits only for as long as the lock is held,
/// regardless of intermediate priorities.
fn inversion(program: &Path) -> Case {
    let script = format!("exec {} --test-threads 1 --nocapture pcp_fifo::", in_guest(program));
    let judge = |outcome: &Outcome| {
        demand(outcome.end == End::Exited(0), "a test failed")?;
        demand(!outcome.stderr.contains("SKIPPED"), "a test was skipped")?;
        demand(outcome.stdout.contains("priority_inversion_is_bounded ... ok"), "the test did not run")
    };
    let on = &[Setup::COUNTED, Setup::TWO, Setup::FOUR];
    Case::new("priority inversion is bounded", on, script, Some(program), judge)
}

#[cfg(test)]
mod tests {
    use super::super::{outcome, rejects, requires_each_line};
    use super::*;

    #[test]
    fn counts_skipped_as_failed() {
        let passed = "test priority_inversion_is_bounded ... ok\n";
        let judge = inversion(Path::new("/x")).judge;
        requires_each_line(&judge, passed);
        assert!(judge(&outcome(passed, "SKIPPED priority_inversion_is_bounded: no\n")).is_err());
    }

    #[test]
    fn rejects_wrong_delay_or_holder() {
        let (late, blocked) = ("late 4002 us, blocked 0 us\n", "late 20 us, blocked 4010 us\n");
        let held = "4010 us for a lock (rt) held by low, asleep\n";
        let raw = contended("raw_spinlock", Path::new("/x")).judge;
        rejects(raw, late, &[(late, &format!("{blocked}{held}"))]);
        let mutex = contended("mutex", Path::new("/x")).judge;
        let good = format!("{blocked}{held}");
        rejects(mutex, &good, &[(&good, late), ("by low", "by somebody else"), (&good, "")]);
    }

    #[test]
    fn rejects_locks_without_waits_or_holds() {
        let good = "raw_lock: 3 38000.12 41 40001.00\nspin_lock_: 0 0.00 1 5003.25\n\
                    mutex_lock_: 0 0.00 1 5003.25\nrt_lock: 0 0.00 2 5003.25\n";
        requires_each_line(statistics().judge, good);
        rejects(
            statistics().judge,
            good,
            &[("3 38000.12", "0 0.00"), ("40001.00", "90.00"), ("38000.12", "9.00"), ("1 5003", "1 12")],
        );
    }

    #[test]
    fn rejects_section_with_interrupts_enabled() {
        let judge = interrupts_off().judge;
        rejects(judge, "6006\nhold_raw_spinlock\n", &[("6006", "80"), ("hold_raw_spinlock\n", "")]);
    }
}
