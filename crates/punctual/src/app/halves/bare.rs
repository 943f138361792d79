//! The half without Linux.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use punctual_sync::shared::RingProducer;

use super::shown::{JOBS, Ran};
use super::{ABSENT, AGREES, ENDED, FAILED, Halves, Head, MAGIC, PATIENCE, PRESENT, VERSION, difference};
use crate::app::board;
use crate::app::report::Report;
use crate::app::start_error::StartError;

/// What the board `amp` provides for it.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// The memory that both halves share, zero at first.
    pub memory: *mut [u8],
    /// Interrupts Linux.
    pub ring: fn(),
    /// Whether Linux wants the program to end.
    pub is_to_end: fn() -> bool,
    /// The CPU's number in Linux.
    pub cpu: u32,
    /// Calls a function with interrupts masked, and puts them back.
    pub uninterrupted: fn(&mut dyn FnMut()),
}

/// Those of the app that runs here, and how to interrupt Linux.
static HALVES: AtomicPtr<Halves> = AtomicPtr::new(ptr::null_mut());
static RING: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static UNINTERRUPTED: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The end of the ring of jobs to be marked.
struct Producer(UnsafeCell<Option<RingProducer<'static, Ran, JOBS>>>);

// SAFETY: it is used with interrupts masked, on the one core that there is: before the run by `meet`, and in `uninterrupted`.
unsafe impl Sync for Producer {}

static PRODUCER: Producer = Producer(UnsafeCell::new(None));

/// Leaves a job for Linux to mark.
#[cold]
#[inline(never)]
pub(crate) fn leave_mark(ran: Ran) {
    let Some((_, head)) = current() else { return };
    let masked = UNINTERRUPTED.load(Ordering::Relaxed);
    // SAFETY: it is the function that `meet` has stored before there was a current half.
    let masked = unsafe { core::mem::transmute::<*mut (), fn(&mut dyn FnMut())>(masked) };
    masked(&mut || {
        // SAFETY: interrupts are masked and there is one core, so nobody else refers to the content.
        let producer = unsafe { &mut *PRODUCER.0.get() };
        if producer.as_mut().is_none_or(|producer| producer.push(ran).is_err()) {
            // Nobody else writes it.
            let lost = &head.jobs.lost;
            lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    });
}

/// Whether Linux asked for the end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes the region, and waits until the half on Linux has found the same declarations in it.
///
/// # Errors
/// It does not come, or declares something else.
///
/// # Safety
/// The memory is valid, aligned to a page, and used by nobody else before its region was made. `R` is that of the halves, and `fill` writes the
/// initial values of what is behind its head.
pub unsafe fn meet<R>(
    halves: &'static Halves,
    board: Board,
    fill: unsafe fn(*mut R),
) -> Result<(), StartError> {
    let failed = |why| StartError::OtherHalf { app: halves.runtime.name, other: halves.other_name, why };
    if board.memory.len() < halves.size {
        return Err(failed("the region is larger than the memory that both share"));
    }
    // SAFETY: it is valid and large enough, and zero is a head; nobody else uses it before its magic number is there.
    let head: &'static Head = unsafe {
        let region = board.memory.cast::<R>();
        region.write_bytes(0, 1);
        fill(region);
        &*region.cast()
    };
    // From here on tasks find their rows.
    halves.set(head);
    declare(halves);
    head.cpu.store(board.cpu, Ordering::Relaxed);
    (board.uninterrupted)(&mut || {
        // SAFETY: interrupts are masked and there is one core, so nobody else refers to the content.
        unsafe { *PRODUCER.0.get() = head.jobs.ring.producer().ok() };
    });
    head.version.store(VERSION, Ordering::Relaxed);
    head.bare.declared.store(halves.declared, Ordering::Relaxed);
    head.bare.size.store(halves.size as u64, Ordering::Relaxed);
    // Whoever sends before the receiver has run rings, which is what lets it run.
    head.bare.bell.sleep();
    head.bare.enter(PRESENT);
    // Release: who sees it sees all of the region.
    head.magic.store(MAGIC, Ordering::Release);
    let begin = board::now();
    while head.linux.stage() == ABSENT {
        if (board.is_to_end)() {
            return Err(failed("it has ended before it came"));
        }
        if board::now() - begin > PATIENCE {
            head.bare.enter(FAILED);
            return Err(failed(
                "it has not come within 10 s: `punctual isolate run --offline .. -- THIS THE-OTHER`",
            ));
        }
        core::hint::spin_loop();
    }
    let own = (VERSION, halves.declared, halves.size as u64);
    let linux = &head.linux;
    let there = (VERSION, linux.declared.load(Ordering::Relaxed), linux.size.load(Ordering::Relaxed));
    if difference(own, there).is_some() {
        head.bare.enter(FAILED);
        return Err(failed("it is not of the same source: build both anew"));
    }
    UNINTERRUPTED.store(board.uninterrupted as *mut (), Ordering::Relaxed);
    RING.store(board.ring as *mut (), Ordering::Relaxed);
    HALVES.store(ptr::from_ref(halves).cast_mut(), Ordering::Relaxed);
    head.bare.enter(AGREES);
    Ok(())
}

impl Halves {
    /// Interrupts Linux.
    pub(super) fn ring(&self) {
        let ring = RING.load(Ordering::Relaxed);
        // SAFETY: it is the function that `meet` has stored before there was a head.
        unsafe { core::mem::transmute::<*mut (), fn()>(ring)() };
    }

    /// Nothing: the interrupt was acknowledged.
    pub(super) fn answer(&self) {}

    /// Never seen here: when Linux's half has died, whoever has started both asks this one to end.
    pub(super) fn has_died(&self) -> bool {
        false
    }
}

fn current() -> Option<(&'static Halves, &'static Head)> {
    // SAFETY: null, or from a reference that lasts.
    let halves = unsafe { HALVES.load(Ordering::Relaxed).cast_const().as_ref() }?;
    Some((halves, halves.head()?))
}

/// Tells the other half that this one has begun to stop, if it is one.
pub(crate) fn stops() {
    if let Some((halves, _)) = current() {
        halves.leave();
    }
}

/// Notes that Linux wants the end, whose half may be gone then.
pub(crate) fn end_was_asked_for() {
    ASKED.store(true, Ordering::Relaxed);
}

/// Whether the other half's report has the figures of this one.
pub(crate) fn is_reported_by_linux() -> bool {
    // Nor does a half that has stalled report.
    current().is_some_and(|(halves, _)| !halves.heard.is_silent.load(Ordering::Relaxed))
        && !ASKED.load(Ordering::Relaxed)
}

/// Says what the tasks are, to who reads their rows.
fn declare(halves: &'static Halves) {
    for task in halves.runtime.tasks {
        // SAFETY: there is no run yet, so no job can run and none can be spawned.
        let report = unsafe { task.report() };
        if let (Some(info), Some(report)) = (task.info(), report)
            && let Some(shown) = info.shown
        {
            shown.declare(&report, info.measured);
        }
    }
}

/// Says that a run has ended.
pub(crate) fn publish(report: &Report) {
    let Some((halves, head)) = current() else { return };
    head.dropped_jobs.store(report.dropped_jobs, Ordering::Relaxed);
    head.bare.enter(if report.exit_code() == 0 { ENDED } else { FAILED });
    halves.ring();
}
