//! The newest value, looked at by many: each reader is told of every change, or of the newest of several.
//!
//! ```
//! use punctual_sync::make_watch;
//!
//! let (mut writer, mut reader) = make_watch!(u32);
//! let mut another = reader.another().unwrap();
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
//! The names and the behaviour are those of `rtic_sync::watch`, and several readers are possible, as with
//! `embassy_sync::watch`; the number of ends is limited, see the parent module. A watch takes the space of `W` values.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel, apart from what wakers do. Writing and reading are
//! lock-free: an attempt is repeated only if another end has finished one meanwhile.

use core::fmt;
use core::future::poll_fn;

use super::ends::Ends;
use super::snapshot::{Snapshot, Version};
use super::waiters::{Until, Waiters};

/// The newest value, with places for `W` tasks: `W − 1` readers and writers.
pub struct Watch<T: Copy, const W: usize = 8> {
    newest: Snapshot<T, W>,
    waiters: Waiters<W>,
    ends: Ends,
}

impl<T: Copy> Watch<T> {
    /// A watch without a value, with 8 places.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self::with_places()
    }

    /// A watch without a value, with 8 places.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self::with_places()
    }
}

impl<T: Copy, const W: usize> Watch<T, W> {
    crate::atomic::const_new! {
        /// A watch without a value, with `W` places, 2 to 32.
        pub fn with_places() -> Self {
            Self { newest: Snapshot::new(), waiters: Waiters::new(), ends: Ends::new() }
        }
    }

    /// A writer and a reader.
    ///
    /// # Panics
    /// If there is no place for them.
    pub fn split(&self) -> (WatchWriter<'_, T, W>, WatchReader<'_, T, W>) {
        (self.writer(), self.take_reader())
    }

    /// A writer.
    ///
    /// # Panics
    /// If there are `W − 1` ends already.
    pub fn writer(&self) -> WatchWriter<'_, T, W> {
        // One node is the current one.
        self.ends.add(W - 1);
        WatchWriter { parent: self }
    }

    /// A reader that has seen nothing yet, unless there are `W − 1` ends already.
    pub fn try_take_reader(&self) -> Option<WatchReader<'_, T, W>> {
        self.ends.try_add(W - 1).then(|| WatchReader { parent: self, seen: 0 })
    }

    /// A reader that has seen nothing yet.
    ///
    /// # Panics
    /// If there are `W − 1` ends already.
    pub fn take_reader(&self) -> WatchReader<'_, T, W> {
        self.ends.add(W - 1);
        WatchReader { parent: self, seen: 0 }
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
    /// Makes `value` the newest one and wakes every reader that waits.
    pub fn write(&mut self, value: T) {
        self.parent.newest.write(value);
        self.parent.waiters.wake_all();
    }
}

impl<T: Copy, const W: usize> Clone for WatchWriter<'_, T, W> {
    /// # Panics
    /// If there are `W − 1` ends already.
    fn clone(&self) -> Self {
        self.parent.writer()
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

/// A reading end of a [`Watch`].
pub struct WatchReader<'a, T: Copy, const W: usize = 8> {
    parent: &'a Watch<T, W>,
    seen: Version,
}

impl<'a, T: Copy, const W: usize> WatchReader<'a, T, W> {
    /// The newest value, or `None` if there never was one. It counts as seen.
    pub fn try_get(&mut self) -> Option<T> {
        let (version, value) = self.parent.newest.read();
        self.seen = version;
        value
    }

    /// The newest value, if this reader has not seen it. It then counts as seen.
    pub fn try_changed(&mut self) -> Option<T> {
        let (version, value) = self.parent.newest.read();
        (core::mem::replace(&mut self.seen, version) != version).then_some(value).flatten()
    }

    /// The newest value, waiting for the first one if there never was one. It counts as seen.
    pub async fn get(&mut self) -> T {
        let mut until = Until::new(&self.parent.waiters);
        poll_fn(|cx| until.poll(cx.waker(), || self.try_get())).await
    }

    /// The newest value, waiting for one that this reader has not seen. It then counts as seen.
    pub async fn changed(&mut self) -> T {
        let mut until = Until::new(&self.parent.waiters);
        poll_fn(|cx| until.poll(cx.waker(), || self.try_changed())).await
    }

    /// Another reader that has seen nothing yet, unless there are `W − 1` ends already.
    pub fn another(&self) -> Option<WatchReader<'a, T, W>> {
        self.parent.try_take_reader()
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

/// A writer and a reader of a new watch with `'static` lifetime: `make_watch!(type)` or `make_watch!(type, places)`.
///
/// # Panics
/// If there is no place for further ends, because the same place in the program is reached again.
#[macro_export]
macro_rules! make_watch {
    ($T:ty) => {{
        static WATCH: $crate::asynch::watch::Watch<$T> = $crate::asynch::watch::Watch::new();
        WATCH.split()
    }};
    ($T:ty, $W:expr) => {{
        static WATCH: $crate::asynch::watch::Watch<$T, { $W }> = $crate::asynch::watch::Watch::with_places();
        WATCH.split()
    }};
}
