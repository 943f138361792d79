//! The time since power-on, and one alarm: the generic timer, which every core has.
//!
//! Counts are converted to nanoseconds and back by multiplications, so there is no division where
//! time is critical. The conversion to nanoseconds is exact: see [`Scale`].

use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch::timer;
use crate::interrupt;

/// The two factors of [`Scale`].
static MULTIPLIER: AtomicU32 = AtomicU32::new(0);
static RECIPROCAL: Constant = Constant::new();
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
    #[expect(clippy::pointers_in_nomem_asm_block, reason = "the block is empty, so it reads nothing")]
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
    let Scale { multiplier, reciprocal } = Scale::of(frequency);
    MULTIPLIER.store(multiplier, Ordering::Relaxed);
    RECIPROCAL.set(reciprocal);
    COUNTS_PER_NANO.set(divide(frequency, NANOS_PER_SECOND));
    timer::disarm();
}

/// Conversion of counts to nanoseconds: `counts × multiplier × reciprocal / 2⁶⁴`.
///
/// Let `10⁹ / frequency` be `p / q` in lowest terms. The multiplier is `p`, and the reciprocal is
/// `2⁶⁴ / q`, rounded up by less than 1. So the product exceeds `counts × p / q` by less than
/// `counts × p / 2⁶⁴`, and the integer part is exact while that is at most `1 / q`: for at least
/// six years at 19.2 MHz, and longer at the other frequencies of boards. Later, and at a frequency
/// for which `p` is too large, it is exact or one nanosecond more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    multiplier: u32,
    reciprocal: u64,
}

impl Scale {
    /// The largest multiplier: `counts × multiplier` fits into 64 bits for ten years.
    const MAX_MULTIPLIER: u64 = 1 << 11;

    /// Returns the conversion at a frequency in Hz.
    ///
    /// # Panics
    /// If the frequency is not between 1 Hz and 1 GHz.
    #[must_use]
    pub fn of(frequency: u64) -> Self {
        assert!(frequency > 0 && frequency < NANOS_PER_SECOND, "{frequency} Hz cannot be converted");
        let common = greatest_common_divisor(NANOS_PER_SECOND, frequency);
        let (p, q) = (NANOS_PER_SECOND / common, frequency / common);
        if p <= Self::MAX_MULTIPLIER {
            // 2⁶⁴ / 1 would not fit.
            let (p, q) = if q == 1 { (2 * p, 2) } else { (p, q) };
            return Self { multiplier: p as u32, reciprocal: u64::MAX / q + 1 };
        }
        // The smallest power of two that makes the reciprocal fit.
        let multiplier = (NANOS_PER_SECOND / frequency + 1).next_power_of_two();
        let reciprocal = divide(NANOS_PER_SECOND, frequency * multiplier) + 1;
        Self { multiplier: multiplier as u32, reciprocal }
    }

    /// Returns the nanoseconds of a number of counts.
    #[inline]
    #[must_use]
    pub fn nanos(self, counts: u64) -> u64 {
        ((u128::from(counts * u64::from(self.multiplier)) * u128::from(self.reciprocal)) >> 64) as u64
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns `numerator / denominator × 2⁶⁴`, rounded down. The quotient is less than 1. One bit at a
/// time, because a division of 128 bits needs more code.
fn divide(numerator: u64, denominator: u64) -> u64 {
    let (mut rest, mut quotient) = (numerator, 0);
    for _ in 0..64 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= denominator {
            rest -= denominator;
            quotient |= 1;
        }
    }
    quotient
}

/// Returns the nanoseconds since power-on.
#[inline]
pub fn now() -> u64 {
    Scale { multiplier: MULTIPLIER.load(Ordering::Relaxed), reciprocal: RECIPROCAL.get() }
        .nanos(timer::count())
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
