//! Control groups: the mounted hierarchies, and this process's groups.

use crate::cpus::Cpus;
use crate::tree::Tree;

/// The control groups of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// The mount point of version 2.
    pub unified: Option<String>,
    /// `true` if version 2 has the cpuset controller.
    pub has_cpuset: bool,
    /// The mount point of version 1's cpuset controller.
    pub cpuset: Option<String>,
    /// The mount point of version 1's cpu controller.
    pub cpu: Option<String>,
    /// The directory of this process's version 2 group.
    pub own: Option<String>,
    /// The directory of this process's version 1 cpu group.
    pub own_cpu: Option<String>,
    /// The CPUs of isolated version 2 partitions.
    pub isolated: Cpus,
}

impl Cgroups {
    pub(super) fn read(tree: &Tree) -> Self {
        let mounts = tree.text("/proc/self/mounts").unwrap_or_default();
        let find = |kind: &str, controller: Option<&str>| {
            mounts.lines().find_map(|line| {
                let mut words = line.split(' ');
                let (place, of, options) = (words.nth(1)?, words.next()?, words.next()?);
                let has =
                    controller.is_none_or(|controller| options.split(',').any(|word| word == controller));
                (of == kind && has).then(|| place.to_owned())
            })
        };
        let unified = find("cgroup2", None);
        let (cpuset, cpu) = (find("cgroup", Some("cpuset")), find("cgroup", Some("cpu")));
        let membership = tree.text("/proc/self/cgroup").unwrap_or_default();
        let within = |mount: Option<&String>, controller: &str| {
            let path = membership.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                controllers.split(',').any(|of| of == controller).then_some(path)
            })?;
            // In a container the path may lead out of the mounted tree.
            let path = if path.split('/').any(|part| part == "..") { "" } else { path.trim_end_matches('/') };
            Some(format!("{}{path}", mount?))
        };
        let read = |name: &str| tree.text(&format!("{}/{name}", unified.as_deref()?));
        let controllers = read("cgroup.controllers").unwrap_or_default();
        let isolated = read("cpuset.cpus.isolated").unwrap_or_default();
        Self {
            own: within(unified.as_ref(), ""),
            own_cpu: within(cpu.as_ref(), "cpu"),
            has_cpuset: controllers.split_whitespace().any(|controller| controller == "cpuset"),
            isolated: Cpus::of_list(&isolated),
            unified,
            cpuset,
            cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hierarchies_of_both_versions() {
        let tree = Tree::parse(
            "==> /proc/self/mounts <==
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
==> /proc/self/cgroup <==
4:cpu,cpuacct:/user
0::/../init
==> /sys/fs/cgroup/unified/cgroup.controllers <==
cpuset io
==> /sys/fs/cgroup/unified/cpuset.cpus.isolated <==
3
",
        );
        let cgroups = Cgroups::read(&tree);
        assert_eq!(cgroups.cpuset.as_deref(), Some("/sys/fs/cgroup/cpuset"));
        assert_eq!(cgroups.own_cpu.as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct/user"));
        assert_eq!(cgroups.own.as_deref(), Some("/sys/fs/cgroup/unified"));
        assert!(cgroups.has_cpuset);
        assert_eq!(cgroups.isolated, Cpus::from([3]));
    }
}
