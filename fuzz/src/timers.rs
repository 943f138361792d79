//! Handles of timed jobs, which any thread may cancel or reschedule, even after the run.

use std::sync::{Mutex, PoisonError};

use punctual::Duration;

use crate::app::{Handle, Interface, Task};
use crate::ledger::{RELAXED, ledger, violation};
use crate::random::Random;
use crate::token::{Kind, Token};

/// Handle.
struct Timer {
    /// Run that created it.
    run: u32,
    task: u8,
    handle: Box<dyn Handle>,
}

static TIMERS: Mutex<Vec<Timer>> = Mutex::new(Vec::new());

/// Maximum number of stored handles.
const CAPACITY: usize = 64;

/// Spawns a timed job; returns false if the spawn was refused.
pub(crate) fn arm(task: &Task, random: &mut Random) -> bool {
    let Interface::Message { after, .. } = task.interface else { return false };
    let number = task.spot.task;
    let (time, token) = (delay(random), Token::of_task(Kind::Message, number));
    match task.send(|| after(time, token)) {
        Ok(handle) => {
            keep(Timer { run: ledger().begun.load(RELAXED), task: number, handle });
            true
        }
        Err(arguments) => {
            arguments.refused();
            false
        }
    }
}

/// Attempts to cancel a job.
pub(crate) fn cancel(random: &mut Random) {
    let Some(Timer { run, task, handle }) = take(random) else { return };
    if let Some(arguments) = handle.cancel() {
        is_of_this_run(run);
        ledger().tasks[usize::from(task)].cancelled.fetch_add(1, RELAXED);
        arguments.cancelled();
    }
}

/// Attempts to reschedule a job.
pub(crate) fn reschedule(random: &mut Random) {
    let Some(Timer { run, task, handle }) = take(random) else { return };
    if let Some(handle) = handle.reschedule(delay(random)) {
        is_of_this_run(run);
        keep(Timer { run, task, handle });
    }
}

/// Checks that no handle has an effect after the run. Some remain for the next one.
pub(crate) fn are_without_effect() {
    let timers = std::mem::take(&mut *TIMERS.lock().unwrap_or_else(PoisonError::into_inner));
    for (number, timer) in timers.into_iter().enumerate() {
        if number % 2 == 0 {
            keep(timer);
        } else if let Some(arguments) = timer.handle.cancel() {
            violation("a job could be cancelled after its run");
            arguments.cancelled();
        }
    }
}

fn is_of_this_run(run: u32) {
    if run != ledger().begun.load(RELAXED) {
        violation("a handle had an effect after its run");
    }
}

fn delay(random: &mut Random) -> Duration {
    Duration::from_micros(random.scaled(20, 7))
}

fn take(random: &mut Random) -> Option<Timer> {
    let mut timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    let pending = timers.len() as u64;
    (pending > 0).then(|| timers.swap_remove(random.below(pending) as usize))
}

fn keep(timer: Timer) {
    let mut timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    if timers.len() < CAPACITY {
        timers.push(timer);
    }
}
