//! Access to the kernel's tracing, even if it is not mounted.

use std::io;
use std::path::Path;
use std::ptr;

/// Usual mount point of tracefs.
pub(crate) const PLACE: &str = "/sys/kernel/tracing";

/// Makes tracefs available at its usual mount point to the calling thread and its descendants. If
/// it is not mounted, only they see it, in a namespace that ends with them.
pub(crate) fn enter() -> Result<(), String> {
    let instances = Path::new(PLACE).join("instances");
    if instances.is_dir() {
        return Ok(());
    }
    let (none, no_data) = (c"none".as_ptr(), ptr::null());
    // SAFETY: the calls read strings that are constants, and accept null for unused arguments. They
    // change the mounts that this thread sees, and those of no other.
    let is_mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), ptr::null(), libc::MS_REC | libc::MS_PRIVATE, no_data) == 0
            && libc::mount(none, c"/sys/kernel/tracing".as_ptr(), c"tracefs".as_ptr(), 0, no_data) == 0
    };
    match is_mounted && instances.is_dir() {
        true => Ok(()),
        false => Err(format!("{}: {}", instances.display(), io::Error::last_os_error())),
    }
}
