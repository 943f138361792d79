//! The executor of Punctual, without a clock, a thread or a system call.
//!
//! This crate holds what has to be right whatever it runs on: the levels of a partition and their
//! ceilings ([`Partition`]), the job queues of a level ([`Level`]), its timers and periodic releases,
//! and the dispatch rules. Everything a platform provides — the time, sleeping, waking — comes in
//! through the [`Port`] trait, so the same code runs on Linux threads, in virtual time, and on bare
//! boards. It is `no_std` and never allocates.
//!
//! Users do not depend on this crate; they use `punctual`, whose `#[app]` attribute declares the
//! statics that this code works on.
//!
//! # The protocol in one paragraph
//!
//! A partition is one atomic word: a set of *occupied* levels, a set of *ready* levels and a count of
//! waiting threads. A job occupies its level while it runs; a critical section
//! occupies the ceiling of its resource. The highest occupied level is the partition's level. Nothing
//! may occupy a level unless it is above the partition's level and, for a critical section, unless its
//! job is the one at the top. That is the Stack Resource Policy (T. P. Baker, *Stack-based scheduling
//! of realtime processes*, Real-Time Systems 3, 1991, section 3), decided by one compare-and-swap, so
//! it holds on any number of CPUs and whether or not a job suspends itself. The proof of mutual
//! exclusion is with [`Partition`].
//!
//! ```
//! use punctual_core::Word;
//!
//! let word = Word::EMPTY.occupy(2).mark_ready(3).mark_ready(1);
//! assert_eq!(word.level(), 2);
//! assert!(word.must_serve(), "level 3 is ready and above level 2");
//! assert!(!word.occupy(3).must_serve(), "level 1 has to wait, level 3 is being served");
//! ```
//!
//! # What safe code can rely on
//!
//! All of this lies in statics that any thread can reach. What keeps safe code, on any number of threads, from making a
//! data race or a second `&mut` of it:
//!
//! * *Threads.* Whatever only a worker's own thread may do takes a [`CurrentWorker`], which cannot leave the thread and
//!   which only unsafe code makes. So at most one thread occupies a level, and it alone takes from the level's queue.
//! * *Ownership of parts.* [`Partition::new`] and [`Slots::new`] are unsafe: the caller guarantees that no
//!   level, worker or node is used twice. They check what can be checked, in statics at compile time: the numbers
//!   of levels, that no two levels have the same one, and that there is a node for each slot. [`Partition::preempt`],
//!   [`call`](Partition::call) and [`spawn`](Partition::spawn) are unsafe, since they take a level to occupy, and a
//!   node that must not be in a queue yet; [`Partition::work`] checks its level.
//! * *Nesting.* Critical sections and called jobs are closures, so they nest. Where the end is a call of its own
//!   ([`Partition::go`], [`abandon`](Partition::abandon), [`Preemption::finish`]), unsafe code guarantees the order.
//!   Leaking a [`Preemption`] keeps its level occupied forever, which loses jobs and shares nothing.
//! * *Ownership of values.* The arguments in [`Slots`] and the waker in a [`WaitSlot`] go to the one thread that wins a
//!   compare-and-swap, however often and by whichever handle they are cancelled, fired or moved. The arguments of a queued
//!   job go to the thread that takes its node, and a [`Resource`] to the holder of a [`Locked`]: obtaining either is unsafe.
//!
//! All other safe operations are atomic; used out of order they lose or delay jobs and no more. [`Activation`] and
//! [`Periodic`] have no storage, [`Worker::signal`] and [`Worker::allow_calls`] concern waking and who runs a job,
//! [`Node`] and [`Level`] show times and numbers, and [`Partition::stop`] and [`close`](Partition::close) end things.
//! Unsafe code must not let others use what it relies on: an [`Activation`] that guards its storage, for example.
#![cfg_attr(not(any(test, loom)), no_std)]

mod activation;
mod alarm;
#[doc(hidden)]
pub mod atomic;
pub mod cpus;
mod current;
mod fifo;
pub mod heartbeat;
mod interrupt;
mod jobs;
mod level;
mod lifecycle;
mod lock;
pub mod metrics;
mod one_thread;
mod partition;
mod periodic;
mod pi_wait;
mod poll;
mod port;
mod slots;
mod time;
mod timer;
mod timers;
pub mod trace_marker;
mod wait_slot;
mod word;
mod word_cell;
mod worker;

pub use activation::Activation;
pub use current::CurrentWorker;
pub use interrupt::Expired;
pub use jobs::{Jobs, Run};
pub use level::{Level, Queue, Stamp};
pub use lock::{Locked, Mutex, Resource, several};
pub use one_thread::OneThread;
pub use partition::{Partition, Preemption};
pub use periodic::{OverrunPolicy, Periodic};
pub use port::Port;
pub use slots::{Armed, Slots};
pub use time::{Duration, Instant, IntoDuration, ShortNames, Units, from_std};
pub use timer::Node;
pub use wait_slot::{Standing, Wait, WaitSlot};
pub use word::{MAX_LEVEL, Word};
pub use word_cell::WordCell;
pub use worker::Worker;

/// The atomics this crate uses, so that ports and models name the same types.
pub mod sync {
    pub use crate::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, UnsafeCell, fence};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
