//! The Linux part of an app whose other part is a program without Linux.
//!
//! It is another process, which inherits the descriptors of the memory and of the doorbell.
//! Environment variables describe them in the format expected by `punctual`, whose runtime reads
//! them.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{self, Pid, Signal};

use super::device::Device;
use super::layout::{RING, SHARED, STATE, USER};

/// The variable that describes the memory and the descriptors.
const PLACES: &str = "PUNCTUAL_HALVES";

/// Connects the process that `command` starts to the program that runs, or will run, on `device`;
/// the caller must not [wait](Device::wait) for its doorbell any longer. The process ends when the
/// calling thread does.
pub fn hand_over(device: &Device, command: &mut Command) {
    let descriptors = device.descriptors();
    let [memory, bell] = descriptors;
    command.env(
        PLACES,
        format!("device={memory},bell={bell},mapped={SHARED},memory={USER},state={STATE},ring={RING}"),
    );
    let parent = process::getpid();
    // SAFETY: only makes system calls between fork and exec.
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
    // The parent may have died before that took effect.
    if process::getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
