//! The program on Linux that shares memory with the program on the CPU.
//!
//! The child process inherits the descriptors of the device and of its bell. An environment
//! variable describes the layout for `punctual::remote` in the child.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{self, Pid, Signal};

use super::device::Device;
use super::layout::{RING, SHARED, STATE, USER};

/// Environment variable with the layout; `punctual::remote` reads it.
const VARIABLE: &str = "PUNCTUAL_REMOTE";

/// Lets the process that `command` starts inherit `device`. The caller must not
/// [wait](Device::wait) for the bell any more. The process gets SIGTERM when the calling thread
/// ends.
pub fn hand_over(device: &Device, command: &mut Command) {
    let descriptors = device.descriptors();
    let [memory, bell] = descriptors;
    let layout =
        format!("device={memory},bell={bell},mapped={SHARED},memory={USER},state={STATE},ring={RING}");
    command.env(VARIABLE, layout);
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
