//! Random actions of jobs and foreign threads: spawn, arm, cancel, move, pend, suspend themselves.

use std::cell::RefCell;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use punctual::Duration;

use crate::checks::violation;
use crate::kinds::{Entry, Handle, kind};
use crate::ledger::Job;
use crate::random;
use crate::tasks::NEWS;

/// True while threads spawn.
pub(crate) static SPAWNING: AtomicBool = AtomicBool::new(false);
/// True while the app runs: a shutdown before that would have no effect.
pub(crate) static UP: AtomicBool = AtomicBool::new(false);
/// True when the round is over, so that foreign threads end.
pub(crate) static OVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HANDLES: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// Handles of jobs of earlier rounds.
static STALE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

/// Occasionally puts the calling thread to sleep.
pub(crate) fn maybe_suspend() {
    if random::one_in(16) {
        random::pause(10, 300);
    }
}

/// Occasionally spawns a job, with a probability that keeps the number of jobs bounded.
pub(crate) fn maybe_spawn() {
    if random::one_in(5) {
        spawn_something();
    }
}

/// Spawns the first jobs of the app.
pub(crate) fn begin() {
    spawn_something();
    UP.store(true, Ordering::Release);
}

/// Spawns a job of any task, or changes an armed one.
pub(crate) fn spawn_something() {
    if !SPAWNING.load(Ordering::Relaxed) {
        return;
    }
    let kind = kind();
    match random::below(14) {
        0 | 1 => now(kind.low),
        2 => now(kind.mixed),
        3 => now(kind.other),
        4 => now(kind.timed),
        5 => now(kind.high),
        6 => now(kind.top),
        7 => (kind.pend_edge)(),
        8 | 9 => later(),
        10 => cancel(),
        11 => start(),
        12 => NEWS.writer().unwrap().write(0),
        _ => reschedule(),
    }
}

fn now((lane, spawn): Entry) {
    if let Some(Err(error)) = Job::now(lane).map(spawn) {
        error.into_inner().refused();
    }
}

/// Up to 3 ms ahead; zero is due at once.
fn ahead() -> Duration {
    Duration::from_micros(random::below(3_000).saturating_sub(200))
}

fn later() {
    let Some(job) = Job::later(kind().timed.0) else { return };
    let spawned = match random::one_in(2) {
        true => (kind().timed_after)(ahead(), job),
        false => (kind().timed_at)(punctual::now() + ahead(), job),
    };
    match spawned {
        Ok(handle) => keep(handle),
        Err(error) => error.into_inner().refused(),
    }
}

/// Starts the async task, unless it has not ended yet.
fn start() {
    let (lane, spawn) = kind().waits;
    if let Some(Err(error)) = Job::later(lane).map(spawn) {
        error.into_inner().refused();
    }
}

fn keep(handle: Handle) {
    HANDLES.with_borrow_mut(|handles| {
        // Old ones have most likely been released.
        if handles.len() == 8 {
            handles.remove(0);
        }
        handles.push(handle);
    });
}

/// Takes one of this thread's handles. The list must not be borrowed while jobs can run on top of
/// this one.
fn any() -> Option<Handle> {
    HANDLES.with_borrow_mut(|handles| {
        let count = handles.len() as u64;
        (count > 0).then(|| handles.swap_remove(random::below(count) as usize))
    })
}

fn cancel() {
    if let Some(Ok(job)) = any().map(Handle::cancel) {
        job.cancelled();
    }
}

fn reschedule() {
    let Some(handle) = any() else { return };
    let moved = match random::one_in(2) {
        true => handle.reschedule_after(ahead()),
        false => handle.reschedule_at(punctual::now() + ahead()),
    };
    if let Ok(handle) = moved {
        keep(handle);
    }
}

/// Body of a foreign thread: bursts of spawns and datagrams until the round is over.
pub(crate) fn spawn_from_outside(outbox: &UnixDatagram) {
    let stale = std::mem::take(&mut *STALE.lock().unwrap_or_else(PoisonError::into_inner));
    for handle in stale {
        if handle.cancel().is_ok() {
            violation("a handle of an earlier round cancelled something");
        }
    }
    while !OVER.load(Ordering::Relaxed) {
        for _ in 0..=random::below(6) {
            spawn_something();
        }
        if SPAWNING.load(Ordering::Relaxed) && random::one_in(6) {
            // Full if the app is behind.
            let _ = outbox.send(b"x");
        }
        random::pause(50, 600);
    }
    let mine = HANDLES.take();
    STALE.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
}

/// Checks that the app, which does not run, accepts nothing.
pub(crate) fn no_slot_is_occupied() {
    let (lane, spawn) = kind().top;
    match Job::now(lane).map(spawn) {
        Some(Err(error)) => error.into_inner().refused(),
        _ => violation("a spawn after the end of the run is accepted"),
    }
    match Job::later(kind().timed.0).map(|job| (kind().timed_after)(ahead(), job)) {
        Some(Err(error)) => error.into_inner().refused(),
        _ => violation("a timed spawn after the end of the run is accepted"),
    }
}
