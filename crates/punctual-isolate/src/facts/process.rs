//! The rights of this process and its children.

use crate::cpus::Cpus;
use crate::tree::Tree;

/// Capability numbers (capabilities(7)).
const IPC_LOCK: u32 = 14;
const SYS_NICE: u32 = 23;

/// The rights of this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// The allowed CPUs.
    pub cpus: Option<Cpus>,
    /// Its effective capabilities.
    capabilities: Option<u64>,
    /// The highest real-time priority allowed without a capability.
    pub rtprio: Option<u64>,
    /// The memory it may lock without a capability; `u64::MAX` means unlimited.
    pub memlock: Option<u64>,
    /// The maximum number of descriptors.
    pub descriptors: Option<u64>,
    /// The container it runs in, if detectable.
    pub container: Option<Container>,
}

/// A container runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// Docker, or a compatible runtime.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// Another runtime, by its own name.
    Other(String),
}

impl Process {
    pub(super) fn read(tree: &Tree) -> Self {
        let status = |key: &str| tree.field("/proc/self/status", key).ok().flatten();
        let limits = tree.text("/proc/self/limits").unwrap_or_default();
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            match line.split_whitespace().next()? {
                "unlimited" => Some(u64::MAX),
                number => number.parse().ok(),
            }
        };
        Self {
            cpus: status("Cpus_allowed_list").map(|list| Cpus::of_list(&list)),
            capabilities: status("CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok()),
            rtprio: limit("Max realtime priority"),
            memlock: limit("Max locked memory"),
            descriptors: limit("Max open files"),
            container: container(tree),
        }
    }

    /// Returns `true` if it may set real-time priorities regardless of the limit; `None` if
    /// unknown.
    #[must_use]
    pub fn may_schedule(&self) -> Option<bool> {
        self.capabilities.map(|set| set >> SYS_NICE & 1 == 1)
    }

    /// Returns `true` if it may lock any amount of memory; `None` if unknown.
    #[must_use]
    pub fn may_lock(&self) -> Option<bool> {
        self.capabilities.map(|set| set >> IPC_LOCK & 1 == 1)
    }
}

fn container(tree: &Tree) -> Option<Container> {
    let groups = tree.text("/proc/self/cgroup").unwrap_or_default();
    let declared = tree.text("/run/systemd/container").filter(|name| !name.is_empty());
    let is_podman = tree.text("/run/.containerenv").is_some() || declared.as_deref() == Some("podman");
    let is_docker = tree.read("/.dockerenv") != Err(crate::tree::Lack::Absent)
        || groups.contains("/docker/")
        || declared.as_deref() == Some("docker");
    match declared {
        _ if groups.contains("kubepods") => Some(Container::Kubernetes),
        _ if is_podman => Some(Container::Podman),
        _ if is_docker => Some(Container::Docker),
        other => other.map(Container::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_limits_and_capabilities() {
        let tree = Tree::parse("")
            .with(
                "/proc/self/limits",
                "Max locked memory  unlimited 9 bytes\nMax realtime priority  95  95\n",
            )
            .with("/proc/self/status", "CapEff:\t0000000000800000\nCpus_allowed_list:\t0,2");
        let process = Process::read(&tree);
        assert_eq!((process.memlock, process.rtprio, process.descriptors), (Some(u64::MAX), Some(95), None));
        assert_eq!((process.may_schedule(), process.may_lock()), (Some(true), Some(false)));
        assert_eq!(process.cpus, Some(Cpus::from([0, 2])));
        assert_eq!(Process::read(&Tree::parse("")).may_schedule(), None);
    }

    #[test]
    fn recognizes_containers_by_their_traces() {
        let with = |path: &str, text: &str| container(&Tree::parse("").with(path, text));
        assert_eq!(with("/.dockerenv", ""), Some(Container::Docker));
        assert_eq!(with("/run/.containerenv", "x"), Some(Container::Podman));
        assert_eq!(with("/proc/self/cgroup", "0::/kubepods.slice/a"), Some(Container::Kubernetes));
        assert_eq!(with("/run/systemd/container", "lxc"), Some(Container::Other("lxc".into())));
        assert_eq!(container(&Tree::parse("")), None);
    }
}
