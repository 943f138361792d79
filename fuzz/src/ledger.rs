//! The books of a run, in memory that the process shares with the one that judges it.
//!
//! Everything is a relaxed atomic: what is compared are counts and marks, each of which is one word, and what orders them is
//! what is under test.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub(crate) const RELAXED: Ordering = Ordering::Relaxed;

/// Tasks, resources and partitions of an app at most.
pub(crate) const TASKS: usize = 32;
pub(crate) const RESOURCES: usize = 64;
pub(crate) const PARTS: usize = 2;
/// Levels, with that of `idle`.
pub(crate) const LEVELS: usize = 29;
/// Things that are watched in one process; what is made beyond that is not.
pub(crate) const TOKENS: usize = 1 << 15;

/// What did not hold, in words; more than these have nothing to add.
const VIOLATIONS: usize = 12;
const WORDS: usize = 240;

/// What happened to the jobs of one task in the present run.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Jobs {
    /// Accepted spawns.
    pub(crate) sent: AtomicU32,
    /// Started.
    pub(crate) runs: AtomicU32,
    /// Taken back before their time.
    pub(crate) cancelled: AtomicU32,
}

/// The books. All zero at the beginning.
#[derive(Debug)]
#[repr(C)]
pub struct Ledger {
    /// How often `run` was called, and how often it has returned.
    pub(crate) begun: AtomicU32,
    pub(crate) ended: AtomicU32,
    /// Whether the process has come to the end of its checks.
    pub(crate) closed: AtomicU32,
    /// How often `init` came to its end in the present run.
    pub(crate) filled: AtomicU32,
    pub(crate) hooks: AtomicU32,
    /// Whether the present run is in virtual time.
    pub(crate) virtual_time: AtomicU32,
    /// The thread that `idle` is on.
    pub(crate) idling: AtomicU32,
    /// Panics that were let out of jobs, `init`, `idle`, the hook and destructors in the present run.
    pub(crate) panics: AtomicU32,
    /// Those of them on the thread of `idle`, which goes on beside the end of its app.
    pub(crate) idle_panics: AtomicU32,
    /// Whether a panic has left a critical section, so that queued jobs are to be dropped.
    pub(crate) aborted: AtomicU32,
    /// Signals sent to this process in the present run.
    pub(crate) signals: AtomicU32,
    /// Points that were passed in the present run.
    pub(crate) points: AtomicU32,
    pub(crate) tasks: [Jobs; TASKS],
    /// The thread that uses a resource, and how often it was used.
    pub(crate) users: [AtomicU32; RESOURCES],
    pub(crate) visits: [AtomicU32; RESOURCES],
    /// The thread that runs a job of a level.
    pub(crate) runners: [[AtomicU32; LEVELS]; PARTS],
    /// Who holds something of this ceiling: its level plus one.
    pub(crate) held: [[AtomicU32; LEVELS]; PARTS],
    pub(crate) next_token: AtomicU32,
    pub(crate) tokens: [AtomicU32; TOKENS],
    found: AtomicU32,
    violations: [[AtomicU8; WORDS]; VIOLATIONS],
}

impl Ledger {
    /// Books for a process to be started; the descriptor is inherited by it.
    pub fn new() -> io::Result<(File, &'static Self)> {
        let file = memory()?;
        file.set_len(size_of::<Self>() as u64)?;
        let ledger = Self::map(file.as_raw_fd())?;
        Ok((file, ledger))
    }

    /// The books in `fd`, which [`new`](Self::new) made in this process or the one before.
    pub(crate) fn map(fd: RawFd) -> io::Result<&'static Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping overlaps nothing.
        let place = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Self>(), protection, libc::MAP_SHARED, fd, 0)
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is as large as the type, starts at a page, and stays; any bytes are a value of
        // the type, which is made of atomics, and nobody changes the file's size.
        Ok(unsafe { &*place.cast::<Self>() })
    }

    /// Gives the memory of books back that [`new`](Self::new) made.
    ///
    /// # Safety
    /// Nobody uses them any more.
    pub(crate) unsafe fn unmap(ledger: &'static Self) {
        // SAFETY: `map` made the mapping, in this size; the caller answers for its use.
        unsafe { libc::munmap(std::ptr::from_ref(ledger).cast_mut().cast(), size_of::<Self>()) };
    }

    /// Notes that something does not hold.
    #[cold]
    pub(crate) fn violation(&self, what: &str) {
        let number = self.found.fetch_add(1, RELAXED) as usize;
        if number == 0 {
            // The first one tells the story. Nobody may be listening.
            let place = std::backtrace::Backtrace::force_capture();
            let _ = writeln!(io::stderr(), "violation: {what}, at\n{place}");
        }
        let time = if self.virtual_time.load(RELAXED) == 0 { "real" } else { "virtual" };
        let what = format!("run {} in {time} time: {what}", self.begun.load(RELAXED));
        if let Some(place) = self.violations.get(number) {
            place.iter().zip(what.bytes()).for_each(|(place, byte)| place.store(byte, RELAXED));
        }
    }

    /// What did not hold.
    pub(crate) fn violations(&self) -> Vec<String> {
        let found = (self.found.load(RELAXED) as usize).min(VIOLATIONS);
        let words = |place: &[AtomicU8; WORDS]| {
            let bytes = place.iter().map(|byte| byte.load(RELAXED)).take_while(|&byte| byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        self.violations[..found].iter().map(words).collect()
    }

    /// Opens the books of another run.
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

/// A file without a name, which children inherit.
pub(crate) fn memory() -> io::Result<File> {
    // SAFETY: the name is a string with its end.
    let fd = unsafe { libc::memfd_create(c"fuzz".as_ptr(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

static LEDGER: OnceLock<&'static Ledger> = OnceLock::new();

/// Takes the books of this process.
pub(crate) fn choose(ledger: &'static Ledger) {
    assert!(LEDGER.set(ledger).is_ok(), "a process has one ledger");
}

/// The books of this process.
pub(crate) fn ledger() -> &'static Ledger {
    LEDGER.get().expect("the process starts by opening its ledger")
}

/// Notes that something does not hold.
#[cold]
pub(crate) fn violation(what: &str) {
    ledger().violation(what);
}

/// `init` comes to its end: nothing can go wrong in it any more.
pub fn filled() {
    ledger().filled.fetch_add(1, RELAXED);
}

/// Whether the present run is in virtual time.
pub fn is_virtual() -> bool {
    ledger().virtual_time.load(RELAXED) != 0
}

/// A number for the calling thread, from 1.
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
