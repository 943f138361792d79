//! Memory that is never freed, above the program and its statics.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(feature = "amp"))]
use crate::arch;
#[cfg(not(feature = "amp"))]
use crate::layout::PAGE;
use crate::{board, layout};

/// Number of allocated bytes.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns memory that nothing else ever uses and that is never freed, or `None` if not enough
/// memory is left.
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

/// Makes every access to a page of 4 KiB end the program from then on. Guards a stack that lies
/// above.
///
/// # Panics
/// If it is not a page, or not in the few megabytes from the start of the program that are mapped
/// by pages: see `link.ld`.
///
/// # Safety
/// The page belongs to the caller, and nothing relies on it. No other core runs that might.
#[cfg(not(feature = "amp"))]
pub unsafe fn forbid(page: *mut u8) {
    let address = page.addr();
    assert!(address.is_multiple_of(PAGE), "{address:#x} is no page");
    assert!(
        layout::is_paged(address) && address >= layout::stacks_start(),
        "{address:#x} is not mapped by pages: large statics have to lie behind the stacks"
    );
    // SAFETY: the page is in the range mapped by pages, and nothing relies on it, by this
    // function's contract.
    unsafe { arch::mmu::forbid(address) };
}
