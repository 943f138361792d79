//! An app in two halves: one on Linux, and one on a CPU that Linux gave up, for the bare port.
//!
//! Both are compiled from one source, and share a *region* of memory, whose type the macro makes of what the app declares, with the
//! [`Head`] first. Spawns of the other half's tasks are messages there, in an [`Inbox`](punctual_sync::shared::Inbox) for each
//! task; whoever sends one wakes the other half only if that sleeps. A task that the macro adds, the *receiver*, takes them out at
//! the highest level of those that can be spawned from beyond, and spawns.
//!
//! | step | the half without Linux | the half on Linux |
//! |---|---|---|
//! | [`meet`] | makes the region | waits for it; says what it declares |
//! | | compares, and agrees or refuses | compares, and waits for that |
//! | run | `init`, tasks | `init`, tasks |
//! | the end of one | its receiver stops the app, as `shutdown` does | likewise; sees a fault of the other by the state of its CPU |
//! | report | | adds the other one's figures to its own |
//!
//! The half without Linux counts its jobs in the region all the time, in a row [for each task](Shown). So the half on Linux can show them
//! to `punctual top`, mark them in the kernel's trace, and report them also of a half that has failed.
//!
//! With `heartbeat = D` each half has a task at the lowest level of its receiver's partition that counts every `D` / 4 in the region, and
//! ends its own half when the other one's count has stood still for `D` / 2: at most a quarter passes between the last count and
//! the look that has seen it, and another until the look that finds it too old. So a stall is seen within `D`, and a half that is late by
//! less than a quarter of it is never taken for one that has stalled.
//!
//! Real-time safety: sending takes atomic instructions alone, and a call of the kernel, or an interrupt for Linux, if the other half
//! sleeps.

#[cfg(not(feature = "std"))]
mod bare;
#[cfg(feature = "std")]
mod linux;
#[cfg(feature = "std")]
mod marks;
mod shown;

use core::marker::PhantomData;
use core::mem;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use punctual_sync::shared::{Doorbell, Latest, Plain, Ring};

use self::shown::Jobs;
use crate::app::runtime::Runtime;
use crate::app::services::now;
use crate::app::stop::StopReason;

#[cfg(not(feature = "std"))]
pub use self::bare::{Board, meet};
#[cfg(not(feature = "std"))]
pub(crate) use self::bare::{end_was_asked_for, is_reported_by_linux, leave_mark, publish, stops};
#[cfg(feature = "std")]
pub(crate) use self::linux::{Other, complete, other, stops};
#[cfg(feature = "std")]
pub use self::linux::{door, meet};
#[cfg(feature = "std")]
pub(crate) use self::marks::{begin as begin_marks, drain as drain_marks, name as name_marks};
pub use self::shown::Shown;

/// Of the head and of everything that the macro puts behind it.
const VERSION: u32 = 2;

/// "PNHALVES", read as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"PNHALVES");

/// How long each half waits at the start for the other one, in ns.
const PATIENCE: u64 = 10_000_000_000;

/// What a half has come to, in [`Side::stage`].
const ABSENT: u32 = 0;
/// It has said what it declares.
const PRESENT: u32 = 1;
/// It has found the same in the other one.
const AGREES: u32 = 2;
/// It has shut down.
const ENDED: u32 = 3;
/// It has ended otherwise.
const FAILED: u32 = 4;

/// At the beginning of the region. Zero at first.
#[derive(Debug)]
#[repr(C)]
pub struct Head {
    /// Written last by the half that makes the region.
    magic: AtomicU64,
    version: AtomicU32,
    bare: Side,
    linux: Side,
    /// Of the run of the half without Linux, when it has ended.
    dropped_jobs: AtomicU64,
    /// The CPU of that half, as Linux counts.
    cpu: AtomicU32,
    jobs: Jobs,
}

/// What one half writes, but for its bell.
#[derive(Debug)]
#[repr(C, align(128))]
struct Side {
    /// A hash of what its app declares, and the size of its region.
    declared: AtomicU64,
    size: AtomicU64,
    stage: AtomicU32,
    bell: Doorbell,
    /// How often its heartbeat has run.
    beat: AtomicU32,
    /// 1 if it has begun to stop, so that its heartbeat runs no more.
    leaves: AtomicU32,
}

impl Side {
    fn stage(&self) -> u32 {
        // Acquire: whoever sees a stage sees what was written before.
        self.stage.load(Ordering::Acquire)
    }

    fn enter(&self, stage: u32) {
        // Release: see `stage`.
        self.stage.store(stage, Ordering::Release);
    }
}

