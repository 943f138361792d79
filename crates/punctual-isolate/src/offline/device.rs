//! The device of the kernel module.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::process::{self, Pid, Signal};

use super::image::{Image, ImageError, Place};
use super::layout::{
    ABOUT, About, FIGURES, IS_ON, PLACE, RING, SHARED, START, STATE, STOP, Shared, Start, TEXT, TEXT_SIZE,
    USER, VERSION,
};
use super::observe::Observer;

const PATH: &str = "/dev/punctual-cpu";

/// The reason a program does not run on a CPU without Linux.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device does not exist, or access is denied.
    #[error("{PATH}: {0}; load the module punctual_cpu, and run as root or in the group of the udev rule")]
    Open(io::Error),
    /// The device is in use.
    #[error(
        "another program already runs on a CPU without Linux, or its CPU is lost: end that program first"
    )]
    Taken,
    /// The module belongs to another release.
    #[error("the module has layout version {0}, not {VERSION}: build and load the module of this release")]
    Version(u32),
    /// The program cannot run there.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Linux still has the CPU.
    #[error("CPU {0} is online: it was returned to Linux; take it offline first")]
    Online(u32),
    /// The firmware or the interrupt controller does not know the CPU.
    #[error("CPU {0} is unknown to the firmware or the interrupt controller: see the kernel log")]
    Unknown(u32),
    /// The firmware refused.
    #[error("the firmware does not start CPU {0}: see its answer in the kernel log")]
    Firmware(u32),
    /// The program does not end.
    #[error(
        "the program does not end, since it masks interrupts; CPU {0} is unusable until the next boot, and Linux continues \
         without it"
    )]
    Lost(u32),
    /// No program runs.
    #[error("no program runs there")]
    Idle,
    /// Any other error.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

/// Options for running a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The time for which it continues without a heartbeat of Linux; unlimited if zero.
    pub timeout: Duration,
    /// The time it has to end after a request.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), grace: Duration::from_secs(1) }
    }
}

/// The program's own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The program has not reached its first instructions.
    Loaded,
    /// The program is running.
    Runs,
    /// The program has ended with this code.
    Ended(i32),
    /// The program has panicked, caused a fault, or did not end in time. Its output shows which.
    Faulted(i32),
}

