//! Messages from one writer to any number of readers, for which the writer never waits.
//!
//! Readers need only a read-only mapping, so a dead, stopped or hostile reader affects neither the
//! writer nor other readers. A reader that falls behind skips the overwritten messages and counts
//! them.
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use punctual_sync::Instant;
//! use punctual_sync::shared::{BroadcastLayout, BroadcastReader, BroadcastWriter};
//!
//! // 64 slots for messages of up to 24 bytes.
//! let layout = BroadcastLayout::new(64, 24).unwrap();
//! // Stands for a mapping.
//! let memory: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
//!
//! let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
//! let mut reader = BroadcastReader::new(&memory, layout).unwrap();
//! writer.publish(Instant::from_ticks(7), 1, b"0.25")?;
//!
//! let mut buffer = [0; 3];
//! let message = reader.read(&mut buffer).unwrap();
//! assert_eq!((message.instant.as_ticks(), message.sequence, message.bytes), (7, 1, &b"0.25"[..]));
//! assert_eq!((reader.read(&mut buffer), reader.lost()), (None, 0));
//! # Ok::<(), punctual_sync::shared::MessageTooLong>(())
//! ```
//!
//! # Memory
//!
//! Everything is a 64-bit word in native byte order. Word 0 is the *tail*: the number of messages
//! published so far, modulo 2⁶⁴. The slots follow at word 16, so that the tail has its own cache
//! lines in memory aligned to 128 bytes. The message at position `p` is in slot `p` modulo the
//! capacity:
//!
//! | word | content |
//! |---|---|
//! | 0 | instant, in ns |
//! | 1 | sequence number in the low half, length in bytes in the high half |
//! | 2… | bytes |
//!
//! # Real-time safety
//!
//! Nothing here allocates, blocks or enters the kernel. Writing is wait-free: one copy, and no
//! locked instruction on x86. A read makes at most eight attempts of one copy each, whatever the
//! writer does.
//!
//! # Trust
//!
//! The memory may be written by a process that is not trusted, to either side. Indices are masked,
//! lengths are checked, positions wrap, and no retry is unbounded; a corrupt message increments
//! [`BroadcastReader::malformed`]. The bytes of messages, and the counts, are as trustworthy as the
//! writer. A writer never reads the memory after its creation. A writer that publishes without
//! pause keeps readers busy, so a reader limits the number of messages that it reads in one turn.
//!
//! # Invariants
//!
//! *B1* The stores to a slot for position `p` follow, in the order seen by any reader that detects
//! them, the store of `p` to the tail: [`BroadcastWriter::publish`] executes a release fence
//! between them, and [`BroadcastReader::read`] an acquire fence between its loads from the slot and
//! its second load of the tail. *B2* The stores to a slot for position `p` precede the store of
//! `p + 1` to the tail, by its release ordering and the acquire fence after the reader's first load
//! of the tail. So a reader that copies position `p` after it has seen a tail above `p` (B2), and
//! then sees a tail below `p + capacity`, has a complete copy: a store for `p + capacity` or later
//! would have shown it a tail of at least `p + capacity` (B1).
//!
//! Readers use relaxed loads and fences rather than acquire loads, because only relaxed loads of at
//! most a machine word are defined on read-only memory. Therefore read-only mappings require a
//! 64-bit machine.

use core::fmt;

use crate::Instant;
use crate::atomic::{AtomicU64, Ordering, fence};

/// Distance between the tail and the slots, in words: two cache lines.
const SLOTS_AT: usize = 16;
/// Words of a slot before the bytes of its message.
const SLOT_HEADER: usize = 2;
/// The maximum number of copies in one read that the writer overtakes.
const MAX_ATTEMPTS: u32 = 8;
/// A larger distance from a reader to the tail means that the tail has decreased.
const MAX_DISTANCE: u64 = u64::MAX / 2;

/// The number and the size of the slots of a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BroadcastLayout {
    /// The capacity less 1: selects the slot of a position.
    mask: usize,
    max_bytes: usize,
    /// The size of a slot, which would otherwise be computed for each message.
    slot_words: usize,
}

impl BroadcastLayout {
    /// Creates a layout with `capacity` slots for messages of up to `max_bytes` bytes.
    ///
    /// Readers can be up to `capacity - 1` messages behind. `None` if `capacity` is not a power of
    /// two above 1, or if the size exceeds the address space or the format.
    pub const fn new(capacity: usize, max_bytes: usize) -> Option<Self> {
        if capacity < 2 || !capacity.is_power_of_two() || max_bytes as u64 > u32::MAX as u64 {
            return None;
        }
        let slot_words = SLOT_HEADER + max_bytes.div_ceil(size_of::<u64>());
        let layout = Self { mask: capacity - 1, max_bytes, slot_words };
        let Some(slots) = capacity.checked_mul(slot_words) else { return None };
        let Some(words) = slots.checked_add(SLOTS_AT) else { return None };
        if words > isize::MAX as usize / size_of::<u64>() { None } else { Some(layout) }
    }

