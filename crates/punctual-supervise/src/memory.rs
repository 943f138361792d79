//! The memory that the supervisor shares with the app.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use punctual_core::heartbeat::{self, Region};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::budget::Level;

/// The time limit for the app's answer to a request for CPU clocks. The next check sends another
/// request.
const ANSWER_TIMEOUT: Duration = Duration::from_micros(500);

/// The memory of one run of the app.
#[derive(Debug)]
pub(crate) struct Memory {
    region: NonNull<Region>,
    file: OwnedFd,
}

/// A task as declared by the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) level: u32,
    /// In ns; `None` without a budget.
    pub(crate) budget: Option<u64>,
    pub(crate) policy: u32,
}

/// The app's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct App {
    pub(crate) name: String,
    pub(crate) process: i32,
    pub(crate) priority: u32,
    pub(crate) cpus: Vec<usize>,
    pub(crate) tasks: Vec<Task>,
}

/// A fatal signal in the app, whose thread waits for the supervisor to read its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) signal: i32,
    pub(crate) thread: u32,
    pub(crate) address: u64,
    pub(crate) context: u64,
}

impl Memory {
    /// Creates zeroed memory that cannot be truncated, so reading it never raises SIGBUS.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"punctual-supervise", flags)?;
        rustix::fs::ftruncate(&file, size_of::<Region>() as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let length = size_of::<Region>();
        // SAFETY: a new mapping, of a file of that length.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file.as_fd(), 0)
        }?;
        let region = NonNull::new(start.cast::<Region>()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        let memory = Self { region, file };
        memory.region().app.magic.store(heartbeat::MAGIC, Ordering::Release);
        Ok(memory)
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn region(&self) -> &Region {
        // SAFETY: mapped until `drop`, and page-aligned. Every field is an atomic integer, valid
        // for any value that the app stores.
        unsafe { self.region.as_ref() }
    }

    /// Returns `true` if the app runs.
    pub(crate) fn is_running(&self) -> bool {
        self.region().app.state.load(Ordering::Acquire) == heartbeat::RUNNING
    }

    /// Returns the app, if it runs.
    pub(crate) fn app(&self) -> Option<App> {
        let region = self.region();
        if !self.is_running() {
            return None;
        }
        let tasks = region.tasks.iter().take(region.app.tasks.load(Ordering::Relaxed) as usize);
        let task = |task: &heartbeat::Task| Task {
            name: name(&task.name),
            level: task.level.load(Ordering::Relaxed),
            budget: Some(task.budget.load(Ordering::Relaxed)).filter(|&budget| budget > 0),
            policy: task.policy.load(Ordering::Relaxed),
        };
        Some(App {
            name: name(&region.app.name),
            process: i32::try_from(region.app.process.load(Ordering::Relaxed)).unwrap_or(0),
            priority: region.app.priority.load(Ordering::Relaxed),
            cpus: region.app.cpus().collect(),
            tasks: tasks.map(task).collect(),
        })
    }

    /// Requests the CPU time of the threads that run jobs. Returns `true` if the app has answered
    /// in time.
    pub(crate) fn ask_for_clocks(&self) -> bool {
        let clock = &self.region().clock;
        // Release: the answer covers the app's work up to the point where it sees the request.
        let request = clock.requests.fetch_add(1, Ordering::Release).wrapping_add(1);
        // Not private, since the app waits on it.
        let _ = futex::wake(&clock.requests, futex::Flags::empty(), 1);
        let limit = Instant::now() + ANSWER_TIMEOUT;
        loop {
            // Acquire: pairs with the answer, after which the levels' clocks are complete.
            let answered = clock.answers.load(Ordering::Acquire);
            if answered == request {
                return true;
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            let _ = futex::wait(&clock.answers, futex::Flags::empty(), answered, Some(&timeout));
        }
    }

    /// Returns the current state of every level; with `clocks`, including the CPU clocks of the
    /// last [answer](Self::ask_for_clocks). Since a level is read after its clock, the CPU time of
    /// its job is never overestimated.
    pub(crate) fn levels(&self, clocks: bool) -> Vec<Level> {
        let region = self.region();
        let count = region.app.levels.load(Ordering::Relaxed) as usize;
        let level = |(index, beat): (usize, &heartbeat::Beat)| {
            let running = beat.running();
            Level {
                index,
                partition: beat.partition.load(Ordering::Relaxed),
                level: beat.level.load(Ordering::Relaxed),
                executed: beat.executed(),
                running,
                clock: running.filter(|_| clocks).and_then(|job| beat.clock(job.number)),
            }
        };
        region.beats.iter().take(count).enumerate().map(level).collect()
    }

    /// Returns a fatal signal of the app, if its thread waits.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let fault = &self.region().fault;
        (fault.state.load(Ordering::Acquire) == heartbeat::WAITING).then(|| Fault {
            signal: i32::try_from(fault.signal.load(Ordering::Relaxed)).unwrap_or(0),
            thread: fault.thread.load(Ordering::Relaxed),
            address: fault.address.load(Ordering::Relaxed),
            context: fault.context.load(Ordering::Relaxed),
        })
    }

    /// Resumes the thread.
    pub(crate) fn seen(&self) {
        self.region().fault.state.store(heartbeat::SEEN, Ordering::Release);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference to it remains.
        let _ = unsafe { rustix::mm::munmap(self.region.as_ptr().cast::<c_void>(), size_of::<Region>()) };
    }
}

/// Returns a name written by the app, escaped for printing.
fn name(name: &heartbeat::Name) -> String {
    let bytes: Vec<u8> = name.bytes().collect();
    punctual_report::escape::Printable(&String::from_utf8_lossy(&bytes)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_no_app_before_registration() {
        let memory = Memory::new().unwrap();
        assert_eq!((memory.app(), memory.fault()), (None, None));
        assert!(memory.levels(false).is_empty());
    }

    #[test]
    fn senseless_numbers_and_names_are_bounded_and_escaped() {
        let memory = Memory::new().unwrap();
        let region = memory.region();
        region.app.tasks.store(u32::MAX, Ordering::Relaxed);
        region.app.levels.store(u32::MAX, Ordering::Relaxed);
        region.app.process.store(u32::MAX, Ordering::Relaxed);
        region.app.name.set("\u{1b}[2J");
        region.app.state.store(heartbeat::RUNNING, Ordering::Release);
        let app = memory.app().expect("the app is running");
        assert_eq!((app.tasks.len(), memory.levels(false).len()), (heartbeat::TASKS, heartbeat::LEVELS));
        assert_eq!(app.process, 0);
        assert!(!app.name.contains('\u{1b}'), "{:?}", app.name);
    }

    #[test]
    fn memory_cannot_be_cut_off() {
        let memory = Memory::new().unwrap();
        assert!(rustix::fs::ftruncate(&memory.file, 0).is_err());
    }
}
