//! Memory management that affects threads asynchronously.

use super::*;

pub(super) const CHECK: Check =
    Check { name: "memory", examines: "swap, huge pages, merging, NUMA balancing, compaction", run };

const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const MERGE: &str = "/sys/kernel/mm/ksm/run";
const NUMA: &str = "/proc/sys/kernel/numa_balancing";
const COMPACTION: &str = "/proc/sys/vm/compaction_proactiveness";
const UNEVICTABLE: &str = "/proc/sys/vm/compact_unevictable_allowed";

fn run(scene: &Scene, report: &mut Report) {
    let swaps = report.read(scene, "/proc/swaps").map(|text| text.lines().count().saturating_sub(1));
    if let Some(swaps) = swaps {
        let huge = report
            .read(scene, HUGE)
            .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned()));
        let huge = huge.map_or(String::new(), |mode| format!(", huge pages {mode}"));
        report.value(format!("{}{huge}", format_counted(swaps as u64, "swap area")));
    }
    if swaps.is_some_and(|swaps| swaps > 0) {
        report.add(
            Finding::new(Severity::Medium, "swap is enabled")
                .why("Memory that is not locked is written to disk, and read again on access.")
                .costs(Cost::typical(10_000_000, "for a page from the disk"))
                .fix(Lasts::UntilReboot, "swapoff -a")
                .advise(Lasts::Always, "remove the swap entries from /etc/fstab; on Raspberry Pi OS: systemctl disable --now dphys-swapfile"),
        );
    }
    if report.read(scene, HUGE).is_some_and(|text| text.contains("[always]")) {
        report.add(
            Finding::new(Severity::Low, "transparent huge pages are always used")
                .why("The kernel stops a process while it replaces its pages, and a fault takes as long as clearing 2 MiB.")
                .costs(Cost::typical(100_000, "for a fault"))
                .write(HUGE, "madvise")
                .advise(Lasts::FromReboot, "boot with transparent_hugepage=madvise"),
        );
    }
    if report.number(scene, MERGE) == Some(1) {
        report.add(
            Finding::new(Severity::Low, "identical pages are merged (KSM)")
                .why("The first write to a merged page is a fault that copies the page.")
                .costs(Cost::typical(10_000, "for a write"))
                .write(MERGE, "0"),
        );
    }
    if report.number(scene, NUMA).is_some_and(|value| value > 0)
        && scene.machine.topology.cpus.iter().any(|cpu| cpu.node > Some(0))
    {
        report.add(
            Finding::new(Severity::Medium, "pages are moved between NUMA nodes")
                .why("The kernel unmaps pages to detect their users, so threads fault even on locked memory.")
                .costs(Cost::typical(50_000, "for a fault"))
                .write(NUMA, "0")
                .fix(Lasts::Always, "echo kernel.numa_balancing=0 > /etc/sysctl.d/90-numa.conf"),
        );
    }
    if report.number(scene, COMPACTION).is_some_and(|value| value > 0) {
        report.add(
            Finding::new(Severity::Low, "memory is compacted proactively")
                .why("Pages are moved while they are in use, and every CPU is interrupted for a TLB flush.")
                .costs(Cost::typical(10_000, "for an interrupt"))
                .write(COMPACTION, "0")
                .fix(Lasts::Always, "echo vm.compaction_proactiveness=0 > /etc/sysctl.d/90-compaction.conf"),
        );
    }
    if report.number(scene, UNEVICTABLE) == Some(1) && scene.machine.kernel.preempt_rt == Some(true) {
        report.add(
            Finding::new(Severity::Low, "locked pages may be moved (vm.compact_unevictable_allowed)")
                .why("A thread that accesses a page while it is moved waits, although the page is locked.")
                .costs(Cost::typical(50_000, "for a fault"))
                .write(UNEVICTABLE, "0")
                .fix(Lasts::Always, "echo vm.compact_unevictable_allowed=0 > /etc/sysctl.d/90-locked.conf"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_memory_settings() {
        let swap = "Filename Type Size\n/dev/sda2 partition 1000 0 -2";
        assert_eq!(found(CHECK, &[("/proc/swaps", swap)]), ["medium"]);
        assert_eq!(found(CHECK, &[("/proc/swaps", "Filename Type Size")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(HUGE, "[always] madvise never")]), [(HUGE, "madvise")]);
        assert_eq!(found(CHECK, &[(HUGE, "always [madvise] never")]), NOTHING);
        assert_eq!(fixed(CHECK, &[(MERGE, "1")]), [(MERGE, "0")]);
        assert_eq!(fixed(CHECK, &[(COMPACTION, "20")]), [(COMPACTION, "0")]);
    }

    #[test]
    fn finds_numa_balancing_on_numa_machines() {
        assert_eq!(found(CHECK, &[(NUMA, "1")]), NOTHING);
        assert_eq!(
            fixed(CHECK, &[(NUMA, "1"), ("/sys/devices/system/node/node1/cpulist", "2-3")]),
            [(NUMA, "0")]
        );
    }

    #[test]
    fn finds_migration_of_locked_pages() {
        assert_eq!(fixed(CHECK, &[(UNEVICTABLE, "1"), ("/sys/kernel/realtime", "1")]), [(UNEVICTABLE, "0")]);
        assert_eq!(found(CHECK, &[(UNEVICTABLE, "1")]), NOTHING);
    }
}
