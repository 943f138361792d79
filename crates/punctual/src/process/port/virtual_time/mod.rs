//! Virtual time: a clock that jumps to the next event. One partition of an app runs at a time, the
//! one with the earliest next event.
//!
//! A partition's thread runs until it pauses with a time: the next release of one of its jobs, or
//! the end of a job's execution time. The pausing thread moves the clock to the earliest of these
//! times and hands the turn to that partition. So partitions overlap in virtual time as CPUs do in
//! real time, and their order is the same in every run: at equal times they take turns in the order
//! of their declaration, and under the global executor the highest level goes first.
//!
//! One more thread, the *guest*, can take turns to provide inputs at given times. It goes before
//! all partitions of the same time.
//!
//! Virtual time is a sequential discrete-event simulation, with threads in place of coroutines.

mod claims;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use punctual_core::{Instant, Port};

pub(crate) use self::claims::{Claim, Claims};
use crate::port::AppPort;

/// An app whose partitions take turns; they are numbered.
pub(crate) trait Simulated: Sync + std::fmt::Debug {
    /// Returns the number of partitions.
    fn partitions(&self) -> usize;

    /// Returns the port of a partition, which contains its clock.
    fn port(&self, partition: usize) -> &AppPort;

    /// Returns the time of the next timed release in a partition.
    fn next_due(&self, partition: usize) -> Option<Instant>;

    /// Returns whether the app is stopping.
    fn is_stopping(&self) -> bool;

    /// Stops the app: its time limit is reached, or if `quiescent` no further event is possible.
    fn stop(&self, quiescent: bool);
}

/// End of a partition's pause, unless it is woken before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until this time.
    At(Instant),
    /// The next timed release in it, and at most this time. The release is looked up when the clock
    /// is moved: other partitions may arm and cancel jobs here during the pause.
    Due(Option<Instant>),
    /// The next timed release in it or, if earlier, when all others have finished their work at
    /// this time.
    Event(Instant),
    /// As soon as all others have finished their work at this time.
    Others,
    /// As soon as it is woken.
    Woken,
}

/// The turns of one run.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    passed: Condvar,
    /// True after `init` has created the resources, so that others may have their turns.
    open: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// `None` before the first run.
    app: Option<&'static dyn Simulated>,
    /// Partition that has the turn.
    turn: usize,
    order: Order,
    /// End of the run, in ns; [`END`] if there is no limit.
    limit: u64,
    guest: Guest,
}

/// The thread that takes turns and is no partition.
#[derive(Debug, Default)]
struct Guest {
    /// `true` from its admission until its thread has left.
    is_present: bool,
    /// The partition that gave it the first turn, and continues after it.
    first: Option<usize>,
}

impl Turns {
    pub(crate) const fn new() -> Self {
        let guest = Guest { is_present: false, first: None };
        let state = State { app: None, turn: 0, order: Order::new(Vec::new()), limit: END, guest };
        Self { state: Mutex::new(state), passed: Condvar::new(), open: AtomicBool::new(false) }
    }

    /// Begins a run of `app` with the turn of partition `first`, which ends at `limit` at the
    /// latest. At equal times the partitions go in the order `ranked`.
    pub(crate) fn begin(
        &self,
        app: &'static dyn Simulated,
        ranked: Vec<usize>,
        first: usize,
        limit: Option<Instant>,
    ) {
        let limit = limit.map_or(END, |limit| limit.as_ticks().min(END));
        let (order, guest) = (Order::new(ranked), Guest::default());
        *self.lock() = State { app: Some(app), turn: first, order, limit, guest };
        self.open.store(false, Ordering::Relaxed);
    }

    /// Lets time pass from now on. Called by the thread of `init`, after the resources exist.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// Returns whether time may pass. Other threads see the change with their first turn.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for the first turn of partition `mine`.
    pub(crate) fn wait(&self, mine: usize) {
        let state = self.lock();
        self.wait_for(state, mine);
    }

    /// Lets time pass for partition `mine`. Called by its thread, which has the turn.
    pub(crate) fn pause(&self, mine: usize, until: Until) {
        let mut state = self.lock();
        state.order.pauses(mine, until);
        state.pass(mine);
        if state.turn != mine {
            self.passed.notify_all();
            self.wait_for(state, mine);
        }
    }

