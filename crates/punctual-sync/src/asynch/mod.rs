//! Communication between async tasks, with the names and the behaviour of `rtic-sync`.
//!
//! | type | for |
//! |---|---|
//! | [`channel::Channel`] | every message, in order, from many senders to one receiver |
//! | [`signal::Signal`] | the newest value, taken once |
//! | [`watch::Watch`] | the newest value, looked at by many |
//! | [`arbiter::Arbiter`] | exclusive access to something across `.await`, first come, first served |
//!
//! `rtic-sync` masks interrupts for a moment; a program on Linux cannot. Here everything is built from atomic
//! operations, and nobody ever waits for another thread to finish an operation: a task that preempts another one
//! in the middle of a `send` on the same CPU completes its own. So all of it may be used from any thread and any
//! level. No future borrows itself, nothing allocates, and dropping or leaking a future at any moment is sound.
//!
//! # Places
//!
//! `W` in the types is the number of *places* for tasks that wait, 32 at most. A task needs one while it waits, and
//! one while it was preempted just as it woke another; never both. So as many places as tasks use the object
//! always suffice. Where tasks hold ends of the object, one more end than there are places for is refused: by
//! [`Taken`](crate::Taken) where it is asked for, by a panic where an end is cloned. [`arbiter::Arbiter`] has no ends, and there
//! it is waiting that panics.
//!
//! # What is leaked
//!
//! Whatever is leaked, by `mem::forget` or otherwise, is to the others like a task that is slow. Leaking is always sound,
//! and costs this, until the object is dropped or made good:
//!
//! | leaked | the others |
//! |---|---|
//! | any future while it waits | have a place less |
//! | [`arbiter::Access`] that waits, or [`arbiter::ExclusiveAccess`] | wait for ever, in the first case when its turn has come; [`Arbiter::restore`](arbiter::Arbiter::restore) |
//! | a `send` that waits for room | have room for a message less when its turn has come; [`Channel::split`](channel::Channel::split) |
//! | a `recv`, a `wait` or a `changed` that waits | lose nothing: everybody who waits is told |
//! | [`channel::Sender`] | are a sender less, and `recv` never says that there is none; `split` |
//! | [`channel::Receiver`] | send until there is no room, and then wait for ever; `split` |
//! | [`signal::SignalReader`] | cannot read: there is one reader |
//! | a writer of a [`signal::Signal`], an end of a [`watch::Watch`] | have an end less |
//!
//! ```
//! use punctual_sync::make_channel;
//!
//! let (mut sender, mut receiver) = make_channel!(u32, 4);
//! sender.try_send(17).unwrap();
//! assert_eq!(receiver.try_recv(), Ok(17));
//! ```
//!
//! A wake goes out on the thread that caused it. If that thread is preempted between choosing the task and waking it,
//! the task is woken when the thread runs again, as with any waker.

pub mod arbiter;
pub mod channel;
mod ends;
mod permits;
pub mod signal;
mod snapshot;
mod waiters;
pub mod watch;
