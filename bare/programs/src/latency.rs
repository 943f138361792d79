//! Counts the instructions from an edge at a pin to the code that answers it, in QEMU.

use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::println;

use crate::{cycles, pins};

static REACHED: AtomicU32 = AtomicU32::new(0);
static ANSWERS: AtomicU32 = AtomicU32::new(0);

/// Number of measurements.
const EDGES: u32 = 10;

/// Marks the arrival of the edge. The answering code must call this first.
#[inline(always)]
pub fn reached() {
    let now = cycles::count();
    REACHED.store(now, Ordering::Relaxed);
    ANSWERS.store(ANSWERS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Makes edges and prints the maximum number of instructions. The answering code must interrupt
/// this function.
pub fn measure() {
    let mut longest = 0;
    for _ in 0..EDGES {
        let before = pins::stimulate();
        let took = REACHED.load(Ordering::Relaxed).wrapping_sub(before);
        longest = longest.max(took);
    }
    println!("answers: {} of {EDGES}", ANSWERS.load(Ordering::Relaxed));
    println!("instructions: {longest}");
}
