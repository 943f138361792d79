//! Structures for threads on different CPUs, and for processes that share memory.
//!
//! For a task on a CPU taken from Linux, which must not enter the kernel, shared memory and active waiting are
//! the only ways to talk to the rest of the system: flags, barriers, locks, and queues without locks.
//!
//! | type | for | progress |
//! |---|---|---|
//! | [`Ring`] | every item, in order, from one producer to one consumer | wait-free |
//! | [`Latest`] | the newest value, from one writer to one reader | wait-free |
//! | [`Inbox`] | messages from many senders, and a [`Doorbell`] for who takes them | lock-free |
//! | [`Flag`] | "it has happened" | waits |
//! | [`Barrier`] | "everybody has arrived" | waits |
//! | [`TicketLock`] | a value that threads change in turn, first come, first served | waits, with a bound |
//! | [`Semaphore`] | a number of units, handed to the highest level first | waits |
//!
//! All of them are `repr(C)`, hold no pointers, and work in memory that several processes have mapped; see
//! [`init_at`] and [`attach_at`]. Waiting by futex is for threads of Linux and needs the feature `std`;
//! everything else is `no_std`. Nothing here allocates.
//!
//! # When a process dies
//!
//! A process can be killed at any instruction. In shared memory every end, ticket, place and unit names the process that
//! has it, so the others can ask the kernel whether it is alive. They do so only after they have waited in vain or found no
//! room; while nobody dies, this never enters the kernel.
//!
//! | type | the survivors |
//! |---|---|
//! | [`Ring`], [`Latest`] | take over the end, or learn who has it: [`Ring::take_over_producer`] and the like |
//! | [`TicketLock`] | get [`TicketLockError::OwnerDied`], and the lock by [`TicketLock::take_over`]; dead tickets are passed over |
//! | [`Semaphore`] | get the units and the places that the dead held |
//! | [`Barrier`] | get [`BarrierError::PeerDied`] until one of them calls [`Barrier::repair`] |
//! | [`Flag`] | lose nothing; nobody knows who was to set it |
//!
//! Assumptions and limits:
//!
//! * A process is identified by its id and its start time, so a new process with the id of a dead one is not mistaken for it.
//! * Ids count in the namespace of the process that called [`init_at`]. Processes in another namespace of process ids, without
//!   `/proc`, or without the feature `std` use the structures all the same, but their death is not noticed, and
//!   they do not notice the death of others.
//! * Only the death of processes counts. A thread that ends unwinds first and returns what it has; what it leaked stays
//!   taken for as long as its process lives. A process that goes on as another program (`execve`) is alive.
//! * A zombie is dead. A stopped or debugged process is alive.
//! * The child of a fork owns nothing of its parent's. What it inherits, an end or a guard, must not be used.
//!
//! ```
//! use punctual_sync::shared::Ring;
//!
//! static SAMPLES: Ring<u32, 64> = Ring::new();
//!
//! let (mut producer, mut consumer) = SAMPLES.split().expect("nobody else has an end of it");
//! producer.push(17).unwrap();
//! assert_eq!(consumer.pop(), Some(17));
//! ```

mod barrier;
mod error;
mod flag;
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

pub use barrier::Barrier;
pub use error::{AcquireError, BarrierError, SignalError, TicketLockError, TimedOut};
pub use flag::Flag;
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

/// Threads of a model that play processes, and die.
#[cfg(loom)]
#[doc(hidden)]
pub mod model {
    /// The calling thread is process `number`, 1 to 31, from now on.
    pub fn begin(number: u32) {
        super::owner::process::begin(number);
    }

    /// The calling thread's process is killed. The thread does nothing more.
    pub fn die() {
        super::owner::process::die();
    }

    /// The reader of `cell` is killed when it has said that it wants a slot.
    pub fn die_wanting<T: Copy>(cell: &super::Latest<T>) {
        cell.leave_wanting();
    }
}

/// Keeps a value on cache lines of its own: two, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