/// The device, which has one user at a time. Dropping it ends the program.
#[derive(Debug)]
pub struct Device {
    file: File,
    /// The shared part of the block.
    mapped: NonNull<u8>,
    doorbell: OwnedFd,
    about: About,
    /// The number of text bytes that were read.
    read: u64,
    started: Option<(u32, Options)>,
    observer: Option<Observer>,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Device {}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// The device does not exist, has another version, or is in use.
    pub fn open() -> Result<Self, DeviceError> {
        let file = OpenOptions::new().read(true).write(true).open(PATH).map_err(|error| {
            if error.raw_os_error() == Some(libc::EBUSY) {
                DeviceError::Taken
            } else {
                DeviceError::Open(error)
            }
        })?;
        let mut about = About::default();
        call(&file, ABOUT, (&raw mut about).cast())
            .map_err(|error| DeviceError::Io("asking the module", error))?;
        if about.version != VERSION {
            return Err(DeviceError::Version(about.version));
        }
        // SAFETY: creates a descriptor, which has no other owner.
        let doorbell = unsafe {
            let doorbell = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            (doorbell >= 0).then(|| OwnedFd::from_raw_fd(doorbell))
        };
        let doorbell =
            doorbell.ok_or_else(|| DeviceError::Io("making an eventfd", io::Error::last_os_error()))?;
        // SAFETY: a new mapping at an address of the kernel's choice, of a length that the module
        // allows.
        let mapped = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), SHARED, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        let mapped = NonNull::new(mapped.cast()).filter(|_| mapped != libc::MAP_FAILED);
        let mapped =
            mapped.ok_or_else(|| DeviceError::Io("mapping the memory", io::Error::last_os_error()))?;
        Ok(Self { file, mapped, doorbell, about, read: 0, started: None, observer: None })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping begins with it and exists as long as this value; concurrent writes of
        // others are atomic or not read here, and any value is valid for these fields.
        unsafe { self.mapped.cast().as_ref() }
    }

    /// Loads a program and starts it on an offline CPU.
    ///
    /// # Errors
    /// The CPU is not offline, the program cannot run there, or the firmware refuses. Nothing runs
    /// then.
    pub fn start(&mut self, image: &Image, cpu: usize, options: Options) -> Result<(), DeviceError> {
        let number = u32::try_from(cpu).unwrap_or(u32::MAX);
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) => DeviceError::Online(number),
            Some(libc::ENODEV) => DeviceError::Unknown(number),
            Some(libc::EIO) => DeviceError::Firmware(number),
            Some(libc::EBUSY) => DeviceError::Taken,
            _ => DeviceError::Io("starting the program", error),
        };
        let mut start = Start {
            cpu: number,
            patience_ms: millis(options.timeout),
            grace_ms: millis(options.grace),
            eventfd: self.doorbell.as_raw_fd(),
            interface: 0,
        };
        call(&self.file, PLACE, (&raw mut start).cast()).map_err(failed)?;
        // The CPU's part of the controller: two pages of version 2, two frames of version 3.
        let interface = (start.interface, if self.about.gic == 2 { 0x2000 } else { 0x2_0000 });
        let place = Place { base: self.about.base, devices: [(self.about.distributor, 0x1000), interface] };
        let bytes = image.placed(&place)?;
        self.file.write_all_at(&bytes, SHARED as u64).map_err(failed)?;
        self.read = 0;
        call(&self.file, START, (&raw mut start).cast()).map_err(failed)?;
        self.started = Some((number, options));
        Ok(())
    }

    /// Returns `true` if the CPU runs a program.
    ///
    /// # Errors
    /// The module does not answer.
    pub fn is_on(&self) -> Result<bool, DeviceError> {
        let on = call(&self.file, IS_ON, ptr::null_mut());
        Ok(on.map_err(|error| DeviceError::Io("asking the module", error))? == 1)
    }

    /// Requests the program to end, and waits until the CPU is off, at most a little longer than
    /// the program's grace.
    ///
    /// # Errors
    /// The program does not end.
    pub fn stop(&self) -> Result<(), DeviceError> {
        let Some((cpu, options)) = self.started else { return Err(DeviceError::Idle) };
        let mut timeout = millis(options.grace).saturating_mul(2).saturating_add(1000);
        match call(&self.file, STOP, (&raw mut timeout).cast()) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::ETIMEDOUT) => DeviceError::Lost(cpu),
                Some(libc::ESRCH) => DeviceError::Idle,
                _ => DeviceError::Io("ending the program", error),
            }),
        }
    }

    /// Interrupts the program: its interrupt `BELL`.
    ///
    /// # Errors
    /// No program runs, or it is about to end.
    pub fn ring(&self) -> Result<(), DeviceError> {
        call(&self.file, RING, ptr::null_mut()).map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => DeviceError::Idle,
            _ => DeviceError::Io("ringing", error),
        })?;
        Ok(())
    }

    /// Waits until the program rings the doorbell, at most for `most`; returns whether it did. A
    /// signal ends the wait.
    pub fn wait(&self, most: Duration) -> bool {
        let mut wanted = libc::pollfd { fd: self.doorbell.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let most = i32::try_from(most.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the array is one structure long, and its descriptor is open.
        let come = unsafe { libc::poll(&mut wanted, 1, most) };
        let mut count = [0; 8];
        come > 0 && rustix::io::read(&self.doorbell, &mut count).is_ok()
    }

    /// Returns the descriptors of the device and of the doorbell.
    pub(super) fn descriptors(&self) -> [RawFd; 2] {
        [self.file.as_raw_fd(), self.doorbell.as_raw_fd()]
    }

    /// Returns the program's own state.
    #[must_use]
    pub fn state(&self) -> State {
        let shared = self.shared();
        // Acquire: a thread that sees the state sees the code.
        match shared.state.load(Ordering::Acquire) {
            0 => State::Loaded,
            1 => State::Runs,
            2 => State::Ended(shared.code.load(Ordering::Relaxed)),
            _ => State::Faulted(shared.code.load(Ordering::Relaxed)),
        }
    }

    /// Returns a counter that grows a hundred times per second while the program can be
    /// interrupted.
    #[must_use]
    pub fn beat(&self) -> u64 {
        self.shared().beat.load(Ordering::Acquire)
    }

    /// Appends the program's output since the last call; returns the number of bytes lost because
    /// they were not read in time.
    pub fn read(&mut self, text: &mut Vec<u8>) -> u64 {
        let byte = |at: u64| {
            // SAFETY: within the ring, which is mapped and which both sides access atomically.
            let place = unsafe {
                &*self.mapped.as_ptr().add(TEXT + (at % TEXT_SIZE as u64) as usize).cast::<AtomicU8>()
            };
            place.load(Ordering::Relaxed)
        };
        let written = self.shared().written.load(Ordering::Acquire);
        let begin = begin_of_text(self.read, written);
        let length_before = text.len();
        text.extend((begin..written).map(byte));
        // Bytes overwritten in the meantime belong to newer text.
        let now = self.shared().written.load(Ordering::Acquire);
        let valid = begin_of_text(begin, now).clamp(begin, written);
        text.drain(length_before..length_before + usize::try_from(valid - begin).unwrap_or(0));
        let missed = valid - self.read.min(valid);
        self.read = written;
        missed
    }

    /// Shows the figures of the app on the CPU to `punctual top`, and marks its jobs in the trace
    /// by `marker`, a `trace_marker_raw`; both by [`observe`](Self::observe). After
    /// [`start`](Self::start).
    ///
    /// # Errors
    /// Nothing runs.
    pub fn show(&mut self, marker: Option<File>) -> Result<(), DeviceError> {
        let Some((cpu, _)) = self.started else { return Err(DeviceError::Idle) };
        // SAFETY: the place is within the mapping, aligned, and consists of atomics on both sides;
        // `drop` ends the observer before the mapping.
        let area = unsafe { &*self.mapped.as_ptr().add(FIGURES).cast() };
        self.observer = Some(Observer::new(area, cpu, marker));
        Ok(())
    }

    /// Copies the figures and marks the jobs that have ended; returns what cannot be shown, once.
    /// Fifty times a second is often enough for marks.
    pub fn observe(&mut self) -> Vec<String> {
        self.observer.as_mut().map(Observer::update).unwrap_or_default()
    }

    /// Marks the last jobs, and shows nothing more. Returns what could not be marked.
    pub fn end_observation(&mut self) -> Option<String> {
        self.observer.take().and_then(Observer::end)
    }

    /// Returns the memory that programs share, at the same offset as in
    /// `punctual_bare::amp::memory`. Only atomic accesses are sound, and only until this value is
    /// dropped.
    #[must_use]
    pub fn memory(&self) -> *mut [u8] {
        // SAFETY: within the mapping.
        let begin = unsafe { self.mapped.as_ptr().add(USER) };
        ptr::slice_from_raw_parts_mut(begin, SHARED - USER)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.observer = None;
        // SAFETY: mapped with this length, and no longer referred to. Closing the file afterwards
        // ends the program.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), SHARED) };
    }
}

/// Returns the first byte to read after the first `read` ones of `written`: in the ring, and at
/// most `written`, which a faulty program may reduce.
fn begin_of_text(read: u64, written: u64) -> u64 {
    read.max(written.saturating_sub(TEXT_SIZE as u64)).min(written)
}

/// Calls an ioctl of the module.
fn call(file: &File, request: u64, argument: *mut libc::c_void) -> io::Result<i32> {
    // SAFETY: the argument has the type of the request, or is null if it takes none.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Environment variable with the layout; `punctual::remote` reads it.
const VARIABLE: &str = "PUNCTUAL_REMOTE";

/// Lets the process that `command` starts inherit `device` and its bell, and passes it the layout
/// of the memory that it shares with the program on the CPU. From then on the caller must not
/// [wait](Device::wait) for the bell. The process gets SIGTERM when the calling thread ends.
pub fn hand_over(device: &Device, command: &mut Command) {
    let descriptors = device.descriptors();
    let [memory, bell] = descriptors;
    let layout =
        format!("device={memory},bell={bell},mapped={SHARED},memory={USER},state={STATE},ring={RING}");
    command.env(VARIABLE, layout);
    let parent = process::getpid();
    // SAFETY: only makes system calls between fork and exec.
    unsafe { command.pre_exec(move || inherit(descriptors, parent)) };
}

fn inherit(descriptors: [RawFd; 2], parent: Pid) -> io::Result<()> {
    for descriptor in descriptors {
        // SAFETY: the descriptor is open, as a copy of the parent's.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have died before that took effect.
    if process::getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_text_in_the_ring_only() {
        let size = TEXT_SIZE as u64;
        assert_eq!(begin_of_text(7, 9), 7);
        assert_eq!(begin_of_text(7, size + 9), 9);
        assert_eq!(begin_of_text(7, 3), 3, "the program has overwritten its counter");
        assert_eq!(begin_of_text(u64::MAX, 0), 0);
        assert_eq!(begin_of_text(0, u64::MAX), u64::MAX - size);
    }
}
