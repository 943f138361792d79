//! Reproducible random numbers: xorshift, one generator per thread, all from one printed seed.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static SEED: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Sets the seed of every thread that has not requested a number yet.
pub(crate) fn seed(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

fn next() -> u64 {
    let mut x = STATE.get();
    if x == 0 {
        let thread = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        x = (SEED.load(Ordering::Relaxed) ^ thread.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
    }
    // G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003.
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    STATE.set(x);
    x
}

/// Returns a number from 0 to `end - 1`.
pub(crate) fn below(end: u64) -> u64 {
    (next() >> 11) % end
}

/// Returns true once in `n` times on average.
pub(crate) fn one_in(n: u64) -> bool {
    below(n) == 0
}

/// Returns a pause of `from` to `to` microseconds.
pub(crate) fn pause(from: u64, to: u64) {
    std::thread::sleep(Duration::from_micros(from + below(to - from + 1)));
}
