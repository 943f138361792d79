//! A global allocator, for programs that have the feature `alloc`.
//!
//! It is that of the crate `embedded-alloc` which takes the same time whatever has been allocated before ("two-level segregated
//! fit"). Interrupts are masked meanwhile, and the cores take turns, so what has a deadline better allocates in `init` alone.
//!
//! What does not fit any more ends the program, by a panic of `alloc`'s.

use core::alloc::Layout;

use embedded_alloc::TlsfHeap;

use crate::memory;

/// How much memory it has, in bytes.
pub const SIZE: usize = 1 << 20;

#[global_allocator]
static HEAP: TlsfHeap = TlsfHeap::empty();

/// Gives it its memory.
///
/// # Safety
/// Called once, before anything allocates.
pub(crate) unsafe fn init() {
    let layout = Layout::from_size_align(SIZE, 64).expect("it is a power of two");
    let memory = memory::take(layout).expect("the board has memory for the heap");
    // SAFETY: the memory is nobody else's, and this is the only call, by this function's contract.
    unsafe { HEAP.init(memory.as_ptr().addr(), SIZE) };
}
