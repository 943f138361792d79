//! The newest value, consumed once.
//!
//! ```
//! use punctual_sync::make_signal;
//!
//! let (mut writer, mut reader) = make_signal!(u32);
//! writer.write(1);
//! writer.write(2);
//! assert_eq!(reader.try_read(), Some(2));
//! assert_eq!(reader.try_read(), None);
//!
//! # let work = async move {
//! writer.write(3);
//! assert_eq!(reader.wait().await, 3);
//! # };
//! # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
//! # assert!(core::pin::pin!(work).poll(&mut context).is_ready());
//! ```
//!
//! The names and the behavior are those of `rtic_sync::signal`; only the number of writers is
//! limited, see the parent module. A signal occupies the space of `W` values.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel, except what wakers do. Writing
//! and reading are lock-free: an attempt is repeated only if another end has finished one in the
//! meantime.

use core::fmt;
use core::future::poll_fn;

use super::Ends;
use super::snapshot::Snapshot;
use super::waiters::{Until, Waiters};
use crate::Taken;
use crate::atomic::{AtomicBool, AtomicU64, Ordering};

/// The newest value, with slots for `W` tasks: the reader, and `W − 2` writers.
pub struct Signal<T: Copy, const W: usize = 8> {
    newest: Snapshot<T, W>,
    waiters: Waiters<W>,
    /// Counts the writers.
    ends: Ends,
    has_reader: AtomicBool,
    /// The version that the reader took last. Accessed only by the reader.
    taken: AtomicU64,
}

impl<T: Copy> Signal<T> {
    crate::atomic::const_new! {
        /// Creates a signal without a value, with 8 slots.
        pub fn new() -> Self {
            Self::with_slots()
        }
    }
}

/// `Snapshot` limits the number of slots from above.
const fn is_possible(slots: usize) -> bool {
    slots >= 3
}

impl<T: Copy, const W: usize> Signal<T, W> {
    crate::atomic::const_new! {
        /// Creates a signal without a value, with `W` slots, 3 to 32.
        pub fn with_slots() -> Self {
            const { assert!(is_possible(W), "a signal has slots for the reader, a writer, and one spare value") };
            Self {
                newest: Snapshot::new(),
                waiters: Waiters::new(),
                ends: Ends::new(),
                has_reader: AtomicBool::new(false),
                taken: AtomicU64::new(0),
            }
        }
    }

    /// The number of writers: one slot is the reader's, and one node is the current one.
    const WRITERS: usize = W - 2;

    /// Returns a writer and the reader.
    ///
    /// # Errors
    /// [`Taken`] if a reader exists, or no slot is free for another writer.
    pub fn split(&self) -> Result<(SignalWriter<'_, T, W>, SignalReader<'_, T, W>), Taken> {
        let reader = self.reader()?;
        Ok((self.writer()?, reader))
    }

    /// Returns a writer.
    ///
    /// # Errors
    /// [`Taken`] if there are `W − 2` writers already.
    pub fn writer(&self) -> Result<SignalWriter<'_, T, W>, Taken> {
        self.ends.try_add(Self::WRITERS)?;
        Ok(SignalWriter { parent: self })
    }

    /// Returns the reader.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn reader(&self) -> Result<SignalReader<'_, T, W>, Taken> {
        // Acquire: the version that the last reader took.
        match self.has_reader.swap(true, Ordering::Acquire) {
            false => Ok(SignalReader { parent: self }),
            true => Err(Taken),
        }
    }
}

impl<T: Copy> Default for Signal<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const W: usize> fmt::Debug for Signal<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("version", &self.newest.version()).finish_non_exhaustive()
    }
}

/// The writing end of a [`Signal`]. It can be cloned.
pub struct SignalWriter<'a, T: Copy, const W: usize = 8> {
    parent: &'a Signal<T, W>,
}

impl<T: Copy, const W: usize> SignalWriter<'_, T, W> {
    /// Makes `value` the newest one and wakes the reader.
    pub fn write(&mut self, value: T) {
        self.parent.newest.write(value);
        self.parent.waiters.wake_all();
    }

    /// Removes the value, if the reader has not taken it.
    pub fn clear(&mut self) {
        self.parent.newest.clear();
    }
}

impl<T: Copy, const W: usize> Clone for SignalWriter<'_, T, W> {
    /// # Panics
    /// If there are `W − 2` writers already.
    fn clone(&self) -> Self {
        self.parent.ends.add(Signal::<T, W>::WRITERS);
        Self { parent: self.parent }
    }
}

impl<T: Copy, const W: usize> Drop for SignalWriter<'_, T, W> {
    fn drop(&mut self) {
        self.parent.ends.remove();
    }
}

impl<T: Copy, const W: usize> fmt::Debug for SignalWriter<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalWriter").field("parent", self.parent).finish()
    }
}

/// The reading end of a [`Signal`], one at a time.
pub struct SignalReader<'a, T: Copy, const W: usize = 8> {
    parent: &'a Signal<T, W>,
}

impl<T: Copy, const W: usize> SignalReader<'_, T, W> {
    /// Takes the newest value, if it has not been taken.
    pub fn try_read(&mut self) -> Option<T> {
        let (version, value) = self.parent.newest.read();
        if version == self.parent.taken.load(Ordering::Relaxed) {
            return None;
        }
        self.parent.taken.store(version, Ordering::Relaxed);
        value
    }

    /// Takes the newest value, waiting for one if there is none.
    pub async fn wait(&mut self) -> T {
        let mut until = Until::new(&self.parent.waiters);
        poll_fn(|cx| until.poll(cx.waker(), || self.try_read())).await
    }

    /// Waits for a value that is written after the first poll of this call, and takes it.
    pub async fn wait_fresh(&mut self) -> T {
        self.try_read();
        self.wait().await
    }
}

impl<T: Copy, const W: usize> Drop for SignalReader<'_, T, W> {
    fn drop(&mut self) {
        self.parent.has_reader.store(false, Ordering::Release);
    }
}

impl<T: Copy, const W: usize> fmt::Debug for SignalReader<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalReader").field("parent", self.parent).finish()
    }
}

/// Returns a writer and the reader of a new signal with `'static` lifetime: `make_signal!(type)` or
/// `make_signal!(type, slots)`.
///
/// # Panics
/// If the same invocation is reached again while the reader exists.
#[macro_export]
macro_rules! make_signal {
    ($T:ty) => {{
        static SIGNAL: $crate::asynch::signal::Signal<$T> = $crate::asynch::signal::Signal::new();
        SIGNAL.split().expect("`make_signal!` must run once, unless the reader has been dropped")
    }};
    ($T:ty, $W:expr) => {{
        static SIGNAL: $crate::asynch::signal::Signal<$T, { $W }> =
            $crate::asynch::signal::Signal::with_slots();
        SIGNAL.split().expect("`make_signal!` must run once, unless the reader has been dropped")
    }};
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rejects_fewer_than_3_slots() {
        assert_eq!([2, 3].map(is_possible), [false, true]);
    }
}
