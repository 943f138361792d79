//! Event sources, and *idle* ones: ready without data, at the end of a file, after a hang-up, or
//! with a permanent error.
//!
//! Readiness is level-triggered, and reading does not clear the idle state. So a task that does not
//! handle it is released again and again, and starves lower levels. The first job in the state is
//! an ordinary event, which notifies the task of the end. Subsequent releases are configured by the
//! [task](OnIdle).
//!
//! The state follows from the other bits that `poll` returns; for regular files, which are always
//! readable, from the number of bytes left. So events of a live source cost no further system call.
//! An error that a job clears is an event; one that remains afterwards, such as that of a pipe
//! without a reader, is the idle state.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use punctual_core::Worker;
use rustix::event::PollFlags;
use rustix::io::ioctl_fionread;

use crate::model::OnIdle;
use crate::port::linux::stderr;
use crate::port::linux::{self, FileKind};
use crate::state::partition::PartitionState;

/// A task released by the readiness of a file descriptor.
pub trait Source: Sync {
    /// Returns the partition of its task.
    fn partition(&self) -> &'static PartitionState;
    /// Returns the thread that waits for it.
    fn worker(&self) -> &'static Worker;
    /// Returns the name of the task.
    fn name(&self) -> &'static str;
    /// Returns the descriptor to wait for.
    fn fd(&self) -> RawFd;
    /// Stores the current descriptor of the resource.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn refresh(&self);
    /// Clears the descriptor, at the end of a run.
    fn forget(&self);
    /// Returns the eventfd that interrupts the waiting thread, -1 if none exists.
    fn control(&self) -> RawFd;
    /// Sets the eventfd that interrupts the waiting thread.
    fn set_control(&self, control: RawFd);
    /// Interrupts the wait, so that the thread checks again.
    fn interrupt(&self);
    /// Returns the number of ended jobs of the task.
    fn ended(&self) -> u32;
    /// Releases a job unless one is already waiting. Returns `false` if the release was early and
    /// is delayed.
    fn release(&'static self) -> bool;
    /// Returns its idle state.
    fn idleness(&self) -> &Idleness;
    /// Stops the app because the source is idle.
    fn stop_idle(&self);
}

/// Descriptor of a source that has none yet.
pub(crate) const NONE: RawFd = -1;
/// Flags requested from `poll` in addition to [`PollFlags::IN`] and those it always reports.
pub(crate) const ENDS: PollFlags = PollFlags::RDHUP;
/// The number of consecutive idle jobs after which a warning is printed.
const WARN_AFTER: u32 = 100;

/// State of one source. Updated by the thread that waits for it, or in virtual time by the one that
/// has the turn.
#[derive(Debug)]
pub struct Idleness {
    on_idle: OnIdle,
    /// The idle descriptor, if a job was released for it.
    fd: AtomicI32,
    /// The number of jobs that had ended at that time.
    ended: AtomicU32,
    in_a_row: AtomicU32,
    repeated: AtomicU64,
    warned: AtomicBool,
    /// The last descriptor whose kind was determined, and the result, a [`FileKind`].
    asked: AtomicI32,
    kind: AtomicU8,
}

impl Idleness {
    pub(crate) const fn new(on_idle: OnIdle) -> Self {
        Self {
            on_idle,
            fd: AtomicI32::new(NONE),
            ended: AtomicU32::new(0),
            in_a_row: AtomicU32::new(0),
            repeated: AtomicU64::new(0),
            warned: AtomicBool::new(false),
            asked: AtomicI32::new(NONE),
            kind: AtomicU8::new(FileKind::Other as u8),
        }
    }

    /// Resets the state for a new run.
    pub(crate) fn begin(&self) {
        self.is_over();
        self.repeated.store(0, Ordering::Relaxed);
        self.warned.store(false, Ordering::Relaxed);
        self.asked.store(NONE, Ordering::Relaxed);
    }

    /// Returns the number of jobs released in the idle state, except the first ones.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Returns whether the source was idle when it was last ready.
    pub(crate) fn lasts(&self) -> bool {
        self.fd.load(Ordering::Relaxed) != NONE
    }

    /// Records that the source is not ready.
    pub(crate) fn is_over(&self) {
        self.fd.store(NONE, Ordering::Relaxed);
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Returns whether a job is to be released because `fd`, the descriptor of `source`, is ready
    /// in this way.
    pub(crate) fn releases(&self, source: &dyn Source, fd: BorrowedFd<'_>, ready: PollFlags) -> bool {
        if !self.has_nothing(fd, ready) {
            self.is_over();
            return true;
        }
        let ended = source.ended();
        if self.fd.swap(fd.as_raw_fd(), Ordering::Relaxed) != fd.as_raw_fd() {
            self.in_a_row.store(0, Ordering::Relaxed);
            self.ended.store(ended, Ordering::Relaxed);
            return true;
        }
        if self.ended.load(Ordering::Relaxed) == ended {
            // The first job in the state has not ended.
            return false;
        }
        match self.on_idle {
            OnIdle::Every => {
                self.ended.store(ended, Ordering::Relaxed);
                self.repeated.fetch_add(1, Ordering::Relaxed);
                if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == WARN_AFTER {
                    self.warn(source);
                }
                true
            }
            OnIdle::Once => false,
            OnIdle::Stop => {
                source.stop_idle();
                false
            }
        }
    }

    fn has_nothing(&self, fd: BorrowedFd<'_>, ready: PollFlags) -> bool {
        if self.asked.swap(fd.as_raw_fd(), Ordering::Relaxed) != fd.as_raw_fd() {
            self.kind.store(linux::file_kind(fd) as u8, Ordering::Relaxed);
        }
        let kind = self.kind.load(Ordering::Relaxed);
        if kind == FileKind::Empty as u8 {
            return true;
        }
        if ready.contains(PollFlags::ERR) && !ready.contains(PollFlags::IN) {
            return true;
        }
        let is_file = kind == FileKind::Regular as u8;
        if !is_file && !ready.intersects(PollFlags::HUP | ENDS) {
            return false;
        }
        match ioctl_fionread(fd) {
            // Negative for a file that was truncated.
            Ok(left) => left.cast_signed() <= 0,
            // For example a device that was removed.
            Err(_) => !is_file,
        }
    }

    #[cold]
    fn warn(&self, source: &dyn Source) {
        if self.warned.swap(true, Ordering::Relaxed) {
            return;
        }
        stderr::defer(format_args!(
            "punctual: the event source of task `{}` is at its end and has released {WARN_AFTER} \
             consecutive jobs without data, which keeps lower levels from running; replace the \
             source, or declare the task with `on_idle_source = once` or `stop`\n",
            source.name()
        ));
        let runtime = source.partition().runtime;
        match runtime.is_watched() {
            true => runtime.notify_supervisor(),
            false => stderr::write_deferred(),
        }
    }
}
