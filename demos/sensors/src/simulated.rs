//! A simulated inertial sensor on a simulated bus, and a simulated converter: a directory with the
//! files of sysfs, and a named pipe in place of `/dev/iio:deviceN`.

use std::f32::consts::TAU;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use embedded_hal::i2c::{ErrorType, I2c, Operation};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use crate::i2c::BusError;
use crate::imu::{ADDRESS, COUNTS_PER_DEGREE, COUNTS_PER_G, IDENTITY, register};

/// Amplitude of the sensor's tilt, in degrees.
const AMPLITUDE: f32 = 10.0;
/// Frequency of the tilt, in hertz.
const FREQUENCY: f32 = 0.5;
/// Register `POWER` after power-on: asleep.
const ASLEEP: u8 = 0x40;

/// Faults of the sensor, by the number of the transaction, from 0.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// The sensor does not answer.
    pub refused: Range<u64>,
    /// A drop of the supply resets the sensor.
    pub reset_at: Option<u64>,
    /// Another device has the address.
    pub other_identity: Option<u8>,
}

/// A sensor that swings about its axis x.
#[derive(Debug)]
pub struct SimulatedImu {
    registers: [u8; 128],
    pointer: u8,
    transactions: u64,
    faults: Faults,
}

/// Returns the tilt at `seconds`, in degrees, and its rate, in degrees per second.
#[must_use]
pub fn tilt(seconds: f32) -> (f32, f32) {
    let phase = TAU * FREQUENCY * seconds;
    (AMPLITUDE * phase.sin(), AMPLITUDE * TAU * FREQUENCY * phase.cos())
}

impl SimulatedImu {
    /// Returns a sensor after power-on.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        let mut imu = Self { registers: [0; 128], pointer: 0, transactions: 0, faults };
        imu.reset();
        imu
    }

    fn reset(&mut self) {
        self.registers.fill(0);
        self.registers[usize::from(register::POWER)] = ASLEEP;
        let identity = self.faults.other_identity.unwrap_or(IDENTITY);
        self.registers[usize::from(register::WHO_AM_I)] = identity;
    }

    fn measure(&mut self) {
        let mut words = [0_i16; 7];
        if self.registers[usize::from(register::POWER)] & ASLEEP == 0 {
            let nanoseconds = punctual::now().duration_since_epoch().as_nanos() % 1_000_000_000_000;
            let (angle, rate) = tilt(nanoseconds as f32 / 1e9);
            let (sine, cosine) = angle.to_radians().sin_cos();
            words[1] = (sine * COUNTS_PER_G) as i16;
            words[2] = (cosine * COUNTS_PER_G) as i16;
            words[4] = (rate * COUNTS_PER_DEGREE) as i16;
        }
        let measurement = &mut self.registers[usize::from(register::MEASUREMENT)..][..14];
        for (bytes, word) in measurement.chunks_exact_mut(2).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
}

impl ErrorType for SimulatedImu {
    type Error = BusError;
}

impl I2c for SimulatedImu {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), BusError> {
        let number = self.transactions;
        self.transactions += 1;
        if self.faults.reset_at == Some(number) {
            self.reset();
        }
        if address != ADDRESS || self.faults.refused.contains(&number) {
            return Err(BusError::NoAcknowledge);
        }
        self.measure();
        for operation in operations {
            match operation {
                Operation::Write(bytes) => {
                    let Some((pointer, values)) = bytes.split_first() else { continue };
                    self.pointer = pointer & 0x7f;
                    for value in values {
                        self.registers[usize::from(self.pointer)] = *value;
                        self.pointer = (self.pointer + 1) & 0x7f;
                    }
                }
                Operation::Read(bytes) => {
                    for byte in bytes.iter_mut() {
                        *byte = self.registers[usize::from(self.pointer)];
                        self.pointer = (self.pointer + 1) & 0x7f;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A converter with the channels `in_voltage0` and `in_voltage1`, of 12 bits and 0.5 mV.
#[derive(Debug)]
pub struct SimulatedConverter {
    directory: PathBuf,
    /// Both ends of the pipe, so that it can be opened for reading.
    pipe: Option<File>,
}

const FILES: [(&str, &str); 17] = [
    ("buffer/enable", "0"),
    ("buffer/length", "2"),
    ("buffer/watermark", "1"),
    ("current_timestamp_clock", "realtime"),
    ("in_voltage0_scale", "0.5"),
    ("in_voltage1_scale", "0.5"),
    ("sampling_frequency", "100"),
    ("scan_elements/in_timestamp_en", "0"),
    ("scan_elements/in_timestamp_index", "2"),
    ("scan_elements/in_timestamp_type", "le:s64/64>>0"),
    ("scan_elements/in_voltage0_en", "0"),
    ("scan_elements/in_voltage0_index", "0"),
    ("scan_elements/in_voltage0_type", "le:s12/16>>4"),
    ("scan_elements/in_voltage1_en", "1"),
    ("scan_elements/in_voltage1_index", "1"),
    ("scan_elements/in_voltage1_type", "le:s12/16>>4"),
    ("trigger/current_trigger", ""),
];

impl SimulatedConverter {
    /// Creates the files in a temporary directory.
    ///
    /// # Errors
    /// Returns an error if they cannot be created.
    pub fn create() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("sensors-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory)?;
        let mut converter = Self { directory, pipe: None };
        for name in ["buffer", "scan_elements", "trigger"] {
            fs::create_dir(converter.directory.join(name))?;
        }
        for (name, contents) in FILES {
            fs::write(converter.directory.join(name), format!("{contents}\n"))?;
        }
        let path = converter.device();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        converter.pipe =
            Some(open(&path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?.into());
        Ok(converter)
    }

    /// Directory with the files of sysfs.
    #[must_use]
    pub fn sysfs(&self) -> &Path {
        &self.directory
    }

    /// File with the scans.
    #[must_use]
    pub fn device(&self) -> PathBuf {
        self.directory.join("device")
    }

    /// Returns the contents of a file of sysfs, without the line's end.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn setting(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.directory.join(name)).map(|text| text.trim().into())
    }

    /// Takes a scan, if the buffer is enabled; drops it if the buffer is full.
    ///
    /// # Errors
    /// Returns an error if a file is missing.
    pub fn scan(&mut self, timestamp_ns: i64, millivolts: [f64; 2]) -> io::Result<()> {
        if self.setting("buffer/enable")? != "1" {
            return Ok(());
        }
        let mut scan = Vec::new();
        for (index, millivolts) in millivolts.iter().enumerate() {
            if self.setting(&format!("scan_elements/in_voltage{index}_en"))? == "1" {
                scan.extend((((millivolts / 0.5).round() as i16) << 4).to_le_bytes());
            }
        }
        scan.resize(scan.len().next_multiple_of(8), 0);
        scan.extend(timestamp_ns.to_le_bytes());
        match self.pipe.as_mut().map(|pipe| pipe.write_all(&scan)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the device, as an adapter that is unplugged.
    pub fn unplug(&mut self) {
        self.pipe = None;
    }
}

impl Drop for SimulatedConverter {
    fn drop(&mut self) {
        // Remaining files are in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
