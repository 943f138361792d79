//! Buffers of the industrial I/O subsystem: scans of several channels, taken by a trigger and read
//! from `/dev/iio:deviceN`.
//!
//! [`Buffer::open`] configures the buffer by the files of sysfs, and derives the layout of a scan
//! from their types. The kernel drops scans if the buffer is full, without a count:
//! [`Buffer::read`] counts the gaps between timestamps.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the channel with the time of a scan.
const TIMESTAMP: &str = "in_timestamp";
/// Most channels of a scan, with the timestamp.
pub const MAX_CHANNELS: usize = 8;
/// Scans that one call reads.
const MAX_SCANS: usize = 64;

/// Reason why a buffer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    /// A file of the device failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A file has unknown contents.
    #[error("{}: `{contents}` is not supported", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The contents.
        contents: String,
    },
    /// More than [`MAX_CHANNELS`].
    #[error("a scan has at most {MAX_CHANNELS} channels")]
    TooManyChannels,
}

/// Wanted settings.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Channels, as `in_voltage0`.
    pub channels: &'a [&'a str],
    /// Name of the trigger that starts a scan; `None` if the device triggers itself.
    pub trigger: Option<&'a str>,
    /// Scans per second. A named trigger has its rate already, which must be this one.
    pub frequency: u32,
    /// Scans that the kernel keeps.
    pub length: u32,
    /// Scans after which the buffer is readable.
    pub watermark: u32,
}

/// A channel's place in a scan, and the unit of its values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Channel {
    index: u32,
    is_big_endian: bool,
    is_signed: bool,
    bits: u32,
    bytes: usize,
    shift: u32,
    at: usize,
    offset: f64,
    scale: f64,
}

impl Channel {
    /// Parses a type, as `le:s12/16>>4`.
    fn parse(kind: &str) -> Option<Self> {
        let (order, rest) = kind.split_once(':')?;
        let is_big_endian = match order {
            "be" => true,
            "le" => false,
            _ => return None,
        };
        let is_signed = match rest.chars().next()? {
            's' => true,
            'u' => false,
            _ => return None,
        };
        let (bits, rest) = rest.get(1..)?.split_once('/')?;
        let (storage, shift) = rest.split_once(">>")?;
        let (bits, storage): (u32, u32) = (bits.parse().ok()?, storage.parse().ok()?);
        let shift: u32 = shift.parse().ok()?;
        let is_valid =
            matches!(storage, 8 | 16 | 32 | 64) && (1..=storage).contains(&bits) && shift <= storage - bits;
        let bytes = (storage / 8) as usize;
        let channel =
            Self { index: 0, is_big_endian, is_signed, bits, bytes, shift, at: 0, offset: 0.0, scale: 1.0 };
        is_valid.then_some(channel)
    }

    /// Returns the value in a scan, before offset and scale.
    fn raw(&self, scan: &[u8]) -> i64 {
        let mut bytes = [0; 8];
        let stored = scan.iter().skip(self.at).take(self.bytes);
        if self.is_big_endian {
            bytes.iter_mut().zip(stored.rev()).for_each(|(byte, stored)| *byte = *stored);
        } else {
            bytes.iter_mut().zip(stored).for_each(|(byte, stored)| *byte = *stored);
        }
        let unused = 64 - self.bits;
        let high = u64::from_le_bytes(bytes) >> self.shift << unused;
        if self.is_signed { high.cast_signed() >> unused } else { (high >> unused).cast_signed() }
    }

    fn value(&self, scan: &[u8]) -> f64 {
        (self.raw(scan) as f64 + self.offset) * self.scale
    }
}

/// A scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scan {
    /// Time of the trigger by `CLOCK_MONOTONIC`, in nanoseconds.
    pub timestamp_ns: i64,
    /// Values of the channels in the order of [`Settings::channels`], in IIO's units, as
    /// millivolts.
    pub values: [f64; MAX_CHANNELS],
}

