//! Which of Debian's kernel packages to boot.

use std::cmp::Reverse;

/// Before this version PREEMPT_RT was a patch, and Debian's images with it differ more from mainline.
const OLDEST: [u64; 2] = [6, 12];

/// A kernel of the lab, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Debian's PREEMPT_RT image.
    Rt,
    /// The image that Debian installs by default, for comparison.
    Stock,
}

impl Flavour {
    pub(crate) const ALL: [Self; 2] = [Self::Rt, Self::Stock];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rt => "rt",
            Self::Stock => "stock",
        }
    }

    /// How the names of its packages end. Unsigned: who boots it checks no signature, and it is there first.
    fn suffix(self) -> &'static str {
        match self {
            Self::Rt => "-rt-amd64-unsigned",
            Self::Stock => "-amd64-unsigned",
        }
    }

    /// The pattern by which to ask apt for them.
    pub(crate) fn pattern(self) -> String {
        format!("^linux-image-[0-9].*{}$", self.suffix())
    }

    /// The kernel's version, if a package of this name holds such a kernel.
    fn version(self, package: &str) -> Option<Vec<u64>> {
        let version = package.strip_prefix("linux-image-")?.strip_suffix(self.suffix())?;
        // Also `-rt` and `-cloud` end in `-amd64`.
        let others = ["-rt", "-cloud"];
        if others.iter().any(|other| version.ends_with(other)) {
            return None;
        }
        let numbers = version.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let numbers: Vec<u64> = numbers.map_while(|part| part.parse().ok()).collect();
        (numbers.as_slice() >= OLDEST.as_slice()).then_some(numbers)
    }

    /// The names of its packages in what `apt-cache search` has printed, newest kernel first.
    pub(crate) fn packages(self, found: &str) -> Vec<String> {
        let names = found.lines().filter_map(|line| line.split_whitespace().next());
        let mut packages: Vec<_> =
            names.filter_map(|name| Some((Reverse(self.version(name)?), name))).collect();
        packages.sort_unstable();
        packages.into_iter().map(|(_, name)| name.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: &str = "\
linux-image-6.1.0-47-rt-amd64-unsigned - Linux 6.1 for 64-bit PCs, PREEMPT_RT
linux-image-6.12.9+deb12-rt-amd64-unsigned - Linux 6.12 for 64-bit PCs, PREEMPT_RT
linux-image-6.12.117+deb12-rt-amd64-unsigned - Linux 6.12 for 64-bit PCs, PREEMPT_RT
linux-image-6.12.117+deb12-rt-amd64-dbg - Debug symbols
linux-image-6.12.117+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.120+deb12-cloud-amd64-unsigned - Linux 6.12 for x86-64 cloud
linux-image-amd64-unsigned - a name without a version
";

    #[test]
    fn takes_the_newest_by_number_not_by_letter() {
        assert_eq!(
            Flavour::Rt.packages(FOUND),
            ["linux-image-6.12.117+deb12-rt-amd64-unsigned", "linux-image-6.12.9+deb12-rt-amd64-unsigned"]
        );
    }

    #[test]
    fn does_not_take_one_flavour_for_another() {
        assert_eq!(Flavour::Stock.packages(FOUND), ["linux-image-6.12.117+deb12-amd64-unsigned"]);
    }

    #[test]
    fn refuses_kernels_that_are_too_old() {
        assert!(Flavour::Rt.packages("linux-image-6.1.0-47-rt-amd64-unsigned - x\n").is_empty());
        let newer = "linux-image-7.0+deb14-rt-amd64-unsigned";
        assert_eq!(Flavour::Rt.packages(newer), [newer]);
    }
}
