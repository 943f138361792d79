//! Limits of this process's control group.

use super::*;

/// Budgets of control groups (RT_GROUP_SCHED): a group without a budget may have no real-time
/// threads.
pub(super) const GROUP_BUDGET: Check =
    Check { name: "group-budget", examines: "budgets of RT_GROUP_SCHED", run: group_budget };

fn group_budget(scene: &Scene, report: &mut Report) {
    let without = "control groups have no real-time budgets here";
    let Some(directory) = scene.machine.cgroups.own_cpu.clone() else {
        return report.not_applicable(without);
    };
    let path = format!("{directory}/cpu.rt_runtime_us");
    let Some(budget) = report.number(scene, &path) else { return report.not_applicable(without) };
    report.value(if budget < 0 { "no limit".into() } else { micros(budget.unsigned_abs()) });
    if budget == 0 {
        report.add(
            Finding::new(
                Severity::High,
                format!("the control group {directory} has no budget for real-time threads"),
            )
            .why("The kernel refuses SCHED_FIFO with EPERM to every thread in it, including root's.")
            .set(format!("echo 950000 > {}", quoted(&path)), vec![Change::file(&path, "950000")])
            .fix(
                Lasts::ThisStart,
                format!(
                    "echo $$ > {}   # start it from the group above",
                    quoted(&format!("{}/tasks", parent(&directory)))
                ),
            ),
        );
    }
}

fn parent(directory: &str) -> &str {
    directory.rsplit_once('/').map_or(directory, |(parent, _)| parent)
}

/// The CPU limits of this process's control group.
pub(super) const CGROUP: Check =
    Check { name: "cgroup", examines: "CPU sets and quotas of the control group", run: cgroup };

fn cgroup(scene: &Scene, report: &mut Report) {
    let machine = scene.machine;
    if let Some(allowed) = &machine.process.cpus {
        report.value(format!("{} allowed", allowed.named()));
        // Isolated CPUs may still be requested.
        let missing = scene.cpus.without(allowed).without(&machine.topology.isolated);
        if !missing.is_empty() {
            let finding =
                Finding::new(Severity::High, format!("this process may not run on {}", missing.named()))
                    .why("Its CPU set or affinity excludes CPUs for real-time threads.");
            report.add(match machine.process.container {
                Some(Container::Docker) => {
                    finding.fix(Lasts::ThisStart, format!("docker run --cpuset-cpus={} IMAGE", scene.cpus))
                }
                Some(Container::Podman) => {
                    finding.fix(Lasts::ThisStart, format!("podman run --cpuset-cpus={} IMAGE", scene.cpus))
                }
                Some(Container::Kubernetes) => finding.advise(
                    Lasts::Always,
                    "kubelet: cpuManagerPolicy: static; pod: equal CPU limits and requests, a whole number",
                ),
                _ => finding.fix(Lasts::ThisStart, format!("taskset -c {} COMMAND", scene.cpus)).advise(
                    Lasts::Always,
                    format!(
                        "in the [Service] of a unit of systemd: AllowedCPUs={0} CPUAffinity={0}",
                        scene.cpus
                    ),
                ),
            });
        }
    }
    let Some(own) = machine.cgroups.own.clone() else { return };
    let Some(limit) = report.read(scene, &format!("{own}/cpu.max")) else { return };
    let mut words = limit.split_whitespace().map(str::parse::<u64>);
    if let (Some(Ok(quota)), Some(Ok(period))) = (words.next(), words.next()) {
        let finding = Finding::new(Severity::Low, format!("the control group may use {} of CPU time in every {}", micros(quota), micros(period)))
            .why("Ordinary threads of the app, such as loggers, stop when the quota is used up, along with any locks that they hold.")
            .costs(Cost::stated(period.saturating_mul(1_000), "at most"));
        report.add(match machine.process.container {
            Some(Container::Docker) => {
                finding.advise(Lasts::ThisStart, "docker run without --cpus and --cpu-quota")
            }
            Some(Container::Podman) => {
                finding.advise(Lasts::ThisStart, "podman run without --cpus and --cpu-quota")
            }
            Some(Container::Kubernetes) => {
                finding.advise(Lasts::Always, "kubelet: cpuCFSQuota: false, or a pod with exclusive CPUs")
            }
            _ => finding.advise(
                Lasts::Always,
                "in the [Service] of a unit of systemd: CPUQuota= with an empty value",
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cgroup_without_real_time_budget() {
        let at = |budget| {
            [
                ("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0"),
                ("/proc/self/cgroup", "1:cpu:/shell"),
                ("/sys/fs/cgroup/cpu/shell/cpu.rt_runtime_us", budget),
            ]
        };
        assert_eq!(found(GROUP_BUDGET, &at("0")), ["high"]);
        assert_eq!(found(GROUP_BUDGET, &at("950000")), NOTHING);
        assert!(text(GROUP_BUDGET, &at("0")).contains("/sys/fs/cgroup/cpu/tasks"));
    }

    #[test]
    fn finds_cpus_outside_cpuset() {
        let own = ("/proc/self/status", "Cpus_allowed_list: 0-2");
        assert_eq!(found_on(CGROUP, "3", &[own]), ["high"]);
        assert_eq!(found_on(CGROUP, "2", &[own]), NOTHING);
        assert_eq!(found_on(CGROUP, "3", &[own, ("/sys/devices/system/cpu/isolated", "3")]), NOTHING);
    }

    #[test]
    fn finds_cpu_quota() {
        let at = |quota| {
            [
                ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"),
                ("/proc/self/cgroup", "0::/a"),
                ("/sys/fs/cgroup/a/cpu.max", quota),
            ]
        };
        assert_eq!(found(CGROUP, &at("50000 100000")), ["low"]);
        assert_eq!(found(CGROUP, &at("max 100000")), NOTHING);
    }
}
