//! Sets of CPUs, in the kernel's formats.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use punctual_core::cpus::{self, MAX_CPUS, range};

/// A set of CPUs.
///
/// ```
/// use punctual_isolate::cpus::Cpus;
///
/// assert_eq!(Cpus::of_list("0-2,5\n").to_string(), "0-2,5");
/// assert_eq!(Cpus::of_mask("00000001,00000005").to_string(), "0,2,32");
/// assert_eq!(Cpus::from([0, 2, 32]).mask(), "1,00000005");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpus(BTreeSet<usize>);

impl Cpus {
    /// Parses a list such as `0-2,5` or `0-15:2/4`. Skips malformed parts.
    #[must_use]
    pub fn of_list(list: &str) -> Self {
        cpus::list(list).collect()
    }

    /// Parses a list strictly.
    ///
    /// # Errors
    /// Returns the part that is neither a number nor a range.
    pub fn checked(list: &str) -> Result<Self, String> {
        match list.split(',').find(|part| range(part).is_none_or(|mut range| range.next().is_none())) {
            Some(part) => Err(format!("`{part}` is not a CPU or a range of CPUs, such as 2 or 2-3")),
            None => Ok(Self::of_list(list)),
        }
    }

    /// Parses a mask in groups of 32 bits, such as `ff` or `00000001,00000000`.
    #[must_use]
    pub fn of_mask(mask: &str) -> Self {
        let mut set = BTreeSet::new();
        for (group, digits) in mask.trim().rsplit(',').enumerate().take(MAX_CPUS / 32) {
            // A group that is longer than 32 bits is the only one.
            let Ok(bits) = u128::from_str_radix(digits.trim_start_matches("0x"), 16) else { continue };
            set.extend((0..128).filter(|bit| bits >> bit & 1 == 1).map(|bit| group * 32 + bit));
        }
        Self(set)
    }

    /// Returns the set as a mask in groups of 32 bits.
    #[must_use]
    pub fn mask(&self) -> String {
        let groups = self.last().map_or(1, |last| last / 32 + 1);
        let bits = |group: usize| {
            (0..32).filter(|bit| self.has(group * 32 + bit)).fold(0_u32, |m, bit| m | 1 << bit)
        };
        let mut out = format!("{:x}", bits(groups - 1));
        for group in (0..groups - 1).rev() {
            out += &format!(",{:08x}", bits(group));
        }
        out
    }

    /// Returns `true` if the set contains `cpu`.
    #[must_use]
    pub fn has(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the lowest CPU.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// Returns the highest CPU.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.0.last().copied()
    }

    /// Returns all CPUs, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Returns the difference of two sets.
    #[must_use]
    pub fn without(&self, those: &Self) -> Self {
        Self(&self.0 - &those.0)
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn and(&self, those: &Self) -> Self {
        Self(&self.0 | &those.0)
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn common(&self, those: &Self) -> Self {
        Self(&self.0 & &those.0)
    }

    /// Returns `true` if the two sets intersect.
    #[must_use]
    pub fn meets(&self, those: &Self) -> bool {
        !self.0.is_disjoint(&those.0)
    }

    /// Formats the set as `CPU 3` or `CPUs 2-3`.
    #[must_use]
    pub fn named(&self) -> String {
        format!("{} {self}", if self.len() == 1 { "CPU" } else { "CPUs" })
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl<const N: usize> From<[usize; N]> for Cpus {
    fn from(cpus: [usize; N]) -> Self {
        cpus.into_iter().collect()
    }
}

impl Display for Cpus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|&next| next == last + 1) {
                last = next;
            }
            match last == first {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cpu_lists_of_the_kernel() {
        assert_eq!(Cpus::of_list("0-2,5\n"), Cpus::from([0, 1, 2, 5]));
        assert!(Cpus::of_list("").is_empty() && Cpus::of_list("(null)").is_empty());
        assert_eq!(Cpus::of_list("3-1,x,7"), Cpus::from([7]));
        assert_eq!(Cpus::of_list("0-7:1/4,9"), Cpus::from([0, 4, 9]));
        assert_eq!(Cpus::of_list("0-99999999999").len(), MAX_CPUS);
        assert!(Cpus::of_list("0-3:1/0").is_empty());
    }

    #[test]
    fn round_trips_cpu_lists() {
        for text in ["", "0", "0-1", "1,3,5-7,31-33", "0-127"] {
            let cpus = Cpus::of_list(text);
            assert_eq!(cpus.to_string(), text);
            assert_eq!(Cpus::of_mask(&cpus.mask()), cpus, "{}", cpus.mask());
        }
        assert_eq!(Cpus::from([0, 33]).mask(), "2,00000001");
        assert_eq!(Cpus::of_mask("0xf"), Cpus::of_list("0-3"));
    }

    #[test]
    fn rejects_invalid_range() {
        assert_eq!(Cpus::checked("2-3,5").unwrap(), Cpus::from([2, 3, 5]));
        for (bad, part) in [("", "``"), ("1,x", "`x`"), ("3-1", "`3-1`"), ("-1", "`-1`")] {
            assert!(Cpus::checked(bad).unwrap_err().contains(part), "{bad}");
        }
    }
}
