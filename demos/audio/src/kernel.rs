//! Sound cards of Linux (`/dev/snd/pcmC0D0p` and `pcmC0D0c`), by the requests of
//! `sound/asound.h`: 16-bit stereo, input and output linked, so that they start and stop together.
//! For 64-bit little-endian machines, whose structures and samples these are.

use std::ffi::{c_int, c_long, c_ulong};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use punctual::Instant;

use crate::card::{BUFFER_PERIODS, Card, CardError, FRAMES, Frame, LEAD_PERIODS, RATE, Reading};

const SNDRV_PCM_IOCTL_HW_PARAMS: libc::Ioctl = libc::_IOWR::<HwParams>(b'A' as u32, 0x11);
const SNDRV_PCM_IOCTL_SW_PARAMS: libc::Ioctl = libc::_IOWR::<SwParams>(b'A' as u32, 0x13);
const SNDRV_PCM_IOCTL_STATUS: libc::Ioctl = libc::_IOR::<Status>(b'A' as u32, 0x20);
const SNDRV_PCM_IOCTL_PREPARE: libc::Ioctl = libc::_IO(b'A' as u32, 0x40);
const SNDRV_PCM_IOCTL_WRITEI_FRAMES: libc::Ioctl = libc::_IOW::<Transfer>(b'A' as u32, 0x50);
const SNDRV_PCM_IOCTL_READI_FRAMES: libc::Ioctl = libc::_IOR::<Transfer>(b'A' as u32, 0x51);
const SNDRV_PCM_IOCTL_LINK: libc::Ioctl = libc::_IOW::<c_int>(b'A' as u32, 0x60);

const SNDRV_PCM_ACCESS_RW_INTERLEAVED: u32 = 3;
const SNDRV_PCM_FORMAT_S16_LE: u32 = 2;
const SNDRV_PCM_SUBFORMAT_STD: u32 = 0;
const SNDRV_PCM_STATE_RUNNING: c_int = 3;
const SNDRV_PCM_TSTAMP_ENABLE: c_int = 1;
const SNDRV_PCM_TSTAMP_TYPE_MONOTONIC: u32 = 1;
/// Version of the interface from which `tstamp_type` is part of [`SwParams`]: 2.0.12.
const PROTOCOL: u32 = 2 << 16 | 12;

/// Parameters by their index in [`HwParams::intervals`]: those of the header less 8.
const CHANNELS: usize = 2;
const SAMPLE_RATE: usize = 3;
const PERIOD_SIZE: usize = 5;
const PERIODS: usize = 7;

/// `struct snd_interval`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Interval {
    min: u32,
    max: u32,
    flags: u32,
}

impl Interval {
    const ANY: Self = Self { min: 0, max: u32::MAX, flags: 0 };

    /// Returns the interval of one integer.
    const fn of(value: u32) -> Self {
        const INTEGER: u32 = 1 << 2;
        Self { min: value, max: value, flags: INTEGER }
    }
}

/// `struct snd_pcm_hw_params`. The masks are those of access, format and subformat.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct HwParams {
    flags: u32,
    masks: [[u32; 8]; 3],
    reserved_masks: [[u32; 8]; 5],
    intervals: [Interval; 12],
    reserved_intervals: [Interval; 9],
    requested: u32,
    changed: u32,
    info: u32,
    msbits: u32,
    rate_numerator: u32,
    rate_denominator: u32,
    fifo_size: c_ulong,
    reserved: [u8; 64],
}

/// `struct snd_pcm_sw_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SwParams {
    tstamp_mode: c_int,
    period_step: u32,
    sleep_min: u32,
    avail_min: c_ulong,
    xfer_align: c_ulong,
    start_threshold: c_ulong,
    stop_threshold: c_ulong,
    silence_threshold: c_ulong,
    silence_size: c_ulong,
    boundary: c_ulong,
    protocol: u32,
    tstamp_type: u32,
    reserved: [u8; 56],
}

/// `struct snd_pcm_status`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Status {
    state: c_int,
    trigger_tstamp: [i64; 2],
    tstamp: [i64; 2],
    appl_ptr: c_ulong,
    hw_ptr: c_ulong,
    delay: c_long,
    avail: c_ulong,
    avail_max: c_ulong,
    overrange: c_ulong,
    suspended_state: c_int,
    reserved: [u32; 15],
}

/// `struct snd_xferi`.
#[repr(C)]
struct Transfer {
    result: c_long,
    buffer: *mut Frame,
    frames: c_ulong,
}

/// Reason why a card cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be opened.
    #[error("cannot open {}: {error}; list the cards by `aplay -l`, and join the group audio", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The card rejects the format.
    #[error(
        "{} rejects {BUFFER_PERIODS} periods of {FRAMES} frames of 16-bit stereo at {RATE} Hz: {error}; \
        adapt the constants of `card` to the card",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Input and output cannot start together.
    #[error("cannot link input and output: {0}; use those of one card")]
    Link(io::Error),
}

