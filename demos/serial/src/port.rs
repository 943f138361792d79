//! Serial ports.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Opens a port for raw bytes: 8 data bits, no parity, one stop bit, at this rate. Calls do not
/// block.
///
/// # Errors
/// Returns an error if the port cannot be opened, or has no such rate.
pub fn open(path: &Path, baud: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let port = rustix::fs::open(path, flags, Mode::empty())?;
    let mut settings: Termios = tcgetattr(&port)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes -= ControlModes::CSTOPB | ControlModes::CRTSCTS;
    settings.set_speed(baud)?;
    tcsetattr(&port, OptionalActions::Flush, &settings)?;
    Ok(port.into())
}