/// What the two halves of an app know of each other. A static of the generated code.
#[derive(Debug)]
pub struct Halves {
    runtime: &'static Runtime,
    /// The names of this half and of the other one, as in `partitions`.
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "the report is Linux's"))]
    own_name: &'static str,
    other_name: &'static str,
    declared: u64,
    size: usize,
    /// Where in the region the rows of tasks are, and how many.
    shown: (usize, usize),
    /// Within which time a stall is seen, in ns.
    heartbeat: u64,
    heard: Heard,
    /// Null while they have not met.
    head: AtomicPtr<Head>,
}

/// What the heartbeat knows of the other half's.
#[derive(Debug)]
struct Heard {
    beat: AtomicU32,
    /// When it was seen first, in ns; zero if it has not been looked for.
    since: AtomicU64,
    /// Whether it has stood still for too long.
    is_silent: AtomicBool,
}

impl Heard {
    const fn nothing() -> Self {
        Self { beat: AtomicU32::new(0), since: AtomicU64::new(0), is_silent: AtomicBool::new(false) }
    }

    /// Notes what is heard at a time; returns whether it has been the same for `most`, or for longer than a half may take to begin or
    /// to end. Of one job at a time.
    fn hears(&self, beat: u32, leaves: bool, now: u64, most: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || self.beat.load(Ordering::Relaxed) != beat {
            self.beat.store(beat, Ordering::Relaxed);
            self.since.store(now.max(1), Ordering::Relaxed);
            return false;
        }
        // It begins when its `init` has ended, and ends before its `shutdown` begins.
        let most = if beat == 0 || leaves { most.max(PATIENCE) } else { most };
        let is_silent = now.saturating_sub(since) >= most;
        if is_silent {
            self.is_silent.store(true, Ordering::Relaxed);
        }
        is_silent
    }
}

impl Halves {
    /// Those of the app of `runtime`. `R` is the region, `declared` a hash of what both halves declare, `heartbeat` the time within which
    /// each sees that the other has stalled, in ns, or zero.
    ///
    /// # Safety
    /// At a distance of `shown.0` bytes from the beginning of `R`, there are `shown.1` [`Shown`].
    pub const unsafe fn new<R>(
        runtime: &'static Runtime,
        own_name: &'static str,
        other_name: &'static str,
        declared: u64,
        heartbeat: u64,
        shown: (usize, usize),
    ) -> Self {
        let (size, head) = (size_of::<R>(), AtomicPtr::new(ptr::null_mut()));
        let heard = Heard::nothing();
        Self { runtime, own_name, other_name, declared, size, shown, heartbeat, heard, head }
    }

    /// The rows of all tasks of the half without Linux, in the region that begins with `head`.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "Linux reads them; here each task has its own")
    )]
    fn shown<'a>(&self, head: &'a Head) -> &'a [Shown] {
        let (offset, count) = self.shown;
        // SAFETY: they are there by the contract of `new`, and zero is a value of each; they consist of atomics.
        unsafe { core::slice::from_raw_parts(ptr::from_ref(head).byte_add(offset).cast(), count) }
    }

    fn head(&self) -> Option<&'static Head> {
        // Acquire: see `set`.
        // SAFETY: null, or from a reference that lasts.
        unsafe { self.head.load(Ordering::Acquire).cast_const().as_ref() }
    }

    fn set(&self, head: &'static Head) {
        // Release: who finds it finds what is in it.
        self.head.store(ptr::from_ref(head).cast_mut(), Ordering::Release);
    }

    /// The region; `None` before the halves have met.
    ///
    /// # Safety
    /// `R` is the type that [`new`](Self::new) was called with, begins with a [`Head`], and consists of what may be used by both
    /// halves through shared references.
    #[inline]
    pub unsafe fn region<R>(&self) -> Option<&'static R> {
        // SAFETY: the head is at the beginning of a region of this type, by this function's contract and that of `meet`.
        self.head().map(|head| unsafe { &*ptr::from_ref(head).cast::<R>() })
    }

    fn own<'a>(&self, head: &'a Head) -> &'a Side {
        if cfg!(feature = "std") { &head.linux } else { &head.bare }
    }

    fn other<'a>(&self, head: &'a Head) -> &'a Side {
        if cfg!(feature = "std") { &head.bare } else { &head.linux }
    }

    /// Whether the other half takes messages.
    pub fn is_open(&self) -> bool {
        // The half on Linux has been found to be the right one before it says so itself.
        self.head().is_some_and(|head| matches!(self.other(head).stage(), PRESENT | AGREES))
    }

    /// Wakes the other half if it sleeps. After a message was sent.
    pub fn sent(&self) {
        if self.head().is_some_and(|head| self.other(head).bell.is_to_ring()) {
            self.ring();
        }
    }

    /// What the receiver does: `take` takes all messages, `is_empty` tells whether there are none, `again` releases the receiver once more.
    pub fn receive(&'static self, take: impl FnOnce(), is_empty: impl FnOnce() -> bool, again: fn()) {
        let Some(head) = self.head() else { return };
        self.answer();
        take();
        let own = self.own(head);
        own.bell.sleep();
        if !is_empty() {
            own.bell.stay();
            again();
        }
        match self.other(head).stage() {
            ENDED => self.runtime.stop(&StopReason::Shutdown),
            FAILED => self.runtime.stop(&StopReason::OtherHalf),
            _ if self.has_died() => self.runtime.stop(&StopReason::OtherHalf),
            _ => {}
        }
    }

    /// What the heartbeat does: shows that this half runs, and ends it if the other one does not.
    pub fn pulse(&'static self) {
        let Some(head) = self.head() else { return };
        let own = &self.own(head).beat;
        // Nobody else writes it.
        own.store(own.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let other = self.other(head);
        // What has ended has rung.
        if !matches!(other.stage(), PRESENT | AGREES) {
            return;
        }
        let (beat, leaves) = (other.beat.load(Ordering::Relaxed), other.leaves.load(Ordering::Relaxed) != 0);
        if self.heard.hears(beat, leaves, now().as_ticks(), self.heartbeat / 2) {
            self.runtime.stop(&StopReason::OtherHalf);
        }
    }

    /// Notes that this half has begun to stop.
    fn leave(&self) {
        if let Some(head) = self.head() {
            self.own(head).leaves.store(1, Ordering::Relaxed);
        }
    }

    /// Counts a message whose task had no room.
    #[cold]
    pub fn lost(&self) {
        self.runtime.drop_job();
    }
}

