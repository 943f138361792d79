//! The newest value of something: written as often as one likes, read whenever one likes.
//!
//! ```
//! use punctual_sync::shared::Latest;
//!
//! static SETPOINT: Latest<[f32; 2]> = Latest::new([0.0; 2]);
//!
//! let (mut writer, mut reader) = (SETPOINT.writer().unwrap(), SETPOINT.reader().unwrap());
//! writer.write([0.5, 1.0]);
//! writer.write([0.6, 1.1]);
//! let reading = reader.read();
//! assert!(reading.is_new && reading.value == [0.6, 1.1]);
//! assert!(!reader.read().is_new);
//! ```
//!
//! Triple buffering: the writer owns one slot, the reader owns one, and the third, the *middle*, is what either
//! exchanges its own for. Three slots and an atomic instruction are what J. Chen and A. Burns need in "A Three-Slot
//! Asynchronous Reader/Writer Mechanism for Multiprocessor Real-Time Systems" (University of York, YCS-286, 1997);
//! with an exchange in place of their compare-and-swap, neither side can fail.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel. Writing is wait-free, one copy and one atomic
//! exchange; so is reading, with a load in front. Neither ever repeats anything.
//!
//! # Invariants
//!
//! *L1* `back`, `front` and the index in `middle` are three different slots. Each exchange permutes them.
//! *L2* A slot is touched only by the side that owns it; the middle one by nobody. It changes owner in an exchange
//! that acquires what the other side did to it and releases what this side did to its own.
//! *L3* There is at most one writer and one reader: each holds a claim while it lives.

use core::fmt;

use super::{Claim, Padded};
use crate::atomic::{AtomicU32, Ordering, UnsafeCell};
use crate::seed::seeded;

/// In `middle`: the reader has not seen this slot.
const NEW: u32 = 4;

/// A cell that holds the newest complete value.
///
/// `T: Copy`, because an old value is overwritten, not dropped: nobody's destructor runs on the real-time path.
#[repr(C)]
pub struct Latest<T> {
    middle: Padded<AtomicU32>,
    /// The writer's slot.
    back: Padded<Side>,
    /// The reader's slot.
    front: Padded<Side>,
    slots: [Padded<UnsafeCell<T>>; 3],
}

/// Which slot one side owns, kept here while nobody holds the claim.
#[repr(C)]
struct Side {
    claim: Claim,
    slot: AtomicU32,
}

// SAFETY: by L1–L3 each slot is touched by one thread at a time, and changes hands with release and acquire. Values
// cross threads: `T: Send`.
unsafe impl<T: Send> Sync for Latest<T> {}

impl<T: Copy> Latest<T> {
    /// A cell that holds `initial`, which counts as seen.
    #[cfg(not(loom))]
    pub const fn new(initial: T) -> Self {
        Self {
            middle: Padded(AtomicU32::new(0)),
            back: Padded(Side { claim: Claim::new(), slot: AtomicU32::new(1) }),
            front: Padded(Side { claim: Claim::new(), slot: AtomicU32::new(2) }),
            slots: [
                Padded(UnsafeCell::new(initial)),
                Padded(UnsafeCell::new(initial)),
                Padded(UnsafeCell::new(initial)),
            ],
        }
    }

    /// A cell that holds `initial`, which counts as seen.
    #[cfg(loom)]
    pub fn new(initial: T) -> Self {
        Self {
            middle: Padded(AtomicU32::new(0)),
            back: Padded(Side { claim: Claim::new(), slot: AtomicU32::new(1) }),
            front: Padded(Side { claim: Claim::new(), slot: AtomicU32::new(2) }),
            slots: core::array::from_fn(|_| Padded(UnsafeCell::new(initial))),
        }
    }

    /// The writing end, unless it is in use. Dropping it makes it available again.
    pub fn writer(&self) -> Option<LatestWriter<'_, T>> {
        // Relaxed: the claim ordered this after the previous writer's last store.
        let back = || self.back.0.slot.load(Ordering::Relaxed);
        self.back.0.claim.take().then(|| LatestWriter { cell: self, back: back() })
    }

    /// The reading end, unless it is in use. Dropping it makes it available again.
    pub fn reader(&self) -> Option<LatestReader<'_, T>> {
        // Relaxed: the claim ordered this after the previous reader's last store.
        let front = || self.front.0.slot.load(Ordering::Relaxed);
        self.front.0.claim.take().then(|| LatestReader { cell: self, front: front() })
    }
}

