//! The CPU limits of this process's control group.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "cgroup", examines: "CPU sets and quotas of the control group", run };

fn run(scene: &Scene, report: &mut Report) {
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
    fn finds_cpus_outside_cpuset() {
        let own = ("/proc/self/status", "Cpus_allowed_list: 0-2");
        assert_eq!(found_on(CHECK, "3", &[own]), ["high"]);
        assert_eq!(found_on(CHECK, "2", &[own]), NOTHING);
        assert_eq!(found_on(CHECK, "3", &[own, ("/sys/devices/system/cpu/isolated", "3")]), NOTHING);
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
        assert_eq!(found(CHECK, &at("50000 100000")), ["low"]);
        assert_eq!(found(CHECK, &at("max 100000")), NOTHING);
    }
}
