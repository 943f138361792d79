//! Figures for Linux, on a board that shares memory with it: see [`punctual_core::remote`].
//!
//! Each measured task counts in its row instead of private memory, so the figures can be read
//! while the app runs, and after a fault. Tasks beyond the last row count for the report alone.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use punctual_core::remote::{Area, JOBS, Job, ROWS, Row, Words};
use punctual_sync::shared::{Ring, RingProducer, init_at};

use super::runtime::Runtime;
use crate::port::board::{self, Uninterrupted};
use crate::report::Report;

/// The row of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    area: &'static Area,
    pub(crate) row: &'static Row,
    index: u16,
    uninterrupted: Uninterrupted,
}

/// The producer of the ring of jobs.
struct Producer(UnsafeCell<Option<RingProducer<'static, Words, JOBS>>>);

// SAFETY: the content is used with interrupts masked alone, on the one core of a board that shares
// memory with Linux.
unsafe impl Sync for Producer {}

static PRODUCER: Producer = Producer(UnsafeCell::new(None));

fn area() -> Option<(&'static Area, Uninterrupted)> {
    let (start, uninterrupted) = board::figures()?;
    // SAFETY: the board has an area's bytes there for as long as the program runs, and everything that
    // uses the beginning goes through this type, which consists of atomics: every value is valid.
    Some((unsafe { start.cast().as_ref() }, uninterrupted))
}

/// Makes the ring of jobs, once in a program.
fn make_ring(area: &'static Area, uninterrupted: Uninterrupted) {
    static IS_MADE: AtomicBool = AtomicBool::new(false);
    if IS_MADE.swap(true, Ordering::Relaxed) {
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

/// Declares the tasks of `runtime` to Linux, and has their jobs counted in the rows.
///
/// # Safety
/// No job can run, and none can be spawned.
pub(crate) unsafe fn begin(runtime: &'static Runtime) {
    let Some((area, uninterrupted)) = area() else { return };
    make_ring(area, uninterrupted);
    area.declare(runtime.name, runtime.home.name());
    let mut rows = area.all_rows.iter().enumerate();
    for task in runtime.tasks {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        let (Some(info), Some(report)) = (task.info(), unsafe { task.report() }) else { continue };
        let Some((index, row)) = rows.next() else { break };
        let nanos = |duration: Option<punctual_core::Duration>| duration.map(|duration| duration.as_ticks());
        row.declare(info.name, info.level, info.measured, nanos(report.period), nanos(report.deadline));
        // SAFETY: as above.
        unsafe { info.monitor.count_in(Shared { area, row, index: index as u16, uninterrupted }) };
    }
    area.publish(ROWS - rows.len());
}

/// Shows when the app started, in ns.
pub(crate) fn started(start: u64) {
    if let Some((area, _)) = area() {
        area.header.started.store(start, Ordering::Relaxed);
    }
}

/// Shows that the run has ended.
pub(crate) fn end(report: &Report) {
    if let Some((area, _)) = area() {
        area.header.dropped.store(report.dropped_jobs, Ordering::Relaxed);
        area.header.stopping.store(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Adds a job of this task. For the thread that occupies the task's level.
    #[inline]
    pub(crate) fn record(&self, released: u64, started: u64, ended: u64, preempted: u64) {
        let job = Job { row: self.index, released, started, ended, preempted };
        self.row.record(&job);
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
