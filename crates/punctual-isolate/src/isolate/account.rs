//! Interrupt counts of isolated CPUs and the others during an isolation.

use crate::cpus::Cpus;
use crate::doctor::clean;
use crate::tree::Tree;

/// The interrupt counts at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The name, and the count for each CPU.
    rows: Vec<(String, Vec<(usize, u64)>)>,
}

/// The interrupts between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of an interrupt or a soft interrupt, without control characters.
    pub name: String,
    /// The mean count of the isolated CPUs.
    pub taken: u64,
    /// The mean count of the others.
    pub others: u64,
}

impl Account {
    /// Reads the current counts.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let mut rows = Vec::new();
        for (path, kind) in [("/proc/interrupts", ""), ("/proc/softirqs", "softirq ")] {
            let text = tree.text(path).unwrap_or_default();
            let mut lines = text.lines();
            let head = lines.next().unwrap_or_default().split_whitespace();
            let cpus: Vec<usize> =
                head.filter_map(|column| column.strip_prefix("CPU")?.parse().ok()).collect();
            for line in lines {
                let Some((name, rest)) = line.trim().split_once(':') else { continue };
                let mut words = rest.split_whitespace();
                let counts: Vec<(usize, u64)> =
                    cpus.iter().map_while(|&cpu| Some((cpu, words.next()?.parse().ok()?))).collect();
                let about = words.collect::<Vec<_>>().join(" ");
                rows.push((clean(format!("{kind}{name} {about}").trim()), counts));
            }
        }
        Self { rows }
    }

    /// Returns the differences, the most frequent on the isolated CPUs first; omits rows without
    /// events.
    #[must_use]
    pub fn since(&self, before: &Self, taken: &Cpus, others: &Cpus) -> Vec<Row> {
        let average = |row: &(String, Vec<(usize, u64)>), of: &Cpus| {
            let then = before.rows.iter().find(|(name, _)| *name == row.0);
            let count = |counts: &[(usize, u64)], cpu: usize| {
                counts.iter().find(|&&(on, _)| on == cpu).map_or(0, |&(_, count)| count)
            };
            let sum = of.iter().fold(0_u64, |sum, cpu| {
                let now = count(&row.1, cpu);
                sum.saturating_add(now.saturating_sub(then.map_or(0, |then| count(&then.1, cpu))))
            });
            sum / of.len().max(1) as u64
        };
        let rows = self.rows.iter().map(|row| Row {
            name: row.0.clone(),
            taken: average(row, taken),
            others: average(row, others),
        });
        let mut rows: Vec<Row> = rows.filter(|row| row.taken > 0 || row.others > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.taken, row.others)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_interrupts_since_the_snapshot() {
        let at = |local: &str| {
            Account::read(
                &Tree::parse("")
                    .with(
                        "/proc/interrupts",
                        &format!("CPU0 CPU1 CPU3\n LOC: {local} Local timer\n 9: 1 1 1 a\x1b\n"),
                    )
                    .with("/proc/softirqs", "CPU0 CPU1 CPU3\n TIMER: 5 6 7\n"),
            )
        };
        let rows = at("110 130 12").since(&at("10 10 10"), &Cpus::from([3]), &Cpus::from([0, 1]));
        assert_eq!(rows, [Row { name: "LOC Local timer".into(), taken: 2, others: 110 }]);
        // A count that went back, as for a device that was replaced, is omitted.
        assert!(at("1 1 1").since(&at("10 10 10"), &Cpus::from([3]), &Cpus::from([0])).is_empty());
    }
}
