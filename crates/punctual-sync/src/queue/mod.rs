//! A queue from many threads to one, of items that are ready immediately or at a given time.
//!
//! For a thread that serves requests, now or later: a single queue to wait on for both. Immediate
//! items are received in the order in which they were sent, scheduled ones by their time and, at
//! equal times, in the order in which they were sent. An item that became due while the receiver
//! was busy is ordered by its time: it precedes immediate items sent after its time.
//!
//! ```
//! use punctual_sync::{Duration, TimedQueue, now};
//!
//! let queue = TimedQueue::<&str, 8>::new();
//! let mut receiver = queue.receiver()?;
//!
//! let start = now();
//! queue.send_at("second", start + Duration::from_micros(20))?;
//! queue.send("first")?;
//! assert_eq!(receiver.recv().value, "first");
//! let second = receiver.recv();
//! assert_eq!((second.value, second.due), ("second", Some(start + Duration::from_micros(20))));
//! assert!(now() >= start + Duration::from_micros(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Items are stored in `N` nodes inside the queue. A sender takes a node from the free list, fills
//! it, and pushes it onto the inbox, both stacks that change by one compare-and-swap (R. K.
//! Treiber, IBM RJ 5118, 1986). Next to the free list is a slot for one node, where the receiver
//! returns the last one with a plain store, and which senders check first. The receiver empties the
//! inbox in one step, reverses it into the order of arrival, and privately maintains a list of
//! immediate and a heap of scheduled items. A push is complete the moment it is visible, so a
//! sender that is preempted in the middle hides no other sender's items and holds no lock.
//!
//! The inbox word is also the futex, and has two flags:
//!
//! * *parked*: the receiver sleeps, or is about to, up to the time in `until`. A sender of an
//!   immediate item clears the flag with its push and wakes the receiver if the flag was set: so
//!   only one sender does. A sender of a scheduled item leaves the flag, reads `until` *after* its
//!   push, and clears the flag and wakes only if its time is earlier. The value it reads is at
//!   least as new as the flag that it saw; if the receiver has parked again since, it has emptied
//!   the inbox before and has seen the item.
//! * *timers*: there may be a scheduled item in the queue. Only then is the sending time of an
//!   immediate item needed, so only then does its sender read the clock.
//!
//! # Real time
//!
//! | | system calls | blocks |
//! |---|---|---|
//! | `send`, `send_at` | one if it has to wake the receiver | no |
//! | `try_recv` | none | no |
//! | `recv`, `recv_deadline` | none if an item is ready, else one | until an item is ready |
//!
//! Nothing allocates. Sending is lock-free: a step is repeated only if another thread has completed
//! one. Sending an immediate item takes constant time; receiving takes time logarithmic in the
//! number of scheduled items, plus a constant for each item that has arrived since.
//!
//! # A time that has passed
//!
//! An item sent with a time in the past is ready at once. It precedes scheduled items of a later
//! time, and immediate items that were sent after its time while the queue held a scheduled item.
//! It does not overtake immediate items sent while no item was scheduled, since their time was not
//! recorded.

mod node;
mod pending;
mod receiver;
mod timed;

pub use receiver::TimedReceiver;
pub use timed::TimedQueue;

use crate::time::Instant;

/// A received item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item<T> {
    /// The value.
    pub value: T,
    /// The time the item was scheduled for, if any.
    pub due: Option<Instant>,
}

/// The queue was full; holds the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> core::fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> core::fmt::Display for Full<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the queue is full")
    }
}

impl<T> core::error::Error for Full<T> {}
