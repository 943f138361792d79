//! The newest value of a stream: written at any time, read at any time.
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
//! Triple buffering: the writer owns one slot, the reader owns one, and each exchanges its slot for
//! the third, the *middle* one. J. Chen and A. Burns require three slots and an atomic instruction
//! in "A Three-Slot Asynchronous Reader/Writer Mechanism for Multiprocessor Real-Time Systems"
//! (University of York, YCS-286, 1997). Here one word records the owner of each slot, so the death
//! of a process loses none of them.
//!
//! In the crate `triple_buffer` the word holds the middle slot alone: each side swaps it for its
//! own slot, and records the other in its own memory. A process that dies between the two leaves a
//! slot without a known owner. Here the new word depends on the previous one, so an exchange is a
//! compare-and-swap: of a predicted word, which saves the load, or with a flag that bounds the
//! number of attempts. That costs eight instructions more for a write and a read on x86-64.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel, except that in shared
//! memory a process queries its identity when it takes its first end, and that taking over queries
//! it each time. Writing is wait-free: one copy and one atomic instruction, or up to four if the
//! reader was active at another time than before. Reading is wait-free too, and returns the value
//! that was newest when it began or a newer one: one atomic instruction if there is a new value,
//! three at most. A reader that a writer has overtaken sets a flag in the word, and gets the next
//! value directly.
//!
//! # When a process dies
//!
//! An end records which process owns it. When that process has died, at any instruction, another
//! process, or the same program started again, gets the end from [`Latest::take_over_writer`] or
//! [`Latest::take_over_reader`]; while it is alive they fail. Completely written values are
//! preserved, incomplete ones are never seen. A new reader may get the value that the dead one was
//! just taking as not new. The other end notices nothing.
//!
//! # Invariants
//!
//! *L1* The word assigns one slot to the writer, one to the reader and one to the middle: three
//! different ones. Each exchange permutes them. *L2* Only the owner of a slot accesses it, and
//! neither side the middle one. A slot changes owner in an exchange that acquires the other side's
//! changes to it and releases this side's changes to its own. The writer's exchange changes the
//! reader's slot only while the word has [`WANTED`], and then the reader uses none. *L3* There is
//! at most one writer and one reader: each holds a claim while it exists. *L4* The reader's slot
//! and the middle one hold complete values.

use core::fmt;

use super::Padded;
use super::owner::{Claim, Home, TakeOverError};
use crate::Taken;
use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_new};

/// In the state: the slot of the writer.
const BACK: u32 = 3;
/// In the state: the middle slot. The third one is the reader's.
const MIDDLE: u32 = 3 << MIDDLE_SHIFT;
const MIDDLE_SHIFT: u32 = 2;
/// In the state: the reader has not seen the middle slot.
const NEW: u32 = 0x10;
/// The reader tries to take the middle slot, and a writer interfered. Only together with `NEW`, or
/// left by a dead reader.
const WANTED: u32 = 0x20;
/// The number of states.
const STATES: usize = 0x40;

/// Returns a state from the slots of the writer and the middle.
const fn slots(back: u32, middle: u32) -> u32 {
    back | middle << MIDDLE_SHIFT
}

const fn back(state: u32) -> u32 {
    state & BACK
}

const fn middle(state: u32) -> u32 {
    (state & MIDDLE) >> MIDDLE_SHIFT
}

const fn front(state: u32) -> u32 {
    // Of 0, 1 and 2 each is the exclusive or of 3 and the other two.
    3 ^ back(state) ^ middle(state)
}

/// Initially the middle slot is number 0, and counts as seen.
const INITIAL: u32 = slots(1, 0);

/// Returns the state after the writer has made its slot the newest one.
const fn published(state: u32) -> u32 {
    match state & WANTED {
        0 => slots(middle(state), back(state)) | NEW,
        _ => slots(middle(state), front(state)),
    }
}

/// Returns the state after a reader with the slot `front` has taken the middle one.
#[inline(always)]
const fn taken(state: u32, front: u32) -> u32 {
    slots(back(state), front)
}

