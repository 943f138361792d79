//! Structures for threads on different CPUs, and for processes that share memory.
//!
//! For a task on a CPU taken from Linux, which must not enter the kernel, shared memory and active waiting are
//! the only ways to talk to the rest of the system: flags, barriers, locks, and queues without locks.
//!
//! | type | for | progress |
//! |---|---|---|
//! | [`Ring`] | every item, in order, from one producer to one consumer | wait-free |
//! | [`Latest`] | the newest value, from one writer to one reader | wait-free |
//! | [`Flag`] | "it has happened" | waits |
//! | [`Barrier`] | "everybody has arrived" | waits |
//! | [`TicketLock`] | a value that threads change in turn, first come, first served | waits, with a bound |
//! | [`Semaphore`] | a number of units, handed to the highest level first | waits |
//!
//! All of them are `repr(C)`, hold no pointers, and work in memory that several processes have mapped; see
//! [`init_at`] and [`attach_at`]. Waiting by futex is for threads of Linux and needs the feature `std`;
//! everything else is `no_std`. Nothing here allocates.
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
mod latest;
#[cfg(not(loom))]
mod region;
mod ring;
#[cfg(feature = "std")]
mod semaphore;
#[cfg(feature = "std")]
mod sleep;
mod ticket;

pub use barrier::Barrier;
pub use error::{AcquireError, LockError, SignalError, TimedOut};
pub use flag::Flag;
pub use latest::{Latest, LatestReader, LatestWriter, Reading};
#[cfg(not(loom))]
pub use region::{LayoutError, LayoutField, Plain, Shareable, attach_at, init_at, region_align, region_size};
pub use ring::{Ring, RingConsumer, RingProducer};
#[cfg(feature = "std")]
pub use semaphore::Semaphore;
pub use ticket::{TicketGuard, TicketLock};

/// How many threads of a model sleep, so that it can say that one should not.
#[cfg(all(loom, feature = "std"))]
#[doc(hidden)]
pub fn asleep() -> usize {
    sleep::asleep()
}

use crate::atomic::{AtomicU32, Ordering, const_new};

/// Keeps a value on cache lines of its own: two, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Whether one end of a structure is in use.
///
/// Whoever takes the claim sees everything its previous holder did.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Claim(AtomicU32);

impl Claim {
    const_new! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Takes the claim if it is free.
    pub(crate) fn take(&self) -> bool {
        // Acquire: pairs with the release in `give_back`.
        self.0.swap(1, Ordering::Acquire) == 0
    }

    pub(crate) fn give_back(&self) {
        self.0.store(0, Ordering::Release);
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
