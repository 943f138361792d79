//! Ledger of a run, in memory that the process shares with the one that judges it.
//!
//! All fields are relaxed atomics: each compared count or mark is one word, and the code under test
//! provides the ordering.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub(crate) const RELAXED: Ordering = Ordering::Relaxed;

/// Maximum number of tasks, resources and partitions of an app.
pub(crate) const TASKS: usize = 32;
pub(crate) const RESOURCES: usize = 64;
pub(crate) const PARTS: usize = 2;
/// Number of levels, including that of `idle`.
pub(crate) const LEVELS: usize = 29;
/// Maximum number of tracked tokens of a process; further ones are not tracked.
pub(crate) const TOKENS: usize = 1 << 15;

/// Maximum number of recorded violations.
const VIOLATIONS: usize = 12;
const WORDS: usize = 240;

/// Counts of one task's jobs in the current run.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Jobs {
    /// Accepted spawns.
    pub(crate) sent: AtomicU32,
    /// Started jobs.
    pub(crate) runs: AtomicU32,
    /// Cancelled jobs.
    pub(crate) cancelled: AtomicU32,
}

/// Ledger of a run, initially zero.
#[derive(Debug)]
#[repr(C)]
pub struct Ledger {
    /// Numbers of calls and returns of `run`.
    pub(crate) begun: AtomicU32,
    pub(crate) ended: AtomicU32,
    /// Set when the process has finished its checks.
    pub(crate) closed: AtomicU32,
    /// Number of times that `init` has finished in the current run.
    pub(crate) filled: AtomicU32,
    pub(crate) hooks: AtomicU32,
    /// Set if the current run is in virtual time.
    pub(crate) virtual_time: AtomicU32,
    /// Thread of `idle`.
    pub(crate) idling: AtomicU32,
    /// Panics in jobs, `init`, `idle`, the hook and destructors in the current run.
    pub(crate) panics: AtomicU32,
    /// Panics on the thread of `idle`, which may outlive its app.
    pub(crate) idle_panics: AtomicU32,
    /// Set after a panic has left a critical section, so that queued jobs are dropped.
    pub(crate) aborted: AtomicU32,
    /// Signals sent to this process in the current run.
    pub(crate) signals: AtomicU32,
    /// Points passed in the current run.
    pub(crate) points: AtomicU32,
    pub(crate) tasks: [Jobs; TASKS],
    /// Thread that uses a resource, and number of uses.
    pub(crate) users: [AtomicU32; RESOURCES],
    pub(crate) visits: [AtomicU32; RESOURCES],
    /// Thread that runs a job of a level.
    pub(crate) runners: [[AtomicU32; LEVELS]; PARTS],
    /// Holder of a ceiling: its level plus one.
    pub(crate) held: [[AtomicU32; LEVELS]; PARTS],
    pub(crate) next_token: AtomicU32,
    pub(crate) tokens: [AtomicU32; TOKENS],
    found: AtomicU32,
    violations: [[AtomicU8; WORDS]; VIOLATIONS],
}

impl Ledger {
    /// Creates a ledger for a process to be started, which inherits the descriptor.
    pub fn new() -> io::Result<(File, &'static Self)> {
        let file = memory()?;
        file.set_len(size_of::<Self>() as u64)?;
        let ledger = Self::map(file.as_raw_fd())?;
        Ok((file, ledger))
    }

    /// Maps the ledger in `fd`, which [`new`](Self::new) created in this process or its parent.
    pub(crate) fn map(fd: RawFd) -> io::Result<&'static Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping overlaps nothing.
        let place = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Self>(), protection, libc::MAP_SHARED, fd, 0)
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is as large as the type, starts at a page and is permanent. Any bytes
        // are a valid value of the type, which consists of atomics, and the size of the file does
        // not change.
        Ok(unsafe { &*place.cast::<Self>() })
    }

    /// Unmaps a ledger that [`new`](Self::new) mapped.
    ///
    /// # Safety
    /// The ledger is not used afterwards.
    pub(crate) unsafe fn unmap(ledger: &'static Self) {
        // SAFETY: `map` created the mapping with this size; the caller guarantees that it is
        // unused.
        unsafe { libc::munmap(std::ptr::from_ref(ledger).cast_mut().cast(), size_of::<Self>()) };
    }

    /// Records a violation.
    #[cold]
    pub(crate) fn violation(&self, what: &str) {
        let number = self.found.fetch_add(1, RELAXED) as usize;
        if number == 0 {
            // Best effort, for the first violation only: standard error may be closed.
            let place = std::backtrace::Backtrace::force_capture();
            let _ = writeln!(io::stderr(), "violation: {what}, at\n{place}");
        }
        let time = if self.virtual_time.load(RELAXED) == 0 { "real" } else { "virtual" };
        let what = format!("run {} in {time} time: {what}", self.begun.load(RELAXED));
        if let Some(place) = self.violations.get(number) {
            place.iter().zip(what.bytes()).for_each(|(place, byte)| place.store(byte, RELAXED));
        }
    }

    /// Returns the recorded violations.
    pub(crate) fn violations(&self) -> Vec<String> {
        let found = (self.found.load(RELAXED) as usize).min(VIOLATIONS);
        let words = |place: &[AtomicU8; WORDS]| {
            let bytes = place.iter().map(|byte| byte.load(RELAXED)).take_while(|&byte| byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        self.violations[..found].iter().map(words).collect()
    }

    /// Resets the ledger for the next run.
    pub(crate) fn open(&self) {
        self.begun.fetch_add(1, RELAXED);
        let singles = [
            &self.filled,
            &self.hooks,
            &self.panics,
            &self.idle_panics,
            &self.aborted,
            &self.signals,
            &self.points,
        ];
        let jobs = self.tasks.iter().flat_map(|jobs| [&jobs.sent, &jobs.runs, &jobs.cancelled]);
        singles.into_iter().chain(jobs).chain(&self.visits).for_each(|count| count.store(0, RELAXED));
    }
}

/// Creates an anonymous file that children inherit.
pub(crate) fn memory() -> io::Result<File> {
    // SAFETY: the name is a null-terminated string.
    let fd = unsafe { libc::memfd_create(c"fuzz".as_ptr(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

static LEDGER: OnceLock<&'static Ledger> = OnceLock::new();

/// Selects the ledger of this process.
pub(crate) fn choose(ledger: &'static Ledger) {
    assert!(LEDGER.set(ledger).is_ok(), "a process has one ledger");
}

/// Returns the ledger of this process.
pub(crate) fn ledger() -> &'static Ledger {
    LEDGER.get().expect("the process starts by opening its ledger")
}

/// Records a violation.
#[cold]
pub(crate) fn violation(what: &str) {
    ledger().violation(what);
}

/// Records that `init` has finished without a fault.
pub fn filled() {
    ledger().filled.fetch_add(1, RELAXED);
}

/// Returns true if the current run is in virtual time.
pub fn is_virtual() -> bool {
    ledger().virtual_time.load(RELAXED) != 0
}

/// Returns a number for the calling thread, from 1.
pub(crate) fn thread() -> u32 {
    use std::cell::Cell;
    static THREADS: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static THREAD: Cell<u32> = const { Cell::new(0) };
    }
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, RELAXED));
    }
    THREAD.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_is_shared_between_processes() {
        let (file, here) = Ledger::new().unwrap();
        let there = Ledger::map(file.as_raw_fd()).unwrap();
        here.violation("one");
        here.violation(&"long ".repeat(WORDS));
        assert!(there.violations()[0].ends_with(": one"));
        assert_eq!(there.violations()[1].len(), WORDS);
    }
}
