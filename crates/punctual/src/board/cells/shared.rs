//! Figures for Linux, on a board that shares memory with it: see [`punctual_core::remote`].
//!
//! Each measured task counts in its row instead of private memory, so the figures can be read
//! while the app runs, and after a fault. Tasks beyond the last row count for the report alone.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use punctual_core::remote::{Area, JOBS, Job, Row, Words};
use punctual_sync::shared::{Ring, RingProducer, init_at};

use crate::board::port::{self as board, Uninterrupted};

/// The row of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) area: &'static Area,
    pub(crate) row: &'static Row,
    pub(crate) index: u16,
    pub(crate) uninterrupted: Uninterrupted,
}

/// The producer of the ring of jobs.
struct Producer(UnsafeCell<Option<RingProducer<'static, Words, JOBS>>>);

// SAFETY: the content is used with interrupts masked alone, on the one core of a board that shares
// memory with Linux.
unsafe impl Sync for Producer {}

static PRODUCER: Producer = Producer(UnsafeCell::new(None));

/// Returns the memory that the board shares with Linux, if there is any.
pub(crate) fn area() -> Option<(&'static Area, Uninterrupted)> {
    let (start, uninterrupted) = board::figures()?;
    // SAFETY: the board has an area's bytes there for as long as the program runs, and everything
    // that uses the beginning goes through this type, which consists of atomics: every value is
    // valid.
    Some((unsafe { start.cast().as_ref() }, uninterrupted))
}

/// Makes the ring of jobs, once in a program.
pub(crate) fn make_ring(area: &'static Area, uninterrupted: Uninterrupted) {
    static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);
    if IS_INITIALIZED.swap(true, Ordering::Relaxed) {
        return;
    }
    let (start, size) = area.jobs();
    // SAFETY: the memory consists of atomics, lasts as long as the program, and nothing else uses
    // it: Linux looks there when the area is published, which is later.
    let ring = unsafe { init_at::<Ring<Words, JOBS>>(start, size, ()) };
    uninterrupted(&mut || {
        // SAFETY: interrupts are masked and there is one core, so nothing else refers to the
        // content.
        let producer = unsafe { &mut *PRODUCER.0.get() };
        // Without the ring, every job counts as lost.
        *producer = ring.ok().and_then(|ring| ring.producer().ok());
    });
}

impl Shared {
    /// Adds a job of this task.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, released: u64, started: u64, ended: u64, preempted: u64) {
        let job = Job { row: self.index, released, started, ended, preempted };
        // SAFETY: by this function's contract.
        unsafe { self.row.record(&job) };
        if self.area.header.wants_jobs.load(Ordering::Relaxed) != 0 {
            self.leave(job);
        }
    }

    /// Leaves a job for Linux to mark in its trace.
    #[cold]
    #[inline(never)]
    fn leave(&self, job: Job) {
        (self.uninterrupted)(&mut || {
            // SAFETY: interrupts are masked and there is one core, so nothing else refers to the
            // content.
            let producer = unsafe { &mut *PRODUCER.0.get() };
            if producer.as_mut().is_none_or(|producer| producer.push(job.to_words()).is_err()) {
                // Jobs alone write the word, with interrupts masked.
                let lost = &self.area.header.lost;
                lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            }
        });
    }
}
