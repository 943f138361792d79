//! Values that are created once and must be dropped once: messages, resources, contents of futures
//! and panics.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::ledger::{RELAXED, TOKENS, ledger, thread, violation};
use crate::{foreign, script, watch};

pub(crate) const MADE: u32 = 1;
pub(crate) const DROPPED: u32 = 2;
pub(crate) const EXECUTED: u32 = 4;
pub(crate) const REFUSED: u32 = 8;
pub(crate) const CANCELLED: u32 = 16;
/// Position of the kind.
const KIND: u32 = 8;

/// Role of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[repr(u32)]
pub enum Kind {
    /// Argument that identifies a job.
    Message,
    /// Further argument of a job.
    Extra,
    /// Shared resource.
    Shared,
    /// Local resource from `init`.
    Local,
    /// Local resource declared in place.
    InPlace,
    /// Local of `init` or `idle`, which is never dropped.
    Eternal,
    /// Value that a future holds across an `await`.
    Future,
    /// Value on the stack of a job.
    Stack,
    /// Payload of a panic.
    Payload,
}

const SEAL: u64 = 0x5ea1_5ea1_5ea1_5ea1;
const BROKEN: u64 = 0xdead_dead_dead_dead;

/// Value that is dropped once, and not used afterwards.
#[derive(Debug)]
pub struct Token {
    id: u32,
    task: u8,
    kind: Kind,
    /// True if its destructor panics.
    bomb: bool,
    /// Position among the jobs that one thread has spawned to one level.
    place: Option<Place>,
    seal: AtomicU64,
}

/// Position in an order, see [`Token::queued`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) spawner: u32,
    pub(crate) number: u32,
}

impl Token {
    /// Creates a token of this kind, whose destructor panics as the script states.
    pub fn new(kind: Kind) -> Self {
        Self::of_task(kind, 0)
    }

    pub(crate) fn of_task(kind: Kind, task: u8) -> Self {
        let id = ledger().next_token.fetch_add(1, RELAXED);
        if let Some(state) = ledger().tokens.get(id as usize) {
            state.store(MADE | (kind as u32) << KIND | u32::from(task) << 16, RELAXED);
        }
        let bomb = script::script().is_bomb(kind, id);
        Self { id, task, kind, bomb, place: None, seal: AtomicU64::new(SEAL ^ u64::from(id)) }
    }

    /// Creates a token whose destructor panics.
    pub(crate) fn bomb(kind: Kind) -> Self {
        let mut token = Self::new(kind);
        token.bomb = true;
        token
    }

    /// Creates the argument of a job that is spawned next: jobs of one spawner at one level run in
    /// this order.
    pub(crate) fn queued(task: u8, lane: usize) -> Self {
        thread_local! {
            static NUMBERS: Cell<[u32; LANES]> = const { Cell::new([0; LANES]) };
        }
        let mut numbers = NUMBERS.get();
        numbers[lane] += 1;
        NUMBERS.set(numbers);
        let mut token = Self::of_task(Kind::Message, task);
        token.place = Some(Place { spawner: thread(), number: numbers[lane] });
        token
    }

    /// Checks that it has not been dropped.
    pub fn touch(&self) {
        if self.seal.load(RELAXED) != SEAL ^ u64::from(self.id) {
            violation(&format!("{:?} {} is used after its end, or was overwritten", self.kind, self.id));
        }
    }

    fn set(&self, mark: u32) {
        self.touch();
        let Some(state) = ledger().tokens.get(self.id as usize) else { return };
        let before = state.fetch_or(mark, RELAXED);
        if before & (EXECUTED | REFUSED | CANCELLED) != 0 {
            violation(&format!(
                "{:?} {} of task {} gets the mark {mark} after {before:#x}",
                self.kind, self.id, self.task
            ));
        }
    }

    /// Records that its job starts in this lane.
    pub(crate) fn execute(&self, lane: usize) {
        self.set(EXECUTED);
        if let Some(place) = self.place {
            in_order(lane, place);
        }
    }

    /// Records that the spawn returned it.
    pub(crate) fn refused(self) {
        self.set(REFUSED);
    }

