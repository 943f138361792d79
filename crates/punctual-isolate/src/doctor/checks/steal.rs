//! Time taken by a hypervisor.

use super::*;
use crate::facts::Statistics;

pub(super) const CHECK: Check =
    Check { name: "steal", examines: "a hypervisor and its share of the CPU", run };

fn run(scene: &Scene, report: &mut Report) {
    let machine = scene.machine;
    let Some(name) = &machine.hypervisor else {
        return report.not_applicable("no hypervisor was detected");
    };
    report.value(name);
    let statistics = Statistics::read(&machine.tree);
    let spent = scene.cpus.iter().filter_map(|cpu| {
        let spent = statistics.cpu(cpu)?;
        Some((spent.stolen?, spent.busy))
    });
    let (stolen, busy) = spent
        .fold((0_u64, 0_u64), |(s, b), (stolen, busy)| (s.saturating_add(stolen), b.saturating_add(busy)));
    let share = match busy {
        0 => String::new(),
        _ => format!(
            "; it took {1:.1} % of the runnable time of {0} since boot",
            scene.cpus.named(),
            stolen as f64 / busy as f64 * 100.0
        ),
    };
    report.add(
        Finding::new(Severity::High, format!("this machine is a guest of {name}{share}"))
            .why("The host may preempt the virtual CPU at any time, without a bound. No setting of the guest prevents that.")
            .costs(Cost::typical(10_000_000, "now and then"))
            .advise(Lasts::Always, "on the host: a dedicated, isolated CPU for each virtual CPU, and SCHED_FIFO for its thread"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hypervisor_and_steal_time() {
        let guest = ("/proc/cpuinfo", "flags : hypervisor");
        assert_eq!(found(CHECK, &[]), NOTHING);
        assert_eq!(found(CHECK, &[guest]), ["high"]);
        let stat = ("/proc/stat", "cpu 0\ncpu3 60 10 10 900 100 0 10 10 0 0\n");
        assert!(
            text(CHECK, &[guest, stat]).contains("it took 10.0 % of the runnable time of CPU 3 since boot")
        );
        let absurd = ("/proc/stat", "cpu3 18446744073709551615 18446744073709551615 0 0 0 0 0 1");
        assert_eq!(found(CHECK, &[guest, absurd]), ["high"]);
    }
}
