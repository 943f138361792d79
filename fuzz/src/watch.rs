//! Checks at every instant: one user of each resource, one runner of each level, no job below a
//! ceiling.
//!
//! The holder of a level or a resource records it from its acquisition to its release, so the
//! records are a part of the runtime's grants, and a contradiction between records is a wrong
//! grant.

use std::cell::{Cell, OnceCell};
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::app::{Spot, app};
use crate::ledger::{LEVELS, RELAXED, TASKS, is_virtual, ledger, thread, violation};
use crate::random::Random;
use crate::script::script;
use crate::token::{Kind, Token};

thread_local! {
    /// Level to which the calling thread has raised its partition.
    static LEVEL: Cell<usize> = const { Cell::new(0) };
    /// Run in which a panic occurred on the calling thread.
    static PANICKED: Cell<u32> = const { Cell::new(0) };
    /// Run in which the thread has started a job although jobs must be dropped.
    static STARTED: Cell<u32> = const { Cell::new(0) };
    /// Level of the worker.
    static BASE: OnceCell<Option<usize>> = const { OnceCell::new() };
}

/// Records that a panic is about to leave a job on the calling thread.
pub(crate) fn panics() {
    ledger().panics.fetch_add(1, RELAXED);
    if ledger().idling.load(RELAXED) == thread() {
        ledger().idle_panics.fetch_add(1, RELAXED);
    }
    PANICKED.set(ledger().begun.load(RELAXED));
}

/// Checks that no panic has left a job on this thread, since queued jobs are dropped afterwards.
fn nothing_remained() {
    if std::thread::panicking() || PANICKED.get() == ledger().begun.load(RELAXED) {
        violation("a job starts on a thread after a panic there");
    }
}

/// Checks that a job may start on this thread.
pub(crate) fn job_starts(spot: Spot) {
    let run = ledger().begun.load(RELAXED);
    // Acquire pairs with the release in `Section`, so that earlier steps of the runtime are
    // visible. One job may have been about to start.
    if ledger().aborted.load(Ordering::Acquire) != 0 && STARTED.replace(run) == run {
        violation("a thread goes on to start jobs after a panic has left a critical section");
    }
    let level = usize::from(spot.level);
    let base =
        BASE.with(|known| *known.get_or_init(|| base(std::thread::current().name().unwrap_or_default())));
    if let Some(base) = base.filter(|&base| level < base) {
        violation(&format!("a job of level {level} runs on the thread of level {base}"));
    }
}

/// Returns the level of a worker from the name of its thread.
fn base(name: &str) -> Option<usize> {
    name.rsplit_once("level ").and_then(|(_, level)| level.parse().ok())
}

/// Guard of a critical section. If it is dropped by a panic, queued jobs are dropped from then on.
#[derive(Debug)]
pub struct Section;

impl Drop for Section {
    fn drop(&mut self) {
        if std::thread::panicking() {
            ledger().aborted.store(1, Ordering::Release);
        }
    }
}

/// Running job or poll of an async task, alone at its level.
#[derive(Debug)]
pub struct Alone {
    spot: Spot,
    before: usize,
}

impl Alone {
    /// Records that a job of this task starts.
    pub fn at(spot: Spot) -> Self {
        nothing_remained();
        let (part, level) = (usize::from(spot.part), usize::from(spot.level));
        let other = ledger().runners[part][level].swap(thread(), RELAXED);
        if other != 0 {
            violation(&format!("threads {other} and {} run jobs of level {level} in {part}", thread()));
        }
        for ceiling in level..LEVELS {
            let holder = ledger().held[part][ceiling].load(RELAXED) as usize;
            if holder != 0 && holder <= level {
                violation(&format!(
                    "a job of level {level} in {part} starts while level {} holds the ceiling {ceiling}",
                    holder - 1
                ));
            }
        }
        Self { spot, before: LEVEL.replace(level) }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        LEVEL.set(self.before);
        let (part, level) = (usize::from(self.spot.part), usize::from(self.spot.level));
        if ledger().runners[part][level].swap(0, RELAXED) != thread() {
            violation(&format!("a job of level {level} in {part} was not alone until its end"));
        }
    }
}

/// Ceiling that is held.
struct Held {
    part: usize,
    ceiling: usize,
    before: usize,
}

impl Held {
    /// Returns `None` if the calling thread is already at the level, or without ceilings.
    fn raise(part: usize, ceiling: usize) -> Option<Self> {
        let before = LEVEL.get();
        if ceiling <= before || app().is_global() {
            return None;
        }
        for level in before + 1..=ceiling {
            if ledger().runners[part][level].load(RELAXED) != 0 {
                violation(&format!(
                    "level {before} in {part} gets the ceiling {ceiling} beside a job of {level}"
                ));
            }
        }
        let other = ledger().held[part][ceiling].swap(before as u32 + 1, RELAXED);
        if other != 0 {
            violation(&format!("levels {} and {before} in {part} hold the ceiling {ceiling}", other - 1));
        }
        LEVEL.set(ceiling);
        Some(Self { part, ceiling, before })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        LEVEL.set(self.before);
        ledger().held[self.part][self.ceiling].store(0, RELAXED);
    }
}

