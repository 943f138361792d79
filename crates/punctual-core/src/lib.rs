//! The executor of Punctual, independent of any clock, thread or system call.
//!
//! This crate holds the platform-independent part of the runtime: the levels of a partition and
//! their ceilings ([`Partition`]), the job queues of a level ([`Level`]), its timers and periodic
//! releases, and the dispatch rules. The platform provides the clock, sleeping and waking through
//! the [`Port`] trait, so the same code runs on Linux threads, in virtual time, and on bare boards.
//! It is `no_std` and never allocates.
//!
//! Applications do not depend on this crate; they use `punctual`, whose `#[app]` attribute declares
//! the statics that this code operates on. Only `punctual` follows semantic versioning.
//!
//! # The protocol in one paragraph
//!
//! A partition is one atomic word: a set of *occupied* levels, a set of *ready* levels and a count
//! of waiting threads. A job occupies its level while it runs; a critical section occupies the
//! ceiling of its resource. The highest occupied level is the partition's level. A job may occupy
//! only a level above the partition's level; a critical section may do so only if its job is at the
//! top. This is the Stack Resource Policy (T. P. Baker, *Stack-based scheduling of realtime
//! processes*, Real-Time Systems 3, 1991, section 3). Each decision is a single compare-and-swap,
//! so the policy holds on any number of CPUs and whether or not a job suspends itself.
//! [`Partition`] has the proof of mutual exclusion.
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
//! # Soundness
//!
//! All state lies in statics that any thread can reach. The following rules prevent safe code, on
//! any number of threads, from causing a data race or obtaining a second `&mut` to the same value:
//!
//! * *Threads.* Operations reserved for a worker's own thread require a [`CurrentWorker`], which
//!   cannot leave the thread and which only unsafe code can create. So at most one thread occupies
//!   a level, and only that thread takes jobs from the level's queue.
//! * *Ownership of parts.* [`Partition::new`] and [`Slots::new`] are unsafe: the caller guarantees
//!   that no level, worker or node is used twice. They check the remaining conditions, for statics
//!   at compile time: the range of level numbers, that no two levels share a number, and that every
//!   slot has a node. [`Partition::preempt`], [`call`](Partition::call) and
//!   [`spawn`](Partition::spawn) are unsafe because the caller chooses the level to occupy, and a
//!   node that must not be queued yet; [`Partition::work`] checks its level.
//! * *Nesting.* Critical sections and called jobs are closures, so they nest. For operations that
//!   end with a separate call ([`Partition::go`], [`abandon`](Partition::abandon),
//!   [`Preemption::finish`]), unsafe code guarantees the order. A leaked [`Preemption`] keeps its
//!   level occupied forever, which loses jobs but shares nothing.
//! * *Ownership of values.* The arguments in [`Slots`] and the waker in a [`WaitSlot`] go to the
//!   one thread that wins a compare-and-swap, regardless of how often and through which handle they
//!   are canceled, fired or moved. The arguments of a queued job go to the thread that takes its
//!   node, and a [`Resource`] to the holder of a [`Locked`]: obtaining either is unsafe.
//!
//! All other safe operations are atomic; calling them out of order loses or delays jobs at worst.
//! [`Activation`] and [`Periodic`] have no storage, [`Worker::signal`] and [`Worker::allow_calls`]
//! affect only wakes and the choice of thread for a job, [`Node`] and [`Level`] expose times and
//! numbers, and [`Partition::stop`] and [`close`](Partition::close) only end work. Unsafe code must
//! not expose state that it relies on, for example an [`Activation`] that guards its storage.
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
mod partition;
mod periodic;
mod pi_wait;
mod port;
pub mod remote;
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
pub use jobs::{Jobs, PackedStamp, Popped, Run};
pub use level::{Level, Queue, Stamp};
pub use lock::{Locked, Mutex, Resource, several};
pub use partition::{OneThread, Partition, Preemption, ReadyLevels, SharedWord};
pub use periodic::{MAX_ADJUSTMENT, Periodic, Reaction};
pub use port::Port;
pub use slots::{Arguments, Armed, Slots};
pub use time::{Duration, Instant, IntoDuration, ShortNames, Units, from_std};
pub use timer::Node;
pub use wait_slot::{Standing, Wait, WaitSlot};
pub use word::{MAX_LEVEL, Word};
pub use word_cell::{Clearing, ConstLevel, Masks, Setting, WordCell};
pub use worker::Worker;

/// The atomics this crate uses, so that ports and models use the same types.
pub mod sync {
    pub use crate::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, UnsafeCell, fence};
}
