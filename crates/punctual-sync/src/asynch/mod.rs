//! Communication between async tasks, with the names and the behavior of `rtic-sync`.
//!
//! | type | for |
//! |---|---|
//! | [`channel::Channel`] | every message, in order, from many senders to one receiver |
//! | [`signal::Signal`] | the newest value, consumed once |
//! | [`watch::Watch`] | the newest value, observed by many |
//! | [`arbiter::Arbiter`] | exclusive access to a value across `.await`, first come, first served |
//!
//! `rtic-sync` masks interrupts for a moment; a program on Linux cannot. Here everything is built
//! from atomic operations, and no operation waits for another thread to finish its own: a task that
//! preempts another in the middle of a `send` on the same CPU completes its `send`. So all types
//! may be used from any thread and any level. No future is self-referential, nothing allocates, and
//! dropping or leaking a future at any moment is sound.
//!
//! # Slots
//!
//! `W` in the types is the number of *slots* for waiting tasks, at most 32. A task needs one while
//! it waits, and one while it is preempted in the middle of waking another; never both. So one slot
//! for each task that uses the object always suffices. If tasks hold ends of the object, an end in
//! excess of the number of slots is refused: with [`Taken`] when requested, with a
//! panic when cloned. [`arbiter::Arbiter`] has no ends; there, waiting panics.
//!
//! # Leaks
//!
//! A leaked future or end, by `mem::forget` or otherwise, looks to the others like a slow task.
//! Leaking is always sound. Until the object is dropped or repaired, the cost is:
//!
//! | leaked | cost to the others | repaired by |
//! |---|---|---|
//! | any future while it waits | one slot less | |
//! | [`arbiter::Access`] while it waits | wait forever once its turn has come | [`Arbiter::restore`](arbiter::Arbiter::restore) |
//! | [`arbiter::ExclusiveAccess`] | wait forever | [`Arbiter::restore`](arbiter::Arbiter::restore) |
//! | a `send` that waits for room | room for one message less once its turn has come | [`Channel::split`](channel::Channel::split) |
//! | a `recv`, a `wait` or a `changed` that waits | none: every waiting task is notified | |
//! | [`channel::Sender`] | one sender less, and `recv` never reports that all are gone | [`Channel::split`](channel::Channel::split) |
//! | [`channel::Receiver`] | sends succeed until the channel is full, and then wait forever | [`Channel::split`](channel::Channel::split) |
//! | [`signal::SignalReader`] | no reads: there is one reader | |
//! | a writer of a [`signal::Signal`], an end of a [`watch::Watch`] | one end less | |
//!
//! ```
//! use punctual_sync::make_channel;
//!
//! let (mut sender, mut receiver) = make_channel!(u32, 4);
//! sender.try_send(17).unwrap();
//! assert_eq!(receiver.try_recv(), Ok(17));
//! ```
//!
//! The thread that causes a wake performs it. If it is preempted between choosing the task and
//! waking it, the task is woken when the thread runs again, as with any waker.

pub mod arbiter;
pub mod channel;
mod permits;
pub mod signal;
mod snapshot;
mod waiters;
pub mod watch;

use crate::Taken;
use crate::atomic::{AtomicU32, Ordering, const_new};

/// Counts the ends of an object, so that their number never exceeds the number of slots.
struct Ends(AtomicU32);

impl Ends {
    const_new! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Adds one, up to `most`.
    fn try_add(&self, most: usize) -> Result<(), Taken> {
        let mut count = self.0.load(Ordering::Relaxed);
        while (count as usize) < most {
            match self.0.compare_exchange_weak(count, count + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => count = now,
            }
        }
        Err(Taken)
    }

    /// Adds one, up to `most`.
    ///
    /// # Panics
    /// If there are `most` already.
    fn add(&self, most: usize) {
        assert!(self.try_add(most).is_ok(), "all {most} ends are in use: raise `W` of the type");
    }

    /// Subtracts one; returns the remaining number.
    fn remove(&self) -> u32 {
        // Release: a thread that sees in `count` that none is left sees the actions of all,
        // since each exchange passes on what those before it released.
        self.0.fetch_sub(1, Ordering::Release) - 1
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}
