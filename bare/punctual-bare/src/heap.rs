//! A global allocator, for programs with the feature `alloc`.
//!
//! Uses the allocator of the crate `embedded-alloc` with constant time, regardless of previous
//! allocations ("two-level segregated fit"). An allocation masks interrupts, and cores allocate one
//! at a time, so apps with deadlines should allocate only in `init`.
//!
//! If an allocation does not fit, the program ends with a panic of `alloc`.

use core::alloc::Layout;

use embedded_alloc::TlsfHeap;

use crate::memory;

/// Size of the heap, in bytes.
pub const SIZE: usize = 1 << 20;

#[global_allocator]
static HEAP: TlsfHeap = TlsfHeap::empty();

/// Assigns memory to the heap.
///
/// # Safety
/// Called once, before anything allocates.
pub(crate) unsafe fn init() {
    let layout = Layout::from_size_align(SIZE, 64).expect("it is a power of two");
    let memory = memory::take(layout).expect("the board has memory for the heap");
    // SAFETY: nothing else uses the memory, and this is the only call, by this function's contract.
    unsafe { HEAP.init(memory.as_ptr().addr(), SIZE) };
}