/// A change of the state by the writer.
#[derive(Clone, Copy)]
#[repr(align(4))]
struct Step {
    /// The slot to publish.
    back: u8,
    /// The state after that.
    next: u8,
    /// The predicted state at the next write.
    expected: u8,
}

impl Step {
    const fn from(state: u32) -> Self {
        // Another process may have corrupted the state; the table leads back to a possible one.
        let is_possible = back(state) != middle(state) && back(state) < 3 && middle(state) < 3;
        let state = if is_possible { state } else { INITIAL | state & (NEW | WANTED) };
        assert!(back(state) < 3, "`step` relies on it");
        let next = published(state);
        // A reader that keeps up will have taken this value, too, by the next write.
        let keeps_up = state & NEW == 0;
        let expected = if keeps_up { taken(next, front(next)) } else { next };
        Self { back: back(state) as u8, next: next as u8, expected: expected as u8 }
    }
}

/// The step from each state: fewer instructions than its computation.
#[repr(align(64))]
struct Steps([Step; STATES]);

static STEPS: Steps = {
    let mut steps = [Step::from(INITIAL); STATES];
    let mut state = 0;
    while state < STATES {
        steps[state] = Step::from(state as u32);
        state += 1;
    }
    Steps(steps)
};

/// A cell that holds the newest complete value.
///
/// `T: Copy`, because an old value is overwritten, not dropped: no destructor runs on the real-time
/// path.
#[repr(C)]
pub struct Latest<T> {
    state: Padded<AtomicU32>,
    writer: Claim,
    reader: Claim,
    home: Home,
    slots: [Padded<UnsafeCell<T>>; 3],
}

// SAFETY: by L1–L3 one thread at a time accesses each slot, whose owner changes with release and
// acquire. Values move between threads: `T: Send`.
unsafe impl<T: Send> Sync for Latest<T> {}

impl<T: Copy> Latest<T> {
    const_new! {
        /// Creates a cell that holds `initial`, which counts as seen.
        pub fn new(initial: T) -> Self {
            Self {
                state: Padded(AtomicU32::new(INITIAL)),
                writer: Claim::new(),
                reader: Claim::new(),
                home: Home::NOWHERE,
                slots: [
                    Padded(UnsafeCell::new(initial)),
                    Padded(UnsafeCell::new(initial)),
                    Padded(UnsafeCell::new(initial)),
                ],
            }
        }
    }

    /// Returns the writing end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn writer(&self) -> Result<LatestWriter<'_, T>, Taken> {
        self.writer.take(&self.home).map(|()| self.writer_now())
    }

    /// Returns the reading end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn reader(&self) -> Result<LatestReader<'_, T>, Taken> {
        self.reader.take(&self.home).map(|()| self.reader_now())
    }

    /// Returns the writing end, if it is free or the process that had it is dead.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive or cannot be identified.
    pub fn take_over_writer(&self) -> Result<LatestWriter<'_, T>, TakeOverError> {
        self.writer.take_over(&self.home).map(|()| self.writer_now())
    }

    /// Returns the reading end, if it is free or the process that had it is dead.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive or cannot be identified.
    pub fn take_over_reader(&self) -> Result<LatestReader<'_, T>, TakeOverError> {
        self.reader.take_over(&self.home).map(|()| self.reader_now())
    }

    /// Returns the writing end regardless of its owner: for a process with better knowledge than
    /// the kernel; see [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous writer is never used again, and no other thread takes the end concurrently.
    pub unsafe fn take_over_writer_unchecked(&self) -> LatestWriter<'_, T> {
        self.writer.seize(&self.home);
        self.writer_now()
    }

    /// Returns the reading end regardless of its owner: for a process with better knowledge than
    /// the kernel; see [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous reader is never used again, and no other thread takes the end concurrently.
    pub unsafe fn take_over_reader_unchecked(&self) -> LatestReader<'_, T> {
        self.reader.seize(&self.home);
        self.reader_now()
    }

    fn writer_now(&self) -> LatestWriter<'_, T> {
        // Relaxed: the claim ordered this after the previous writer's last exchange, which gave it
        // this slot.
        LatestWriter { cell: self, expected: self.state.0.load(Ordering::Relaxed) as u8 }
    }

    fn reader_now(&self) -> LatestReader<'_, T> {
        // A slot wanted by a dead reader must not be assigned any more: it would be taken from this
        // one. Acquire: the writer may have assigned the slot. The dead reader had finished with
        // its own, which its flag released.
        let state = self.state.0.fetch_and(!WANTED, Ordering::Acquire);
        LatestReader { cell: self, front: front(state) }
    }
}

