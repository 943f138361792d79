//! Deferred kernel work, and the threads that execute it.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "workqueues", examines: "kernel work that could run on other CPUs", run };

const DIRECTORY: &str = "/sys/devices/virtual/workqueue";

fn run(scene: &Scene, report: &mut Report) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_workers_on_real_time_cpus() {
        let (all, write) =
            ("/sys/devices/virtual/workqueue/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask");
        assert_eq!(fixed(CHECK, &[(all, "f"), (write, "f")]), [(all, "7"), (write, "7")]);
        assert_eq!(found(CHECK, &[(all, "7"), (write, "7")]), NOTHING);
        // The last CPU is not affected.
        assert_eq!(found(CHECK, &[(all, "8")]), NOTHING);
        assert_eq!(
            found(CHECK, &[(all, "f"), ("/sys/devices/virtual/workqueue/cpumask_isolated", "8")]),
            NOTHING
        );
    }
}
