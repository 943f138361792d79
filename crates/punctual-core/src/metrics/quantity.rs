//! A quantity over all jobs of a task: its last value, maximum, sum and histogram.

// As in the module above.
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::buckets::BUCKETS;

/// One quantity over all jobs of a task, in ns.
#[derive(Debug)]
#[repr(C)]
pub struct Quantity {
    /// The value of the last job.
    pub last: AtomicU64,
    /// The largest value.
    pub max: AtomicU64,
    /// The sum over all jobs, at most 2^64 − 1.
    pub sum: AtomicU64,
}

impl Quantity {
    /// Adds a value.
    ///
    /// Real-time safety: loads and stores.
    ///
    /// # Safety
    /// No other thread writes the quantity during the call.
    #[inline(always)]
    pub unsafe fn record(&self, value: u64) {
        self.last.store(value, Relaxed);
        // SAFETY: by this function's contract.
        unsafe { self.add(value) }
    }

    /// [`record`](Self::record) without the value of the last job.
    ///
    /// # Safety
    /// As for [`record`](Self::record).
    #[inline(always)]
    pub(super) unsafe fn add(&self, value: u64) {
        if add_overflows(&self.sum, value) {
            // For an instant a reader may see the sum that has overflowed.
            core::hint::cold_path();
            self.sum.store(u64::MAX, Relaxed);
        }
        // SAFETY: by this function's contract, other threads read the word at most, so there is no
        // data race. The compiler merges the load with the comparison, which it does with no load
        // of an atomic.
        if value > unsafe { self.max.as_ptr().read() } {
            self.max.store(value, Relaxed);
        }
    }
}

/// A copy of a [`Quantity`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
    /// [`Quantity::last`].
    pub last: u64,
    /// [`Quantity::max`].
    pub max: u64,
    /// [`Quantity::sum`].
    pub sum: u64,
}

impl From<&Quantity> for Values {
    fn from(quantity: &Quantity) -> Self {
        let Quantity { last, max, sum } = quantity;
        Self { last: last.load(Relaxed), max: max.load(Relaxed), sum: sum.load(Relaxed) }
    }
}

/// Adds to a sum that no other thread writes; returns `true` if it overflows.
// On x86-64 in memory: the compiler would load and store an atomic separately.
#[inline(always)]
fn add_overflows(sum: &AtomicU64, value: u64) -> bool {
    // SAFETY: an atomic is loaded and stored as a whole. The stack is not used.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        core::arch::asm!(
            "add qword ptr [{sum}], {value}",
            "jc {overflows}",
            sum = in(reg) sum,
            value = in(reg) value,
            overflows = label { return true },
            options(nostack),
        );
        false
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let (total, overflows) = sum.load(Relaxed).overflowing_add(value);
        sum.store(total, Relaxed);
        overflows
    }
}

/// The number of values in each bucket, see [`bucket_of`](super::bucket_of).
#[derive(Debug)]
#[repr(C)]
pub struct Histogram(pub [AtomicU32; BUCKETS]);

impl Histogram {
    /// Counts a value of `bucket`; a full count stays. For one thread at a time.
    ///
    /// Real-time safety: a load and a store.
    ///
    /// # Panics
    /// If there is no such bucket.
    #[inline(always)]
    pub fn record(&self, bucket: usize) {
        let count = &self.0[bucket];
        let more = count.load(Relaxed).wrapping_add(1);
        count.store(more, Relaxed);
        if more == 0 {
            // As in `Quantity::add`.
            core::hint::cold_path();
            count.store(u32::MAX, Relaxed);
        }
    }
}
