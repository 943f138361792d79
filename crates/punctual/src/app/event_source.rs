//! Event sources that are ready and have nothing to give: at the end of a file, or after a hang-up.
//!
//! Readiness is level-triggered, and no job can take such a state away by reading. So a task that does nothing about it is
//! released without end, and starves what is below. The first job in the state is an event like others: it is how a task
//! learns of the end. What happens after it the task [chooses](OnIdle).
//!
//! What tells the state is what `poll` says besides that there is something to read, and of regular files, of which it always
//! says just that, how much is left. So events of a source that is alive cost no further system call. An error alone is not
//! the state: reading fetches it, and the next one is an event again.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use punctual_core::Worker;
use rustix::event::PollFlags;
use rustix::io::ioctl_fionread;

use crate::app::partition::Part;
use crate::port::linux;
use crate::port::linux::stderr;

/// A task released by the readiness of a file descriptor.
pub trait Source: Sync {
    /// The partition of its task.
    fn part(&self) -> &'static Part;
    /// The thread that waits for it.
    fn worker(&self) -> &'static Worker;
    /// Name of the task.
    fn name(&self) -> &'static str;
    /// The descriptor to wait for.
    fn fd(&self) -> RawFd;
    /// Notes the descriptor that the resource has now.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn refresh(&self);
    /// Forgets the descriptor, at the end of a run.
    fn forget(&self);
    /// The eventfd that makes the waiting thread look again, -1 if there is none.
    fn control(&self) -> RawFd;
    /// Sets the eventfd that makes the waiting thread look again.
    fn set_control(&self, control: RawFd);
    /// Makes the waiting thread look again.
    fn interrupt(&self);
    /// How many jobs of the task have ended.
    fn ended(&self) -> u32;
    /// Releases a job unless one is waiting already.
    fn release(&'static self);
    /// What is known of it when it has nothing to give.
    fn idleness(&self) -> &Idleness;
    /// Stops the app for that.
    fn stop_idle(&self);
}

/// What happens when a source has nothing to give, a job has seen that, and the source is ready again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIdle {
    /// Another job.
    Every,
    /// No further job until the source is replaced, stops being ready, or has something to give.
    Once,
    /// The app ends.
    Stop,
}

/// A source's descriptor before there is one.
pub(crate) const NONE: RawFd = -1;
/// What `poll` is asked for besides [`PollFlags::IN`] and what it says unasked.
pub(crate) const ENDS: PollFlags = PollFlags::RDHUP;
/// After so many jobs in a row that had nothing to do, there is a warning.
const MANY: u32 = 100;

/// What is known of one source. Written to by the thread that waits for it, or in virtual time by the one whose turn it is.
#[derive(Debug)]
pub struct Idleness {
    on_idle: OnIdle,
    /// The descriptor that has nothing to give, if a job was released because of that.
    fd: AtomicI32,
    /// How many jobs had ended by then.
    ended: AtomicU32,
    in_a_row: AtomicU32,
    repeated: AtomicU64,
    warned: AtomicBool,
    /// The descriptor that was last asked what it is, and the answer.
    asked: AtomicI32,
    is_file: AtomicBool,
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
            is_file: AtomicBool::new(false),
        }
    }

    /// For a new run.
    pub(crate) fn begin(&self) {
        self.is_over();
        self.repeated.store(0, Ordering::Relaxed);
        self.warned.store(false, Ordering::Relaxed);
        self.asked.store(NONE, Ordering::Relaxed);
    }

    /// How many jobs were released in the state, without the first ones.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Whether the source was in the state when it was last ready.
    pub(crate) fn lasts(&self) -> bool {
        self.fd.load(Ordering::Relaxed) != NONE
    }

    /// The source is not ready.
    pub(crate) fn is_over(&self) {
        self.fd.store(NONE, Ordering::Relaxed);
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Whether a job is to be released because `fd`, the descriptor of `source`, is ready in this way.
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
            // The job that is to see it has not ended.
            return false;
        }
        match self.on_idle {
            OnIdle::Every => {
                self.ended.store(ended, Ordering::Relaxed);
                self.repeated.fetch_add(1, Ordering::Relaxed);
                if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == MANY {
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
            self.is_file.store(linux::is_file(fd), Ordering::Relaxed);
        }
        let is_file = self.is_file.load(Ordering::Relaxed);
        if !is_file && !ready.intersects(PollFlags::HUP | ENDS) {
            return false;
        }
        match ioctl_fionread(fd) {
            // Of a file that has become shorter it is negative.
            Ok(left) => left.cast_signed() <= 0,
            // Such as a device that is gone.
            Err(_) => !is_file,
        }
    }

    #[cold]
    fn warn(&self, source: &dyn Source) {
        if self.warned.swap(true, Ordering::Relaxed) {
            return;
        }
        stderr::defer(format_args!(
            "punctual: the event source of task `{}` is at its end and has released {MANY} jobs in a row that had \
             nothing to read, which keeps what is below from running; replace the source, or let the task say \
             `on_idle_source = once` or `stop`\n",
            source.name()
        ));
        let runtime = source.part().runtime;
        match runtime.is_watched() {
            true => runtime.ring(),
            false => stderr::write_deferred(),
        }
    }
}
