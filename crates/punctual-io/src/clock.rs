//! Clocks of devices: the source of readings for a grid that follows an external clock.
//!
//! A network adapter with hardware timestamps has a clock, `/dev/ptpN`, that `ptp4l` synchronizes
//! with the network. `ptp_kvm` provides the clock of the host to a virtual machine in the same way.
//! [`DeviceClock`] reads such a clock between two readings of `CLOCK_MONOTONIC`, several times, and
//! returns the reading with the least uncertainty, as `phc2sys` of linuxptp does.
//!
//! ```no_run
//! use punctual_io::clock::DeviceClock;
//!
//! let clock = DeviceClock::open("/dev/ptp0")?;
//! let reading = clock.read()?;
//! // For `ClockSource::record` of `punctual`.
//! println!("{} ns at {} ns ± {} ns", reading.external_ns, reading.at_ns, reading.uncertainty_ns);
//! # Ok::<(), punctual_io::Error>(())
//! ```
//!
//! Real-time safety: opening allocates. A reading is a system call, which waits for the bus of the
//! device for some microseconds: read on an ordinary thread, such as one of
//! `punctual::background`, a few times per second.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

use crate::Error;

/// Readings of which the one with the least uncertainty counts.
const ATTEMPTS: u32 = 5;

/// The largest uncertainty of a reading, in ns. A reading takes some microseconds; longer ones were
/// interrupted each time.
const MAX_UNCERTAINTY: u64 = 50_000;

/// Remedy for a device that cannot be opened.
const FIX: &str = "load the driver of the network adapter, or `ptp_kvm` in a virtual machine, and grant read access \
                   to the device";

/// A clock that can be read against `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct DeviceClock {
    /// `None` for International Atomic Time.
    device: Option<File>,
    path: PathBuf,
}

/// A reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Instant of the reading on `CLOCK_MONOTONIC`, in ns: the middle between the readings before
    /// and after it.
    pub at_ns: u64,
    /// Time of the clock, in ns since its epoch; for PTP this is TAI since 1970.
    pub external_ns: u64,
    /// Largest error of the instant, in ns: half the time between the readings around it.
    pub uncertainty_ns: u64,
}

impl DeviceClock {
    /// Opens a PTP hardware clock, such as `/dev/ptp0`, for reading.
    ///
    /// # Errors
    /// [`Error::File`] if the device cannot be opened or is not a clock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let device = File::open(path).map_err(Error::file(path, FIX))?;
        let clock = Self { device: Some(device), path: path.to_owned() };
        clock.time(clock.id())?;
        Ok(clock)
    }

    /// Returns International Atomic Time as the kernel knows it, for releases at the same instants
    /// on machines that NTP or `phc2sys` synchronizes. Until one of these has set the number
    /// of leap seconds, this time is UTC.
    #[must_use]
    pub fn tai() -> Self {
        Self { device: None, path: PathBuf::from("CLOCK_TAI") }
    }

    /// Reads the clock.
    ///
    /// # Errors
    /// [`Error::File`] if the device was removed, and [`Error::Imprecise`] if other threads
    /// interrupted every attempt; a later one may succeed.
    pub fn read(&self) -> Result<Reading, Error> {
        self.read_as(self.id())
    }

    fn id(&self) -> DynamicClockId<'_> {
        self.device.as_ref().map_or(DynamicClockId::Tai, |device| DynamicClockId::Dynamic(device.as_fd()))
    }

    fn read_as(&self, id: DynamicClockId<'_>) -> Result<Reading, Error> {
        let mut best = self.attempt(id)?;
        for _ in 1..ATTEMPTS {
            let next = self.attempt(id)?;
            if next.uncertainty_ns < best.uncertainty_ns {
                best = next;
            }
        }
        if best.uncertainty_ns > MAX_UNCERTAINTY {
            let (path, uncertainty_ns) = (self.path.clone(), best.uncertainty_ns);
            return Err(Error::Imprecise { path, uncertainty_ns, limit_ns: MAX_UNCERTAINTY });
        }
        Ok(best)
    }

    fn attempt(&self, id: DynamicClockId<'_>) -> Result<Reading, Error> {
        let machine = DynamicClockId::Known(ClockId::Monotonic);
        let before = self.time(machine)?;
        let external_ns = self.time(id)?;
        let span = self.time(machine)?.saturating_sub(before);
        Ok(Reading { at_ns: before + span / 2, external_ns, uncertainty_ns: span.div_ceil(2) })
    }

    /// Returns the time of a clock in ns.
    fn time(&self, id: DynamicClockId<'_>) -> Result<u64, Error> {
        let time = clock_gettime_dynamic(id).map_err(|error| Error::file(&self.path, FIX)(error.into()))?;
        let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        u64::try_from(nanos).map_err(|_| {
            let message = format!("{} s is not a time since the epoch", time.tv_sec);
            Error::file(&self.path, "set the clock, for example by `ptp4l`")(io::Error::other(message))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_clock_between_readings_of_machine_clock() {
        let machine = DynamicClockId::Known(ClockId::Monotonic);
        let now = || DeviceClock::tai().time(machine).unwrap();
        let before = now();
        match DeviceClock::tai().read_as(machine) {
            Ok(reading) => {
                assert!((before..=now()).contains(&reading.at_ns));
                let error = reading.at_ns.abs_diff(reading.external_ns);
                assert!(error <= reading.uncertainty_ns, "{reading:?}");
                assert!(reading.uncertainty_ns <= MAX_UNCERTAINTY);
            }
            // Each attempt was interrupted.
            Err(error) => assert!(matches!(error, Error::Imprecise { .. }), "{error}"),
        }
    }

    #[test]
    fn rejects_file_that_is_no_clock() {
        let error = DeviceClock::open("/dev/null").unwrap_err().to_string();
        assert!(error.starts_with("/dev/null: ") && error.contains("ptp_kvm"), "{error}");
        let error = DeviceClock::open("/dev/ptp-that-does-not-exist").unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }
}
