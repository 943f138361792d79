//! Moves pages from the kernel to files.
//!
//! One thread serves several CPUs: it sleeps, moves every full page, and sleeps again. `splice`
//! moves the pages from the ring buffer through a pipe to the file without copying them to user
//! space. The threads always have the ordinary policy, and run on untraced CPUs if there are any.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};
use rustix::thread::CpuSet;

use super::error::RecordError;
use super::save::Saver;
use super::tracefs::open_pages;

/// The number of CPUs per thread.
const CPUS_PER_THREAD: usize = 8;
const PIPE: usize = 1 << 20;

/// The transfer of a CPU's pages.
pub(super) struct Pipe {
    from: File,
    to: File,
    path: PathBuf,
    /// The size of a page of the ring buffer.
    page: usize,
}

impl Pipe {
    /// Opens the transfer from a CPU of an instance to a new file of the capture directory.
    pub(super) fn open(
        instance: &Path,
        cpu: u32,
        saver: &Saver<'_>,
        name: &str,
        page: usize,
    ) -> Result<Self, RecordError> {
        let from = open_pages(instance, cpu)?;
        Ok(Self { from, to: saver.create(name)?, path: saver.directory.path().join(name), page })
    }
}

/// The state shared by the threads and their owner.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    bytes: AtomicU64,
    failed: AtomicBool,
    error: Mutex<Option<RecordError>>,
}

impl Shared {
    fn fail(&self, error: RecordError) {
        // The first error is the cause; the others follow from it.
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        // Release: a thread that reads it with acquire also sees the error.
        self.failed.store(true, Ordering::Release);
    }
}

/// The threads.
pub(super) struct Drain {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drain {
    /// Starts moving pages, from threads that run on `cpus` if possible; without an interval, moves
    /// pages only at the end.
    pub(super) fn start(
        mut pipes: Vec<Pipe>,
        directory: &Path,
        cpus: &[u32],
        every: Option<Duration>,
    ) -> Result<Self, RecordError> {
        let mut drain = Self { shared: Arc::default(), threads: Vec::new() };
        while !pipes.is_empty() {
            let mine: Vec<_> = pipes.drain(..pipes.len().min(CPUS_PER_THREAD)).collect();
            let mover =
                Mover::new().map_err(|error| RecordError::System { attempt: "making a pipe", error })?;
            let (shared, directory) = (drain.shared.clone(), directory.to_owned());
            drain.spawn(cpus, move || run(mover, mine, &shared, &directory, every))?;
        }
        Ok(drain)
    }

    /// Starts calling `step` at an interval. `step` returns the number of bytes it has moved; its
    /// argument is true in the last call.
    pub(super) fn repeat(
        cpus: &[u32],
        every: Duration,
        mut step: impl FnMut(bool) -> Result<u64, RecordError> + Send + 'static,
    ) -> Result<Self, RecordError> {
        let mut drain = Self { shared: Arc::default(), threads: Vec::new() };
        let shared = drain.shared.clone();
        drain.spawn(cpus, move || {
            loop {
                let last = shared.stop.load(Ordering::Acquire);
                // Relaxed: a statistic that orders nothing.
                shared.bytes.fetch_add(step(last)?, Ordering::Relaxed);
                if last {
                    return Ok(());
                }
                thread::park_timeout(every);
            }
        })?;
        Ok(drain)
    }

