//! Which of an app's partitions runs in virtual time: one at a time, the one whose next event is earliest.
//!
//! A partition's thread runs until it pauses, saying when it wants to go on: when its next job is released, or when the
//! execution time is over that a job of it takes. Whoever pauses moves the clock to the earliest of these times and hands
//! the turn to the partition whose time it is. So partitions overlap in virtual time as CPUs do in real time, and their
//! order is the same in every run: at equal times they take turns in the order of their declaration.
//!
//! This is a sequential discrete-event simulation, with threads in the place of coroutines.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use punctual_core::{Instant, Port};

use crate::part::Part;
use crate::report::Outcome;

/// The turns of one run.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Debug)]
struct State {
    parts: &'static [&'static Part],
    /// Whose turn it is.
    turn: usize,
    /// When each wants to go on, in ns; `u64::MAX` for never by itself.
    until: Vec<u64>,
    /// When virtual time ends, in ns; `u64::MAX` for never.
    limit: u64,
}

impl Turns {
    pub(crate) const fn new() -> Self {
        let state = State { parts: &[], turn: 0, until: Vec::new(), limit: u64::MAX };
        Self { state: Mutex::new(state), passed: Condvar::new() }
    }

    /// Begins a run with the turn of `part`, which ends at `limit` at the latest.
    pub(crate) fn begin(&self, part: &'static Part, limit: Option<Instant>) {
        let parts = part.runtime.parts;
        let limit = limit.map_or(u64::MAX, |limit| limit.as_ticks());
        *self.lock() = State { parts, turn: index(parts, part), until: vec![0; parts.len()], limit };
    }

    /// Waits for the first turn of `part`.
    pub(crate) fn wait(&self, part: &'static Part) {
        let state = self.lock();
        let mine = index(state.parts, part);
        self.wait_for(state, mine);
    }

    /// See [`pause`](super::pause). By the thread of `part`, whose turn it is.
    pub(crate) fn pause(&self, part: &'static Part, until: Option<Instant>) {
        let mut state = self.lock();
        let mine = index(state.parts, part);
        state.until[mine] = until.map_or(u64::MAX, |until| until.as_ticks());
        state.pass(mine);
        if state.turn != mine {
            self.passed.notify_all();
            self.wait_for(state, mine);
        }
    }

    /// When something happens next in another partition than `part`, if nothing happens in `part` before.
    ///
    /// Who pauses until then goes on when it has happened: at equal times the others come first.
    pub(crate) fn next_elsewhere(&self, part: &'static Part) -> Option<Instant> {
        let state = self.lock();
        let mine = index(state.parts, part);
        let others = (0..state.parts.len()).filter(|&other| other != mine);
        let next = others.filter_map(|other| state.time(other)).min()?;
        (next != u64::MAX).then(|| Instant::from_ticks(next))
    }

    /// Ends the turns of `part`.
    pub(crate) fn leave(&self, part: &'static Part) {
        let mut state = self.lock();
        let mine = index(state.parts, part);
        state.until[mine] = GONE;
        if state.until.iter().any(|&until| until != GONE) {
            state.pass(mine);
            self.passed.notify_all();
        }
    }

    /// Passes over `part` from now on, whose thread does not come.
    pub(crate) fn forget(&self, part: &'static Part) {
        let mut state = self.lock();
        let index = index(state.parts, part);
        state.until[index] = GONE;
    }

    fn wait_for(&self, state: MutexGuard<'_, State>, mine: usize) {
        let waited = self.passed.wait_while(state, |state| state.turn != mine);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of a partition that does not go on. It is before all others, so as to be told from them.
const GONE: u64 = u64::MAX - 1;

impl State {
    /// Hands the turn on from `mine`, and the clock to the time of whoever gets it.
    fn pass(&mut self, mine: usize) {
        let port = |part: &'static Part| part.partition.port();
        let runtime = self.parts[mine].runtime;
        let now = port(self.parts[mine]).now().as_ticks();
        // Equal times go round, so that nobody who has something to do at this instant is passed over.
        let order = (1..=self.parts.len()).map(|step| (mine + step) % self.parts.len());
        let times = order.filter_map(|part| self.time(part).map(|time| (time, part)));
        let Some((time, next)) = times.min_by_key(|&(time, _)| time) else { return };
        // What is left when the app is stopping is finished, whatever the limit.
        if time >= self.limit && !runtime.is_stopping() {
            self.turn = mine;
            if self.limit == u64::MAX {
                return runtime.stop(Outcome::Quiescent);
            }
            self.set_clock(now.max(self.limit));
            return runtime.stop(Outcome::TimeUp);
        }
        self.set_clock(if time == u64::MAX { now } else { time });
        self.turn = next;
    }

    /// When `part` goes on, in ns, `u64::MAX` for never by itself; `None` if it is gone.
    fn time(&self, part: usize) -> Option<u64> {
        let port = self.parts[part].partition.port();
        let now = port.now().as_ticks();
        let time = if port.is_woken() { now } else { self.until[part].max(now) };
        (self.until[part] != GONE).then_some(time)
    }

    fn set_clock(&self, time: u64) {
        self.parts.iter().for_each(|part| part.partition.port().set_now(Instant::from_ticks(time)));
    }
}

fn index(parts: &[&'static Part], part: &'static Part) -> usize {
    parts.iter().position(|p| std::ptr::eq(*p, part)).expect("a part is one of its app's")
}
