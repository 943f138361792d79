//! A simulated drive at the other end of a pseudoterminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::DEVICE;
use crate::modbus::{self, REQUEST_BYTES};

/// Faults of the line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// One of this many answers is lost; 0 for none.
    pub lost: u64,
    /// One of this many answers has a flipped bit; 0 for none.
    pub corrupted: u64,
}

/// A running drive.
#[derive(Debug)]
pub struct Drive(JoinHandle<()>);

impl Drive {
    /// Starts a drive, and returns the controller's port. The drive ends when the port is closed.
    ///
    /// # Errors
    /// Returns an error if the kernel has no pseudoterminal.
    pub fn start(faults: Faults) -> io::Result<(Self, File)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let own = openpt(flags)?;
        grantpt(&own)?;
        unlockpt(&own)?;
        let name = ptsname(&own, Vec::new())?;
        let port = crate::open(Path::new(OsStr::from_bytes(name.as_bytes())), 115_200)?;
        let mut own = File::from(own);
        let thread = punctual::background::spawn("drive", move || {
            // Closing the port is an error of the last call.
            let _ = answer_requests(&mut own, faults);
        })?;
        Ok((Self(thread), port))
    }

    /// Waits until the drive has ended.
    ///
    /// # Panics
    /// Panics if the drive has panicked.
    pub fn join(self) {
        self.0.join().expect("the drive does not panic");
    }
}

/// Moves by half of the way to the target with each request, and by the last increment.
fn answer_requests(line: &mut File, faults: Faults) -> io::Result<()> {
    let mut position: u16 = 0;
    let mut frame = [0; REQUEST_BYTES];
    for number in 1.. {
        line.read_exact(&mut frame)?;
        let Some(target) = modbus::parse_request(DEVICE, &frame) else {
            return Err(io::Error::other("a request is corrupted"));
        };
        let step = target.abs_diff(position).div_ceil(2);
        position = if target > position { position + step } else { position - step };
        let is_one_of = |count: u64| count != 0 && number % count == 0;
        if is_one_of(faults.lost) {
            continue;
        }
        let mut answer = modbus::answer(DEVICE, position);
        answer[3] ^= u8::from(is_one_of(faults.corrupted));
        line.write_all(&answer)?;
    }
    Ok(())
}