    /// Starts a thread of ordinary priority.
    fn spawn(
        &mut self,
        cpus: &[u32],
        work: impl FnOnce() -> Result<(), RecordError> + Send + 'static,
    ) -> Result<(), RecordError> {
        let (shared, cpus) = (self.shared.clone(), cpus.to_vec());
        let work = move || {
            drop_real_time_policy(&cpus);
            if let Err(error) = work() {
                shared.fail(error);
            }
        };
        let thread = thread::Builder::new().name("punctual-drain".to_owned()).spawn(work);
        let thread = thread.map_err(|error| RecordError::System { attempt: "starting a thread", error })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Returns the number of bytes moved.
    pub(super) fn bytes(&self) -> u64 {
        // Relaxed: a statistic that orders nothing.
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether it has ended early.
    pub(super) fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Moves the remaining pages, ends the threads, and returns the error, if any. Recording must
    /// have ended.
    pub(super) fn finish(&mut self) -> Result<(), RecordError> {
        // Release: pairs with the acquire of the threads, which then see that tracing is off.
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                let error = io::Error::other("it panicked");
                self.shared.fail(RecordError::System { attempt: "moving pages", error });
            }
        }
        self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Drops a real-time policy that the calling thread has inherited, and moves the thread to these
/// CPUs, or to any CPU if the list is empty.
///
/// Not for real-time threads: threads that record or analyze call it so as not to disturb the
/// traced threads.
pub fn drop_real_time_policy(cpus: &[u32]) {
    // A thread can nearly always become ordinary; if the kernel refuses, its policy is unchanged.
    let _ = punctual_process::scheduling::set_policy(libc::SCHED_OTHER, 0);
    let mut here = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
        here.set(cpu as usize);
    }
    let mut anywhere = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| anywhere.set(cpu));
    // The affinity is also inherited, and the CPU of a real-time thread is the worst choice. The
    // system removes CPUs that a cpuset forbids.
    if cpus.is_empty() || rustix::thread::sched_setaffinity(None, &here).is_err() {
        let _ = rustix::thread::sched_setaffinity(None, &anywhere);
    }
}

fn run(
    mut mover: Mover,
    mut pipes: Vec<Pipe>,
    shared: &Shared,
    directory: &Path,
    every: Option<Duration>,
) -> Result<(), RecordError> {
    loop {
        let last = shared.stop.load(Ordering::Acquire);
        if every.is_none() && !last {
            // `finish` wakes it.
            thread::park();
            continue;
        }
        for pipe in &mut pipes {
            let moved = mover.drain(pipe, shared).and_then(|()| match last {
                true => mover.read_rest(pipe, shared),
                false => Ok(()),
            });
            if let Err(error) = moved {
                // A partially written page is not valid.
                let whole = pipe.to.metadata().map_or(0, |metadata| metadata.len());
                let _ = pipe.to.set_len(whole - whole % pipe.page as u64);
                return Err(RecordError::output(directory, &pipe.path, error));
            }
        }
        match every {
            Some(every) if !last => thread::park_timeout(every),
            _ => return Ok(()),
        }
    }
}

/// The pipe that transfers pages; it is empty between two calls.
struct Mover {
    read: rustix::fd::OwnedFd,
    write: rustix::fd::OwnedFd,
    capacity: usize,
    /// Some file systems do not support splice; in that case pages are read and written.
    spliced: bool,
}

impl Mover {
    fn new() -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Without privileges, or with many pipes, the pipe is smaller, which also works.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE);
        let capacity = rustix::pipe::fcntl_getpipe_size(&write)?;
        Ok(Self { read, write, capacity, spliced: true })
    }

    /// Moves all full pages.
    fn drain(&mut self, pipe: &mut Pipe, shared: &Shared) -> io::Result<()> {
        // Each page takes one slot of the pipe, which holds one page of the system.
        let most = (self.capacity / pipe.page).max(1) * pipe.page;
        while self.spliced {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            let mut held = match rustix::pipe::splice(&pipe.from, None, &self.write, None, most, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(held) => held,
                Err(Errno::INTR) => continue,
                Err(Errno::INVAL) => {
                    self.spliced = false;
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            // Relaxed: a statistic that orders nothing.
            shared.bytes.fetch_add(held as u64, Ordering::Relaxed);
            while held > 0 {
                match rustix::pipe::splice(&self.read, None, &pipe.to, None, held, SpliceFlags::MOVE) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(moved) => held -= moved,
                    Err(Errno::INTR) => {}
                    Err(Errno::INVAL) => {
                        self.spliced = false;
                        let mut rest = vec![0; held];
                        File::from(self.read.try_clone()?).read_exact(&mut rest)?;
                        pipe.to.write_all(&rest)?;
                        held = 0;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.read_rest(pipe, shared)
    }

    /// Reads the remaining pages, including partially filled ones.
    fn read_rest(&mut self, pipe: &mut Pipe, shared: &Shared) -> io::Result<()> {
        let mut page = vec![0; pipe.page];
        let mut nothing = 0;
        // A read that returns nothing may need to be repeated, but not forever.
        while nothing < 3 {
            match pipe.from.read(&mut page) {
                Ok(0) => nothing += 1,
                Ok(count) => {
                    nothing = 0;
                    page[count..].fill(0);
                    pipe.to.write_all(&page)?;
                    // Relaxed: a statistic that orders nothing.
                    shared.bytes.fetch_add(page.len() as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
