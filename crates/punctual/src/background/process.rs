//! A helper in a process of its own: what it does wrong ends it, and not the app.
//!
//! Requests are plain data in a [`Ring`] of shared memory, which the helper has as its standard input. A task submits without entering
//! the kernel, from any executor, a polling one too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use punctual_sync::Full;
use punctual_sync::shared::{Plain, Ring, RingConsumer, RingProducer, attach_at, init_at, region_size};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use crate::mapping::Mapping;
use crate::port::linux::notice;

/// How long the helper sleeps when there is nothing to do. Who submits does not wake it, as that would be a system call.
const PAUSE: Duration = Duration::from_millis(1);
/// In so many pauses it asks the kernel once whether the app still runs.
const LOOK: u32 = 50;
/// For so long the app waits at its end until the helper has done the rest.
const GRACE: Duration = Duration::from_secs(10);

/// The app's end of a helper process.
///
/// The helper gets requests of the type `T`, of which `N`, a power of two, may wait. When this is dropped, which `#[shutdown]` or the end
/// of the run does, the helper does what waits and ends; after 10 s it is killed, which is said.
///
/// ```no_run
/// use std::process::Command;
///
/// use punctual::background::HelperProcess;
///
/// // In `init`.
/// let mut disk = HelperProcess::<[f32; 2], 256>::start(Command::new("my-recorder"))?;
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
///
/// A helper that dies is not started again: requests fill the ring, and [`submit`](Self::submit) says so.
#[derive(Debug)]
pub struct HelperProcess<T: Plain, const N: usize> {
    // Dropped before what it points into.
    requests: Option<RingProducer<'static, T, N>>,
    child: Child,
    _memory: Mapping,
}

/// The helper's end: an iterator over the requests, which waits for the next one, and ends when the app has ended or has dropped its end.
#[derive(Debug)]
pub struct Requests<T: Plain, const N: usize> {
    // Dropped before what it points into.
    requests: RingConsumer<'static, T, N>,
    ring: &'static Ring<T, N>,
    is_over: bool,
    _memory: Mapping,
}

impl<T: Plain, const N: usize> HelperProcess<T, N> {
    /// Starts the program, as an ordinary process off the partitions' CPUs. Its standard input is replaced.
    ///
    /// Real-time safety: allocates and enters the kernel; for `init`.
    ///
    /// # Errors
    /// The program cannot be started, or the system refuses the memory.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let length = region_size::<Ring<T, N>>();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("punctual-helper", flags)?;
        rustix::fs::ftruncate(&file, length as u64)?;
        // Memory that is not to be had is an error here, and would be SIGBUS in a job; so would be a file that the helper makes shorter.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = Mapping::new(length, Some(file.as_fd()))?;
        // SAFETY: the memory is new, all zero and known to nobody else yet. It is mapped until after the producer is dropped, which does
        // not leave this structure. The helper uses it by `Requests`; whatever else a program may write there, a ring masks its indices,
        // and every bit pattern is a `T`.
        let ring = unsafe { init_at::<Ring<T, N>>(memory.start(), length, ()) }.map_err(io::Error::other)?;
        let requests = ring.producer().map_err(|_| io::Error::other("a new ring is taken"))?;
        command.stdin(file);
        // A child has the policy and the CPUs of the thread that starts it.
        let starts = super::spawn("starts helper", move || command.spawn())?;
        let child = starts.join().map_err(|_| io::Error::other("starting the helper has panicked"))??;
        Ok(Self { requests: Some(requests), child, _memory: memory })
    }

    /// Gives the helper a request, after those before it.
    ///
    /// Real-time safety: wait-free; does not allocate or enter the kernel. The helper looks every millisecond while it has nothing to do.
    ///
    /// # Errors
    /// [`Full`] with the request if `N` wait already: the helper is slow, stopped or dead.
    pub fn submit(&mut self, request: T) -> Result<(), Full<T>> {
        match &mut self.requests {
            Some(requests) => requests.push(request).map_err(Full),
            None => Err(Full(request)),
        }
    }

    /// The helper's number.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// How the helper has ended, if it has.
    ///
    /// Real-time safety: enters the kernel; for `idle` and background threads.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    pub fn has_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl<T: Plain, const N: usize> Drop for HelperProcess<T, N> {
    fn drop(&mut self) {
        // It sees that the end is free.
        drop(self.requests.take());
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > GRACE {
                let (process, seconds) = (self.child.id(), GRACE.as_secs());
                notice::warn(format_args!(
                    "the helper process {process} is killed: it had {seconds} s for what waited"
                ));
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl<T: Plain, const N: usize> Requests<T, N> {
    /// Takes the end that the app has given this process as its standard input.
    ///
    /// # Errors
    /// Standard input is no such thing, or is for requests of another type or number: the two programs must agree on `T` and `N`.
    pub fn inherited() -> io::Result<Self> {
        Self::of(io::stdin().as_fd())
    }

    fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let foreign = |why: &str| {
            let text = format!(
                "standard input has no requests of an app ({why}): `HelperProcess::start` starts this program"
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
        // SAFETY: the memory is mapped until after the references into it are dropped, which do not leave this structure. It cannot become
        // shorter. `HelperProcess` has put a ring there, or somebody else something that is found out by its layout.
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
        let mut pauses = 0_u32;
        loop {
            if let Some(request) = self.requests.pop() {
                return Some(request);
            }
            if self.is_over {
                return None;
            }
            // Before the last look, so that every request submitted by then is done. An app that dropped its end is seen at once; of
            // one that was killed the kernel is asked.
            pauses = pauses.wrapping_add(1);
            self.is_over = match pauses % LOOK {
                0 => self.ring.take_over_producer().is_ok(),
                _ => self.ring.producer().is_ok(),
            };
            if !self.is_over {
                std::thread::sleep(PAUSE);
            }
        }
    }
}