/// A card.
#[derive(Debug)]
pub struct KernelCard {
    output: File,
    input: File,
}

impl KernelCard {
    /// Opens input and output of a device of a card, by their numbers: 0 and 0 for `hw:0,0`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(card: u32, device: u32) -> Result<Self, OpenError> {
        let path = |direction| PathBuf::from(format!("/dev/snd/pcmC{card}D{device}{direction}"));
        let start_frames = ((LEAD_PERIODS + 1) * FRAMES) as c_ulong;
        let output = open(&path('p'), start_frames)?;
        // The input never starts by itself.
        let input = open(&path('c'), c_long::MAX as c_ulong)?;
        // SAFETY: the request takes a descriptor.
        let result = unsafe { libc::ioctl(output.as_raw_fd(), SNDRV_PCM_IOCTL_LINK, input.as_raw_fd()) };
        if result < 0 { Err(OpenError::Link(io::Error::last_os_error())) } else { Ok(Self { output, input }) }
    }
}

fn open(path: &Path, start_threshold: c_ulong) -> Result<File, OpenError> {
    let options = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = options.map_err(|error| OpenError::File { path: path.into(), error })?;
    configure(&file, start_threshold).map_err(|error| OpenError::Format { path: path.into(), error })?;
    Ok(file)
}

/// Sets format and buffers, the fill at which the card starts, and timestamps of
/// `CLOCK_MONOTONIC`.
fn configure(file: &File, start_threshold: c_ulong) -> io::Result<()> {
    let mut hardware = HwParams {
        flags: 0,
        masks: [SNDRV_PCM_ACCESS_RW_INTERLEAVED, SNDRV_PCM_FORMAT_S16_LE, SNDRV_PCM_SUBFORMAT_STD]
            .map(|bit| [1 << bit, 0, 0, 0, 0, 0, 0, 0]),
        reserved_masks: [[0; 8]; 5],
        intervals: [Interval::ANY; 12],
        reserved_intervals: [Interval { min: 0, max: 0, flags: 0 }; 9],
        requested: u32::MAX,
        changed: 0,
        info: u32::MAX,
        msbits: 0,
        rate_numerator: 0,
        rate_denominator: 0,
        fifo_size: 0,
        reserved: [0; 64],
    };
    hardware.intervals[CHANNELS] = Interval::of(2);
    hardware.intervals[SAMPLE_RATE] = Interval::of(RATE);
    hardware.intervals[PERIOD_SIZE] = Interval::of(FRAMES as u32);
    hardware.intervals[PERIODS] = Interval::of(BUFFER_PERIODS as u32);
    // SAFETY: the structure is that of the request, and contains numbers only.
    unsafe { request(file, SNDRV_PCM_IOCTL_HW_PARAMS, &mut hardware) }?;
    let mut software = SwParams {
        tstamp_mode: SNDRV_PCM_TSTAMP_ENABLE,
        period_step: 1,
        sleep_min: 0,
        avail_min: 1,
        xfer_align: 1,
        start_threshold,
        stop_threshold: (BUFFER_PERIODS * FRAMES) as c_ulong,
        silence_threshold: 0,
        silence_size: 0,
        boundary: 0,
        protocol: PROTOCOL,
        tstamp_type: SNDRV_PCM_TSTAMP_TYPE_MONOTONIC,
        reserved: [0; 56],
    };
    // SAFETY: the structure is that of the request, and contains numbers only.
    unsafe { request(file, SNDRV_PCM_IOCTL_SW_PARAMS, &mut software) }
}