/// Says what is not the same in both halves.
fn difference(own: (u32, u64, u64), other: (u32, u64, u64)) -> Option<Difference> {
    let (what, own, other) = match (own, other) {
        ((own, ..), (other, ..)) if own != other => {
            ("the version of `punctual`'s layout", own.into(), other.into())
        }
        ((_, own, _), (_, other, _)) if own != other => ("a hash of what both halves declare", own, other),
        ((.., own), (.., other)) if own != other => ("the size of what they share", own, other),
        _ => return None,
    };
    Some(Difference { what, own, other })
}

/// What is not the same in both halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    what: &'static str,
    own: u64,
    other: u64,
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { what, own, other } = self;
        write!(
            f,
            "the halves are not of one source: {what} is {own:#x} here and {other:#x} there; build both anew"
        )
    }
}

/// Something that both halves share: `#[both] static NAME: Type = value;` in the module of the app.
pub struct Both<T: 'static> {
    halves: &'static Halves,
    offset: usize,
    kind: PhantomData<&'static T>,
}

impl<T> Both<T> {
    /// What is at `offset` of the region.
    ///
    /// # Safety
    /// Both halves can share a `T`: see [`assert_both`]. There is an initialised `T` as soon as the halves have met.
    pub const unsafe fn new(halves: &'static Halves, offset: usize) -> Self {
        Self { halves, offset, kind: PhantomData }
    }
}

impl<T: SharedByHalves> Deref for Both<T> {
    type Target = T;

    /// # Panics
    /// Before the app has started: the other half has not been found yet.
    fn deref(&self) -> &T {
        let head = self.halves.head().expect("both halves share it from the start of the app on, not before");
        // SAFETY: it is there, by the contract of `new`, and lasts; both halves may use it, by that of the trait.
        unsafe { &*ptr::from_ref(head).byte_add(self.offset).cast::<T>() }
    }
}

impl<T: core::fmt::Debug + SharedByHalves> core::fmt::Debug for Both<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.halves.head() {
            Some(_) => (**self).fmt(f),
            None => f.write_str("Both(..)"),
        }
    }
}

/// What both halves can use at once through shared references.
///
/// # Safety
/// The type has one layout in both compilations, holds no pointers, and never enters the kernel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared by the two halves of an app",
    label = "not a type for `#[both]`",
    note = "there are `punctual::sync::shared::Latest` (the newest value, also for parameters) and `Ring` (a stream) of plain data, and \
            the atomics `AtomicU32`, `AtomicU64` and `AtomicI64`"
)]
pub unsafe trait SharedByHalves: Sync + 'static {}

