//! The kernel's tracing, where it is not mounted too.

use std::io;
use std::path::Path;
use std::ptr;

/// Where tracefs usually is.
pub(crate) const PLACE: &str = "/sys/kernel/tracing";

/// Lets the calling thread, and what it starts, find tracefs at its usual place. Where it is not mounted, it is for them
/// alone: in a namespace that goes with them.
pub(crate) fn enter() -> Result<(), String> {
    let instances = Path::new(PLACE).join("instances");
    if instances.is_dir() {
        return Ok(());
    }
    let (none, no_data) = (c"none".as_ptr(), ptr::null());
    // SAFETY: the calls read strings that are constants, and take null for what is not needed. They change which mounts this
    // thread sees, and those of no other.
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