    /// Returns the time of the next event in a partition other than `mine`.
    pub(crate) fn next_elsewhere(&self, mine: usize) -> Option<Instant> {
        let state = self.lock();
        // The guest has the last number.
        let others = (0..=state.app().partitions()).filter(|&other| other != mine);
        let next = others.filter_map(|other| state.wish(other)).map(|(time, _)| time).min()?;
        (next != NEVER).then(|| Instant::from_ticks(next))
    }

    /// Ends the turns of partition `mine`.
    pub(crate) fn leave(&self, mine: usize) {
        let mut state = self.lock();
        state.order.leaves(mine);
        state.pass(mine);
        self.passed.notify_all();
    }

    /// Skips `partition` from now on, because its thread failed to start.
    pub(crate) fn forget(&self, partition: usize) {
        let mut state = self.lock();
        state.order.leaves(partition);
    }

    /// Admits the guest of the run, from now until it [leaves](Self::leave_as_guest). Returns
    /// `false` if there is one.
    pub(crate) fn admit_guest(&self) -> bool {
        let mut state = self.lock();
        let guest = state.app().partitions();
        if state.order.ranked.contains(&guest) {
            return false;
        }
        state.order.ranked.insert(0, guest);
        state.order.grow();
        state.guest.is_present = true;
        true
    }

    /// Gives the guest, if there is one, its first turn, and waits for the end of that turn. Called
    /// by the thread of partition `mine`, which has the turn, before the jobs of time 0.
    pub(crate) fn begin_with_guest(&self, mine: usize) {
        let mut state = self.lock();
        let guest = state.app().partitions();
        if state.guest.is_present && !state.order.has_left(guest) {
            state.guest.first = Some(mine);
            state.turn = guest;
            self.passed.notify_all();
            self.wait_for(state, mine);
        }
    }

    /// Waits for the first turn of the guest; returns `false` if the run ends before.
    pub(crate) fn wait_as_guest(&self) -> bool {
        self.wait_for_guest(self.lock())
    }

    /// Lets time pass for the guest, which has the turn. Returns `false` if the app is stopping.
    pub(crate) fn pause_guest(&self, until: Instant) -> bool {
        let mut state = self.lock();
        let guest = state.app().partitions();
        if state.app().is_stopping() {
            return false;
        }
        state.order.pauses(guest, Until::At(until));
        state.pass(guest);
        self.passed.notify_all();
        self.wait_for_guest(state)
    }

    /// Ends the turns of the guest; called by its thread.
    pub(crate) fn leave_as_guest(&self) {
        let mut state = self.lock();
        let guest = state.app().partitions();
        state.order.leaves(guest);
        // The first call may reach the end of the run, which leaves the turn here.
        for _ in 0..2 {
            if state.turn == guest {
                state.pass(guest);
            }
        }
        state.guest.is_present = false;
        self.passed.notify_all();
    }

    /// Dismisses the guest, and waits until its thread has left. Called at the end of a run, after
    /// all partitions have left.
    pub(crate) fn end_guest(&self) {
        let mut state = self.lock();
        let guest = state.app().partitions();
        state.order.leaves(guest);
        self.passed.notify_all();
        drop(self.passed.wait_while(state, |state| state.guest.is_present));
    }

    fn wait_for_guest(&self, state: MutexGuard<'_, State>) -> bool {
        let guest = state.app().partitions();
        let waits = |state: &mut State| state.turn != guest && !state.order.has_left(guest);
        let state = self.passed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        state.turn == guest && !state.app().is_stopping()
    }

