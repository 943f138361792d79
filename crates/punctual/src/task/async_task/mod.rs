//! Async tasks: futures that are polled under the dispatch rules of their level, and the events
//! they can wait for.
//!
//! An `async fn` task occupies its level only while it is polled; between two polls it is a value
//! in a static and other jobs of its level run. A wake queues it like a spawn queues a job, and a
//! wake from below polls it immediately. There is one instance at a time; once it has completed it
//! can be spawned again.
//!
//! Nothing here allocates: the future is in the task's static, its wakers are pointers to it,
//! timers are slots of its level (as many as its [`waits`](macro@crate::app#keys-of-task)), and
//! waits for descriptors as many slots of the app.

mod delay;
mod due;
mod future;
#[cfg(feature = "std")]
mod readiness;
mod task;
mod ticker;
mod timers;

pub use delay::{Delay, Timeout, TimeoutError, delay, delay_until, timeout_after, timeout_at};
pub use future::{OfUnsent, Place, future_drop, future_place_local, future_poll, future_size};
#[cfg(feature = "std")]
pub use readiness::{Readiness, readable, writable};
pub use task::{AsyncBody, AsyncTask, NonSend};
pub use ticker::{AwaitsTicker, Tick, Ticker, every};
pub use timers::Timers;