#[cfg(loom)]
impl<T: Copy> Latest<T> {
    /// The state left by a reader that dies after requesting a slot while there is a new value.
    pub(super) fn abandon_request(&self) {
        self.state.0.fetch_or(NEW | WANTED, Ordering::Release);
    }
}

impl<T> fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.state.0.load(Ordering::Relaxed) & NEW != 0;
        f.debug_struct("Latest").field("unread", &unread).finish_non_exhaustive()
    }
}

/// Returns the step from a state.
#[inline(always)]
fn step(state: u8) -> Step {
    let step = STEPS.0[usize::from(state) % STATES];
    // SAFETY: as `Step::from` has checked for each step of the table.
    unsafe { core::hint::assert_unchecked(step.back < 3) };
    step
}

/// The writing end of a [`Latest`].
pub struct LatestWriter<'a, T> {
    cell: &'a Latest<T>,
    /// The predicted word: as this writer left it, or as the reader leaves it, if the reader was
    /// active before the last write. Only the writer's slot is certain.
    expected: u8,
}

impl<T: Copy> LatestWriter<'_, T> {
    /// Makes `value` the newest one.
    #[inline]
    pub fn write(&mut self, value: T) {
        self.write_with(|slot| *slot = value);
    }

    /// Lets `f` write the newest value in place. The slot contains some previously written value,
    /// not always the last.
    ///
    /// # Panics
    /// If `f` panics; then nothing is published.
    #[inline]
    pub fn write_with(&mut self, f: impl FnOnce(&mut T)) {
        let mut step = step(self.expected);
        // SAFETY: by L1 and L2 this writer owns the slot `back` exclusively, and by L3 there is no
        // other writer.
        self.cell.slots[usize::from(step.back)].0.with_mut(|slot| f(unsafe { &mut *slot }));
        // Not loaded first: while the reader is active too, that would fetch its cache line twice,
        // to read and then to write.
        let mut state = u32::from(self.expected);
        loop {
            let next = u32::from(step.next);
            // Release: the reader that gets the slot sees the value. Acquire: the reader has
            // finished with the returned slot. Fails if the prediction was wrong, and only if the
            // reader interfered: once when it requests the slot, and once when it takes it, after
            // which there is nothing for it to take.
            match self.cell.state.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return self.expected = step.expected,
                Err(now) => (state, step) = (now, self::step(now as u8)),
            }
        }
    }
}

impl<T> Drop for LatestWriter<'_, T> {
    fn drop(&mut self) {
        self.cell.writer.give_back(&self.cell.home);
    }
}

impl<T> fmt::Debug for LatestWriter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatestWriter").field("cell", self.cell).finish()
    }
}

/// A value, and whether this is its first reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading<T> {
    /// The newest value that had been written completely.
    pub value: T,
    /// `true` if the value was written since the previous reading.
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

    /// Passes `f` the newest value in place, and whether this is its first reading. Does not delay
    /// the writer.
    #[inline]
    pub fn read_with<R>(&mut self, f: impl FnOnce(&T, bool) -> R) -> R {
        let is_new = self.take_new();
        // SAFETY: by L1 and L2 this reader owns the slot `front` exclusively, and by L3 there is no
        // other reader. By L4 it holds a value.
        self.cell.slots[self.front as usize].0.with(|slot| f(unsafe { &*slot }, is_new))
    }

    /// Takes the middle slot if it is new.
    #[inline]
    fn take_new(&mut self) -> bool {
        let word = &self.cell.state.0;
        // Relaxed: only a hint, since only this reader clears the flag.
        let state = word.load(Ordering::Relaxed);
        if state & NEW == 0 {
            return false;
        }
        let next = taken(state, self.front);
        // Acquire: the writer has finished with the slot. Release: this reader has finished with
        // its own.
        self.front = match word.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => middle(state),
            Err(_) => self.take_requested(),
        };
        true
    }

    /// Takes the middle slot, which is new, even if a writer publishes values continuously.
    #[cold]
    fn take_requested(&mut self) -> u32 {
        let word = &self.cell.state.0;
        // Release: this reader has finished with its slot, which the writer may now take. The flag
        // is cleared by the first exchange, the writer's or the one below.
        let state = word.fetch_or(WANTED, Ordering::Release) | WANTED;
        let next = taken(state, self.front);
        // Acquire: the writer has finished with the slot, or it has assigned its value to this
        // reader, and may have published more since.
        match word.compare_exchange(state, next, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => middle(state),
            Err(now) => front(now),
        }
    }
}

