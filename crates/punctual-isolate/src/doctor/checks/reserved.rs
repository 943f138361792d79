//! Time that the kernel reserves for ordinary threads.

use super::*;
use crate::facts::{PERIOD, RUNTIME, Throttling};

/// Time that the kernel reserves for threads other than real-time ones.
pub(super) const THROTTLING: Check = Check {
    name: "throttling",
    examines: "time that the kernel reserves for ordinary threads",
    run: throttling,
};

fn throttling(scene: &Scene, report: &mut Report) {
    let period: i64 = report.number(scene, PERIOD).unwrap_or(1_000_000);
    let runtime: Option<i64> = report.number(scene, RUNTIME);
    let throttling = |runtime| match u64::try_from(runtime) {
        Ok(runtime_us) => Throttling::On { runtime_us, period_us: period.unsigned_abs() },
        Err(_) => Throttling::Off,
    };
    if let Some(runtime) = runtime {
        report.value(throttling(runtime).to_string());
    }
    if let Some(runtime) = runtime.filter(|&runtime| runtime >= 0 && runtime < period) {
        let taken = (period - runtime).unsigned_abs();
        report.add(
            Finding::new(Severity::Medium, format!("real-time threads may use {}", throttling(runtime)))
                .why(
                    "A thread that has used its budget stops until the period ends. This protects the machine from a \
                     runaway thread, so disable it only if another mechanism does that.",
                )
                .costs(Cost::stated(taken.saturating_mul(1_000), "in each exhausted period"))
                .set("sysctl kernel.sched_rt_runtime_us=-1", vec![Change::file(RUNTIME, "-1")])
                .fix(Lasts::Always, "echo kernel.sched_rt_runtime_us=-1 > /etc/sysctl.d/90-real-time.conf"),
        );
    }
}

/// The fair server: since Linux 6.12 ordinary threads get their share of a CPU regardless of
/// real-time threads.
pub(super) const FAIR_SERVER: Check = Check {
    name: "fair-server",
    examines: "time that the deadline server reserves for ordinary threads",
    run: fair_server,
};

fn fair_server(scene: &Scene, report: &mut Report) {
    let path = |cpu: usize| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let mut served = Vec::new();
    let mut is_known = false;
    for cpu in scene.cpus.iter() {
        if let Ok(text) = scene.machine.tree.read(&path(cpu)) {
            is_known = true;
            served.extend(text.parse::<u64>().ok().filter(|&ns| ns > 0).map(|ns| (cpu, ns)));
        }
    }
    if !is_known {
        if scene.machine.kernel.version().is_some_and(|version| version >= (6, 12)) {
            report.unknown(
                "the time that the fair server takes",
                "reading it requires root and debugfs (mount -t debugfs none /sys/kernel/debug); the default is 50 ms per second",
            );
        } else if !scene.machine.kernel.release.is_empty() {
            report.not_applicable("kernels before 6.12 have no fair server");
        }
        return;
    }
    report.value(match served.iter().map(|(_, ns)| ns).max() {
        Some(&longest) => format!("{} in every second", format_nanos(longest as f64)),
        None => "off".into(),
    });
    let Some(&(_, longest)) = served.iter().max_by_key(|(_, ns)| ns) else { return };
    let which: Cpus = served.iter().map(|&(cpu, _)| cpu).collect();
    let commands: Vec<String> = which.iter().map(|cpu| format!("echo 0 > {}", path(cpu))).collect();
    report.add(
        Finding::new(
            Severity::Medium,
            format!("the fair server may displace real-time threads on {}", which.named()),
        )
        .why(
            "If an ordinary thread there starves, it runs in place of real-time threads, even with \
                 throttling disabled. Keep ordinary threads off the CPU, or disable the server.",
        )
        .costs(Cost::stated(longest, "in every second"))
        .set(commands.join("; "), which.iter().map(|cpu| Change::file(&path(cpu), "0")).collect()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_enabled_throttling() {
        assert_eq!(found(THROTTLING, &[(RUNTIME, "950000"), (PERIOD, "1000000")]), ["medium"]);
        assert_eq!(fixed(THROTTLING, &[(RUNTIME, "950000")]), [(RUNTIME, "-1")]);
        assert_eq!(found(THROTTLING, &[(RUNTIME, "-1")]), NOTHING);
        assert_eq!(found(THROTTLING, &[(RUNTIME, "1000000"), (PERIOD, "1000000")]), NOTHING);
        assert_eq!(found(THROTTLING, &[(RUNTIME, "0"), (PERIOD, "9223372036854775807")]), ["medium"]);
    }

    const SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu3/runtime";

    #[test]
    fn finds_enabled_fair_server_or_reports_unknown() {
        assert_eq!(found(FAIR_SERVER, &[(SERVER, "50000000")]), ["medium"]);
        assert_eq!(fixed(FAIR_SERVER, &[(SERVER, "50000000")]), [(SERVER, "0")]);
        assert_eq!(found(FAIR_SERVER, &[(SERVER, "0")]), NOTHING);
        assert_eq!(found(FAIR_SERVER, &[("/proc/sys/kernel/osrelease", "6.12.9")]), ["unknown"]);
        assert_eq!(found(FAIR_SERVER, &[("/proc/sys/kernel/osrelease", "6.1.9")]), NOTHING);
    }
}
