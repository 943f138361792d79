//! Work of the kernel that could run on other CPUs.

use super::*;

/// Deferred kernel work, and the threads that execute it.
pub(super) const WORKQUEUES: Check =
    Check { name: "workqueues", examines: "kernel work that could run on other CPUs", run: workqueues };

const DIRECTORY: &str = "/sys/devices/virtual/workqueue";

fn workqueues(scene: &Scene, report: &mut Report) {
    let tree = &scene.machine.tree;
    let mut masks = Vec::new();
    for path in ["cpumask", "writeback/cpumask"].map(|name| format!("{DIRECTORY}/{name}")) {
        let Some(set) = report.read(scene, &path).map(|mask| Cpus::of_mask(&mask)) else { continue };
        report.value(format!("unbound work on {}", set.named()));
        let rest = set.without(&scene.cpus);
        if set.meets(&scene.cpus) && !rest.is_empty() {
            masks.push((path, rest.mask()));
        }
    }
    // Isolated CPUs are excluded regardless of the mask.
    let excluded = tree
        .text(&format!("{DIRECTORY}/cpumask_isolated"))
        .map(|mask| Cpus::of_mask(&mask))
        .unwrap_or_default();
    if let Some((path, mask)) = masks.first()
        && !scene.cpus.without(&excluded).is_empty()
    {
        report.add(
            Finding::new(Severity::Low, format!("unbound kernel work may run on {}", scene.cpus.named()))
                .why("The kernel writes back files, frees memory and drives devices in worker threads.")
                .costs(Cost::typical(20_000, "for each"))
                .set(
                    format!("echo {mask} > {path}"),
                    masks.iter().map(|(path, mask)| Change::file(path, mask)).collect(),
                ),
        );
    }
}

/// Movable kernel threads on real-time CPUs.
pub(super) const KERNEL_THREADS: Check = Check {
    name: "kernel-threads",
    examines: "kernel threads that could run on other CPUs",
    run: kernel_threads,
};

fn kernel_threads(scene: &Scene, report: &mut Report) {
    let others = scene.others();
    if others.is_empty() {
        return report.not_applicable("there is no other CPU to move threads to");
    }
    let is_here = |thread: &&crate::facts::Thread| {
        // A worker's mask is where it may work, not where it sleeps; an interrupt thread follows
        // its interrupt.
        let is_worker = thread.name.starts_with("kworker") || thread.name.starts_with("irq/");
        thread.is_kernel
            && thread.is_movable
            && !is_worker
            && thread.id != 2
            && thread.may_run_on(&scene.cpus)
    };
    let here: Vec<_> = scene.machine.threads.iter().filter(is_here).collect();
    report.value(format!("{} movable", format_counted(here.len() as u64, "thread")));
    let Some(first) = here.first() else { return };
    let changes = here.iter().map(|thread| Change {
        setting: Setting::Affinity { thread: thread.id, started: thread.started },
        new: thread
            .cpus
            .as_ref()
            .map(|cpus| cpus.without(&scene.cpus))
            .filter(|cpus| !cpus.is_empty())
            .unwrap_or_else(|| others.clone())
            .to_string(),
    });
    let finding = Finding::new(
        Severity::Low,
        match here.len() {
            1 => format!(
                "the thread {} of the kernel, which can be moved, may run on {}",
                first.name,
                scene.cpus.named()
            ),
            many => {
                let cpus = scene.cpus.named();
                format!("{many} movable kernel threads may run on {cpus}, such as {}", first.name)
            }
        },
    )
    .why("A runnable one preempts ordinary threads, and real-time ones if it has a real-time priority.")
    .costs(Cost::typical(20_000, "for each time"))
    .set(format!("taskset -cp {others} {}   # and so on", first.id), changes.collect());
    let is_booted_so = scene.cpus.without(&scene.machine.topology.isolated).is_empty();
    report.add(match is_booted_so {
        true => finding,
        false => {
            finding.advise(Lasts::FromReboot, format!("boot with isolcpus=managed_irq,domain,{}", scene.cpus))
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_workers_on_real_time_cpus() {
        let (all, write) =
            ("/sys/devices/virtual/workqueue/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask");
        assert_eq!(fixed(WORKQUEUES, &[(all, "f"), (write, "f")]), [(all, "7"), (write, "7")]);
        assert_eq!(found(WORKQUEUES, &[(all, "7"), (write, "7")]), NOTHING);
        // The last CPU is not affected.
        assert_eq!(found(WORKQUEUES, &[(all, "8")]), NOTHING);
        assert_eq!(
            found(WORKQUEUES, &[(all, "f"), ("/sys/devices/virtual/workqueue/cpumask_isolated", "8")]),
            NOTHING
        );
    }

    fn stat(id: u32, name: &str, flags: u64) -> String {
        format!("{id} ({name}) S 2 0 0 0 -1 {flags} {} 33 {} 3 0 0 0", "0 ".repeat(12), "0 ".repeat(16))
    }

    #[test]
    fn finds_movable_kernel_threads() {
        let all = ("/proc/40/task/40/status", "Cpus_allowed_list: 0-3");
        let path = "/proc/40/task/40/stat";
        assert_eq!(found(KERNEL_THREADS, &[(path, &stat(40, "kswapd0", 0x20_0000)), all]), ["low"]);
        assert_eq!(found(KERNEL_THREADS, &[(path, &stat(40, "migration/3", 0x420_0000)), all]), NOTHING);
        assert_eq!(found(KERNEL_THREADS, &[(path, &stat(40, "kworker/u8:1", 0x20_0000)), all]), NOTHING);
        let report = report_of(KERNEL_THREADS, &[(path, &stat(40, "kswapd0", 0x20_0000)), all], None);
        assert_eq!(report.findings[0].fixes[0].changes[0].new, "0-2");
    }
}