    fn wait_for(&self, state: MutexGuard<'_, State>, mine: usize) {
        let waited = self.passed.wait_while(state, |state| state.turn != mine);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Passes the turn on from `mine`, and sets the clock to the time of the next partition.
    fn pass(&mut self, mine: usize) {
        if let Some(first) = self.guest.first.take() {
            self.turn = first;
            return;
        }
        let app = self.app();
        if app.is_stopping() {
            self.order.leaves(app.partitions());
        }
        let now = app.port(0).now().as_ticks();
        let woken = |partition: usize| self.is_woken(partition);
        let Some((time, next)) = self.order.next(now, woken, |partition| self.due(partition)) else { return };
        // When the app is stopping, the remaining work is finished regardless of the limit.
        if time >= self.limit && !app.is_stopping() {
            self.turn = mine;
            if time == NEVER && self.limit == END {
                return app.stop(true);
            }
            self.set_clock(now.max(self.limit));
            return app.stop(false);
        }
        self.set_clock(if time == NEVER { now } else { time });
        self.turn = next;
    }

    fn app(&self) -> &'static dyn Simulated {
        self.app.expect("a run has begun")
    }

    fn is_woken(&self, partition: usize) -> bool {
        partition < self.app().partitions() && self.app().port(partition).is_woken()
    }

    fn due(&self, partition: usize) -> u64 {
        if partition == self.app().partitions() {
            return NEVER;
        }
        self.app().next_due(partition).map_or(NEVER, |due| due.as_ticks())
    }

    /// See [`Order::wish`].
    fn wish(&self, partition: usize) -> Option<(u64, u64)> {
        let now = self.app().port(0).now().as_ticks();
        self.order.wish(partition, now, self.is_woken(partition), self.due(partition))
    }

    fn set_clock(&self, time: u64) {
        let app = self.app();
        (0..app.partitions()).for_each(|partition| app.port(partition).set_now(Instant::from_ticks(time)));
    }
}

/// In ns: never.
const NEVER: u64 = u64::MAX;

/// The end of virtual time in ns, 584 years after its start. Nothing happens then: the app ends
/// before.
pub(crate) const END: u64 = NEVER - 1;

/// Selects the next partition, independent of clock and threads.
#[derive(Debug)]
struct Order {
    /// Indices of the partitions, in their order at equal times.
    ranked: Vec<usize>,
    /// By partition; `None` for those that have left.
    until: Vec<Option<Until>>,
    /// By partition: the number of its last pause for others.
    stood_back: Vec<u64>,
    pauses: u64,
}

impl Order {
    /// Creates an order in which all partitions are ready at once.
    const fn new(ranked: Vec<usize>) -> Self {
        Self { ranked, until: Vec::new(), stood_back: Vec::new(), pauses: 0 }
    }

    fn pauses(&mut self, partition: usize, until: Until) {
        self.grow();
        self.pauses += 1;
        self.until[partition] = Some(until);
        self.stood_back[partition] = match until {
            Until::Others | Until::Event(_) => self.pauses,
            _ => 0,
        };
    }

    fn leaves(&mut self, partition: usize) {
        self.grow();
        // There may be no guest.
        if let Some(until) = self.until.get_mut(partition) {
            *until = None;
        }
    }

    fn has_left(&self, partition: usize) -> bool {
        self.until.get(partition).is_none_or(Option::is_none)
    }

    fn grow(&mut self) {
        self.until.resize(self.ranked.len(), Some(Until::At(Instant::from_ticks(0))));
        self.stood_back.resize(self.ranked.len(), 0);
    }

    /// Returns the next partition and its time in ns: now, later, or `NEVER` if no partition has
    /// anything to do. `None` if all have left.
    fn next(
        &self,
        now: u64,
        woken: impl Fn(usize) -> bool,
        due: impl Fn(usize) -> u64,
    ) -> Option<(u64, usize)> {
        let wish = |partition: &usize| self.wish(*partition, now, woken(*partition), due(*partition));
        let wishes = self
            .ranked
            .iter()
            .filter_map(|partition| wish(partition).map(|(time, stood_back)| (time, stood_back, *partition)));
        // The first of several minima, which has the highest rank.
        let next = wishes.min_by_key(|&(time, stood_back, _)| (time, stood_back));
        next.map(|(time, _, partition)| (time, partition))
    }

