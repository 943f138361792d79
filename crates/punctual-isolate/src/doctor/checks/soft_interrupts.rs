//! Threads for soft interrupts and timers: under PREEMPT_RT, one of them may wake the app.

use super::*;

pub(super) const CHECK: Check = Check {
    name: "soft-interrupts",
    examines: "threads that run softirqs relative to the app's priorities",
    run,
};

fn run(scene: &Scene, report: &mut Report) {
    if scene.machine.kernel.preempt_rt != Some(true) {
        return report.not_applicable("their threads serve timers only under PREEMPT_RT");
    }
    let mut raised = Vec::new();
    for thread in scene.machine.threads.iter().filter(|thread| thread.is_kernel) {
        let Some((kind, cpu)) = thread.name.split_once('/') else { continue };
        let Some(cpu) = cpu.parse().ok().filter(|&cpu| scene.cpus.has(cpu)) else { continue };
        if matches!(kind, "ksoftirqd" | "ktimers") && thread.policy.priority() >= Some(*scene.band.start()) {
            raised.push((thread, cpu));
        }
    }
    report.value(format!("{} at the app's priorities", format_counted(raised.len() as u64, "thread")));
    for (thread, cpu) in raised {
        let below = scene.band.start().saturating_sub(1).max(1);
        let change = Change {
            setting: Setting::Policy { thread: thread.id, started: thread.started },
            new: format!("fifo {below}"),
        };
        report.add(
            Finding::new(
                Severity::Medium,
                format!(
                    "{} runs at {} on CPU {cpu}, at the app's priorities",
                    thread.name,
                    thread.policy.priority().unwrap_or(0)
                ),
            )
            .why("It handles packets and timers of all processes, and preempts jobs meanwhile.")
            .costs(Cost::typical(100_000, "under load"))
            .set(format!("chrt -f -p {below} {}", thread.id), vec![change]),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_threads_raised_to_app_priority() {
        let stat = |name: &str, priority: u8, policy: u8| {
            format!(
                "9 ({name}) S 2 0 0 0 -1 2129984 {} 33 {} 3 {priority} {policy} 0",
                "0 ".repeat(12),
                "0 ".repeat(16)
            )
        };
        let rt = ("/sys/kernel/realtime", "1");
        let path = "/proc/9/task/9/stat";
        assert_eq!(found(CHECK, &[rt, (path, &stat("ksoftirqd/3", 60, 1))]), ["medium"]);
        assert_eq!(found(CHECK, &[rt, (path, &stat("ktimers/3", 1, 1))]), NOTHING);
        assert_eq!(found(CHECK, &[rt, (path, &stat("ksoftirqd/2", 60, 1))]), NOTHING);
        assert_eq!(found(CHECK, &[(path, &stat("ksoftirqd/3", 60, 1))]), NOTHING);
    }
}