/// Scans that have been read, and those that the kernel dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batch {
    /// Scans read.
    pub scans: u64,
    /// Scans missing between timestamps.
    pub lost: u64,
    /// The device is gone.
    pub is_closed: bool,
}

/// A buffer, which is readable once it has scans.
#[derive(Debug)]
pub struct Buffer {
    files: Files,
    device: File,
    channels: Vec<Channel>,
    timestamp: Channel,
    scan_bytes: usize,
    period_ns: i64,
    bytes: Vec<u8>,
    filled: usize,
    last_ns: Option<i64>,
}

/// The directory of a device in sysfs. Dropping it disables the buffer.
#[derive(Debug)]
struct Files(PathBuf);

impl Files {
    fn read(&self, name: &str) -> Result<String, BufferError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().into()),
            Err(error) => Err(BufferError::Io { path, error }),
        }
    }

    fn write(&self, name: &str, value: &str) -> Result<(), BufferError> {
        let path = self.0.join(name);
        let file = File::options().write(true).truncate(true).open(&path);
        let result = file.and_then(|mut file| file.write_all(value.as_bytes()));
        result.map_err(|error| BufferError::Io { path, error })
    }

    fn parse<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, BufferError> {
        let contents = self.read(name)?;
        parse(&contents).ok_or_else(|| BufferError::Contents { path: self.0.join(name), contents })
    }

    /// Returns a number, or `default` if the file is missing.
    fn number_or(&self, name: &str, default: f64) -> Result<f64, BufferError> {
        if !self.0.join(name).exists() {
            return Ok(default);
        }
        self.parse(name, |text| text.parse().ok())
    }

    /// Enables a channel, and returns its description.
    fn enable(&self, name: &str) -> Result<Channel, BufferError> {
        self.write(&format!("scan_elements/{name}_en"), "1")?;
        let mut channel = self.parse(&format!("scan_elements/{name}_type"), Channel::parse)?;
        channel.index = self.parse(&format!("scan_elements/{name}_index"), |text| text.parse().ok())?;
        channel.offset = self.number_or(&format!("{name}_offset"), 0.0)?;
        channel.scale = self.number_or(&format!("{name}_scale"), 1.0)?;
        Ok(channel)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The device may be gone.
        let _ = self.write("buffer/enable", "0");
    }
}

impl Buffer {
    /// Configures and enables the buffer of the device whose files are in `sysfs`, as
    /// `/sys/bus/iio/devices/iio:device0`; `device` is `/dev/iio:device0`.
    ///
    /// # Errors
    /// See [`BufferError`].
    pub fn open(sysfs: &Path, device: &Path, settings: &Settings<'_>) -> Result<Self, BufferError> {
        let files = Files(sysfs.into());
        files.write("buffer/enable", "0")?;
        let path = sysfs.join("scan_elements");
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(|error| BufferError::Io { path, error })? {
            let name = entry.file_name();
            if let Some(name) = name.to_str().filter(|name| name.ends_with("_en")) {
                files.write(&format!("scan_elements/{name}"), "0")?;
            }
        }
        files.write("current_timestamp_clock", "monotonic")?;
        match settings.trigger {
            Some(trigger) => files.write("trigger/current_trigger", trigger)?,
            None => files.write("sampling_frequency", &settings.frequency.to_string())?,
        }
        files.write("buffer/length", &settings.length.to_string())?;
        files.write("buffer/watermark", &settings.watermark.to_string())?;
        if settings.channels.len() >= MAX_CHANNELS {
            return Err(BufferError::TooManyChannels);
        }
        let names = settings.channels.iter().chain([&TIMESTAMP]);
        let mut channels = names.map(|name| files.enable(name)).collect::<Result<Vec<_>, _>>()?;
        let scan_bytes = place(&mut channels);
        let timestamp = channels.pop().expect("the last one is the timestamp");
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(device);
        let device = file.map_err(|error| BufferError::Io { path: device.into(), error })?;
        let period_ns = 1_000_000_000 / i64::from(settings.frequency.clamp(1, 1_000_000_000));
        let bytes = vec![0; MAX_SCANS * scan_bytes];
        files.write("buffer/enable", "1")?;
        Ok(Self {
            files,
            device,
            channels,
            timestamp,
            scan_bytes,
            period_ns,
            bytes,
            filled: 0,
            last_ns: None,
        })
    }

