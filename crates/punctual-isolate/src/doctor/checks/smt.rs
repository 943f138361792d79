//! Hardware threads of one core share its execution units and caches.

use super::*;

pub(super) const CHECK: Check = Check { name: "smt", examines: "sibling threads of the core", run };

fn run(scene: &Scene, report: &mut Report) {
    let shared =
        scene.machine.topology.cpus.iter().any(|cpu| scene.cpus.has(cpu.number) && cpu.siblings.len() > 1);
    report.value(if shared { "cores with several threads" } else { "one thread per core" });
    for cpu in scene.machine.topology.cpus.iter().filter(|cpu| scene.cpus.has(cpu.number)) {
        let others = cpu.siblings.without(&scene.cpus).common(&scene.machine.topology.online);
        if others.is_empty() {
            continue;
        }
        let offline =
            others.iter().map(|cpu| Change::file(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0"));
        let commands: Vec<String> =
            others.iter().map(|cpu| format!("echo 0 > /sys/devices/system/cpu/cpu{cpu}/online")).collect();
        report.add(
            Finding::new(
                Severity::Medium,
                format!("CPU {} shares a core with {}, on which other threads run", cpu.number, others.named()),
            )
            .why("They share execution units and caches: a job takes up to twice as long while the sibling is busy.")
            .set(commands.join("; "), offline.collect())
            .advise(Lasts::FromReboot, "boot with nosmt, or disable SMT in the firmware"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIBLINGS: &str = "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list";

    #[test]
    fn finds_busy_smt_siblings() {
        assert_eq!(found(CHECK, &[(SIBLINGS, "1,3")]), ["medium"]);
        assert_eq!(fixed(CHECK, &[(SIBLINGS, "1,3")]), [("/sys/devices/system/cpu/cpu1/online", "0")]);
        assert_eq!(found(CHECK, &[(SIBLINGS, "3")]), NOTHING);
        // The sibling is offline.
        assert_eq!(found(CHECK, &[(SIBLINGS, "3,7")]), NOTHING);
    }
}