    /// Returns the time at which `partition` continues, in ns, and its position among those of that
    /// time; `None` if it has left. `due` is the time of its next timed release.
    fn wish(&self, partition: usize, now: u64, woken: bool, due: u64) -> Option<(u64, u64)> {
        let stood_back = *self.stood_back.get(partition)?;
        let (time, stood_back) = match (*self.until.get(partition)?)? {
            _ if woken => (now, 0),
            Until::At(time) => (time.as_ticks(), 0),
            Until::Due(most) => (due.min(most.map_or(NEVER, |most| most.as_ticks())), 0),
            Until::Event(most) if most.as_ticks() < due => (most.as_ticks(), stood_back),
            Until::Event(_) => (due, 0),
            Until::Others => (now, stood_back),
            Until::Woken => (NEVER, 0),
        };
        Some((time.max(now), stood_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> Until {
        Until::At(Instant::from_ticks(time))
    }

    /// Returns an order of partitions that pause like this, ranked as given.
    fn order(until: &[Until]) -> Order {
        let mut order = Order::new((0..until.len()).collect());
        for (partition, until) in until.iter().enumerate() {
            order.pauses(partition, *until);
        }
        order
    }

    const NO_JOBS: fn(usize) -> bool = |_| false;
    const NOTHING: fn(usize) -> u64 = |_| NEVER;

    #[test]
    fn earliest_then_first_armed_runs() {
        assert_eq!(order(&[at(9), at(7), at(7)]).next(5, NO_JOBS, NOTHING), Some((7, 1)));
        assert_eq!(order(&[at(9), at(2), at(1)]).next(5, NO_JOBS, NOTHING), Some((5, 1)), "both are late");
        let mut order = Order::new(vec![1, 0]);
        [0, 1].into_iter().for_each(|partition| order.pauses(partition, at(3)));
        assert_eq!(order.next(0, NO_JOBS, NOTHING), Some((3, 1)));
    }

    #[test]
    fn wake_ends_any_wait() {
        for until in [at(9), Until::Due(None), Until::Woken] {
            assert_eq!(
                order(&[at(6), until]).next(5, |partition| partition == 1, NOTHING),
                Some((5, 1)),
                "{until:?}"
            );
        }
    }

    #[test]
    fn checks_due_jobs_when_needed() {
        let order = order(&[Until::Due(Some(Instant::from_ticks(8))), Until::Due(None), Until::Woken]);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((8, 0)));
        assert_eq!(order.next(5, NO_JOBS, |partition| [9, 7, 1][partition]), Some((7, 1)));
        assert_eq!(order.next(5, NO_JOBS, |partition| [6, 7, 1][partition]), Some((6, 0)));
    }

    #[test]
    fn yielding_thread_runs_last_of_its_instant() {
        let mut order = order(&[Until::Others, Until::Others, at(5), at(6)]);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((5, 2)));
        order.pauses(2, at(9));
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((5, 0)));
        order.pauses(0, Until::Others);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((5, 1)), "they take turns");
    }

    #[test]
    fn remote_event_ends_before_wait() {
        let event = Until::Event(Instant::from_ticks(7));
        let mut order = order(&[event, at(7)]);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((7, 1)));
        order.pauses(1, at(9));
        assert_eq!(order.next(7, NO_JOBS, NOTHING), Some((7, 0)));
        assert_eq!(order.next(5, NO_JOBS, |_| 6), Some((6, 0)), "a job released here is behind no other");
    }

    #[test]
    fn returns_no_turn_after_all_threads_left() {
        let mut order = order(&[Until::Woken, Until::Due(None)]);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), Some((NEVER, 0)));
        order.leaves(0);
        assert_eq!(
            order.next(5, |partition| partition == 0, NOTHING),
            Some((NEVER, 1)),
            "a wake does not bring it back"
        );
        order.leaves(1);
        assert_eq!(order.next(5, NO_JOBS, NOTHING), None);
    }

    #[test]
    fn every_task_runs_once_at_start() {
        let mut order = Order::new(vec![0, 1, 2]);
        order.pauses(1, Until::Woken);
        assert_eq!(order.next(0, NO_JOBS, NOTHING), Some((0, 0)));
        order.pauses(0, at(1));
        assert_eq!(order.next(0, NO_JOBS, NOTHING), Some((0, 2)));
    }
}
