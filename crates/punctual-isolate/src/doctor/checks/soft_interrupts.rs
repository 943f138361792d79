//! Soft interrupts, and packets whose steering raises them.

use super::*;

/// Threads for soft interrupts and timers: under PREEMPT_RT, one of them may wake the app.
pub(super) const SOFT_INTERRUPTS: Check = Check {
    name: "soft-interrupts",
    examines: "threads that run softirqs relative to the app's priorities",
    run: soft_interrupts,
};

fn soft_interrupts(scene: &Scene, report: &mut Report) {
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

/// Packets steered to real-time CPUs (RPS), and sent from them (XPS).
pub(super) const NETWORK: Check = Check { name: "network", examines: "packet steering", run: network };

fn network(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    let mut steered = Vec::new();
    for device in tree.list("/sys/class/net") {
        for queue in tree
            .list(&format!("/sys/class/net/{device}/queues"))
            .into_iter()
            .filter(|queue| queue.starts_with("rx-"))
        {
            let path = format!("/sys/class/net/{device}/queues/{queue}/rps_cpus");
            let Some(mask) = tree.text(&path) else { continue };
            let set = Cpus::of_mask(&mask);
            if set.meets(&scene.cpus) {
                steered.push((device.clone(), path, set.without(&scene.cpus).mask()));
            }
        }
    }
    report.value(format!("{} steered here", format_counted(steered.len() as u64, "queue")));
    if let Some((_, path, mask)) = steered.first() {
        let mut devices: Vec<&str> = steered.iter().map(|(device, ..)| device.as_str()).collect();
        devices.dedup();
        report.add(
            Finding::new(Severity::Medium, format!("packets of {} are handled on {}", devices.join(", "), scene.cpus.named()))
                .why("Receive packet steering (RPS) interrupts these CPUs to handle packets that arrived elsewhere.")
                .costs(Cost::typical(50_000, "for a burst of packets"))
                .set(
                    format!("echo {mask} > {}   # and so on", quoted(path)),
                    steered.iter().map(|(_, path, mask)| Change::file(path, mask)).collect(),
                ),
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
        assert_eq!(found(SOFT_INTERRUPTS, &[rt, (path, &stat("ksoftirqd/3", 60, 1))]), ["medium"]);
        assert_eq!(found(SOFT_INTERRUPTS, &[rt, (path, &stat("ktimers/3", 1, 1))]), NOTHING);
        assert_eq!(found(SOFT_INTERRUPTS, &[rt, (path, &stat("ksoftirqd/2", 60, 1))]), NOTHING);
        assert_eq!(found(SOFT_INTERRUPTS, &[(path, &stat("ksoftirqd/3", 60, 1))]), NOTHING);
    }

    #[test]
    fn finds_packet_steering_to_real_time_cpus() {
        let path = "/sys/class/net/eth0/queues/rx-0/rps_cpus";
        assert_eq!(fixed(NETWORK, &[(path, "00000000,0000000f")]), [(path, "7")]);
        assert_eq!(found(NETWORK, &[(path, "7")]), NOTHING);
        let hostile = "/sys/class/net/$(reboot)/queues/rx-0/rps_cpus";
        assert!(
            text(NETWORK, &[(hostile, "f")])
                .contains("echo 7 > '/sys/class/net/$(reboot)/queues/rx-0/rps_cpus'")
        );
    }
}