impl<T> fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.middle.0.load(Ordering::Relaxed) & NEW != 0;
        f.debug_struct("Latest").field("unread", &unread).finish_non_exhaustive()
    }
}

/// The writing end of a [`Latest`].
pub struct LatestWriter<'a, T> {
    cell: &'a Latest<T>,
    back: u32,
}

impl<T: Copy> LatestWriter<'_, T> {
    /// Makes `value` the newest one.
    #[inline]
    pub fn write(&mut self, value: T) {
        self.write_with(|slot| *slot = value);
    }

    /// Lets `f` write the newest value in place. It finds some value that was written before, not always the last.
    ///
    /// # Panics
    /// If `f` does; then nothing is published.
    #[inline]
    pub fn write_with(&mut self, f: impl FnOnce(&mut T)) {
        // SAFETY: by L1 and L2 the slot `back` is this writer's alone, and by L3 there is no other writer.
        self.cell.slots[self.back as usize].0.with_mut(|slot| f(unsafe { &mut *slot }));
        let relaxed = seeded!("seed-latest-write-relaxed");
        // Release: the reader that gets the slot sees the value. Acquire: the reader has finished with the slot that
        // comes back.
        let order = if relaxed { Ordering::Relaxed } else { Ordering::AcqRel };
        self.back = self.cell.middle.0.swap(self.back | NEW, order) & !NEW;
    }
}

impl<T> Drop for LatestWriter<'_, T> {
    fn drop(&mut self) {
        self.cell.back.0.slot.store(self.back, Ordering::Relaxed);
        self.cell.back.0.claim.give_back();
    }
}

impl<T> fmt::Debug for LatestWriter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatestWriter").field("cell", self.cell).finish()
    }
}

/// A value, and whether it is the first reading of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading<T> {
    /// The newest value that had been written completely.
    pub value: T,
    /// Whether it was written since the previous reading.
    pub is_new: bool,
}

/// The reading end of a [`Latest`].
pub struct LatestReader<'a, T> {
    cell: &'a Latest<T>,
    front: u32,
}

impl<T: Copy> LatestReader<'_, T> {
    /// Copies the newest value.
    #[inline]
    pub fn read(&mut self) -> Reading<T> {
        self.read_with(|&value, is_new| Reading { value, is_new })
    }

    /// Lets `f` look at the newest value in place, and tells it whether it is the first look. A writer is not held
    /// up meanwhile.
    #[inline]
    pub fn read_with<R>(&mut self, f: impl FnOnce(&T, bool) -> R) -> R {
        let middle = &self.cell.middle.0;
        // Relaxed: only a hint, since nobody but this reader takes the mark away.
        let is_new = middle.load(Ordering::Relaxed) & NEW != 0;
        if is_new {
            // Acquire: the writer has finished with the slot. Release: this reader has finished with its own.
            let relaxed = seeded!("seed-latest-read-relaxed");
            let order = if relaxed { Ordering::Relaxed } else { Ordering::AcqRel };
            self.front = middle.swap(self.front, order) & !NEW;
        }
        // SAFETY: by L1 and L2 the slot `front` is this reader's alone, and by L3 there is no other reader.
        self.cell.slots[self.front as usize].0.with(|slot| f(unsafe { &*slot }, is_new))
    }
}

impl<T> Drop for LatestReader<'_, T> {
    fn drop(&mut self) {
        self.cell.front.0.slot.store(self.front, Ordering::Relaxed);
        self.cell.front.0.claim.give_back();
    }
}

impl<T> fmt::Debug for LatestReader<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatestReader").field("cell", self.cell).finish()
    }
}

// SAFETY: `repr(C)` without pointers, and `T` has none. `write` sets every field. Two processes are two threads to
// L1–L3, which rest on atomics alone; an index that another process corrupted is caught by the bounds check.
#[cfg(not(loom))]
unsafe impl<T: super::Plain> super::Shareable for Latest<T> {
    const KIND: u32 = 2;
    type Element = T;
    type Init = T;

    unsafe fn write(this: *mut Self, initial: T) {
        // SAFETY: `this` is valid for writes by the contract of this function. Everything else stays zero: no claims,
        // and slot 0 in the middle.
        unsafe {
            (&raw mut (*this).back.0.slot).write(AtomicU32::new(1));
            (&raw mut (*this).front.0.slot).write(AtomicU32::new(2));
            let slots = (&raw mut (*this).slots).cast::<Padded<UnsafeCell<T>>>();
            for slot in 0..3 {
                slots.add(slot).write(Padded(UnsafeCell::new(initial)));
            }
        }
    }
}