    /// Returns the required memory in words of 64 bits.
    pub const fn words(self) -> usize {
        SLOTS_AT + self.capacity() * self.slot_words
    }

    /// Returns the number of slots.
    pub const fn capacity(self) -> usize {
        self.mask + 1
    }

    /// Returns the maximum length of a message, in bytes.
    pub const fn max_bytes(self) -> usize {
        self.max_bytes
    }

    /// Returns the number of words that hold a message of the maximum length.
    pub const fn message_words(self) -> usize {
        self.slot_words - SLOT_HEADER
    }

    /// Returns the slot of `position`.
    ///
    /// # Safety
    /// `slots` comes from [`split`](Self::split).
    #[inline(always)]
    unsafe fn slot(self, slots: &[AtomicU64], position: u64) -> &[AtomicU64] {
        let start = (position as usize & self.mask) * self.slot_words;
        // SAFETY: the capacity is a power of two, so the index of the slot is below it; and `split`
        // has returned the words of all slots, whose number does not wrap.
        unsafe { slots.get_unchecked(start..start.unchecked_add(self.slot_words)) }
    }

    /// Splits `memory` into the tail and the slots; `None` if it is too short.
    fn split(self, memory: &[AtomicU64]) -> Option<(&AtomicU64, &[AtomicU64])> {
        let slots = memory.get(SLOTS_AT..self.words())?;
        Some((memory.first()?, slots))
    }
}

/// The message is longer than a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTooLong;

impl fmt::Display for MessageTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message is longer than the slots of the broadcast")
    }
}

impl core::error::Error for MessageTooLong {}

/// The writing end of a broadcast.
///
/// Two writers of the same memory are memory-safe, but readers get mixed messages.
pub struct BroadcastWriter<'a> {
    tail: &'a AtomicU64,
    slots: &'a [AtomicU64],
    layout: BroadcastLayout,
    /// The position of the next message: the tail. Not loaded again, since it may be corrupted.
    next: u64,
}

impl<'a> BroadcastWriter<'a> {
    /// Creates the writing end in `memory`, which is zero, or was used by a previous writer with
    /// the same layout. Positions continue. `None` if the memory is too short.
    pub fn new(memory: &'a [AtomicU64], layout: BroadcastLayout) -> Option<Self> {
        let (tail, slots) = layout.split(memory)?;
        // Relaxed: whatever ended the previous writer has ordered its stores.
        Some(Self { tail, slots, layout, next: tail.load(Ordering::Relaxed) })
    }

