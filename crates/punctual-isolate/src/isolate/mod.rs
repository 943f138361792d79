//! Isolation of CPUs from the rest of the system, and its end.
//!
//! A [`Plan`] contains every write before it is made. [`take`] makes them, each recorded in a
//! journal before; [`Store::undo`] returns the CPUs, and so does the next command if the process
//! that isolated them was killed.

pub mod boot;
mod plan;

pub use self::plan::{Plan, Refusal, Step};

use crate::change::{Journal, JournalError, Settings, Store};
use crate::cpus::Cpus;
use crate::doctor::clean;
use crate::tree::Tree;

/// The name of the journal. Only one isolation exists at a time: two would change the same masks.
pub const JOURNAL: &str = "isolate";

/// Isolates the CPUs of a plan. Returns the journal and, one per line, the optional settings that
/// the kernel refused. With `keep` the CPUs stay isolated when this process has ended; otherwise
/// any process can return them once the journal is dropped.
///
/// # Errors
/// Another process has isolated CPUs already, or the kernel refuses a required setting: then
/// everything is undone.
pub fn take(
    plan: &Plan,
    store: &Store,
    keep: bool,
    settings: &mut dyn Settings,
) -> Result<(Journal, Vec<String>), JournalError> {
    let purpose = format!("the isolation of {}", plan.cpus.named());
    let mut journal = store.begin(JOURNAL, &purpose, keep, settings)?;
    let mut refused = Vec::new();
    for step in &plan.steps {
        match journal.apply(&step.change, settings) {
            Ok(()) => {}
            Err(JournalError::Refused { setting, new, error }) if !step.is_required => {
                refused.push(format!("{setting} was not set to `{new}`: {error}"));
            }
            Err(error) => {
                store.undo(JOURNAL, settings)?;
                return Err(error);
            }
        }
    }
    Ok((journal, refused))
}

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
mod tests;