impl<T> Drop for LatestReader<'_, T> {
    fn drop(&mut self) {
        self.cell.reader.give_back(&self.cell.home);
    }
}

impl<T> fmt::Debug for LatestReader<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatestReader").field("cell", self.cell).finish()
    }
}

// SAFETY: `repr(C)` without pointers, and `T` has none. `write` sets every field. To L1–L3, which
// rely on atomics only, two processes are two threads. A state that another process corrupted leads
// neither end beyond the slots: the step from any state names one of them, and the reader's index
// is checked.
#[cfg(not(loom))]
unsafe impl<T: super::Plain> super::Shareable for Latest<T> {
    const KIND: u32 = 2;
    type Element = T;
    type Init = T;

    unsafe fn write(this: *mut Self, initial: T) {
        // SAFETY: `this` is valid for writes by the contract of this function. The other fields
        // stay zero: no claims.
        unsafe {
            (&raw mut (*this).state).write(Padded(AtomicU32::new(INITIAL)));
            (&raw mut (*this).home).write(Home::here());
            let slots = (&raw mut (*this).slots).cast::<Padded<UnsafeCell<T>>>();
            for slot in 0..3 {
                slots.add(slot).write(Padded(UnsafeCell::new(initial)));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn exchanges_permute_slots() {
        for state in [INITIAL, slots(2, 1), slots(0, 2) | NEW, slots(1, 2) | NEW | WANTED] {
            for next in [published(state), taken(state, front(state))] {
                let mut owned = [back(next), middle(next), front(next)];
                owned.sort_unstable();
                assert_eq!(owned, [0, 1, 2], "{state:#x}");
                assert_eq!(next & WANTED, 0);
            }
        }
        assert_eq!(published(INITIAL), slots(0, 1) | NEW);
        assert_eq!(published(INITIAL | NEW | WANTED), slots(0, 2), "the reader has the newest value");
        assert_eq!(taken(INITIAL | NEW, 2), slots(1, 2));
    }

    #[test]
    fn writes_to_a_slot_whatever_the_state() {
        for state in 0..=u32::from(u8::MAX) {
            let cell = Latest::new(0);
            let (mut writer, mut reader) = (cell.writer().unwrap(), cell.reader().unwrap());
            cell.state.0.store(state, Ordering::Relaxed);
            writer.write(1);
            writer.write(2);
            let state = cell.state.0.load(Ordering::Relaxed);
            assert!(back(state) < 3 && middle(state) < 3 && back(state) != middle(state), "{state:#x}");
            reader.read();
        }
    }

    #[test]
    fn new_reader_ignores_request_of_a_dead_one() {
        let cell = Latest::new(0);
        let mut writer = cell.writer().unwrap();
        writer.write(1);
        cell.state.0.fetch_or(WANTED, Ordering::Relaxed);
        let mut reader = cell.reader().unwrap();
        reader.take_new();
        let slot = reader.front;
        assert_eq!(cell.state.0.load(Ordering::Relaxed) & WANTED, 0);
        drop(reader);
        cell.state.0.fetch_or(WANTED, Ordering::Relaxed);
        let reader = cell.reader().unwrap();
        (2..6).for_each(|value| writer.write(value));
        assert_eq!(front(cell.state.0.load(Ordering::Relaxed)), reader.front);
        assert_eq!(reader.front, slot, "the reader retains its slot");
    }
}