    /// Publishes a message.
    ///
    /// Real-time safety: wait-free; copies the bytes and stores 24 more.
    ///
    /// # Errors
    /// [`MessageTooLong`] if it is longer than [`BroadcastLayout::max_bytes`]; nothing is
    /// published.
    #[inline]
    pub fn publish(&mut self, instant: Instant, sequence: u32, message: &[u8]) -> Result<(), MessageTooLong> {
        if message.len() > self.layout.max_bytes {
            return Err(MessageTooLong);
        }
        // SAFETY: the slots come from `split`.
        let slot = unsafe { self.layout.slot(self.slots, self.next) };
        // A single comparison, which covers the header and each word of the message.
        let used = SLOT_HEADER + message.len().div_ceil(size_of::<u64>());
        let Some([stamp, length, words @ ..]) = slot.get(..used) else { return Err(MessageTooLong) };
        // B1: the store of `next` to the tail, by the previous call, precedes the stores to the
        // slot. Pairs with the acquire fence in `BroadcastReader::copy`.
        fence(Ordering::Release);
        stamp.store(instant.as_ticks(), Ordering::Relaxed);
        length.store(u64::from(sequence) | (message.len() as u64) << 32, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { store(words, message) };
        self.next = self.next.wrapping_add(1);
        // B2: release: a reader that sees this tail sees the slot. Pairs with the acquire fence in
        // `BroadcastReader::tail`.
        self.tail.store(self.next, Ordering::Release);
        Ok(())
    }

    /// Returns the number of messages published so far, modulo 2⁶⁴.
    pub const fn position(&self) -> u64 {
        self.next
    }
}

/// Stores `bytes` in the words, by one relaxed store per word: readers may load them concurrently.
///
/// # Safety
/// There are as many words as the bytes need.
#[inline(always)]
unsafe fn store(words: &[AtomicU64], bytes: &[u8]) {
    /// Stores as many batches of bytes as there are, each without a loop.
    ///
    /// # Safety
    /// As for [`store`], where the words begin at `to`.
    #[inline(always)]
    unsafe fn batches<const BYTES: usize>(to: &mut *const AtomicU64, bytes: &mut &[u8]) {
        while let Some((batch, rest)) = bytes.split_first_chunk::<BYTES>() {
            for &word in batch.as_chunks::<8>().0 {
                // SAFETY: by this function's contract.
                unsafe {
                    (**to).store(u64::from_ne_bytes(word), Ordering::Relaxed);
                    *to = to.add(1);
                }
            }
            *bytes = rest;
        }
    }

    let (mut to, mut rest) = (words.as_ptr(), bytes);
    // SAFETY: by this function's contract.
    unsafe {
        batches::<64>(&mut to, &mut rest);
        if rest.is_empty() {
            return;
        }
        batches::<32>(&mut to, &mut rest);
        batches::<16>(&mut to, &mut rest);
        batches::<8>(&mut to, &mut rest);
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            (*to).store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for BroadcastWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = f.debug_struct("BroadcastWriter");
        writer.field("layout", &self.layout).field("position", &self.next).finish_non_exhaustive()
    }
}

/// A message as seen by a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BroadcastMessage<'b> {
    /// The instant passed to [`BroadcastWriter::publish`].
    pub instant: Instant,
    /// The sequence number passed to [`BroadcastWriter::publish`].
    pub sequence: u32,
    /// The bytes.
    pub bytes: &'b [u8],
}

/// A reading end of a broadcast. There may be any number.
pub struct BroadcastReader<'a> {
    tail: &'a AtomicU64,
    slots: &'a [AtomicU64],
    layout: BroadcastLayout,
    /// The position of the next message.
    cursor: u64,
    lost: u64,
    malformed: u64,
}

/// The outcome of copying a message.
enum Copied {
    Complete {
        instant: u64,
        sequence: u32,
        length: usize,
    },
    /// The writer has overtaken the reader.
    Overwritten,
    /// The slot contains no message of this layout.
    Malformed,
}

impl<'a> BroadcastReader<'a> {
    /// Creates a reader of the messages published from now on. `None` if the memory is too short.
    pub fn new(memory: &'a [AtomicU64], layout: BroadcastLayout) -> Option<Self> {
        let (tail, slots) = layout.split(memory)?;
        let cursor = tail.load(Ordering::Relaxed);
        Some(Self { tail, slots, layout, cursor, lost: 0, malformed: 0 })
    }

    /// Continues at `position`, such as the [`position`](Self::position) of a previous reader.
    /// Messages that have been overwritten since then count as lost. A position that the writer has
    /// not reached is ignored.
    pub fn resume(&mut self, position: u64) {
        if self.tail().wrapping_sub(position) <= MAX_DISTANCE {
            self.cursor = position;
        }
    }