/// Resource that detects a second user.
#[derive(Debug)]
pub struct Guarded {
    number: usize,
    token: Token,
    count: u32,
}

/// Sometimes delays in the middle of a visit, so that others contend for the resource.
fn linger(resource: usize, visits: u32) {
    let mut random = Random::of(&[script().seed, resource as u64, visits.into()]);
    if !is_virtual() && random.one_in(8) {
        std::thread::sleep(Duration::from_micros(random.below(300)));
    }
}

/// Visit of a resource, until its end or a panic.
struct Visit(usize);

impl Visit {
    fn begin(number: usize) -> Self {
        let other = ledger().users[number].swap(thread(), RELAXED);
        if other != 0 {
            violation(&format!("thread {} uses resource {number}, which {other} is using", thread()));
        }
        Self(number)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if ledger().users[self.0].swap(0, RELAXED) != thread() {
            violation(&format!("resource {} was not alone with thread {}", self.0, thread()));
        }
    }
}

impl Guarded {
    /// Creates the resource of this number.
    pub fn new(number: usize, kind: Kind) -> Self {
        Self { number, token: Token::new(kind), count: 0 }
    }

    /// Uses it in the partition `part` at its `ceiling`, 0 for none, and calls `within` in the
    /// middle.
    pub fn visit<R>(&mut self, part: usize, ceiling: usize, within: impl FnOnce() -> R) -> R {
        let _visit = Visit::begin(self.number);
        let _held = Held::raise(part, ceiling);
        self.token.touch();
        let before = *black_box(&mut self.count);
        let result = within();
        linger(self.number, before);
        if *black_box(&mut self.count) != before {
            violation(&format!("resource {} changed under its user", self.number));
        }
        self.count = before + 1;
        ledger().visits[self.number].fetch_add(1, RELAXED);
        result
    }

    /// Reads it.
    pub fn inspect(&self) {
        self.token.touch();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let user = ledger().users[self.number].load(RELAXED);
        if user != 0 {
            violation(&format!("resource {} is dropped while thread {user} uses it", self.number));
        }
        let visits = ledger().visits[self.number].load(RELAXED);
        if self.count != visits {
            violation(&format!("resource {} has kept {} of {visits} visits", self.number, self.count));
        }
    }
}

/// Peers of the sources of bound and async tasks, by task.
static ENDS: Mutex<[Option<UnixDatagram>; TASKS]> = Mutex::new([const { None }; TASKS]);

/// Event source.
#[derive(Debug)]
pub struct Line {
    inbox: UnixDatagram,
    guarded: Guarded,
}

impl Line {
    /// Creates the source of the task of this number, which is a local resource of another task.
    pub fn new(task: usize, resource: usize) -> Self {
        Self { inbox: inbox(task), guarded: Guarded::new(resource, Kind::Local) }
    }

    /// Reads all data.
    pub fn drain(&mut self) {
        let inbox = &self.inbox;
        self.guarded.visit(0, 0, || while inbox.recv(&mut [0; 8]).is_ok() {});
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }
}

/// Returns a source that becomes readable by `ring`.
pub fn inbox(task: usize) -> UnixDatagram {
    let (inbox, outbox) = UnixDatagram::pair().expect("sockets can be made");
    inbox.set_nonblocking(true).and(outbox.set_nonblocking(true)).expect("they can be made not to block");
    ENDS.lock().unwrap_or_else(PoisonError::into_inner)[task] = Some(outbox);
    inbox
}

/// Makes the source of a task readable.
pub(crate) fn ring(task: usize) {
    if let Some(end) = &ENDS.lock().unwrap_or_else(PoisonError::into_inner)[task] {
        // A full socket is readable.
        let _ = end.send(b"!");
    }
}

/// `idle` on its thread.
#[derive(Debug)]
pub struct Idling(());

impl Idling {
    /// Records that `idle` starts.
    pub fn begin() -> Self {
        if ledger().idling.swap(thread(), RELAXED) != 0 {
            violation("idle runs twice");
        }
        Self(())
    }
}

impl Drop for Idling {
    fn drop(&mut self) {
        ledger().idling.store(0, RELAXED);
    }
}

/// Records that the hook starts.
pub fn hook() {
    if ledger().hooks.fetch_add(1, RELAXED) > 0 {
        violation("the hook runs twice");
    }
    no_thread_runs("the hook runs");
}

/// Checks that no job is running and nothing is in use.
pub(crate) fn no_thread_runs(when: &str) {
    for (part, runners) in ledger().runners.iter().enumerate() {
        for (level, runner) in runners.iter().enumerate() {
            let runner = runner.load(RELAXED);
            if runner != 0 {
                violation(&format!("{when} while thread {runner} runs a job of level {level} in {part}"));
            }
        }
    }
}

/// Checks that nothing is in use.
pub(crate) fn nothing_is_used(when: &str) {
    for (number, user) in ledger().users.iter().enumerate() {
        let user = user.load(RELAXED);
        if user != 0 {
            violation(&format!("{when} while thread {user} uses resource {number}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_workers_by_name() {
        assert_eq!(base("level 3"), Some(3));
        assert_eq!(base("two level 12"), Some(12));
        assert_eq!([base("event t3"), base("polling"), base("main")], [None; 3]);
    }
}
