//! File systems of the kernel, mounted for this process alone.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts a file system of the kernel at no place, for this process alone, until the descriptor is closed.
///
/// Returns the path at which this process finds it.
pub(crate) fn mount_privately(kind: &str) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), mount))
}
