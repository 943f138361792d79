//! The data caches of a CPU, from `/sys`.

use crate::machine::read;

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cache {
    pub(crate) level: u32,
    pub(crate) bytes: usize,
}

/// Those that data go through, the smallest first. None where the kernel does not say.
pub(crate) fn caches(cpu: usize) -> Vec<Cache> {
    let file = |index: usize, name: &str| {
        read(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}"))
    };
    let cache = |index| cache(&file(index, "type"), &file(index, "level"), &file(index, "size"));
    let mut caches: Vec<Cache> = (0..16).filter_map(cache).collect();
    caches.sort_by_key(|cache| cache.bytes);
    caches
}

fn cache(kind: &str, level: &str, size: &str) -> Option<Cache> {
    if !matches!(kind, "Data" | "Unified") {
        return None;
    }
    let (number, unit) = match size.strip_suffix('K') {
        Some(number) => (number, 1024),
        None => (size.strip_suffix('M')?, 1024 * 1024),
    };
    let bytes = number.parse::<usize>().ok()?.checked_mul(unit)?;
    Some(Cache { level: level.parse().ok()?, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_of_data_caches() {
        assert_eq!(cache("Data", "1", "32K"), Some(Cache { level: 1, bytes: 32 * 1024 }));
        assert_eq!(cache("Unified", "3", "8M"), Some(Cache { level: 3, bytes: 8 << 20 }));
        for (kind, level, size) in
            [("Instruction", "1", "32K"), ("", "", ""), ("Data", "x", "32K"), ("Data", "1", "32")]
        {
            assert_eq!(cache(kind, level, size), None, "{kind} {level} {size}");
        }
    }
}
