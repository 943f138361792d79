//! An allocator that notifies a test of every call.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which calls the function first, on the thread that allocates or frees:
/// freeing takes the same locks.
pub(crate) struct Telling(pub(crate) fn());

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Telling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: the layout is not of size zero, by this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        (self.0)();
        // SAFETY: the pointer is from `alloc`, with this layout, by this function's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
