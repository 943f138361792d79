//! CPU lists in the kernel's format: the shared parser of all crates, and the files that list
//! isolated CPUs.
//!
//! ```
//! use punctual_core::cpus;
//!
//! assert!(cpus::list("0-2,5\n").eq([0, 1, 2, 5]));
//! assert!(cpus::list("0-7:1/4,(null)").eq([0, 4]), "malformed parts are skipped");
//! ```

/// The largest number of CPUs that a kernel supports.
pub const MAX_CPUS: usize = 8192;

/// The files that list the CPUs isolated by boot parameters or by partitions of control groups, at
/// their usual mount points. A partition leaves the first file empty.
pub const ISOLATED: [&str; 3] = [
    "/sys/devices/system/cpu/isolated",
    "/sys/fs/cgroup/cpuset.cpus.isolated",
    "/sys/fs/cgroup/unified/cpuset.cpus.isolated",
];

/// Returns the CPUs of a list, in list order. Malformed parts are skipped.
pub fn list(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.trim().split(',').filter_map(range).flatten()
}

/// Parses one part of a list: `3`, `0-2`, or `0-15:2/4` (the first two of every four). Returns
/// `None` if it is malformed.
pub fn range(part: &str) -> Option<impl Iterator<Item = usize> + use<>> {
    let (range, pattern) = part.trim().split_once(':').map_or((part.trim(), None), |(r, p)| (r, Some(p)));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let (used, group) = match pattern {
        None => (1, 1),
        Some(pattern) => {
            let (used, group) = pattern.split_once('/')?;
            (used.parse().ok()?, group.parse().ok().filter(|&group: &usize| group > 0)?)
        }
    };
    Some((first..=last.min(MAX_CPUS - 1)).filter(move |cpu| (cpu - first) % group < used))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parses_cpu_lists_of_the_kernel() {
        assert!(list("0-2,5\n").eq([0, 1, 2, 5]));
        assert!(list("").chain(list("(null)")).chain(list("3-1,x,-")).eq([]));
        assert!(list("0-7:1/4,9").eq([0, 4, 9]));
        assert!(list("0-3:1/1").eq([0, 1, 2, 3]));
        assert!(list("0-3:1/0,0-3:1").eq([]));
    }

    #[test]
    fn bounds_long_numbers() {
        assert_eq!(list("0-99999999999").count(), MAX_CPUS);
        assert_eq!(list("18446744073709551615").count(), 0);
    }
}
