//! Budgets of control groups (RT_GROUP_SCHED): a group without a budget may have no real-time
//! threads.

use super::*;

pub(super) const CHECK: Check = Check { name: "group-budget", examines: "budgets of RT_GROUP_SCHED", run };

fn run(scene: &Scene, report: &mut Report) {
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
        assert_eq!(found(CHECK, &at("0")), ["high"]);
        assert_eq!(found(CHECK, &at("950000")), NOTHING);
        assert!(text(CHECK, &at("0")).contains("/sys/fs/cgroup/cpu/tasks"));
    }
}
