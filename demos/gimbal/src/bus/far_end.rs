//! The other end of a bus: the plant, as a separate process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use super::clock;
use crate::device::SimulatedGimbal;
use crate::frame::{FRAME_LEN, Frame};
use crate::plant::{GIMBAL, SUPPLY_V};
use embedded_hal::spi::SpiDevice;

/// The time to wait for a command before the simulation continues. Catching up when one arrives
/// then takes at most 200 steps, which take a few microseconds.
const PAUSE: Duration = Duration::from_millis(5);

/// After this many consecutive pauses (1 s) the gimbal is switched off; the next command finds it
/// at rest.
const SILENCE: u32 = 200;

/// The source of commands and destination of answers.
enum FarEnd {
    /// A device that holds a transfer until it is answered, and reports after 5 ms that there is
    /// none.
    Device(File),
    Socket(UnixDatagram),
}

/// The sender of a command.
enum Asker {
    Device,
    Socket(SocketAddr),
}

impl FarEnd {
    fn open(path: &Path) -> io::Result<Self> {
        let is_device = |file: fs::Metadata| file.file_type().is_char_device();
        if fs::metadata(path).is_ok_and(is_device) {
            return OpenOptions::new().read(true).write(true).open(path).map(Self::Device);
        }
        // Left behind by a plant that was killed.
        let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        let refuses = || UnixDatagram::unbound()?.connect(path);
        if is_socket && refuses().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            fs::remove_file(path)?;
        }
        let socket = UnixDatagram::bind(path)?;
        socket.set_read_timeout(Some(PAUSE))?;
        // A controller that does not read answers must not block those of others.
        socket.set_write_timeout(Some(Duration::from_millis(1)))?;
        Ok(Self::Socket(socket))
    }

    /// Returns the next command, or `None` after a pause. Ignores data without the length of a
    /// command.
    fn receive(&mut self, frame: &mut Frame) -> io::Result<Option<Asker>> {
        loop {
            // One extra byte reveals data that is too long.
            let mut bytes = [0; FRAME_LEN + 1];
            let received = match self {
                Self::Device(device) => device.read(&mut bytes).map(|length| (length, Asker::Device)),
                Self::Socket(socket) => {
                    socket.recv_from(&mut bytes).map(|(length, from)| (length, Asker::Socket(from)))
                }
            };
            match received {
                Ok((0, Asker::Device)) => return Ok(None),
                Ok((FRAME_LEN, from)) => {
                    frame.copy_from_slice(&bytes[..FRAME_LEN]);
                    return Ok(Some(from));
                }
                Ok(_) => {}
                // The process was stopped for a while.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self, to: &Asker, frame: &Frame) -> io::Result<()> {
        match (self, to) {
            (Self::Device(device), _) => device.write_all(frame),
            (Self::Socket(socket), Asker::Socket(address)) => {
                // The sender may have ended.
                let _ = socket.send_to_addr(frame, address);
                Ok(())
            }
            (Self::Socket(_), Asker::Device) => Ok(()),
        }
    }
}

/// Simulates a gimbal at the far end of `path`: a device for this purpose, or a socket that is
/// created there. Calls `ready` once it can answer.
///
/// The gimbal is at rest at first, and again after a second without commands, as if it had been
/// switched off.
///
/// # Errors
/// Returns an error if the far end cannot be opened, or fails.
pub fn serve(path: &Path, ready: impl FnOnce()) -> io::Result<()> {
    let mut end = FarEnd::open(path)?;
    ready();
    loop {
        let mut gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock);
        let mut frame = [0; FRAME_LEN];
        let mut pauses = 0;
        while pauses < SILENCE {
            if let Some(from) = end.receive(&mut frame)? {
                pauses = 0;
                // It expects one frame in each direction.
                gimbal.transfer_in_place(&mut frame).map_err(io::Error::other)?;
                end.answer(&from, &frame)?;
            } else {
                pauses += 1;
                gimbal.catch_up();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_abandoned_sockets_only() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        let path = directory.join("socket");
        let plant = FarEnd::open(&path).unwrap();
        assert!(FarEnd::open(&path).is_err(), "another plant has it open");
        drop(plant);
        FarEnd::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        let link = directory.join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(FarEnd::open(&path).is_err() && FarEnd::open(&link).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
        assert!(!directory.join("nowhere").exists());
    }
}
