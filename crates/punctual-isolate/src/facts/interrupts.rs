//! Device interrupts: allowed CPUs, effective CPUs, and counts.

use crate::cpus::Cpus;
use crate::tree::Tree;

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// The kernel's interrupt number.
    pub number: u32,
    /// The handler's name in `/proc/interrupts`, with the controller.
    pub name: String,
    /// The count by CPU, in the order of the columns.
    pub counts: Vec<(usize, u64)>,
    /// The allowed CPUs.
    pub allowed: Cpus,
    /// The effective CPUs.
    pub effective: Cpus,
}

impl Interrupt {
    /// Returns the count on that CPU.
    #[must_use]
    pub fn count(&self, cpu: usize) -> u64 {
        self.counts.iter().find(|&&(on, _)| on == cpu).map_or(0, |&(_, count)| count)
    }

    /// Returns `true` if it goes to one of these CPUs.
    #[must_use]
    pub fn goes_to(&self, cpus: &Cpus) -> bool {
        // Some controllers do not report effective CPUs.
        if self.effective.is_empty() { self.allowed.meets(cpus) } else { self.effective.meets(cpus) }
    }
}

pub(super) fn read(tree: &Tree) -> Vec<Interrupt> {
    let text = tree.text("/proc/interrupts").unwrap_or_default();
    let cpus = tree.text("/sys/devices/system/cpu/online");
    let cpus = cpus.map(|list| Cpus::of_list(&list)).unwrap_or_default();
    parse(&text, &cpus)
        .map(|mut interrupt| {
            let read = |name: &str| {
                let list = tree.text(&format!("/proc/irq/{}/{name}", interrupt.number));
                list.map(|list| Cpus::of_list(&list)).unwrap_or_default()
            };
            let (allowed, effective) = (read("smp_affinity_list"), read("effective_affinity_list"));
            (interrupt.allowed, interrupt.effective) = (allowed, effective);
            interrupt
        })
        .collect()
}

/// Parses the numbered rows; those of the CPUs themselves have letters.
fn parse<'a>(text: &'a str, online: &'a Cpus) -> impl Iterator<Item = Interrupt> + 'a {
    let mut lines = text.lines();
    let head: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|column| column.strip_prefix("CPU")?.parse().ok())
        .collect();
    // An empty header provides no information.
    let columns = if head.is_empty() { online.iter().collect() } else { head };
    lines.filter_map(move |line| {
        let (number, rest) = line.trim_start().split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Vec<(usize, u64)> =
            columns.iter().map_while(|&cpu| Some((cpu, words.next()?.parse().ok()?))).collect();
        Some(Interrupt {
            number: number.parse().ok()?,
            name: words.collect::<Vec<_>>().join(" "),
            counts,
            allowed: Cpus::default(),
            effective: Cpus::default(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2
  9:          1         20   IO-APIC   9-fasteoi   acpi
 x: 1 2
 40:          3
NMI:          4          5   Non-maskable interrupts
";

    #[test]
    fn reads_rows_of_devices_by_their_columns() {
        let tree = Tree::parse("==> /proc/irq/9/smp_affinity_list <==\n0-2\n")
            .with("/proc/interrupts", TEXT)
            .with("/proc/irq/9/effective_affinity_list", "2");
        let interrupts = read(&tree);
        let numbers: Vec<u32> = interrupts.iter().map(|interrupt| interrupt.number).collect();
        assert_eq!(numbers, [9, 40]);
        let acpi = &interrupts[0];
        assert_eq!((acpi.count(0), acpi.count(2), acpi.count(1)), (1, 20, 0));
        assert_eq!(acpi.name, "IO-APIC 9-fasteoi acpi");
        assert!(acpi.goes_to(&Cpus::from([2])) && !acpi.goes_to(&Cpus::from([0])));
    }
}
