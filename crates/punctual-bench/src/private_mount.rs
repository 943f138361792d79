//! Kernel file systems, mounted for this process only.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts a kernel file system without a mount point, for this process only, until the descriptor
/// is closed.
///
/// Returns the path by which this process accesses it.
pub(crate) fn mount_privately(kind: &str) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), mount))
}
