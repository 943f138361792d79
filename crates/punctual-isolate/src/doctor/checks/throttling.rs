//! Time that the kernel reserves for threads other than real-time ones.

use super::*;
use crate::facts::{PERIOD, RUNTIME, Throttling};

pub(super) const CHECK: Check =
    Check { name: "throttling", examines: "time that the kernel reserves for ordinary threads", run };

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_enabled_throttling() {
        assert_eq!(found(CHECK, &[(RUNTIME, "950000"), (PERIOD, "1000000")]), ["medium"]);
        assert_eq!(fixed(CHECK, &[(RUNTIME, "950000")]), [(RUNTIME, "-1")]);
        assert_eq!(found(CHECK, &[(RUNTIME, "-1")]), NOTHING);
        assert_eq!(found(CHECK, &[(RUNTIME, "1000000"), (PERIOD, "1000000")]), NOTHING);
        assert_eq!(found(CHECK, &[(RUNTIME, "0"), (PERIOD, "9223372036854775807")]), ["medium"]);
    }
}
