//! The half on Linux of an app whose other half is a program without Linux.
//!
//! It is another process, which is handed the descriptors of the memory and of the bell. What is where is said in the
//! environment, as `punctual`, whose runtime reads it, expects it.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{self, Pid, Signal};

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
    let parent = process::getpid();
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe { command.pre_exec(move || inherit(descriptors, parent)) };
}

fn inherit(descriptors: [RawFd; 2], parent: Pid) -> io::Result<()> {
    for descriptor in descriptors {
        // SAFETY: the descriptor is open, as a copy of the parent's.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // It may have died before that was in force.
    if process::getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
