//! The half without Linux.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use punctual_core::Duration;

use super::figures::{NAME, NONE, ROWS, Row};
use super::{ABSENT, AGREES, ENDED, FAILED, Halves, Head, MAGIC, PATIENCE, PRESENT, VERSION, difference};
use crate::app::board;
use crate::app::report::{Report, Summary, TaskReport};
use crate::app::start_error::StartError;
use crate::model::OnEarly;

/// What the board `amp` provides for it.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// The memory that both halves share, zero at first.
    pub memory: *mut [u8],
    /// Interrupts Linux.
    pub ring: fn(),
    /// Whether Linux wants the program to end.
    pub is_to_end: fn() -> bool,
}

/// Those of the app that runs here, and how to interrupt Linux.
static HALVES: AtomicPtr<Halves> = AtomicPtr::new(ptr::null_mut());
static RING: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

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
    halves.set(head);
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

/// Hands the figures of a run over, and says that it has ended.
pub(crate) fn publish(report: &Report) {
    let Some((halves, head)) = current() else { return };
    let table = head.figures.table();
    let mut count = 0;
    for task in report.tasks() {
        if count < ROWS {
            // SAFETY: only this half writes the table, before the stage below, after which the other one reads it.
            unsafe { (&raw mut (*table).rows[count]).write(row(&task)) };
        }
        count += 1;
    }
    // SAFETY: as above.
    unsafe {
        (*table).elapsed = report.elapsed.as_ticks();
        (*table).dropped_jobs = report.dropped_jobs;
        (*table).count = count as u64;
    }
    head.bare.enter(if report.exit_code() == 0 { ENDED } else { FAILED });
    halves.ring();
}

fn row(task: &TaskReport) -> Row {
    let mut name = [0; NAME];
    let mut length = task.name.len().min(NAME);
    while !task.name.is_char_boundary(length) {
        length -= 1;
    }
    name[..length].copy_from_slice(&task.name.as_bytes()[..length]);
    let nanos = |duration: Option<Duration>| duration.map_or(NONE, |duration| duration.as_ticks());
    let both = |summary: Summary| [summary.max, summary.mean];
    Row {
        name,
        level: task.level,
        measured: task.measured.into(),
        on_early: match task.on_early {
            None => 0,
            Some(OnEarly::Count) => 1,
            Some(OnEarly::Delay) => 2,
            Some(OnEarly::Reject) => 3,
        },
        reserved: 0,
        burst: task.burst.into(),
        period: nanos(task.period),
        deadline: nanos(task.deadline),
        min_interval: nanos(task.min_interval),
        jobs: task.jobs,
        overruns: task.overruns,
        misses: task.misses,
        early: task.early,
        jitter: both(task.jitter),
        response: both(task.response),
        execution: both(task.execution),
    }
}
