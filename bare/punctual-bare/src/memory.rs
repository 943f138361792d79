//! Memory for ever: what lies behind the program and its statics.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::board::RAM;
use crate::layout;

/// How much has been taken, in bytes.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Memory that nothing else uses, now or later, and that is never given back; `None` if there is not so much any more.
pub fn take(layout: Layout) -> Option<NonNull<u8>> {
    let start = layout::program_end();
    let mut taken = TAKEN.load(Ordering::Relaxed);
    loop {
        let begin = start.checked_add(taken)?.checked_next_multiple_of(layout.align())?;
        let end = begin.checked_add(layout.size())?;
        if end > RAM.end {
            return None;
        }
        match TAKEN.compare_exchange(taken, end - start, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return NonNull::new(begin as *mut u8),
            Err(now) => taken = now,
        }
    }
}
