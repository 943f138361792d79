//! Ports of x86: the addresses of `IN` and `OUT`.
//!
//! The kernel grants ports to threads, not to processes. A thread therefore calls
//! [`here`](Ports::here): the first call on a thread is a system call, later ones read a
//! thread-local variable. The result cannot leave the thread.
//!
//! ```no_run
//! use punctual_io::ports::Ports;
//!
//! // SAFETY: nobody else uses the parallel port, and it writes to no memory.
//! let parallel = unsafe { Ports::new(0x378, 3) }?;
//! let port = parallel.here()?;
//! port.write_u8(0, 0b0101_0101);
//! println!("{:#010b}", port.read_u8(1));
//! # Ok::<(), punctual_io::Error>(())
//! ```

use std::arch::asm;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Number of port ranges that the process has created.
static NEXT: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Ranges granted to this thread, one bit for each of the first 64 ranges of the process.
    static GRANTED: Cell<u64> = const { Cell::new(0) };
}

/// A range of ports that this process may use.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    count: NonZeroU16,
    /// Bit of the range in the thread-local set; 0 for ranges past the first 64, which need a
    /// system call each time.
    bit: u64,
}

/// A range of ports, granted to the current thread.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    ports: &'a Ports,
    /// Makes the type `!Send` and `!Sync`: other threads have not been granted the ports.
    _here: PhantomData<*const ()>,
}

impl Ports {
    /// Creates a range of `count` ports, starting at `first`.
    ///
    /// # Safety
    /// The ports belong to a device that has no other user. No value written to them makes the
    /// device write to memory of this process or change how it runs.
    ///
    /// # Errors
    /// Fails if the range is empty or exceeds the port space, or if the kernel denies it to this
    /// thread.
    pub unsafe fn new(first: u16, count: u16) -> Result<Self, Error> {
        let range = || Error::Range { address: first.into(), length: count.into() };
        let count = NonZeroU16::new(count).ok_or_else(range)?;
        first.checked_add(count.get() - 1).ok_or_else(range)?;
        let bit = 1_u64.checked_shl(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
        let ports = Self { first, count, bit };
        ports.here()?;
        Ok(ports)
    }

    /// Returns the first port.
    #[must_use]
    pub fn first(&self) -> u16 {
        self.first
    }

    /// Returns the number of ports.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there are no empty ranges")]
    pub fn len(&self) -> u16 {
        self.count.get()
    }

    /// Returns the ports for use on this thread.
    ///
    /// The first call on a thread is a system call, for which the kernel may allocate; later calls
    /// compare a thread-local variable. The kernel never revokes a grant: a thread may use the
    /// range until it ends.
    ///
    /// # Errors
    /// Fails if the kernel denies the range to this thread.
    pub fn here(&self) -> Result<Here<'_>, Error> {
        if GRANTED.get() & self.bit == 0 {
            // SAFETY: the call changes which instructions the processor permits on this thread. It
            // does not change memory.
            let status = unsafe { libc::ioperm(self.first.into(), self.count.get().into(), 1) };
            if status != 0 {
                return Err(Error::Ports {
                    first: self.first,
                    last: self.first + (self.count.get() - 1),
                    source: io::Error::last_os_error(),
                });
            }
            GRANTED.set(GRANTED.get() | self.bit);
        }
        Ok(Here { ports: self, _here: PhantomData })
    }
}

/// Defines reads and writes of one width.
macro_rules! width {
    ($type:ty, $read:ident, $write:ident, $register:tt, $bytes:literal) => {
        #[doc = concat!("Reads ", $bytes, " at `offset` from the first port.")]
        ///
        /// # Panics
        /// Panics if the access exceeds the last port.
        #[inline]
        #[must_use]
        pub fn $read(self, offset: u16) -> $type {
            let port = self.port(offset, size_of::<$type>());
            let value: $type;
            // SAFETY: the kernel granted the port to this thread, and the creator of the range
            // promised that its device does not touch memory that the compiler knows.
            unsafe { asm!(concat!("in ", $register, ", dx"), in("dx") port, out($register) value, options(nostack, preserves_flags)) };
            value
        }

        #[doc = concat!("Writes ", $bytes, " at `offset` from the first port.")]
        ///
        /// # Panics
        /// Panics if the access exceeds the last port.
        #[inline]
        pub fn $write(self, offset: u16, value: $type) {
            let port = self.port(offset, size_of::<$type>());
            // SAFETY: as for the read.
            unsafe { asm!(concat!("out dx, ", $register), in("dx") port, in($register) value, options(nostack, preserves_flags)) };
        }
    };
}

impl Here<'_> {
    width!(u8, read_u8, write_u8, "al", "a byte");
    width!(u16, read_u16, write_u16, "ax", "two bytes");
    width!(u32, read_u32, write_u32, "eax", "four bytes");

    fn port(self, offset: u16, size: usize) -> u16 {
        let ports = self.ports;
        assert!(
            usize::from(offset) + size <= usize::from(ports.count.get()),
            "{size} bytes at {offset} are beyond the {} ports from {:#x}",
            ports.count,
            ports.first
        );
        ports.first + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Port of the diagnostic card (POST code). No device responds to it, and Linux itself writes
    /// to it as a delay.
    const DIAGNOSTIC: u16 = 0x80;

    #[test]
    fn rejects_invalid_ranges() {
        for (first, count) in [(0x378, 0), (u16::MAX, 2), (2, u16::MAX)] {
            // SAFETY: the call fails before anything is written.
            let error = unsafe { Ports::new(first, count) }.unwrap_err();
            assert!(matches!(error, Error::Range { .. }), "{error}");
        }
    }

    #[test]
    fn writes_on_any_thread_or_names_missing_privilege() {
        // SAFETY: no device uses the port.
        let ports = match unsafe { Ports::new(DIAGNOSTIC, 1) } {
            Ok(ports) => ports,
            Err(error) => {
                assert!(
                    error.to_string().contains("ports 0x80 to 0x80: ")
                        && error.to_string().contains("CAP_SYS_RAWIO")
                );
                return test_skip::skip(test_skip::Need::System("CAP_SYS_RAWIO"), error);
            }
        };
        assert_eq!((ports.first(), ports.len()), (DIAGNOSTIC, 1));
        ports.here().unwrap().write_u8(0, 0x55);
        std::thread::scope(|scope| {
            scope.spawn(|| ports.here().unwrap().write_u8(0, 0xaa)).join().unwrap();
        });
        let out_of_range = std::panic::catch_unwind(|| ports.here().unwrap().read_u8(1));
        assert!(out_of_range.is_err());
        let wide = std::panic::catch_unwind(|| ports.here().unwrap().write_u16(0, 1));
        assert!(wide.is_err());
    }
}
