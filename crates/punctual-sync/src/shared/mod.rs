//! Structures for threads on different CPUs, and for processes that share memory.
//!
//! A task on a CPU taken from Linux must not enter the kernel, so shared memory and active waiting
//! are its only means of communication with the rest of the system: flags, barriers, locks, and
//! queues without locks.
//!
//! | type | for | progress |
//! |---|---|---|
//! | [`Ring`] | every item, in order, from one producer to one consumer | wait-free |
//! | [`Latest`] | the newest value, from one writer to one reader | wait-free |
//! | [`BroadcastWriter`] | messages of variable length, from one writer to any number of readers, which need not be trusted | wait-free |
//! | [`Inbox`] | messages from many senders, and a [`Doorbell`] for the receiver | lock-free |
//! | [`Flag`] | "the event has occurred" | waits |
//! | [`Heartbeat`] | "the owner still runs" | wait-free |
//! | [`Barrier`] | "every member has arrived" | waits |
//! | [`TicketLock`] | a value that threads change in turn, first come, first served | waits, with a bound |
//! | [`Semaphore`] | a number of units, assigned to the highest level first | waits |
//!
//! All of them are `repr(C)`, hold no pointers, and work in memory that several processes have
//! mapped; see [`init_at`] and [`attach_at`], and [`Arena`] for several structures in one region.
//! Waiting by futex is for threads of Linux and requires the feature `std`; everything else is
//! `no_std`. Nothing here allocates.
//!
//! # When a process dies
//!
//! A process can be killed at any instruction. In shared memory every end, ticket, slot and unit,
//! except the slots of an [`Inbox`], names its owning process, so the others can ask the kernel
//! whether it is alive. They do so only after a wait has timed out or found no room; while no
//! process dies, this never enters the kernel.
//!
//! | type | the survivors |
//! |---|---|
//! | [`Ring`], [`Latest`] | take over the end, or learn its owner: [`Ring::take_over_producer`] and the like |
//! | [`TicketLock`] | get [`TicketLockError::OwnerDied`], and the lock by [`TicketLock::take_over`]; dead tickets are passed over |
//! | [`Semaphore`] | get the units and the slots that the dead held |
//! | [`Barrier`] | get [`BarrierError::PeerDied`] until one of them calls [`Barrier::repair`] |
//! | [`Flag`] | lose nothing; the intended setter is unknown |
//! | [`Inbox`] | lose the messages that a dead receiver was draining, with their slots, and the slots that dead senders were filling |
//! | [`BroadcastWriter`] | lose nothing; a new writer continues, and a new reader may [resume](BroadcastReader::resume) |
//!
//! Assumptions and limits:
//!
//! * A process is identified by its PID and its start time, so a new process with the PID of a dead
//!   one is not mistaken for it.
//! * PIDs belong to the PID namespace of the process that called [`init_at`]. Processes in another
//!   PID namespace, in a time namespace, without `/proc`, or without the feature `std` can use the
//!   structures, but their death is not noticed, and they do not notice the death of others.
//! * Only the death of processes is detected. A thread that ends unwinds first and returns what it
//!   owns; leaked ends and guards stay taken for the lifetime of the process. A process that
//!   continues as another program (`execve`) is alive.
//! * A zombie is dead. A stopped or debugged process is alive.
//! * The child of a fork owns nothing of its parent's. It must not use inherited ends or guards;
//!   dropping them there has no effect.
//!
//! ```
//! use punctual_sync::shared::Ring;
//!
//! static SAMPLES: Ring<u32, 64> = Ring::new();
//!
//! let (mut producer, mut consumer) = SAMPLES.split().expect("both ends are free");
//! producer.push(17).unwrap();
//! assert_eq!(consumer.pop(), Some(17));
//! ```

#[cfg(not(loom))]
mod arena;
mod barrier;
mod broadcast;
mod error;
mod flag;
mod heartbeat;
mod inbox;
mod latest;
mod owner;
#[cfg(not(loom))]
mod region;
mod ring;
#[cfg(feature = "std")]
mod semaphore;
#[cfg(feature = "std")]
mod sleep;
mod ticket;

#[cfg(not(loom))]
pub use arena::Arena;
pub use barrier::Barrier;
pub use broadcast::{BroadcastLayout, BroadcastMessage, BroadcastReader, BroadcastWriter, MessageTooLong};
pub use error::{AcquireError, BarrierError, SignalError, TicketLockError, TimedOut};
pub use flag::Flag;
pub use heartbeat::{Heartbeat, HeartbeatMonitor};
pub use inbox::{Doorbell, Inbox};
pub use latest::{Latest, LatestReader, LatestWriter, Reading};
pub use owner::TakeOverError;
#[cfg(not(loom))]
pub use region::{LayoutError, LayoutField, Plain, Shareable, attach_at, init_at, region_align, region_size};
pub use ring::{Ring, RingConsumer, RingProducer};
#[cfg(feature = "std")]
pub use semaphore::{Semaphore, Unit};
pub use ticket::{TicketGuard, TicketLock};

/// The number of sleeping threads in a model, which can assert that none should sleep.
#[cfg(all(loom, feature = "std"))]
#[doc(hidden)]
pub fn asleep() -> usize {
    sleep::asleep()
}

/// Model threads that represent processes, and can die.
#[cfg(loom)]
#[doc(hidden)]
pub mod model {
    /// Makes the calling thread process `number`, 1 to 31.
    pub fn begin(number: u32) {
        super::owner::process::begin(number);
    }

    /// Kills the calling thread's process. The thread does nothing afterwards.
    pub fn die() {
        super::owner::process::die();
    }

    /// Kills the reader of `cell` after it has requested a slot.
    pub fn die_wanting<T: Copy>(cell: &super::Latest<T>) {
        cell.abandon_request();
    }
}

/// Stores a value on its own cache lines: two, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
