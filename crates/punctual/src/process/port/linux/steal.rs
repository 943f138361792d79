//! Time taken by the host of a virtual machine.

/// Returns the time since boot in which the host ran something else although this CPU was needed
/// here, in ns. The kernel counts it in ticks, of usually 10 ms. `None` if the kernel does not
/// report it.
pub(crate) fn stolen(cpu: usize) -> Option<u64> {
    // SAFETY: the call takes a number, and writes no memory of ours.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&ticks| ticks > 0)?;
    let statistics = std::fs::read_to_string("/proc/stat").ok()?;
    ticks_in(&statistics, cpu)?.checked_mul(1_000_000_000 / ticks)
}

/// The eighth figure of a CPU: user nice system idle iowait irq softirq steal.
fn ticks_in(statistics: &str, cpu: usize) -> Option<u64> {
    let line = statistics.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_value_of_cpu() {
        let statistics = "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3\nintr 5\n";
        assert_eq!(ticks_in(statistics, 0), Some(8));
        assert_eq!(ticks_in(statistics, 1), None);
        assert_eq!(ticks_in(statistics, 10), None);
    }

    #[test]
    fn missing_cpu_lost_nothing() {
        assert_eq!(stolen(usize::MAX), None);
    }
}