/// Performs a request.
///
/// # Safety
/// `number` is a request with the structure `T`, whose pointers are valid for the request.
unsafe fn request<T>(file: &File, number: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: by the contract of this function; `argument` is exclusively borrowed.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number, std::ptr::from_mut(argument)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the number of frames that a request has moved.
fn moved(result: io::Result<()>, transfer: &Transfer) -> Result<usize, CardError> {
    match result.map_err(|error| error.raw_os_error()) {
        Ok(()) => Ok(usize::try_from(transfer.result).unwrap_or(0)),
        Err(Some(libc::EAGAIN)) => Ok(0),
        Err(Some(libc::EPIPE | libc::ESTRPIPE)) => Err(CardError::Stopped),
        Err(number) => Err(CardError::Failed(number.unwrap_or(libc::EIO))),
    }
}

impl Card for KernelCard {
    fn prepare(&mut self) -> Result<(), CardError> {
        // SAFETY: the request takes no argument. It prepares the linked input, too.
        let result = unsafe { libc::ioctl(self.output.as_raw_fd(), SNDRV_PCM_IOCTL_PREPARE) };
        if result < 0 {
            return Err(CardError::Failed(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)));
        }
        Ok(())
    }

    fn read(&mut self, frames: &mut [Frame]) -> Result<usize, CardError> {
        let (buffer, count) = (frames.as_mut_ptr(), frames.len() as c_ulong);
        let mut transfer = Transfer { result: 0, buffer, frames: count };
        // SAFETY: the structure is that of the request, which writes to the borrowed frames.
        let result = unsafe { request(&self.input, SNDRV_PCM_IOCTL_READI_FRAMES, &mut transfer) };
        moved(result, &transfer)
    }

    fn write(&mut self, frames: &[Frame]) -> Result<usize, CardError> {
        let (buffer, count) = (frames.as_ptr().cast_mut(), frames.len() as c_ulong);
        let mut transfer = Transfer { result: 0, buffer, frames: count };
        // SAFETY: the structure is that of the request, which only reads the borrowed frames.
        let result = unsafe { request(&self.output, SNDRV_PCM_IOCTL_WRITEI_FRAMES, &mut transfer) };
        moved(result, &transfer)
    }

    fn reading(&mut self) -> Option<Reading> {
        let mut status = Status {
            state: 0,
            trigger_tstamp: [0; 2],
            tstamp: [0; 2],
            appl_ptr: 0,
            hw_ptr: 0,
            delay: 0,
            avail: 0,
            avail_max: 0,
            overrange: 0,
            suspended_state: 0,
            reserved: [0; 15],
        };
        // SAFETY: the structure is that of the request, and contains numbers only.
        unsafe { request(&self.output, SNDRV_PCM_IOCTL_STATUS, &mut status) }.ok()?;
        let [secs, nanos] = status.tstamp.map(|part| u64::try_from(part).unwrap_or(0));
        let at = Instant::from_ticks(secs * 1_000_000_000 + nanos);
        (status.state == SNDRV_PCM_STATE_RUNNING).then_some(Reading { at, frames: status.hw_ptr })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn has_layout_of_kernel() {
        // `sizeof` and `offsetof` with the `sound/asound.h` of Linux 6.1 for x86-64.
        assert_eq!(size_of::<Interval>(), 12);
        assert_eq!((size_of::<HwParams>(), offset_of!(HwParams, intervals)), (608, 260));
        assert_eq!((offset_of!(HwParams, requested), offset_of!(HwParams, info)), (512, 520));
        assert_eq!((size_of::<SwParams>(), offset_of!(SwParams, start_threshold)), (136, 32));
        assert_eq!((offset_of!(SwParams, protocol), offset_of!(SwParams, tstamp_type)), (72, 76));
        assert_eq!(size_of::<Status>(), 152);
        assert_eq!((offset_of!(Status, tstamp), offset_of!(Status, hw_ptr)), (24, 48));
        assert_eq!(size_of::<Transfer>(), 24);
    }

    #[test]
    fn has_requests_of_kernel() {
        let requests = [
            (SNDRV_PCM_IOCTL_HW_PARAMS, 0xc260_4111),
            (SNDRV_PCM_IOCTL_SW_PARAMS, 0xc088_4113),
            (SNDRV_PCM_IOCTL_STATUS, 0x8098_4120),
            (SNDRV_PCM_IOCTL_PREPARE, 0x4140),
            (SNDRV_PCM_IOCTL_WRITEI_FRAMES, 0x4018_4150),
            (SNDRV_PCM_IOCTL_READI_FRAMES, 0x8018_4151),
            (SNDRV_PCM_IOCTL_LINK, 0x4004_4160),
        ];
        // The type of a request is signed with musl.
        for (request, of_header) in requests {
            assert_eq!(request as u32, of_header);
        }
    }

    #[test]
    fn classifies_errors_of_kernel() {
        let transfer = Transfer { result: 48, buffer: std::ptr::null_mut(), frames: 48 };
        let error = |number| moved(Err(io::Error::from_raw_os_error(number)), &transfer);
        assert_eq!(moved(Ok(()), &transfer), Ok(48));
        assert_eq!(error(libc::EAGAIN), Ok(0));
        assert_eq!([libc::EPIPE, libc::ESTRPIPE].map(error), [Err(CardError::Stopped); 2]);
        assert_eq!(error(libc::ENODEV), Err(CardError::Failed(libc::ENODEV)));
    }

    #[test]
    fn reports_file_that_is_no_card() {
        let error = open(Path::new("/dev/null"), 1).unwrap_err();
        assert!(
            matches!(&error, OpenError::Format { error, .. } if error.raw_os_error() == Some(libc::ENOTTY))
        );
        let [output, input] =
            [(); 2].map(|()| File::options().read(true).write(true).open("/dev/null").unwrap());
        let mut card = KernelCard { output, input };
        let failed = CardError::Failed(libc::ENOTTY);
        let mut frames = [Frame::default(); FRAMES];
        assert_eq!((card.prepare(), card.reading()), (Err(failed), None));
        assert_eq!((card.read(&mut frames), card.write(&frames)), (Err(failed), Err(failed)));
    }

    #[test]
    fn reports_missing_card_with_remedy() {
        let error = KernelCard::open(u32::MAX, 0).unwrap_err().to_string();
        assert!(error.starts_with("cannot open /dev/snd/pcmC4294967295D0p: "), "{error}");
        assert!(error.contains("aplay -l"), "{error}");
    }
}
