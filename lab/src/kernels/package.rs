//! Selection of Debian's kernel package.

use std::cmp::Reverse;

use crate::arch::Arch;

/// Before this version PREEMPT_RT was a patch, and Debian's images with it differ more from
/// mainline.
const OLDEST: [u64; 2] = [6, 12];

const PROBE: &str = include_str!("../../kernels/rt-probe.config");
const LOCKSTAT: &str = include_str!("../../kernels/rt-lockstat.config");

/// A kernel of the lab, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Debian's PREEMPT_RT image.
    Rt,
    /// The image that Debian installs by default, for comparison.
    Stock,
    /// Debian's PREEMPT_RT image for 64-bit ARM.
    RtArm64,
    /// A slim PREEMPT_RT kernel built by the lab from Debian's source, with tracers, probes and
    /// simulated devices.
    RtProbe,
    /// The same with statistics of every lock, which make locking several times slower.
    RtLockstat,
}

impl Flavour {
    pub(crate) const ALL: [Self; 5] = [Self::Rt, Self::Stock, Self::RtArm64, Self::RtProbe, Self::RtLockstat];

    /// The source package of the kernels that the lab builds. Their configuration is for this
    /// version: later ones rename options.
    const SOURCE: &str = "linux-source-6.12";

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rt => "rt",
            Self::Stock => "stock",
            Self::RtArm64 => "rt-arm64",
            Self::RtProbe => "rt-probe",
            Self::RtLockstat => "rt-lockstat",
        }
    }

    /// Returns its processor.
    pub(crate) fn arch(self) -> Arch {
        if self == Self::RtArm64 { Arch::Arm64 } else { Arch::Amd64 }
    }

    /// Returns the kernel with this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(|flavour| format!("`{}`", flavour.name()));
        Self::ALL
            .into_iter()
            .find(|flavour| flavour.name() == name)
            .ok_or_else(|| format!("there is no kernel `{name}`; it is one of {}", names.join(", ")))
    }

    /// Returns the options with which the lab builds it, one per line; `None` for an image.
    pub(crate) fn options(self) -> Option<String> {
        let parts = match self {
            Self::Rt | Self::Stock | Self::RtArm64 => return None,
            Self::RtProbe => [PROBE, ""],
            Self::RtLockstat => [PROBE, LOCKSTAT],
        };
        let lines = parts.iter().flat_map(|part| part.lines()).filter(|line| line.starts_with("CONFIG_"));
        let name = format!("CONFIG_LOCALVERSION=\"-{}\"", self.name());
        Some(lines.chain([name.as_str()]).map(|line| format!("{line}\n")).collect())
    }

    /// Returns `true` if the lab builds it, which takes minutes.
    pub(crate) fn is_built(self) -> bool {
        self.suffix().is_none()
    }

    /// Returns `true` if the suite boots it only if it is cached, or named.
    pub(crate) fn is_extra(self) -> bool {
        self.is_built() || self.arch() != Arch::Amd64
    }

    /// Returns the space needed for making it, in MB.
    pub(crate) fn space(self) -> u32 {
        if self.is_built() { 4000 } else { 300 }
    }

    /// Returns the suffix of its package names, if it is an image. Unsigned: the signature is not
    /// checked on boot, and unsigned images are published first.
    fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Rt => Some("-rt-amd64-unsigned"),
            Self::Stock => Some("-amd64-unsigned"),
            Self::RtArm64 => Some("-rt-arm64-unsigned"),
            Self::RtProbe | Self::RtLockstat => None,
        }
    }

    /// Returns the header packages for building modules for the kernel in `package`, if this system
    /// can build them: the kernel's own, those of all its variants, and its build tools, which run
    /// here; each for a processor.
    pub(crate) fn headers(self, package: &str) -> Option<[(Arch, String); 3]> {
        let common = match self {
            Self::Rt | Self::RtArm64 => "common-rt",
            Self::Stock => "common",
            Self::RtProbe | Self::RtLockstat => return None,
        };
        let suffix = self.suffix()?;
        let version = package.strip_prefix("linux-image-")?.strip_suffix(suffix)?;
        let own = suffix.strip_suffix("-unsigned")?;
        Some([
            (self.arch(), format!("linux-headers-{version}{own}")),
            (Arch::Amd64, format!("linux-headers-{version}-{common}")),
            (Arch::Amd64, format!("linux-kbuild-{version}")),
        ])
    }

    /// Returns the pattern for querying apt.
    pub(crate) fn pattern(self) -> String {
        match self.suffix() {
            Some(suffix) => format!("^linux-image-[0-9].*{suffix}$"),
            None => format!("^{}$", Self::SOURCE.replace('.', "\\.")),
        }
    }

    /// Returns the kernel's version, if a package of this name contains such a kernel.
    fn version(self, package: &str) -> Option<Vec<u64>> {
        let Some(suffix) = self.suffix() else { return (package == Self::SOURCE).then(Vec::new) };
        let version = package.strip_prefix("linux-image-")?.strip_suffix(suffix)?;
        // `-rt` and `-cloud` also end in `-amd64`.
        let others = ["-rt", "-cloud"];
        if others.iter().any(|other| version.ends_with(other)) {
            return None;
        }
        let numbers = version.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let numbers: Vec<u64> = numbers.map_while(|part| part.parse().ok()).collect();
        (numbers.as_slice() >= OLDEST.as_slice()).then_some(numbers)
    }

    /// Returns the names of its packages in the output of `apt-cache search`, newest kernel first.
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
linux-source-6.1 - Linux kernel source for version 6.1 with Debian patches
linux-source-6.12 - Linux kernel source for version 6.12 with Debian patches
linux-source-6.120 - no such thing yet
";

    #[test]
    fn chooses_newest_version_numerically() {
        assert_eq!(
            Flavour::Rt.packages(FOUND),
            ["linux-image-6.12.117+deb12-rt-amd64-unsigned", "linux-image-6.12.9+deb12-rt-amd64-unsigned"]
        );
    }

    #[test]
    fn chooses_image_for_the_architecture() {
        let found = "linux-image-6.12.117+deb12-rt-arm64-unsigned - x\n".to_owned() + FOUND;
        assert_eq!(Flavour::RtArm64.packages(&found), ["linux-image-6.12.117+deb12-rt-arm64-unsigned"]);
        assert_eq!(Flavour::Rt.packages(&found), Flavour::Rt.packages(FOUND));
    }

    #[test]
    fn chooses_headers_matching_the_image() {
        let headers =
            |flavour: Flavour| flavour.headers(&flavour.packages(FOUND)[0]).unwrap().map(|(_, name)| name);
        assert_eq!(
            headers(Flavour::Rt),
            [
                "linux-headers-6.12.117+deb12-rt-amd64",
                "linux-headers-6.12.117+deb12-common-rt",
                "linux-kbuild-6.12.117+deb12"
            ]
        );
        assert_eq!(
            headers(Flavour::Stock)[..2],
            ["linux-headers-6.12.117+deb12-amd64", "linux-headers-6.12.117+deb12-common"]
        );
        assert_eq!(Flavour::RtProbe.headers("linux-source-6.12"), None);
    }

    #[test]
    fn chooses_headers_for_target_and_tools_for_host() {
        let headers = Flavour::RtArm64.headers("linux-image-6.12.117+deb12-rt-arm64-unsigned").unwrap();
        assert_eq!(headers[0], (Arch::Arm64, "linux-headers-6.12.117+deb12-rt-arm64".to_owned()));
        assert_eq!(headers[2], (Arch::Amd64, "linux-kbuild-6.12.117+deb12".to_owned()));
    }

    #[test]
    fn does_not_take_one_flavour_for_another() {
        assert_eq!(Flavour::Stock.packages(FOUND), ["linux-image-6.12.117+deb12-amd64-unsigned"]);
    }

    #[test]
    fn chooses_source_matching_the_configuration() {
        assert_eq!(Flavour::RtProbe.packages(FOUND), ["linux-source-6.12"]);
        assert_eq!(Flavour::RtProbe.pattern(), "^linux-source-6\\.12$");
    }

    #[test]
    fn skips_comments_in_configuration() {
        let (probe, lockstat) = (Flavour::RtProbe.options().unwrap(), Flavour::RtLockstat.options().unwrap());
        assert!(
            probe.lines().all(|line| line.starts_with("CONFIG_")) && probe.contains("CONFIG_PREEMPT_RT=y\n")
        );
        assert!(lockstat.contains("CONFIG_LOCK_STAT=y\n") && !probe.contains("LOCK_STAT"));
        assert!(lockstat.ends_with("CONFIG_LOCALVERSION=\"-rt-lockstat\"\n"));
        for flavour in Flavour::ALL {
            assert_eq!(flavour.options().is_some(), flavour.is_built(), "{}", flavour.name());
        }
    }

    #[test]
    fn error_lists_known_kernels() {
        assert_eq!(Flavour::named("rt-lockstat").unwrap(), Flavour::RtLockstat);
        let error = Flavour::named("windows").unwrap_err();
        assert!(error.contains("`windows`") && error.contains("`rt-probe`"), "{error}");
    }

    #[test]
    fn rejects_outdated_kernels() {
        assert!(Flavour::Rt.packages("linux-image-6.1.0-47-rt-amd64-unsigned - x\n").is_empty());
        let newer = "linux-image-7.0+deb14-rt-amd64-unsigned";
        assert_eq!(Flavour::Rt.packages(newer), [newer]);
    }
}