    /// Records that it was cancelled.
    pub(crate) fn cancelled(self) {
        self.set(CANCELLED);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.touch();
        self.seal.store(BROKEN, RELAXED);
        if let Some(state) = ledger().tokens.get(self.id as usize)
            && state.fetch_or(DROPPED, RELAXED) & DROPPED != 0
        {
            violation(&format!("{:?} {} is dropped twice", self.kind, self.id));
        }
        // A second panic ends the process, as anywhere in Rust; a panic on a foreign thread proves
        // nothing.
        if self.bomb && !thread::panicking() && !foreign::is_here() {
            self.bomb = false;
            watch::panics();
            panic!("the destructor of {:?} {}", self.kind, self.id);
        }
    }
}

/// Number of lanes: levels of both partitions.
const LANES: usize = crate::ledger::PARTS * crate::ledger::LEVELS;
/// Maximum number of spawning threads whose order is checked.
const SPAWNERS: usize = 256;
static LAST: [[AtomicU32; LANES]; SPAWNERS] = [const { [const { AtomicU32::new(0) }; LANES] }; SPAWNERS];

/// Checks that no later job of the same spawner and lane has started.
fn in_order(lane: usize, place: Place) {
    let Some(last) = LAST.get(place.spawner as usize) else { return };
    let last = last[lane].swap(place.number, RELAXED);
    if last >= place.number {
        let Place { spawner, number } = place;
        violation(&format!("lane {lane}: job {number} of thread {spawner} starts after its job {last}"));
    }
}

/// Token that is used and dropped on the thread that created it.
#[derive(Debug)]
pub struct Pinned {
    token: Token,
    thread: u32,
    not_send: PhantomData<*const ()>,
}

impl Pinned {
    /// Creates a token that stays on this thread.
    pub fn new(kind: Kind) -> Self {
        Self::of_task(kind, 0)
    }

    pub(crate) fn of_task(kind: Kind, task: u8) -> Self {
        Self { token: Token::of_task(kind, task), thread: thread(), not_send: PhantomData }
    }

    /// Records that the spawn returned it.
    pub(crate) fn refused(&self) {
        self.token.set(REFUSED);
    }

    /// Checks that it is used on its thread, before it is dropped.
    pub fn touch(&self) {
        self.token.touch();
        if self.thread != thread() {
            violation(&format!("{} of thread {} is used by thread {}", self.token.id, self.thread, thread()));
        }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.touch();
    }
}

/// Returns the tokens from the number `first` on: number, kind, task and marks.
fn made(first: u32) -> impl Iterator<Item = (u32, Kind, u8, u32)> {
    let end = (ledger().next_token.load(RELAXED) as usize).min(TOKENS);
    (first as usize..end).map(|id| {
        let state = ledger().tokens[id].load(RELAXED);
        (
            id as u32,
            Kind::value_variants()[(state >> KIND & 0xff) as usize],
            (state >> 16) as u8,
            state & 0xff,
        )
    })
}

/// Returns the tokens that were not dropped.
pub(crate) fn undropped(first: u32) -> impl Iterator<Item = (u32, Kind, u8, u32)> {
    made(first).filter(|(.., state)| state & DROPPED == 0)
}

/// Returns the number of jobs whose arguments were neither executed nor returned nor cancelled.
pub(crate) fn unaccounted_jobs(first: u32, of: u8) -> u64 {
    let fate = EXECUTED | REFUSED | CANCELLED;
    let lost = |&(_, kind, task, state): &(u32, Kind, u8, u32)| {
        kind == Kind::Message && task == of && state & fate == 0
    };
    made(first).filter(lost).count() as u64
}

/// The arguments of a job of a message task.
#[derive(Debug)]
pub struct Arguments {
    /// Identifies the job.
    first: Token,
    second: Option<Token>,
}

impl From<Token> for Arguments {
    fn from(first: Token) -> Self {
        Self { first, second: None }
    }
}

impl From<(Token, Token)> for Arguments {
    fn from((first, second): (Token, Token)) -> Self {
        Self { first, second: Some(second) }
    }
}

// Both functions record the outcome of the job before they drop a token: a destructor may panic.
impl Arguments {
    /// Records that the spawn returned them.
    pub(crate) fn refused(self) {
        let Self { first, second } = self;
        first.refused();
        drop(second);
    }

    /// Records that they were taken back before the job ran.
    pub(crate) fn cancelled(self) {
        let Self { first, second } = self;
        first.cancelled();
        drop(second);
    }
}
