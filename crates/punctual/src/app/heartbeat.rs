//! Where the jobs of a task tell a supervisor in another process that they begin and end, if there is one.
//!
//! Such jobs take the path of those that are [marked](crate::port::linux::trace_marker) in the kernel's trace, so others pay
//! nothing for it.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use punctual_core::Instant;
use punctual_core::heartbeat;

/// The heartbeat of a task's level, while a supervisor watches.
#[derive(Debug)]
pub(crate) struct BeatSlot {
    /// Null, or a `&'static heartbeat::Beat`.
    beat: AtomicPtr<heartbeat::Beat>,
    /// The number of the task.
    task: AtomicU32,
}

/// A heartbeat, with the task that it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beat {
    beat: &'static heartbeat::Beat,
    task: u32,
}

impl BeatSlot {
    pub(crate) const fn empty() -> Self {
        Self { beat: AtomicPtr::new(std::ptr::null_mut()), task: AtomicU32::new(0) }
    }

    /// Has the jobs of the task tell `beat`. While none can run.
    pub(crate) fn set(&self, beat: &'static heartbeat::Beat, task: u32) {
        self.task.store(task, Ordering::Relaxed);
        self.beat.store(std::ptr::from_ref(beat).cast_mut(), Ordering::Relaxed);
    }

    /// Has them tell nobody. While none can run.
    pub(crate) fn clear(&self) {
        self.beat.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Where the jobs of the task tell of themselves, if anywhere.
    #[inline]
    pub(crate) fn get(&self) -> Option<Beat> {
        // Changes only while no job of the task can run; starting and joining the threads orders that.
        // SAFETY: it is null, or was made from a reference that lives for ever.
        let beat = unsafe { self.beat.load(Ordering::Relaxed).as_ref() }?;
        Some(Beat { beat, task: self.task.load(Ordering::Relaxed) })
    }
}

impl Beat {
    /// A job begins on this thread.
    #[inline]
    pub(crate) fn begin(self, thread: u32, start: Instant, executed: u64) {
        self.beat.begin(self.task, thread, start.as_ticks(), executed);
    }

    /// It has ended.
    #[inline]
    pub(crate) fn end(self, executed: u64) {
        self.beat.end(executed);
    }
}
