//! Synchronization between real-time threads on Linux, usable without the rest of Punctual.
//!
//! | for | use | waits |
//! |---|---|---|
//! | data shared by threads of different priorities | [`PcpMutex`] in a [`PcpGroup`] | with priority inheritance, without deadlock |
//! | handing items to one thread, now or at a given time | [`TimedQueue`] | until the next item is due |
//! | a stream from one thread, or process, to another | [`shared::Ring`] | never |
//! | the newest value of a stream | [`shared::Latest`] | never |
//! | events and phases of threads or processes | [`shared::Flag`], [`shared::Barrier`], [`shared::Semaphore`] | until the event, with a limit |
//! | short critical sections of threads that run in parallel | [`shared::TicketLock`] | spinning, with a limit |
//! | the same, for real-time threads that the kernel may preempt | [`MsrpLock`] | spinning, after a limit with priority inheritance |
//! | messages, events and permits between async tasks | [`asynch`] | as futures |
//!
//! Without the feature `std`, which is enabled by default, [`PcpMutex`], [`MsrpLock`],
//! [`TimedQueue`] and everything else that sleeps are unavailable; the rest is `no_std`.
//!
//! Nothing here allocates after construction, and nothing enters the kernel unless a thread has to
//! wait or be woken. [`futex::calls`] counts the calls, so that a program can check this.
//!
//! # Spinning
//!
//! Spinning operations take a limit, a [`Duration`]:
//! [`TicketLock::lock`](shared::TicketLock::lock), [`MsrpLock::lock`],
//! [`Flag::spin`](shared::Flag::spin), [`Barrier::spin`](shared::Barrier::spin). A thread that need
//! not wait reads no clock. A waiting thread reads it ([`now`]) after every 32 checks of its
//! condition, so a limit is accurate to a few microseconds. Reading the clock does not enter the
//! kernel if user space can read the kernel's clock source.
//!
//! Each operation has a variant in `_while`, which asks the caller before each check whether to
//! continue: for threads with their own clock, or none, and without the feature `std`.
//!
//! # Taking an end
//!
//! Queues, channels and cells are used through their *ends*, and all of them hand these out in the
//! same way:
//!
//! * A method named after the end returns it, or [`Taken`]:
//!   [`Ring::producer`](shared::Ring::producer), [`Latest::reader`](shared::Latest::reader),
//!   [`TimedQueue::receiver`](queue::TimedQueue::receiver),
//!   [`Signal::writer`](asynch::signal::Signal::writer).
//! * `split` returns one of each. For a [`Channel`](asynch::channel::Channel) it takes `&mut`,
//!   resets the channel and cannot fail.
//! * Dropping an end makes it available again. A leaked end stays taken.
//! * Ends that may exist several times are `Clone`; cloning panics if no slot is free.
//! * In shared memory, `take_over_…` also takes an end from a process that has died.
//!
//! ```
//! use punctual_sync::{Taken, shared::Ring};
//!
//! static SAMPLES: Ring<u32, 64> = Ring::new();
//!
//! let (mut producer, consumer) = SAMPLES.split()?;
//! producer.push(17).unwrap();
//! assert_eq!(SAMPLES.consumer().unwrap_err(), Taken);
//! drop(consumer);
//! assert_eq!(SAMPLES.consumer()?.pop(), Some(17));
//! # Ok::<(), Taken>(())
//! ```
//!
//! # Example
//!
//! ```
//! use punctual_sync::{PcpGroup, PcpMutex, TimedQueue, now};
//!
//! static GROUP: PcpGroup = PcpGroup::new();
//! static TOTAL: PcpMutex<u32> = PcpMutex::new(&GROUP, 7, 0);
//! static QUEUE: TimedQueue<u32, 8> = TimedQueue::new();
//!
//! let worker = std::thread::spawn(|| {
//!     let member = GROUP.join(5).expect("a group has room for 64 threads");
//!     let mut receiver = QUEUE.receiver().expect("the only receiver");
//!     for _ in 0..2 {
//!         let item = receiver.recv();
//!         TOTAL.lock(&member, |total| *total += item.value).expect("5 is below the ceiling");
//!     }
//! });
//! QUEUE.send_at(40, now())?;
//! QUEUE.send(2)?;
//! worker.join().unwrap();
//!
//! let member = GROUP.join(7)?;
//! assert_eq!(TOTAL.lock(&member, |total| *total)?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
mod spin;
mod time;

pub mod asynch;
#[cfg(feature = "std")]
pub mod futex;
#[cfg(feature = "std")]
pub mod msrp;
#[cfg(feature = "std")]
pub mod pcp;
#[cfg(feature = "std")]
pub mod queue;
pub mod shared;

use core::fmt;

use punctual_core::atomic;

#[cfg(feature = "std")]
pub use msrp::{MsrpGuard, MsrpLock, MsrpLockError, MsrpThread};
#[cfg(feature = "std")]
pub use pcp::{JoinError, Member, PcpGroup, PcpLockError, PcpMutex};
#[cfg(feature = "std")]
pub use queue::{Full, Item, TimedQueue, TimedReceiver};
#[cfg(feature = "std")]
pub use time::now;
pub use time::{Duration, Instant};

/// An end was not handed out: it is in use or, for ends that may exist several times, every slot is
/// in use.
///
/// See [Taking an end](crate#taking-an-end).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken;

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end is in use: drop the existing end first, or raise `W` if several may exist")
    }
}

impl core::error::Error for Taken {}
