//! Directories in the kernel's file systems whose names identify the process that made them.
//!
//! Such a directory is a setting of the kernel and outlives its process. Whoever finds one of a dead process may remove it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A name for a directory of this process, beginning with `prefix`.
pub(crate) fn name(prefix: &str) -> String {
    let own = std::process::id();
    format!("{prefix}{own}-{}", started(own).unwrap_or(0))
}

/// The directories in `parent` left behind by dead processes.
pub(crate) fn left_behind(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some((pid, start)) = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-')) else {
            return false;
        };
        pid.parse().ok().and_then(started).is_none_or(|started| started.to_string() != start)
    });
    dead.map(|entry| entry.path()).collect()
}

/// The start time of the process with this id, in the kernel's units, if it is alive.
fn started(pid: u32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The start in the line that the kernel has on a process.
fn start_of(stat: &str) -> Option<u64> {
    // The name, in parentheses, may hold anything; the state comes behind it, and the start 19 fields further on.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    match fields.next()? {
        // It has ended, and nobody has asked how.
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// Mounts a file system of the kernel at no place, for this process alone, until the descriptor is closed.
///
/// Returns the path at which this process finds it.
pub(crate) fn mount_privately(kind: &str) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_start_time_of_process() {
        let stat =
            |state: &str| format!("7 (a) b) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 5 6");
        assert_eq!(start_of(&stat("S")), Some(4711));
        assert_eq!(start_of(&stat("Z")), None);
        assert_eq!(start_of("7 (a"), None);
    }

    #[test]
    fn finds_only_leftovers_of_dead_processes() {
        let own = std::process::id();
        let directory = std::env::temp_dir().join(format!("punctual-tagged-{own}"));
        // The number of this process, but another start: one that had the number before.
        let dead = directory.join(format!("test-{own}-1"));
        for entry in [&directory.join(name("test-")), &directory.join("somebody-elses"), &dead] {
            fs::create_dir_all(entry).unwrap();
        }
        assert_eq!(left_behind(&directory, "test-"), [dead]);
        fs::remove_dir_all(&directory).unwrap();
        assert!(left_behind(&directory, "test-").is_empty());
    }
}