// SAFETY: `repr(C)`, without pointers as its values are; no method but those that take over ends enters the kernel, and those ask
// about processes that own an end, which here nobody does by name.
unsafe impl<T: Plain> SharedByHalves for Latest<T> {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> SharedByHalves for Ring<T, N> {}
// SAFETY: numbers.
unsafe impl SharedByHalves for AtomicU32 {}
// SAFETY: numbers.
unsafe impl SharedByHalves for AtomicU64 {}
// SAFETY: numbers.
unsafe impl SharedByHalves for AtomicI64 {}

/// What can be sent to the other half of an app.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to the other half of the app",
    label = "not plain data",
    note = "arguments that cross are plain data, copied: numbers, arrays of them, and structs that are `#[repr(C)]` and derive \
            `bytemuck::Pod`; what both halves are to change goes into a `#[both] static`"
)]
///
/// # Safety
/// As for [`Plain`].
pub unsafe trait Crosses: Copy + Send + 'static {}

#[diagnostic::do_not_recommend]
// SAFETY: it is the same.
unsafe impl<T: Plain> Crosses for T {}

/// Checks at compile time that an argument can be sent.
pub const fn assert_crosses<T: Crosses>() {}

/// Checks at compile time that both halves can share a type.
pub const fn assert_both<T: SharedByHalves>() {}

/// A task that can be spawned from the other half.
#[diagnostic::on_unimplemented(
    message = "this task is in the other half of the app and does not take spawns from this one",
    label = "write `crosses` in the `#[task(..)]` of what is spawned here"
)]
pub trait SpawnedFromBeyond {}

/// Copies the initial value of something shared.
///
/// # Safety
/// `to` is valid for writes, and used by nobody else. Both halves can share a `T`: see [`assert_both`].
pub unsafe fn place<T>(initial: &'static T, to: *mut T) {
    // SAFETY: by this function's contract. The type has no pointers, and the original is never used or dropped.
    unsafe { ptr::copy_nonoverlapping(initial, to, 1) };
}

/// A hash of what the app declares, with the sizes of what crosses and the version of all of this.
pub const fn declared(text: u64, sizes: &[usize]) -> u64 {
    // FNV-1a (Fowler, Noll, Vo), which the macro begins.
    let (mut hash, mut at) = (text ^ VERSION as u64, 0);
    while at < sizes.len() {
        let (bytes, mut byte) = ((sizes[at] as u64).to_le_bytes(), 0);
        while byte < bytes.len() {
            hash = (hash ^ bytes[byte] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            byte += 1;
        }
        at += 1;
    }
    hash
}

/// The room for the region in the memory that the module shares.
pub const ROOM: usize = 0x3_0000;

const _: () = assert!(mem::align_of::<Head>() == 128 && mem::offset_of!(Head, magic) == 0);

#[cfg(all(test, feature = "std"))]
#[path = "tests.rs"]
pub(crate) mod tests;

#[cfg(all(test, feature = "std"))]
mod meeting {
    use super::*;

    #[test]
    fn says_what_is_not_the_same() {
        assert_eq!(difference((1, 2, 3), (1, 2, 3)), None);
        let said = |other| difference((1, 2, 3), other).map(|difference| difference.to_string());
        for (other, what) in [
            ((9, 2, 3), "version of `punctual`'s layout is 0x1 here and 0x9 there"),
            ((1, 9, 3), "hash of what both halves declare is 0x2 here and 0x9 there"),
            ((1, 2, 9), "size of what they share is 0x3 here and 0x9 there"),
        ] {
            let said = said(other).unwrap();
            assert!(said.contains(what) && said.contains("build both anew"), "{said}");
        }
    }

    #[test]
    fn silence_is_one_after_half_of_the_heartbeat_and_before_the_first_beat_after_the_patience() {
        let heard = Heard::nothing();
        assert!(!heard.hears(0, false, 100, 50), "it is looked for");
        assert!(!heard.hears(0, false, 100 + PATIENCE - 1, 50));
        assert!(!heard.hears(1, false, 100 + PATIENCE, 50));
        let begin = 100 + PATIENCE;
        assert!(!heard.hears(1, false, begin + 49, 50));
        assert!(!heard.hears(2, false, begin + 60, 50));
        assert!(!heard.hears(2, false, begin + 109, 50) && !heard.is_silent.load(Ordering::Relaxed));
        assert!(heard.hears(2, false, begin + 110, 50) && heard.is_silent.load(Ordering::Relaxed));
        assert!(!heard.hears(2, true, begin + 110, 50), "it ends");
        assert!(heard.hears(2, true, begin + 60 + PATIENCE, 50));
        let absent = Heard::nothing();
        assert!(!absent.hears(0, false, 0, 50));
        assert!(absent.hears(0, false, PATIENCE + 1, 50));
    }

    #[test]
    fn a_size_makes_another_hash() {
        assert_ne!(declared(7, &[4, 8]), declared(7, &[8, 4]));
        assert_ne!(declared(7, &[4]), declared(8, &[4]));
    }
}