    /// Copies the next message to `buffer` and returns it; `None` if there is none, or if the
    /// writer has overtaken eight attempts in a row.
    ///
    /// Messages longer than `buffer`, which should have [`BroadcastLayout::message_words`] words,
    /// count as malformed.
    ///
    /// Real-time safety: at most eight copies.
    #[inline]
    pub fn read<'b>(&mut self, buffer: &'b mut [u64]) -> Option<BroadcastMessage<'b>> {
        for _ in 0..MAX_ATTEMPTS {
            if !self.advance() {
                return None;
            }
            match self.copy(buffer) {
                Copied::Complete { instant, sequence, length } => {
                    self.cursor = self.cursor.wrapping_add(1);
                    let instant = Instant::from_ticks(instant);
                    let bytes = bytemuck::cast_slice::<u64, u8>(buffer).get(..length)?;
                    return Some(BroadcastMessage { instant, sequence, bytes });
                }
                Copied::Overwritten => {}
                Copied::Malformed => {
                    self.cursor = self.cursor.wrapping_add(1);
                    self.malformed = self.malformed.wrapping_add(1);
                }
            }
        }
        None
    }

    /// Moves the cursor to a message that has not been overwritten; returns `false` if there is
    /// none.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        let tail = self.tail();
        let unread = tail.wrapping_sub(self.cursor);
        if unread > self.layout.mask as u64 {
            return self.skip(tail, unread);
        }
        unread > 0
    }

    #[cold]
    fn skip(&mut self, tail: u64, unread: u64) -> bool {
        if unread > MAX_DISTANCE {
            // Only a faulty writer decreases the tail.
            self.cursor = tail;
            self.malformed = self.malformed.wrapping_add(1);
            return false;
        }
        // The writer may be changing the oldest slot. An eighth of the capacity is skipped as well,
        // or the next message would soon be overwritten, too.
        let capacity = self.layout.capacity() as u64;
        let skipped = unread - capacity + capacity / 8 + 1;
        self.lost = self.lost.wrapping_add(skipped);
        self.cursor = self.cursor.wrapping_add(skipped);
        true
    }

    /// Copies the message at the cursor, below the tail.
    #[inline(always)]
    fn copy(&self, buffer: &mut [u64]) -> Copied {
        // SAFETY: the slots come from `split`.
        let slot = unsafe { self.layout.slot(self.slots, self.cursor) };
        let [stamp, length, words @ ..] = slot else { return Copied::Malformed };
        let instant = stamp.load(Ordering::Relaxed);
        let length = length.load(Ordering::Relaxed);
        let (sequence, length) = (length as u32, (length >> 32) as usize);
        let fits = length <= self.layout.max_bytes && length.div_ceil(size_of::<u64>()) <= buffer.len();
        if fits {
            let count = length.div_ceil(size_of::<u64>());
            for (to, word) in buffer[..count].iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed);
            }
        }
        // B1: after a load from the slot that saw a store of a later message, the tail below is
        // beyond this message. Pairs with the release fence in `BroadcastWriter::publish`.
        fence(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(self.cursor) > self.layout.mask as u64 {
            Copied::Overwritten
        } else if fits {
            Copied::Complete { instant, sequence, length }
        } else {
            Copied::Malformed
        }
    }

    /// Returns the tail. Later loads see the messages below it.
    #[inline(always)]
    fn tail(&self) -> u64 {
        let tail = self.tail.load(Ordering::Relaxed);
        // B2: pairs with the release store in `BroadcastWriter::publish`.
        fence(Ordering::Acquire);
        tail
    }

    /// Returns the position of the next message: the number of messages published before it, modulo
    /// 2⁶⁴.
    pub const fn position(&self) -> u64 {
        self.cursor
    }

    /// Returns the number of messages that were published and not read.
    pub fn unread(&self) -> u64 {
        self.tail().wrapping_sub(self.cursor)
    }

    /// Returns the number of messages that were overwritten before they were read.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of messages with an impossible length, and of impossible tails: faults of
    /// the writer.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl fmt::Debug for BroadcastReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reader = f.debug_struct("BroadcastReader");
        reader.field("layout", &self.layout).field("position", &self.cursor).field("lost", &self.lost);
        reader.field("malformed", &self.malformed).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn memory(layout: BroadcastLayout) -> Vec<AtomicU64> {
        (0..layout.words()).map(|_| AtomicU64::new(0)).collect()
    }

    fn layout(capacity: usize, max_bytes: usize) -> BroadcastLayout {
        BroadcastLayout::new(capacity, max_bytes).unwrap()
    }

    #[test]
    fn rejects_impossible_layouts() {
        for (capacity, bytes) in [(0, 8), (1, 8), (6, 8), (1 << 62, 8), (2, usize::MAX), (1 << 40, 1 << 31)] {
            assert_eq!(BroadcastLayout::new(capacity, bytes), None, "{capacity} x {bytes}");
        }
        let four = layout(4, 9);
        assert_eq!((four.words(), four.message_words(), four.capacity(), four.max_bytes()), (32, 2, 4, 9));
        let memory = memory(four);
        assert!(BroadcastWriter::new(&memory[1..], four).is_none());
        assert!(BroadcastReader::new(&memory[1..], four).is_none());
    }

    #[test]
    fn delivers_messages_of_every_length() {
        let layout = layout(4, 200);
        let memory = memory(layout);
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        let mut buffer = [0; 25];
        let bytes: Vec<u8> = (0..=200).collect();
        for length in 0..=200 {
            let (instant, sequence) = (Instant::from_ticks(length as u64), u32::MAX - length as u32);
            writer.publish(instant, sequence, &bytes[..length]).unwrap();
            let message = reader.read(&mut buffer).unwrap();
            assert_eq!((message.instant, message.sequence), (instant, sequence));
            assert_eq!(message.bytes, &bytes[..length]);
        }
        assert_eq!(writer.publish(Instant::from_ticks(0), 0, &bytes), Err(MessageTooLong));
        assert_eq!((reader.read(&mut buffer), reader.unread(), reader.lost()), (None, 0, 0));
    }

    #[test]
    fn skips_and_counts_overwritten_messages() {
        let layout = layout(16, 8);
        let memory = memory(layout);
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        let mut publish = |count: u32| {
            (0..count).for_each(|_| {
                let number = writer.position();
                writer.publish(Instant::from_ticks(0), number as u32, &number.to_ne_bytes()).unwrap();
            });
        };
        let read = |reader: &mut BroadcastReader<'_>| {
            let mut buffer = [0; 1];
            let mut all = vec![];
            while let Some(message) = reader.read(&mut buffer) {
                assert_eq!(message.bytes, u64::from(message.sequence).to_ne_bytes());
                all.push(message.sequence);
            }
            all
        };
        publish(15);
        assert_eq!(read(&mut reader), (0..15).collect::<Vec<_>>());
        // The slot of message 15 may be in the process of being overwritten by message 31.
        publish(16);
        assert_eq!(
            read(&mut reader),
            (18..31).collect::<Vec<_>>(),
            "the oldest one and an eighth are skipped"
        );
        assert_eq!((reader.lost(), reader.position()), (3, 31));
        publish(1_000);
        assert_eq!(read(&mut reader).len() as u64 + reader.lost() - 3, 1_000);
        assert_eq!(reader.malformed(), 0);
    }

    #[test]
    fn resumes_at_position_of_previous_reader() {
        let layout = layout(8, 8);
        let memory = memory(layout);
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        (0..5).for_each(|number| writer.publish(Instant::from_ticks(0), number, &[]).unwrap());
        let mut buffer = [0; 1];
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        assert_eq!(reader.read(&mut buffer), None, "a reader starts with the next message");
        reader.resume(6);
        assert_eq!(reader.position(), 5, "the writer has not reached this position");
        reader.resume(3);
        assert_eq!(reader.read(&mut buffer).unwrap().sequence, 3);
        // Another process, after the first one has died.
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        assert_eq!(writer.position(), 5);
        (5..99).for_each(|number| writer.publish(Instant::from_ticks(0), number, &[]).unwrap());
        reader.resume(3);
        assert_eq!(reader.read(&mut buffer).unwrap().sequence, 93);
        assert_eq!(reader.lost(), 90);
    }

    #[test]
    fn positions_wrap() {
        let layout = layout(4, 8);
        let memory = memory(layout);
        memory[0].store(u64::MAX - 1, Ordering::Relaxed);
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        let mut buffer = [0; 1];
        for number in 0..10_u32 {
            writer.publish(Instant::from_ticks(0), number, &number.to_ne_bytes()).unwrap();
            let message = reader.read(&mut buffer).unwrap();
            assert_eq!((message.sequence, message.bytes), (number, &number.to_ne_bytes()[..]));
        }
        assert_eq!((reader.position(), reader.lost(), reader.malformed()), (8, 0, 0));
    }

    #[test]
    fn survives_corrupt_memory() {
        let layout = layout(8, 24);
        let memory = memory(layout);
        // Longer than a slot, so that only the layout limits the length.
        let mut buffer = [0; 8];
        // Every reading terminates without a panic, whatever the words contain.
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random.rotate_left(23)
        };
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        for round in 0..20_000 {
            let word = next() as usize % memory.len();
            memory[word].store(next() >> (next() % 64), Ordering::Relaxed);
            memory[0].store(if round % 3 == 0 { next() } else { next() % 64 }, Ordering::Relaxed);
            if round % 5 == 0 {
                reader.resume(next());
            }
            if let Some(message) = reader.read(&mut buffer) {
                assert!(message.bytes.len() <= 24);
            }
        }
        assert!(reader.malformed() > 0 && reader.lost() > 0);
        // A decreased tail is reported, not followed through 2⁶⁴ messages.
        memory[0].store(100, Ordering::Relaxed);
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        memory[0].store(50, Ordering::Relaxed);
        assert_eq!((reader.read(&mut buffer), reader.position(), reader.malformed()), (None, 50, 1));
    }

    #[test]
    fn counts_messages_longer_than_buffer() {
        let layout = layout(8, 24);
        let memory = memory(layout);
        let mut writer = BroadcastWriter::new(&memory, layout).unwrap();
        let mut reader = BroadcastReader::new(&memory, layout).unwrap();
        writer.publish(Instant::from_ticks(0), 1, &[1; 24]).unwrap();
        writer.publish(Instant::from_ticks(0), 2, &[2; 16]).unwrap();
        assert_eq!(reader.read(&mut [0; 2]).unwrap().sequence, 2);
        assert_eq!((reader.malformed(), reader.lost()), (1, 0));
    }
}
