//! Memory for ever: what lies behind the program and its statics.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(feature = "amp"))]
use crate::arch;
#[cfg(not(feature = "amp"))]
use crate::layout::PAGE;
use crate::{board, layout};

/// How much has been taken, in bytes.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Memory that nothing else uses, now or later, and that is never given back; `None` if there is not so much any more.
pub fn take(layout: Layout) -> Option<NonNull<u8>> {
    let start = layout::program_end();
    let mut taken = TAKEN.load(Ordering::Relaxed);
    loop {
        let begin = start.checked_add(taken)?.checked_next_multiple_of(layout.align())?;
        let end = begin.checked_add(layout.size())?;
        if end > board::memory_end() {
            return None;
        }
        match TAKEN.compare_exchange(taken, end - start, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return NonNull::new(begin as *mut u8),
            Err(now) => taken = now,
        }
    }
}

/// Has every access to a page of 4 KiB end the program from now on. It is the guard of a stack that lies above.
///
/// # Panics
/// If it is no page, or not in the few megabytes from the program on that are mapped by pages: see `link.ld`.
///
/// # Safety
/// It is the caller's, and nobody relies on it. No other core runs that might.
#[cfg(not(feature = "amp"))]
pub unsafe fn forbid(page: *mut u8) {
    let address = page.addr();
    assert!(address.is_multiple_of(PAGE), "{address:#x} is no page");
    assert!(
        layout::is_paged(address) && address >= layout::stacks_start(),
        "{address:#x} is not mapped by pages: large statics have to lie behind the stacks"
    );
    // SAFETY: it is mapped by pages, and nobody relies on it, by this function's contract.
    unsafe { arch::mmu::forbid(address) };
}
