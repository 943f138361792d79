//! Lines that threads of an app leave to the supervisor, in memory that is there from the start.
//!
//! A ring: who leaves a text claims the next place, writes, and says that it is complete. Who writes the texts out, one
//! thread at a time, takes them in that order and stops at one that is not complete, whose thread may have been preempted.

use std::cell::UnsafeCell;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many texts are kept.
const PLACES: u32 = 16;
/// How much of a text is kept, in bytes.
const LONGEST: usize = 1000;

static LEFT: Left = Left {
    places: [const { Place { complete: AtomicBool::new(false), text: UnsafeCell::new(Text::new()) } };
        PLACES as usize],
    claimed: AtomicU32::new(0),
    written: AtomicU32::new(0),
    missed: AtomicU32::new(0),
    writer: Mutex::new(()),
};

/// Leaves a text, which ends with a line's end, to be written out. Does not allocate, block or enter the kernel.
pub(crate) fn defer(text: fmt::Arguments<'_>) {
    LEFT.leave(text);
}

/// Writes out what has been left. For ordinary threads.
pub(crate) fn write_deferred() {
    LEFT.take_all(super::text);
}

struct Left {
    places: [Place; PLACES as usize],
    /// How many places have been claimed, ever.
    claimed: AtomicU32,
    /// How many texts have been written out, ever.
    written: AtomicU32,
    /// How many texts found no place.
    missed: AtomicU32,
    writer: Mutex<()>,
}

struct Place {
    complete: AtomicBool,
    text: UnsafeCell<Text>,
}

// SAFETY: a text is touched by the thread that has claimed its place, until it sets `complete`, and by the writer, of which
// the mutex admits one, from then until it has counted the text as written, which lets the place be claimed again.
unsafe impl Sync for Left {}

impl Left {
    fn leave(&self, text: fmt::Arguments<'_>) {
        let mut claimed = self.claimed.load(Ordering::Relaxed);
        loop {
            // Acquire: the writer is done with the place.
            if claimed.wrapping_sub(self.written.load(Ordering::Acquire)) >= PLACES {
                self.missed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let next = claimed.wrapping_add(1);
            match self.claimed.compare_exchange_weak(claimed, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => claimed = now,
            }
        }
        let place = &self.places[(claimed % PLACES) as usize];
        // SAFETY: this thread has claimed the place, and the text is not complete yet.
        unsafe { (*place.text.get()).set(text) };
        // Release: the writer sees the text.
        place.complete.store(true, Ordering::Release);
    }

    fn take_all(&self, write: impl Fn(fmt::Arguments<'_>)) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let written = self.written.load(Ordering::Relaxed);
            let place = &self.places[(written % PLACES) as usize];
            // Acquire: pairs with the release of who left the text.
            if !place.complete.swap(false, Ordering::Acquire) {
                break;
            }
            // SAFETY: the text is complete, and this thread has the mutex.
            write(format_args!("{}", unsafe { &*place.text.get() }));
            // Release: who claims the place next writes after this.
            self.written.store(written.wrapping_add(1), Ordering::Release);
        }
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => {}
            missed => write(format_args!("punctual: {missed} further messages came too fast and are lost\n")),
        }
    }
}

/// The beginning of a text, and how much there was of it.
struct Text {
    bytes: [u8; LONGEST],
    length: usize,
    /// In bytes, with what did not fit.
    whole: usize,
}

impl Text {
    const fn new() -> Self {
        Self { bytes: [0; LONGEST], length: 0, whole: 0 }
    }

    fn set(&mut self, text: fmt::Arguments<'_>) {
        (self.length, self.whole) = (0, 0);
        // It takes everything, and what `Display` of an argument refuses to write is not said.
        let _ = self.write_fmt(text);
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nothing comes after what has been cut off.
        let room = if self.length == self.whole { LONGEST - self.length } else { 0 };
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

    fn left() -> Box<Left> {
        let place = || Place { complete: AtomicBool::new(false), text: UnsafeCell::new(Text::new()) };
        Box::new(Left {
            places: std::array::from_fn(|_| place()),
            claimed: AtomicU32::new(u32::MAX - 2),
            written: AtomicU32::new(u32::MAX - 2),
            missed: AtomicU32::new(0),
            writer: Mutex::new(()),
        })
    }

    fn taken(left: &Left) -> Vec<String> {
        let taken = RefCell::new(Vec::new());
        left.take_all(|text| taken.borrow_mut().push(text.to_string()));
        taken.into_inner()
    }

    #[test]
    fn texts_come_in_order_and_what_finds_no_place_is_counted() {
        let left = left();
        assert!(taken(&left).is_empty());
        for round in 0..2 {
            (0..PLACES + 3).for_each(|number| left.leave(format_args!("{round}.{number}\n")));
            let taken = taken(&left);
            assert_eq!(taken.len() as u32, PLACES + 1);
            assert_eq!((&*taken[0], &*taken[15]), (&*format!("{round}.0\n"), &*format!("{round}.15\n")));
            assert_eq!(taken[16], "punctual: 3 further messages came too fast and are lost\n");
        }
    }

    #[test]
    fn what_is_cut_off_is_said() {
        let left = left();
        let long = "ä".repeat(LONGEST);
        left.leave(format_args!("a{long}b\n"));
        let expected = format!(
            "a{}… ({} more bytes)\n",
            "ä".repeat((LONGEST - 1) / 2),
            1 + 2 * LONGEST + 2 - (LONGEST - 1)
        );
        assert_eq!(taken(&left), [expected]);
    }
}
