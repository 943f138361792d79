//! A ring for each direction, for a round trip between two CPUs of which one may run without Linux.
//! Compiled for both.

use core::sync::atomic::{AtomicU64, Ordering};

/// The capacity for questions.
const SLOTS: usize = 64;

/// A value written by one side, in a separate cache line.
#[repr(C, align(64))]
#[derive(Debug)]
struct Line(AtomicU64);

/// A ring with one writer and one reader.
#[repr(C)]
#[derive(Debug)]
struct Ring {
    head: Line,
    tail: Line,
    slots: [Line; SLOTS],
}

/// Both rings. Zero is the empty state.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Exchange {
    questions: Ring,
    answers: Ring,
}

/// The asking side.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    exchange: &'a Exchange,
    asked: u64,
}

/// The answering side.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    exchange: &'a Exchange,
    answered: u64,
}

/// Returns the answer to a value.
#[must_use]
pub(crate) fn answer_to(value: u64) -> u64 {
    value.wrapping_mul(3).wrapping_add(1)
}

impl Ring {
    fn push(&self, at: u64, value: u64) {
        self.slots[at as usize % SLOTS].0.store(value, Ordering::Relaxed);
        // Release: a reader that sees the head also sees the value. At most one item is in flight,
        // so there is always a free slot.
        self.head.0.store(at + 1, Ordering::Release);
    }

    fn pop(&self, at: u64) -> Option<u64> {
        // Acquire: see `push`.
        if self.head.0.load(Ordering::Acquire) == at {
            return None;
        }
        let value = self.slots[at as usize % SLOTS].0.load(Ordering::Relaxed);
        self.tail.0.store(at + 1, Ordering::Release);
        Some(value)
    }
}

#[allow(dead_code, reason = "each side uses its half")]
impl Exchange {
    /// Returns the asking side; there is only one.
    pub(crate) fn client(&self) -> Client<'_> {
        Client { exchange: self, asked: 0 }
    }

    /// Returns the answering side; there is only one.
    pub(crate) fn server(&self) -> Server<'_> {
        Server { exchange: self, answered: 0 }
    }
}

#[allow(dead_code, reason = "each side uses its half")]
impl Client<'_> {
    /// Asks, and polls for the answer this many times; `None` if none comes.
    pub(crate) fn ask(&mut self, value: u64, polls: u64) -> Option<u64> {
        let at = self.asked;
        self.exchange.questions.push(at, value);
        for _ in 0..polls {
            if let Some(answer) = self.exchange.answers.pop(at) {
                self.asked += 1;
                return Some(answer);
            }
        }
        None
    }
}

#[allow(dead_code, reason = "each side uses its half")]
impl Server<'_> {
    /// Answers a question, if there is one; returns `true` in that case.
    pub(crate) fn answer(&mut self) -> bool {
        let at = self.answered;
        let Some(value) = self.exchange.questions.pop(at) else { return false };
        self.exchange.answers.push(at, answer_to(value));
        self.answered += 1;
        true
    }
}
