//! The time since power-on, and one alarm: the generic timer, which every core has.
//!
//! Counts are converted to nanoseconds and back by a multiplication, so there is no division where
//! time is critical.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch::timer;
use crate::interrupt;

/// Nanoseconds per count, times 2³².
static NANOS_PER_COUNT: Constant = Constant::new();
/// Counts per nanosecond, times 2⁶⁴.
static COUNTS_PER_NANO: Constant = Constant::new();

/// A number that is written once, before it is read. Stored in halves, because 64 bits at once take
/// more instructions on ARMv7.
struct Constant([AtomicU32; 2]);

impl Constant {
    const fn new() -> Self {
        Self([AtomicU32::new(0), AtomicU32::new(0)])
    }

    fn set(&self, number: u64) {
        self.0[0].store(number as u32, Ordering::Relaxed);
        self.0[1].store((number >> 32) as u32, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        let mut constant = core::ptr::from_ref(self);
        // Makes the compiler compute one address for both halves instead of two.
        // SAFETY: does nothing.
        unsafe {
            core::arch::asm!("/* {} */", inout(reg) constant, options(pure, nomem, nostack, preserves_flags))
        };
        // SAFETY: the pointer is from the reference.
        let [low, high] = unsafe { &(*constant).0 };
        u64::from(high.load(Ordering::Relaxed)) << 32 | u64::from(low.load(Ordering::Relaxed))
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reads the frequency of the counter.
///
/// # Safety
/// Called once, before any use of the time.
pub(crate) unsafe fn init() {
    let frequency = u64::from(timer::frequency());
    assert!(
        frequency > 0 && frequency < NANOS_PER_SECOND,
        "CNTFRQ is {frequency} Hz: the firmware has to set it"
    );
    NANOS_PER_COUNT.set((NANOS_PER_SECOND << 32) / frequency);
    COUNTS_PER_NANO.set(counts_per_nano(frequency));
    timer::disarm();
}

/// Counts per nanosecond at a `frequency` in Hz, times 2⁶⁴. Two divisions of 64 bits need less code
/// than one of 128.
fn counts_per_nano(frequency: u64) -> u64 {
    let dividend = frequency << 32;
    let rest = dividend % NANOS_PER_SECOND;
    ((dividend / NANOS_PER_SECOND) << 32) | ((rest << 32) / NANOS_PER_SECOND)
}

/// Returns the nanoseconds since power-on.
#[inline]
pub fn now() -> u64 {
    let counts = u128::from(timer::count());
    ((counts * u128::from(NANOS_PER_COUNT.get())) >> 32) as u64
}

/// Makes [`interrupt::TIMER`] pending from `time` on, in nanoseconds since power-on, or never if
/// `time` is `u64::MAX`. The last call counts.
#[inline]
pub fn alarm(time: u64) {
    if time == u64::MAX {
        return disarm();
    }
    let counts = (u128::from(time) * u128::from(COUNTS_PER_NANO.get())) >> 64;
    // Rounded up, so that the time is reached when the interrupt occurs.
    timer::arm((counts as u64).saturating_add(1));
}

/// Disarms the [`alarm`].
pub fn disarm() {
    timer::disarm();
}

/// Enables the timer's interrupt on this core.
pub fn enable_alarm() {
    interrupt::enable(interrupt::TIMER);
}
