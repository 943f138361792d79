//! Foreign real-time threads within the app's priorities.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "foreign-threads", examines: "other threads at or above the app's priorities", run };

fn run(scene: &Scene, report: &mut Report) {
    let own = scene.app.as_ref().and_then(|app| app.process);
    let mut count = 0;
    for thread in &scene.machine.threads {
        let is_here = !thread.is_kernel && Some(thread.process) != own && thread.may_run_on(&scene.cpus);
        let Some(priority) =
            thread.policy.priority().filter(|&priority| is_here && priority >= *scene.band.start())
        else {
            continue;
        };
        count += 1;
        let change = Change {
            setting: Setting::Affinity { thread: thread.id, started: thread.started },
            new: scene.others().to_string(),
        };
        let finding = Finding::new(
            Severity::Medium,
            format!(
                "the thread {} ({}) runs at {priority} and may run on {}",
                thread.name,
                thread.id,
                scene.cpus.named()
            ),
        )
        .why("It preempts jobs of the app for an unbounded time.");
        report.add(match scene.others().is_empty() {
            true => finding.fix(
                Lasts::UntilReboot,
                format!("chrt -f -p {} {}", scene.band.start().saturating_sub(1).max(1), thread.id),
            ),
            false => finding.set(format!("taskset -cp {} {}", scene.others(), thread.id), vec![change]),
        });
    }
    report.value(format_counted(count, "thread"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_foreign_threads_of_same_priority() {
        let stat = |priority: u8| {
            format!(
                "9 (jackd\x1b[1m) S 1 0 0 0 -1 0 {} 33 {} 3 {priority} 1 0",
                "0 ".repeat(12),
                "0 ".repeat(16)
            )
        };
        let here = ("/proc/9/task/9/status", "Cpus_allowed_list: 0-3");
        let path = "/proc/9/task/9/stat";
        assert_eq!(found(CHECK, &[(path, &stat(70)), here]), ["medium"]);
        assert!(!text(CHECK, &[(path, &stat(70)), here]).contains('\x1b'));
        assert_eq!(found(CHECK, &[(path, &stat(20)), here]), NOTHING);
        assert_eq!(found(CHECK, &[(path, &stat(70)), (here.0, "Cpus_allowed_list: 0-2")]), NOTHING);
    }
}
