//! The connection between the controller and the gimbal: none, if the gimbal is simulated in this
//! program; a device of Linux's spidev; or, without such a bus, a socket that replaces it, with a
//! [plant](serve) as a separate process at its other end.

mod error;
mod far_end;
mod socket;

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use spidev::{SpiModeFlags, Spidev, SpidevOptions, SpidevTransfer};

use crate::axes::Axes;
use crate::client::{ExchangeError, Gimbal};
use crate::device::SimulatedGimbal;
use crate::frame::FrameError;
use crate::plant::{GIMBAL, SUPPLY_V};

pub use error::{BusError, OpenError};
pub use far_end::serve;
use socket::Socket;

/// The settings of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The SPI mode, 0 to 3: polarity and phase of the clock.
    pub mode: u8,
    /// The speed in bits per second.
    pub hz: u32,
}

/// The connection over which the controller exchanges frames.
#[derive(Debug)]
pub struct Bus(Kind);

#[derive(Debug)]
enum Kind {
    Simulated(Box<SimulatedGimbal<fn() -> u64>>),
    Spidev(Spidev),
    Socket(Socket),
}

/// The number of attempts at the first exchange if no answer arrives in time: on a busy machine, a
/// plant of ordinary priority does not get a CPU immediately.
const FIRST_TRIES: u32 = 1000;

fn clock() -> u64 {
    punctual::now().as_ticks()
}

/// Creates a gimbal that is simulated in this program.
pub fn simulated() -> Gimbal<Bus> {
    let gimbal = SimulatedGimbal::new(GIMBAL, SUPPLY_V, clock as fn() -> u64);
    Gimbal::new(Bus(Kind::Simulated(Box::new(gimbal))))
}

/// Opens the gimbal at `device`, and waits for its first answer.
///
/// # Errors
/// Returns an error if the device does not exist or does not support the settings, or if no gimbal
/// answers.
pub fn open(device: &Path, options: Options) -> Result<Gimbal<Bus>, OpenError> {
    let refused = |error| OpenError::device(device, error);
    let is_socket = fs::metadata(device).map_err(refused)?.file_type().is_socket();
    let kind = if is_socket {
        Kind::Socket(Socket::connect(device).map_err(refused)?)
    } else {
        Kind::Spidev(spidev(device, options)?)
    };
    let mut gimbal = Gimbal::new(Bus(kind));
    // With zero voltage nothing moves.
    let mut first = || gimbal.exchange(Axes::both(0.0));
    let is_late = |answer: &Result<_, _>| {
        matches!(answer, Err(ExchangeError::Bus(BusError::Kernel(io::ErrorKind::TimedOut))))
    };
    let mut answer = first();
    for _ in 1..FIRST_TRIES {
        if !is_late(&answer) {
            break;
        }
        answer = first();
    }
    match answer {
        Ok(_) => Ok(gimbal),
        Err(ExchangeError::Bus(error)) => Err(OpenError::Silent { device: device.to_owned(), error }),
        Err(ExchangeError::Frame(error)) => {
            Err(OpenError::Foreign { device: device.to_owned(), error, mode: options.mode })
        }
    }
}

fn spidev(device: &Path, options: Options) -> Result<Spidev, OpenError> {
    let mut spi = Spidev::open(device).map_err(|error| OpenError::device(device, error))?;
    let mode = SpiModeFlags::from_bits_truncate(u32::from(options.mode & 3));
    let wanted = SpidevOptions::new().bits_per_word(8).max_speed_hz(options.hz).mode(mode).build();
    spi.configure(&wanted).map_err(|error| OpenError::settings(device, options, error))?;
    Ok(spi)
}

impl Bus {
    /// Returns the angles that no sensor shows, if the gimbal is simulated in this program.
    pub fn true_rad(&self) -> Option<Axes<f64>> {
        match &self.0 {
            Kind::Simulated(gimbal) => Some(gimbal.true_state().map(|state| state.angle_rad)),
            Kind::Spidev(_) | Kind::Socket(_) => None,
        }
    }
}

impl ErrorType for Bus {
    type Error = BusError;
}

impl SpiDevice for Bus {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), BusError> {
        match (&mut self.0, operations) {
            (Kind::Simulated(gimbal), operations) => Ok(gimbal.transaction(operations)?),
            (Kind::Spidev(spi), [Operation::Transfer(read, write)]) => {
                Ok(spi.transfer(&mut SpidevTransfer::read_write(write, read))?)
            }
            (Kind::Socket(socket), [Operation::Transfer(read, write)]) => Ok(socket.exchange(write, read)?),
            _ => Err(BusError::NotFullDuplex),
        }
    }
}

/// Returns whether the answer equals the command, that is, whether the output is connected to the
/// input.
fn is_echo(error: &FrameError) -> bool {
    matches!(error, FrameError::BadMagic { found: crate::frame::COMMAND_MAGIC, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::frame::FRAME_LEN;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    const OPTIONS: Options = Options { mode: 0, hz: 10_000_000 };

    fn refusal(device: &Path) -> String {
        open(device, OPTIONS).unwrap_err().to_string()
    }

    /// A bus whose output is connected to its input, and one whose input is not driven.
    #[test]
    fn rejects_device_that_is_no_gimbal() {
        let directory = tempfile::tempdir().unwrap();
        for (name, why) in
            [("echo", "the output of the bus is connected to its input"), ("idle", "is it on and wired")]
        {
            let file = directory.path().join(name);
            let end = UnixDatagram::bind(&file).unwrap();
            let refusal = std::thread::scope(|scope| {
                let refusal = scope.spawn(|| refusal(&file));
                while !refusal.is_finished() {
                    end.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                    let mut frame = [0xFF; FRAME_LEN];
                    let Ok((_, from)) = end.recv_from(&mut frame) else { continue };
                    let answer = if name == "echo" { frame } else { [0xFF; FRAME_LEN] };
                    // The controller may have ended.
                    let _ = end.send_to_addr(&answer, &from);
                }
                refusal.join().unwrap()
            });
            assert!(refusal.contains(why), "{refusal}");
        }
    }

    #[test]
    fn rejects_missing_device() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("spi");
        let missing = refusal(&file);
        assert!(missing.contains("spi") && missing.contains("ls /dev/spidev*"), "{missing}");
        let null = refusal(Path::new("/dev/null"));
        assert!(null.contains("/dev/null is not an SPI device"), "{null}");
        fs::write(&file, "").unwrap();
        let plain = refusal(&file);
        assert!(plain.contains("is not an SPI device"), "{plain}");
        fs::remove_file(&file).unwrap();
        // A socket of another kind, and one that no process has open.
        let listener = UnixListener::bind(&file).unwrap();
        let stream = refusal(&file);
        assert!(stream.contains("gimbal-plant"), "{stream}");
        drop(listener);
        let left = refusal(&file);
        assert!(left.contains("gimbal-plant"), "{left}");
    }
}
