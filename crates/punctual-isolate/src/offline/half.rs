//! The half on Linux of an app whose other half is a program without Linux.
//!
//! It is another process, which is handed the descriptors of the memory and of the bell. What is where is said in the
//! environment, as `punctual`, whose runtime reads it, expects it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::device::Device;
use super::layout::{RING, SHARED, STATE, USER};

/// The variable that says what is where.
const PLACES: &str = "PUNCTUAL_HALVES";

/// Has the process that `command` starts find the program that runs, or will run, on `device`; whoever calls this does not
/// [wait](Device::wait) for its bell any more. The process ends when the calling thread does.
pub fn hand_over(device: &Device, command: &mut Command) {
    let descriptors = device.descriptors();
    let [memory, bell] = descriptors;
    command.env(
        PLACES,
        format!("device={memory},bell={bell},mapped={SHARED},memory={USER},state={STATE},ring={RING}"),
    );
    let parent = std::process::id();
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe { command.pre_exec(move || inherit(descriptors, parent)) };
}

fn inherit(descriptors: [RawFd; 2], parent: u32) -> io::Result<()> {
    for descriptor in descriptors {
        // SAFETY: the descriptor is open, as a copy of the parent's.
        if unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: it takes numbers alone.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // It may have died before that was in force.
    // SAFETY: it takes nothing.
    if unsafe { libc::getppid() } as u32 != parent {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
