//! Errors of a bus.

use std::io;
use std::path::{Path, PathBuf};

use embedded_hal::spi::{self, ErrorKind};

use super::{Options, is_echo};
use crate::device::DeviceError;
use crate::frame::FrameError;

/// An error of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The simulated device rejected it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel reported an error.
    #[error("{0}")]
    Kernel(io::ErrorKind),
    /// It was not one single full-duplex transfer.
    #[error("a transaction must be a single full-duplex transfer")]
    NotFullDuplex,
}

impl From<io::Error> for BusError {
    fn from(error: io::Error) -> Self {
        Self::Kernel(error.kind())
    }
}

impl spi::Error for BusError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Device(error) => error.kind(),
            Self::Kernel(_) | Self::NotFullDuplex => ErrorKind::Other,
        }
    }
}

/// An error of opening a gimbal.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device cannot be opened.
    #[error("--spi {}: {error}; {advice}", .device.display())]
    Device {
        /// The path of the device.
        device: PathBuf,
        /// The error.
        error: io::Error,
        /// Advice for the user.
        advice: &'static str,
    },
    /// The file is not a device of a bus.
    #[error(
        "--spi {} is not an SPI device; give /dev/spidevB.C of bus B and chip select C, or the \
         socket of a gimbal-plant",
        .device.display()
    )]
    NoSpi {
        /// The path of the device.
        device: PathBuf,
    },
    /// The bus does not support these settings.
    #[error(
        "--spi {}: the bus does not take mode {} at {} bit/s: {error}; give others: --spi-mode 0 to 3, --spi-hz",
        .device.display(), .options.mode, .options.hz
    )]
    Settings {
        /// The path of the device.
        device: PathBuf,
        /// The unsupported settings.
        options: Options,
        /// The error.
        error: io::Error,
    },
    /// A transfer failed.
    #[error("--spi {}: the first transfer failed: {error}; is the gimbal, or its gimbal-plant, on?", .device.display())]
    Silent {
        /// The path of the device.
        device: PathBuf,
        /// The error.
        error: BusError,
    },
    /// The answer is not that of a gimbal.
    #[error("--spi {}: no gimbal answers: {error}; {}", .device.display(), advise(.error, *.mode))]
    Foreign {
        /// The path of the device.
        device: PathBuf,
        /// The error in the answer.
        error: FrameError,
        /// The mode that was used.
        mode: u8,
    },
}

fn advise(error: &FrameError, mode: u8) -> String {
    match is_echo(error) {
        true => "the answer equals the command: the output of the bus is connected to its input".into(),
        false => format!("is it on and wired, and is mode {mode} the right one? --spi-mode gives another"),
    }
}

impl OpenError {
    pub(super) fn device(device: &Path, error: io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => {
                "`ls /dev/spidev*` lists those of this machine; without one, use `gimbal-plant SOCKET`"
            }
            io::ErrorKind::PermissionDenied => {
                "run it as a user who may use it, on many systems one of the group `spi`"
            }
            _ => "is it in use, or has the gimbal-plant of this socket ended?",
        };
        Self::Device { device: device.to_owned(), error, advice }
    }

    /// Creates the error for settings that the bus does not support.
    pub(super) fn settings(device: &Path, options: Options, error: io::Error) -> Self {
        let device = device.to_owned();
        match error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error()) {
            true => Self::NoSpi { device },
            false => Self::Settings { device, options, error },
        }
    }
}
