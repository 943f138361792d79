//! Requests of a task to a helper process.
//!
//! Requests are plain data in a [`Ring`] of shared memory, which the helper gets as its standard
//! input. A task submits without entering the kernel, from any executor, including a polling one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use punctual_sync::Full;
use punctual_sync::shared::{Plain, Ring, RingConsumer, RingProducer, attach_at, init_at, region_size};
use rustix::fs::{MemfdFlags, SealFlags};

use super::pauses::Pauses;
use super::process::{HelperCommand, HelperProcess};
use crate::port::linux::mapping::Mapping;

/// Shortest sleep of the helper without work. A submission does not wake it, because that would be
/// a system call.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of pauses after which it asks the kernel once whether the app still runs.
const LOOK: u32 = 50;

/// A [`HelperProcess`] that gets requests of type `T`, of which `N`, a power of two, may wait.
///
/// A restarted helper continues with the requests that its predecessor has not taken. When this is
/// dropped, by `#[shutdown]` or at the end of the run, the helper finishes the waiting requests and
/// ends; after its [grace](HelperCommand::grace) it is killed.
///
/// ```no_run
/// use std::process::Command;
/// use std::time::Duration;
///
/// use punctual::background::{HelperCommand, Requester};
///
/// // In `init`.
/// let command = HelperCommand::new(Command::new("my-recorder")).grace(Duration::from_secs(10));
/// let mut disk = Requester::<[f32; 2], 256>::start(command)?;
/// // In a job, at any level.
/// disk.submit([0.25, 0.5]).expect("it keeps up");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// And in `my-recorder`:
///
/// ```no_run
/// use punctual::background::Requests;
///
/// for [pan, tilt] in Requests::<[f32; 2], 256>::inherited()? {
///     println!("{pan} {tilt}");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Requester<T: Plain, const N: usize> {
    // Dropped first, in this order: the helper detects that the end is free, finishes and ends.
    requests: RingProducer<'static, T, N>,
    process: HelperProcess,
    _memory: Mapping,
}

/// The helper's end: an iterator over the requests, which waits for the next one, and ends when the
/// app has ended or has dropped its end.
#[derive(Debug)]
pub struct Requests<T: Plain, const N: usize> {
    // Dropped before the memory it points into.
    requests: RingConsumer<'static, T, N>,
    ring: &'static Ring<T, N>,
    is_over: bool,
    _memory: Mapping,
}

impl<T: Plain, const N: usize> Requester<T, N> {
    /// Starts the process, whose standard input is replaced.
    ///
    /// Real-time safety: allocates and enters the kernel; for `init`.
    ///
    /// # Errors
    /// Returns the errors of [`HelperProcess::start`], or an error if the system refuses the
    /// memory.
    pub fn start(mut command: HelperCommand) -> io::Result<Self> {
        let length = region_size::<Ring<T, N>>();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("punctual-helper", flags)?;
        rustix::fs::ftruncate(&file, length as u64)?;
        // Reports a lack of memory as an error here, rather than as SIGBUS in a job; the file is
        // sealed against truncation by the helper.
        punctual_files::allocate(&file, length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = Mapping::new(length, Some(file.as_fd()))?;
        // SAFETY: the memory is new, all zero and not yet shared. It is mapped until after the
        // producer is dropped, which is not moved out of this structure. The helper uses it by
        // `Requests`; whatever else a program may write there, a ring masks its indices, and every
        // bit pattern is a `T`.
        let ring = unsafe { init_at::<Ring<T, N>>(memory.start(), length, ()) }.map_err(io::Error::other)?;
        let requests = ring.producer().map_err(|_| io::Error::other("a new ring is taken"))?;
        command.command.stdin(file);
        let process = HelperProcess::start_ending(command, None)?;
        Ok(Self { requests, process, _memory: memory })
    }

    /// Submits a request to the helper, after earlier ones.
    ///
    /// Real-time safety: wait-free; does not allocate or enter the kernel. The helper polls after a
    /// quarter of the time since the last request, at least every 15 ms and at most every
    /// millisecond.
    ///
    /// # Errors
    /// Returns [`Full`] with the request if `N` are already waiting: the helper is slow, stopped or
    /// dead.
    pub fn submit(&mut self, request: T) -> Result<(), Full<T>> {
        self.requests.push(request).map_err(Full)
    }

    /// Returns the process.
    #[must_use]
    pub const fn process(&self) -> &HelperProcess {
        &self.process
    }
}

impl<T: Plain, const N: usize> Requests<T, N> {
    /// Opens the end that the app has given this process as its standard input.
    ///
    /// # Errors
    /// Returns an error if standard input is not such an end, or if the request type or number
    /// differs: both programs must agree on `T` and `N`.
    pub fn inherited() -> io::Result<Self> {
        Self::of(io::stdin().as_fd())
    }

    fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let foreign = |why: &str| {
            let text = format!(
                "standard input has no requests of an app ({why}): `Requester::start` starts this program"
            );
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| foreign("it is no memory"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(foreign("it may become shorter"));
        }
        let length = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
        if length == 0 {
            return Err(foreign("it is empty"));
        }
        let memory = Mapping::new(length, Some(file))?;
        // SAFETY: the memory is mapped until after the references into it are dropped, which are
        // not moved out of this structure. It cannot become shorter. `Requester` has put a ring
        // there; anything else is detected by its layout.
        let ring = unsafe { attach_at::<Ring<T, N>>(memory.start(), length) };
        let ring = ring.map_err(|error| foreign(&error.to_string()))?;
        let taken = |error| foreign(&format!("somebody else takes them, {error}"));
        let requests = ring.take_over_consumer().map_err(taken)?;
        Ok(Self { requests, ring, is_over: false, _memory: memory })
    }
}

impl<T: Plain, const N: usize> Iterator for Requests<T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let (mut pauses, mut count) = (Pauses::new(PAUSE), 0_u32);
        loop {
            if let Some(request) = self.requests.pop() {
                return Some(request);
            }
            if self.is_over {
                return None;
            }
            // Before the last scan, so that every request submitted by then is processed. An app
            // that dropped its end is detected at once; one that was killed, by asking the kernel.
            count = count.wrapping_add(1);
            self.is_over = match count % LOOK {
                0 => self.ring.take_over_producer().is_ok(),
                _ => self.ring.producer().is_ok(),
            };
            if !self.is_over {
                pauses.sleep();
            }
        }
    }
}
