//! The newest value, observed by many: each reader is notified of every change, or of the newest of
//! several.
//!
//! ```
//! use punctual_sync::make_watch;
//!
//! let (mut writer, mut reader) = make_watch!(u32);
//! let mut another = reader.clone();
//! assert_eq!(reader.try_get(), None);
//! writer.write(1);
//! writer.write(2);
//!
//! # let work = async move {
//! assert_eq!(reader.changed().await, 2);
//! assert_eq!(reader.try_get(), Some(2));
//! assert_eq!(another.changed().await, 2);
//! # };
//! # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
//! # assert!(core::pin::pin!(work).poll(&mut context).is_ready());
//! ```
//!
//! The names and the behavior are those of `rtic_sync::watch`, and several readers are possible, as
//! with `embassy_sync::watch`; the number of ends is limited, see the parent module. A watch
//! occupies the space of `W` values.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel, except what wakers do. Writing
//! and reading are lock-free: an attempt is repeated only if another end has finished one in the
//! meantime.

use core::fmt;
use core::future::poll_fn;

use super::Ends;
use super::snapshot::{Snapshot, Version};
use super::waiters::{Until, Waiters};
use crate::Taken;

/// The newest value, with slots for `W` tasks: `W − 1` readers and writers.
pub struct Watch<T: Copy, const W: usize = 8> {
    newest: Snapshot<T, W>,
    waiters: Waiters<W>,
    ends: Ends,
}

impl<T: Copy> Watch<T> {
    crate::atomic::const_new! {
        /// Creates a watch without a value, with 8 slots.
        pub fn new() -> Self {
            Self::with_slots()
        }
    }
}

impl<T: Copy, const W: usize> Watch<T, W> {
    crate::atomic::const_new! {
        /// Creates a watch without a value, with `W` slots, 2 to 32.
        pub fn with_slots() -> Self {
            Self { newest: Snapshot::new(), waiters: Waiters::new(), ends: Ends::new() }
        }
    }

    /// The number of ends: one node is the current one.
    const ENDS: usize = W - 1;

    /// Returns a writer and a reader.
    ///
    /// # Errors
    /// [`Taken`] if there are not enough slots for both.
    pub fn split(&self) -> Result<(WatchWriter<'_, T, W>, WatchReader<'_, T, W>), Taken> {
        let writer = self.writer()?;
        Ok((writer, self.reader()?))
    }

    /// Returns a writer.
    ///
    /// # Errors
    /// [`Taken`] if there are `W − 1` ends already.
    pub fn writer(&self) -> Result<WatchWriter<'_, T, W>, Taken> {
        self.ends.try_add(Self::ENDS)?;
        Ok(WatchWriter { parent: self })
    }

    /// Returns a reader that has seen no value yet.
    ///
    /// # Errors
    /// [`Taken`] if there are `W − 1` ends already.
    pub fn reader(&self) -> Result<WatchReader<'_, T, W>, Taken> {
        self.ends.try_add(Self::ENDS)?;
        Ok(WatchReader { parent: self, seen: 0 })
    }
}

impl<T: Copy> Default for Watch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const W: usize> fmt::Debug for Watch<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("version", &self.newest.version()).finish_non_exhaustive()
    }
}

/// The writing end of a [`Watch`]. It can be cloned.
pub struct WatchWriter<'a, T: Copy, const W: usize = 8> {
    parent: &'a Watch<T, W>,
}

impl<T: Copy, const W: usize> WatchWriter<'_, T, W> {
    /// Makes `value` the newest one and wakes every waiting reader.
    pub fn write(&mut self, value: T) {
        self.parent.newest.write(value);
        self.parent.waiters.wake_all();
    }
}

impl<T: Copy, const W: usize> Clone for WatchWriter<'_, T, W> {
    /// # Panics
    /// If there are `W − 1` ends already.
    fn clone(&self) -> Self {
        self.parent.ends.add(Watch::<T, W>::ENDS);
        Self { parent: self.parent }
    }
}

impl<T: Copy, const W: usize> Drop for WatchWriter<'_, T, W> {
    fn drop(&mut self) {
        self.parent.ends.remove();
    }
}

impl<T: Copy, const W: usize> fmt::Debug for WatchWriter<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchWriter").field("parent", self.parent).finish()
    }
}

/// A reading end of a [`Watch`]. It can be cloned.
pub struct WatchReader<'a, T: Copy, const W: usize = 8> {
    parent: &'a Watch<T, W>,
    seen: Version,
}

impl<T: Copy, const W: usize> WatchReader<'_, T, W> {
    /// Returns the newest value, or `None` if there has never been one. It counts as seen.
    pub fn try_get(&mut self) -> Option<T> {
        let (version, value) = self.parent.newest.read();
        self.seen = version;
        value
    }

    /// Returns the newest value, if this reader has not seen it. It then counts as seen.
    pub fn try_changed(&mut self) -> Option<T> {
        let (version, value) = self.parent.newest.read();
        (core::mem::replace(&mut self.seen, version) != version).then_some(value).flatten()
    }

    /// Returns the newest value, waiting for the first one if there has never been one. It counts
    /// as seen.
    pub async fn get(&mut self) -> T {
        let mut until = Until::new(&self.parent.waiters);
        poll_fn(|cx| until.poll(cx.waker(), || self.try_get())).await
    }

    /// Returns the newest value, waiting for one that this reader has not seen. It then counts as
    /// seen.
    pub async fn changed(&mut self) -> T {
        let mut until = Until::new(&self.parent.waiters);
        poll_fn(|cx| until.poll(cx.waker(), || self.try_changed())).await
    }
}

impl<T: Copy, const W: usize> Clone for WatchReader<'_, T, W> {
    /// Returns a reader that has seen the same values as this one.
    ///
    /// # Panics
    /// If there are `W − 1` ends already.
    fn clone(&self) -> Self {
        self.parent.ends.add(Watch::<T, W>::ENDS);
        Self { parent: self.parent, seen: self.seen }
    }
}

impl<T: Copy, const W: usize> Drop for WatchReader<'_, T, W> {
    fn drop(&mut self) {
        self.parent.ends.remove();
    }
}

impl<T: Copy, const W: usize> fmt::Debug for WatchReader<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchReader").field("parent", self.parent).field("seen", &self.seen).finish()
    }
}

/// Returns a writer and a reader of a new watch with `'static` lifetime: `make_watch!(type)` or
/// `make_watch!(type, slots)`.
///
/// # Panics
/// If no slot is free for further ends, because the same invocation is reached again.
#[macro_export]
macro_rules! make_watch {
    ($T:ty) => {{
        static WATCH: $crate::asynch::watch::Watch<$T> = $crate::asynch::watch::Watch::new();
        WATCH.split().expect("`make_watch!` must run once, unless ends have been dropped")
    }};
    ($T:ty, $W:expr) => {{
        static WATCH: $crate::asynch::watch::Watch<$T, { $W }> = $crate::asynch::watch::Watch::with_slots();
        WATCH.split().expect("`make_watch!` must run once, unless ends have been dropped")
    }};
}
