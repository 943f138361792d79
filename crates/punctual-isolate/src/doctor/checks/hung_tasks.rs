//! Detection of hung tasks: a scan of all threads.

use super::*;

pub(super) const CHECK: Check = Check { name: "hung-tasks", examines: "detection of hung tasks", run };

const TIMEOUT: &str = "/proc/sys/kernel/hung_task_timeout_secs";

fn run(scene: &Scene, report: &mut Report) {
    let Some(timeout) = report.number(scene, TIMEOUT) else {
        return report.not_applicable("the kernel does not detect hung tasks");
    };
    report.value(if timeout == 0 { "off".into() } else { format!("every {timeout} s") });
    if timeout <= 0 {
        return;
    }
    report.add(
        Finding::new(Severity::Low, format!("the kernel scans all threads for hung ones every {timeout} s"))
            .why("The scan holds RCU locks, and delays the release of memory on every CPU.")
            .costs(Cost::typical(20_000, "for each scan"))
            .write(TIMEOUT, "0")
            .fix(Lasts::Always, "echo kernel.hung_task_timeout_secs=0 > /etc/sysctl.d/90-hung-tasks.conf"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_detection_that_is_on() {
        assert_eq!(fixed(CHECK, &[(TIMEOUT, "120")]), [(TIMEOUT, "0")]);
        assert_eq!(found(CHECK, &[(TIMEOUT, "0")]), NOTHING);
        assert_eq!(status(CHECK, &[]), "not applicable: the kernel does not detect hung tasks");
    }
}
