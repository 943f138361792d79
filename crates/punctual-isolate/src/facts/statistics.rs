//! CPU times since boot (`/proc/stat`, `proc_stat(5)`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::tree::Tree;

/// The unit of all times, independent of the kernel's tick.
pub const TICK: Duration = Duration::from_millis(10);

/// The index of the stolen time in a line.
const STOLEN: usize = 7;
/// The indices of idle and I/O wait time.
const IDLE: [usize; 2] = [3, 4];

/// The times of all CPUs.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// The sum over all CPUs.
    pub all: Spent,
    cpus: BTreeMap<usize, Spent>,
}

/// Times in [`TICK`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time of threads, interrupts and the hypervisor.
    pub busy: u64,
    /// Time taken by the hypervisor while the CPU was runnable. `None` for a kernel that does not
    /// count it.
    pub stolen: Option<u64>,
}

impl Statistics {
    /// Reads the current times.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let mut statistics = Self::default();
        for line in tree.text("/proc/stat").unwrap_or_default().lines() {
            let Some((number, ticks)) = line.strip_prefix("cpu").and_then(|line| line.split_once(' ')) else {
                continue;
            };
            match number.parse() {
                Ok(number) => drop(statistics.cpus.insert(number, Spent::of(ticks))),
                Err(_) if number.is_empty() => statistics.all = Spent::of(ticks),
                Err(_) => {}
            }
        }
        statistics
    }

    /// Returns the times of an online CPU.
    #[must_use]
    pub fn cpu(&self, number: usize) -> Option<Spent> {
        self.cpus.get(&number).copied()
    }
}

impl Spent {
    fn of(ticks: &str) -> Self {
        // The last two of ten fields are guest times, which are included in the first two.
        let fields = ticks.split_whitespace().map_while(|word| word.parse::<u64>().ok()).take(STOLEN + 1);
        let fields: Vec<u64> = fields.collect();
        let busy = fields.iter().enumerate().filter(|(at, _)| !IDLE.contains(at));
        Self {
            busy: busy.fold(0, |sum, (_, &ticks)| sum.saturating_add(ticks)),
            stolen: fields.get(STOLEN).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Statistics {
        Statistics::read(&Tree::parse("").with("/proc/stat", text))
    }

    #[test]
    fn separates_cpus_from_total() {
        let statistics = of("cpu  1 2 3 4 5 6 7 81 9 10\ncpu12 1 1 1 1 1 1 1 2 1 1\nctxt 5\ncpufreq 1\n");
        assert_eq!(statistics.all, Spent { busy: 100, stolen: Some(81) });
        assert_eq!(statistics.cpu(12), Some(Spent { busy: 7, stolen: Some(2) }));
        assert_eq!(statistics.cpu(1), None);
    }

    #[test]
    fn reports_counters_of_old_kernels_as_unknown() {
        assert_eq!(of("cpu  1 2 3 4 5 6 7\n").all, Spent { busy: 19, stolen: None });
        assert_eq!(of("").all, Spent::default());
        assert_eq!(of("cpu x\ncpu0\n").all.stolen, None);
    }

    #[test]
    fn saturates_absurd_times() {
        let max = u64::MAX;
        assert_eq!(of(&format!("cpu  {max} {max} 0 0 0 0 0 1")).all, Spent { busy: max, stolen: Some(1) });
    }
}
