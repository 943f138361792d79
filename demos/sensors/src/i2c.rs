//! I²C buses of Linux (`/dev/i2c-N`), as a bus of embedded-hal, so that drivers for it run
//! unchanged.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use embedded_hal::i2c::{Error, ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation};

/// Requests of `linux/i2c-dev.h`.
const I2C_RETRIES: libc::c_ulong = 0x0701;
const I2C_TIMEOUT: libc::c_ulong = 0x0702;
const I2C_RDWR: libc::c_ulong = 0x0707;
/// Flag of a message that reads.
const I2C_M_RD: u16 = 0x0001;
/// Unit of [`I2C_TIMEOUT`].
const TIMEOUT_UNIT_MS: u32 = 10;
/// Parts of a transaction, as a register's number and its contents.
const MAX_OPERATIONS: usize = 4;

/// `struct i2c_msg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    address: u16,
    flags: u16,
    length: u16,
    bytes: *mut u8,
}

/// `struct i2c_rdwr_ioctl_data`.
#[repr(C)]
struct Transaction {
    messages: *mut Message,
    count: u32,
}

/// A bus.
#[derive(Debug)]
pub struct Bus(File);

/// Reason why a transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// No device has the address, or it refuses a byte.
    #[error("the device does not answer; check its address and wiring")]
    NoAcknowledge,
    /// The device holds the clock, or the bus hangs, beyond the timeout.
    #[error("the bus hangs; check the pull-ups and the device's supply")]
    Timeout,
    /// Another controller has the bus.
    #[error("another controller has the bus")]
    ArbitrationLost,
    /// The transaction has too many or too long parts.
    #[error("a transaction has at most {MAX_OPERATIONS} parts of at most 65535 bytes")]
    TooLong,
    /// Another error of the kernel, by its number.
    #[error("the kernel reports {}", io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

impl Error for BusError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoAcknowledge => ErrorKind::NoAcknowledge(NoAcknowledgeSource::Unknown),
            Self::ArbitrationLost => ErrorKind::ArbitrationLoss,
            Self::Timeout => ErrorKind::Bus,
            Self::TooLong | Self::Other(_) => ErrorKind::Other,
        }
    }
}

impl From<io::Error> for BusError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENXIO | libc::EREMOTEIO) => Self::NoAcknowledge,
            Some(libc::ETIMEDOUT) => Self::Timeout,
            Some(libc::EAGAIN) => Self::ArbitrationLost,
            number => Self::Other(number.unwrap_or(0)),
        }
    }
}

impl Bus {
    /// Opens a bus, whose transactions end after at most `timeout_ms`, and are not repeated.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or is no I²C bus.
    pub fn open(path: &Path, timeout_ms: u32) -> io::Result<Self> {
        let bus = File::options().read(true).write(true).open(path)?;
        let units = timeout_ms.div_ceil(TIMEOUT_UNIT_MS).max(1);
        for (request, value) in [(I2C_TIMEOUT, units), (I2C_RETRIES, 0)] {
            // SAFETY: the requests take a number.
            let result = unsafe { libc::ioctl(bus.as_raw_fd(), request as _, libc::c_ulong::from(value)) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self(bus))
    }
}

impl ErrorType for Bus {
    type Error = BusError;
}

impl I2c for Bus {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), BusError> {
        let none = Message { address: address.into(), flags: 0, length: 0, bytes: std::ptr::null_mut() };
        let mut messages = [none; MAX_OPERATIONS];
        let messages = messages.get_mut(..operations.len()).ok_or(BusError::TooLong)?;
        for (message, operation) in messages.iter_mut().zip(operations) {
            let (flags, length, bytes) = match operation {
                Operation::Read(bytes) => (I2C_M_RD, bytes.len(), bytes.as_mut_ptr()),
                Operation::Write(bytes) => (0, bytes.len(), bytes.as_ptr().cast_mut()),
            };
            message.length = length.try_into().map_err(|_| BusError::TooLong)?;
            (message.flags, message.bytes) = (flags, bytes);
        }
        let mut transaction = Transaction { messages: messages.as_mut_ptr(), count: messages.len() as u32 };
        // SAFETY: the messages and their bytes outlive the call, which writes only to those that
        // read, which are exclusively borrowed.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), I2C_RDWR as _, &raw mut transaction) };
        if result < 0 { Err(io::Error::last_os_error().into()) } else { Ok(()) }
    }
}

/// A bus of the kernel, or a simulated one.
pub struct AnyBus(pub Box<dyn I2c<Error = BusError> + Send>);

impl ErrorType for AnyBus {
    type Error = BusError;
}

impl I2c for AnyBus {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), BusError> {
        self.0.transaction(address, operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_layout_of_kernel() {
        let pointer = size_of::<*const u8>();
        assert_eq!((size_of::<Message>(), std::mem::offset_of!(Message, bytes)), (2 * pointer, pointer));
        assert_eq!(size_of::<Transaction>(), 2 * pointer);
    }

    #[test]
    fn reports_file_that_is_no_bus() {
        let error = Bus::open(Path::new("/dev/null"), 10).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        let mut bus = Bus(File::options().read(true).write(true).open("/dev/null").unwrap());
        let mut read = [0];
        let error = bus.write_read(0x68, &[0x75], &mut read);
        assert_eq!(error, Err(BusError::Other(libc::ENOTTY)));
    }

    #[test]
    fn classifies_errors_of_kernel() {
        let error = |number| BusError::from(io::Error::from_raw_os_error(number));
        assert_eq!(error(libc::EREMOTEIO), BusError::NoAcknowledge);
        assert_eq!(error(libc::ETIMEDOUT), BusError::Timeout);
        assert_eq!(error(libc::EAGAIN), BusError::ArbitrationLost);
        assert_eq!(error(libc::EIO), BusError::Other(libc::EIO));
    }
}
