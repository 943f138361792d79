//! Foreign real-time threads on the partition's CPU, the CPU time that the kernel withholds from
//! real-time threads, and the time that the host of a virtual machine takes.
//!
//! The band of kernel priorities from the app's lowest to its highest level belongs to the app. A
//! foreign real-time thread inside the band, allowed on the same CPU, would preempt some levels and
//! not others. The app's analysis does not include it, so it is reported.

use std::fs;
use std::ops::RangeInclusive;

use rustix::process::Pid;
use rustix::thread::sched_getaffinity;

use crate::port::Nanos;

/// Describes the real-time threads of other processes in `band` on `cpu`.
pub(crate) fn in_band(cpu: usize, band: RangeInclusive<u8>) -> Vec<String> {
    let me = std::process::id();
    let threads = numbers("/proc").filter(|&pid| pid != me).flat_map(|pid| {
        numbers(&format!("/proc/{pid}/task")).filter_map(move |tid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
            let (name, priority, policy) = parse_stat(&stat)?;
            Some((tid, name, priority, policy))
        })
    });
    threads
        .filter(|(tid, _, priority, policy)| {
            matches!(policy, 1 | 2) && band.contains(priority) && may_run_on(*tid, cpu)
        })
        .map(|(tid, name, priority, policy)| {
            let policy = if policy == 1 { "SCHED_FIFO" } else { "SCHED_RR" };
            format!(
                "thread {name}/{tid} runs at {policy} {priority} on CPU {cpu}, inside the app's band {} to {}",
                band.start(),
                band.end()
            )
        })
        .collect()
}

/// Describes the throttling of real-time threads on `cpu`, as far as the kernel reports it.
pub(crate) fn throttling(cpu: usize) -> Vec<String> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
    let mut notes = Vec::new();
    let period = number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    if let Some(runtime) = number("/proc/sys/kernel/sched_rt_runtime_us") {
        notes.extend(throttling_note(runtime, period));
    }
    let server = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    if let Some(runtime) = number(&server).filter(|&r| r > 0) {
        notes.push(format!(
            "the kernel's fair server gives ordinary threads on CPU {cpu} up to {} of every second (keep \
             them off that CPU, or write 0 to {server})",
            Nanos(runtime.unsigned_abs())
        ));
    }
    notes
}

/// Reports throttling to `runtime` of every `period`, in µs; -1 is unlimited.
fn throttling_note(runtime: i64, period: i64) -> Option<String> {
    (0..period).contains(&runtime).then(|| {
        format!(
            "real-time threads may use {} of every {}; `sysctl kernel.sched_rt_runtime_us=-1` removes the limit, \
             but then a real-time thread that does not end stops everything else on its CPU permanently",
            micros(runtime),
            micros(period)
        )
    })
}

/// Formats a length of time that the kernel states in µs.
fn micros(us: i64) -> Nanos {
    Nanos(us.unsigned_abs().saturating_mul(1_000))
}

fn may_run_on(tid: u32, cpu: usize) -> bool {
    let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| sched_getaffinity(Some(pid)).is_ok_and(|cpus| cpus.is_set(cpu)))
}

fn numbers(dir: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Name, real-time priority and policy from a `/proc/…/stat` line (proc(5), fields 2, 40 and 41).
fn parse_stat(stat: &str) -> Option<(String, u8, u32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut fields = after.split_whitespace().skip(37);
    Some((name, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Returns the time since boot in which the host ran something else although this CPU was needed
/// here, in ns. The kernel counts it in ticks, of usually 10 ms. `None` if the kernel does not
/// report it.
pub(crate) fn stolen(cpu: usize) -> Option<u64> {
    // SAFETY: the call takes a number, and writes no memory of ours.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&ticks| ticks > 0)?;
    let statistics = std::fs::read_to_string("/proc/stat").ok()?;
    ticks_in(&statistics, cpu)?.checked_mul(1_000_000_000 / ticks)
}

/// The eighth figure of a CPU: user nice system idle iowait irq softirq steal.
fn ticks_in(statistics: &str, cpu: usize) -> Option<u64> {
    let line = statistics.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_stat_line_with_awkward_name() {
        let stat = format!("42 (a) b (c)) S {} 55 1 0 0", vec!["0"; 36].join(" "));
        assert_eq!(parse_stat(&stat), Some(("a) b (c)".into(), 55, 1)));
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn advice_to_disable_throttling_names_risk() {
        let note = throttling_note(950_000, 1_000_000).unwrap();
        assert!(note.starts_with("real-time threads may use 950 ms of every 1.00 s; "), "{note}");
        let (_, after_advice) =
            note.split_once("`sysctl kernel.sched_rt_runtime_us=-1` removes the limit").unwrap();
        assert!(after_advice.contains("stops everything else on its CPU permanently"), "{note}");
    }

    #[test]
    fn ignores_ineffective_throttling() {
        assert_eq!(
            [-1, 1_000_000, 2_000_000].map(|runtime| throttling_note(runtime, 1_000_000)),
            [const { None }; 3]
        );
        assert!(throttling_note(0, 1_000_000).is_some());
    }

    #[test]
    fn this_machine_can_be_read() {
        // Regardless of the running threads, no priority is above 99.
        assert!(in_band(0, 100..=255).is_empty());
        let _ = throttling(0);
    }

    #[test]
    fn reads_value_of_cpu() {
        let statistics = "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3\nintr 5\n";
        assert_eq!(ticks_in(statistics, 0), Some(8));
        assert_eq!(ticks_in(statistics, 1), None);
        assert_eq!(ticks_in(statistics, 10), None);
    }

    #[test]
    fn reports_no_steal_of_missing_cpu() {
        assert_eq!(stolen(usize::MAX), None);
    }
}