    /// Directory of the device in sysfs.
    #[must_use]
    pub fn sysfs(&self) -> &Path {
        &self.files.0
    }

    /// Reads the scans that the kernel has, at most 64, and passes each to `take`.
    ///
    /// Real-time safety: one system call, which does not wait.
    pub fn read(&mut self, mut take: impl FnMut(&Scan)) -> Batch {
        let mut batch = Batch::default();
        match self.device.read(&mut self.bytes[self.filled..]) {
            Ok(0) => batch.is_closed = true,
            Ok(length) => self.filled += length,
            Err(error) => {
                let is_retried =
                    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                batch.is_closed = !is_retried;
            }
        }
        let whole = self.filled / self.scan_bytes * self.scan_bytes;
        for bytes in self.bytes[..whole].chunks_exact(self.scan_bytes) {
            let timestamp_ns = self.timestamp.raw(bytes);
            let mut values = [0.0; MAX_CHANNELS];
            for (value, channel) in values.iter_mut().zip(&self.channels) {
                *value = channel.value(bytes);
            }
            if let Some(last) = self.last_ns.replace(timestamp_ns) {
                let passed_ns = timestamp_ns.saturating_sub(last).saturating_add(self.period_ns / 2);
                batch.lost += u64::try_from(passed_ns / self.period_ns - 1).unwrap_or(0);
            }
            batch.scans += 1;
            take(&Scan { timestamp_ns, values });
        }
        self.bytes.copy_within(whole..self.filled, 0);
        self.filled -= whole;
        batch
    }
}

impl AsFd for Buffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Places the channels in a scan, in the order of their indices, each aligned to its size, and
/// returns the size of a scan.
fn place(channels: &mut [Channel]) -> usize {
    let mut order: Vec<&mut Channel> = channels.iter_mut().collect();
    order.sort_by_key(|channel| channel.index);
    let (mut end, mut largest) = (0_usize, 1);
    for channel in order {
        channel.at = end.next_multiple_of(channel.bytes);
        end = channel.at + channel.bytes;
        largest = largest.max(channel.bytes);
    }
    end.next_multiple_of(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_types_of_documentation() {
        let raw = |kind: &str, bytes: &[u8]| Channel::parse(kind).unwrap().raw(bytes);
        assert_eq!(raw("le:s12/16>>4", &[0xf0, 0xff]), -1);
        assert_eq!(raw("le:u12/16>>0", &[0xff, 0xff]), 4_095);
        assert_eq!(raw("be:s16/16>>0", &[0x80, 0x00]), -32_768);
        assert_eq!(raw("be:u24/32>>8", &[0x01, 0x02, 0x03, 0xff]), 0x0001_0203);
        assert_eq!(raw("le:s64/64>>0", &[0xff; 8]), -1);
    }

    #[test]
    fn rejects_unknown_types() {
        for kind in [
            "",
            "le:s16/16",
            "me:s16/16>>0",
            "le:f16/16>>0",
            "le:s17/16>>0",
            "le:s12/16>>8",
            "le:s4294967295/16>>1",
        ] {
            assert_eq!(Channel::parse(kind), None, "{kind}");
        }
        // Several values of one channel.
        assert_eq!(Channel::parse("le:s16/16X2>>0"), None);
    }

    #[test]
    fn aligns_channels_of_scan() {
        let channel = |index, kind: &str| Channel { index, ..Channel::parse(kind).unwrap() };
        // The order of the scan is that of the indices.
        let mut channels = [channel(2, "le:s32/32>>0"), channel(0, "le:s8/8>>0"), channel(3, "le:s64/64>>0")];
        assert_eq!(place(&mut channels), 16);
        assert_eq!(channels.map(|channel| channel.at), [4, 0, 8]);
    }
}
