//! Lines that threads of an app leave for the supervisor to write, in static memory.
//!
//! A ring: a thread claims the next slot, writes its text, and marks it as complete. The writer,
//! one thread at a time, takes the texts in this order and stops at an incomplete one, whose thread
//! may have been preempted.

use std::cell::UnsafeCell;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of stored texts.
const SLOTS: u32 = 16;
/// Maximum stored length of a text, in bytes.
const MAX_TEXT_LEN: usize = 1000;

static DEFERRED: Deferred = Deferred {
    slots: [const { Slot { complete: AtomicBool::new(false), text: UnsafeCell::new(Text::new()) } };
        SLOTS as usize],
    claimed: AtomicU32::new(0),
    written: AtomicU32::new(0),
    missed: AtomicU32::new(0),
    writer: Mutex::new(()),
};

/// Leaves a text, which ends with a newline, to be written. Does not allocate, block or enter the
/// kernel.
pub(crate) fn defer(text: fmt::Arguments<'_>) {
    DEFERRED.defer(text);
}

/// Writes the stored texts. For ordinary threads.
pub(crate) fn write_deferred() {
    DEFERRED.take_all(super::text);
}

struct Deferred {
    slots: [Slot; SLOTS as usize],
    /// Total number of claimed slots.
    claimed: AtomicU32,
    /// Total number of written texts.
    written: AtomicU32,
    /// Number of texts that found no slot.
    missed: AtomicU32,
    writer: Mutex<()>,
}

struct Slot {
    complete: AtomicBool,
    text: UnsafeCell<Text>,
}

// SAFETY: a text is accessed by the thread that has claimed its slot, until it sets `complete`, and
// then by the writer, of which the mutex admits one, until it has counted the text as written,
// which lets the slot be claimed again.
unsafe impl Sync for Deferred {}

impl Deferred {
    fn defer(&self, text: fmt::Arguments<'_>) {
        let mut claimed = self.claimed.load(Ordering::Relaxed);
        loop {
            // Acquire: the writer is done with the slot.
            if is_full(claimed, self.written.load(Ordering::Acquire)) {
                self.missed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let next = claimed.wrapping_add(1);
            match self.claimed.compare_exchange_weak(claimed, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => claimed = now,
            }
        }
        let slot = &self.slots[(claimed % SLOTS) as usize];
        // SAFETY: this thread has claimed the slot, and the text is not complete yet.
        unsafe { (*slot.text.get()).set(text) };
        // Release: the writer sees the text.
        slot.complete.store(true, Ordering::Release);
    }

    fn take_all(&self, write: impl Fn(fmt::Arguments<'_>)) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let written = self.written.load(Ordering::Relaxed);
            let slot = &self.slots[(written % SLOTS) as usize];
            // Acquire: pairs with the release of the thread that left the text.
            if !slot.complete.swap(false, Ordering::Acquire) {
                break;
            }
            // SAFETY: the text is complete, and this thread holds the mutex.
            write(format_args!("{}", unsafe { &*slot.text.get() }));
            // Release: the next claimant of the slot writes after this.
            self.written.store(written.wrapping_add(1), Ordering::Release);
        }
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => {}
            missed => {
                write(format_args!("punctual: further messages that came too fast and are lost: {missed}\n"))
            }
        }
    }
}

/// Returns whether all slots are in use. If `claimed` was read earlier, it may even be behind
/// `written`: then the exchange fails.
fn is_full(claimed: u32, written: u32) -> bool {
    claimed.wrapping_sub(written).cast_signed() >= SLOTS.cast_signed()
}

/// The start of a text, and its full length.
struct Text {
    bytes: [u8; MAX_TEXT_LEN],
    length: usize,
    /// In bytes, including the part that did not fit.
    whole: usize,
}

impl Text {
    const fn new() -> Self {
        Self { bytes: [0; MAX_TEXT_LEN], length: 0, whole: 0 }
    }

    fn set(&mut self, text: fmt::Arguments<'_>) {
        (self.length, self.whole) = (0, 0);
        // Never fails; an argument whose `Display` fails is cut off there.
        let _ = self.write_fmt(text);
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nothing follows a truncated part.
        let room = if self.length == self.whole { MAX_TEXT_LEN - self.length } else { 0 };
        let fits = super::fitting(text, room);
        self.bytes[self.length..self.length + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        self.whole += text.len();
        Ok(())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes[..self.length]))?;
        match self.whole - self.length {
            0 => Ok(()),
            more => writeln!(f, "… ({more} more bytes)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn deferred() -> Box<Deferred> {
        let slot = || Slot { complete: AtomicBool::new(false), text: UnsafeCell::new(Text::new()) };
        Box::new(Deferred {
            slots: std::array::from_fn(|_| slot()),
            claimed: AtomicU32::new(u32::MAX - 2),
            written: AtomicU32::new(u32::MAX - 2),
            missed: AtomicU32::new(0),
            writer: Mutex::new(()),
        })
    }

    fn taken(deferred: &Deferred) -> Vec<String> {
        let taken = RefCell::new(Vec::new());
        deferred.take_all(|text| taken.borrow_mut().push(text.to_string()));
        taken.into_inner()
    }

    #[test]
    fn writes_texts_in_order_and_counts_dropped_ones() {
        let deferred = deferred();
        assert!(taken(&deferred).is_empty());
        for round in 0..2 {
            (0..SLOTS + 3).for_each(|number| deferred.defer(format_args!("{round}.{number}\n")));
            let taken = taken(&deferred);
            assert_eq!(taken.len() as u32, SLOTS + 1);
            assert_eq!((&*taken[0], &*taken[15]), (&*format!("{round}.0\n"), &*format!("{round}.15\n")));
            assert_eq!(taken[16], "punctual: further messages that came too fast and are lost: 3\n");
        }
    }

    #[test]
    fn outdated_number_of_claims_is_not_full() {
        for written in [0, 100, u32::MAX - 2, u32::MAX] {
            let is_full = |more: i32| is_full(written.wrapping_add_signed(more), written);
            assert!(is_full(16) && !is_full(15) && !is_full(0), "{written}");
            // Other threads have claimed slots since, and their texts were written.
            assert!(!is_full(-1) && !is_full(-1_000), "{written}");
        }
    }

    #[test]
    fn reports_truncation() {
        let deferred = deferred();
        let long = "ä".repeat(MAX_TEXT_LEN);
        deferred.defer(format_args!("a{long}b\n"));
        let expected = format!(
            "a{}… ({} more bytes)\n",
            "ä".repeat((MAX_TEXT_LEN - 1) / 2),
            1 + 2 * MAX_TEXT_LEN + 2 - (MAX_TEXT_LEN - 1)
        );
        assert_eq!(taken(&deferred), [expected]);
    }
}
