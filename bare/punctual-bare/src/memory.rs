//! Memory that is never freed, above the program and its statics.

use core::alloc::Layout;
#[cfg(not(feature = "amp"))]
use core::cell::UnsafeCell;
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

/// A page of 4 KiB that nothing can access, neither through this value, because its content is
/// private, nor otherwise after [`forbid`](Self::forbid): the guard below a stack that lies above
/// it.
#[cfg(not(feature = "amp"))]
#[repr(C, align(4096))]
pub struct GuardPage(UnsafeCell<[u8; PAGE]>);

#[cfg(not(feature = "amp"))]
impl core::fmt::Debug for GuardPage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "GuardPage at {:#x}", self.0.get().addr())
    }
}

// SAFETY: no code accesses the content.
#[cfg(not(feature = "amp"))]
unsafe impl Sync for GuardPage {}

#[cfg(not(feature = "amp"))]
impl Default for GuardPage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(feature = "amp"))]
impl GuardPage {
    /// Creates a page, which is still accessible.
    pub const fn new() -> Self {
        Self(UnsafeCell::new([0; PAGE]))
    }

    /// Makes every access to the page, by any core, end the program from then on. May be called on
    /// any core and at any time, also repeatedly.
    ///
    /// # Panics
    /// If the page is not in the few megabytes from the start of the program that are mapped by
    /// pages: see `link.ld`.
    pub fn forbid(&'static self) {
        let address = self.0.get().addr();
        assert!(
            layout::is_paged(address) && address >= layout::stacks_start(),
            "{address:#x} is not mapped by pages: large statics have to lie behind the stacks"
        );
        // SAFETY: the page is in the range mapped by pages. It is a `GuardPage` forever, because
        // the reference is static, and no code accesses the content of one.
        unsafe { arch::mmu::forbid(address) };
    }
}

/// A global allocator, for programs with the feature `alloc`.
///
/// Uses the allocator of the crate `embedded-alloc` with constant time, regardless of previous
/// allocations ("two-level segregated fit"). An allocation masks interrupts, and cores allocate one
/// at a time, so apps with deadlines should allocate only in `init`.
///
/// If an allocation does not fit, the program ends with a panic of `alloc`.
#[cfg(feature = "alloc")]
pub mod heap {
    use core::alloc::Layout;

    use embedded_alloc::TlsfHeap;

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
        let memory = super::take(layout).expect("the board has memory for the heap");
        // SAFETY: nothing else uses the memory, and this is the only call, by this function's
        // contract.
        unsafe { HEAP.init(memory.as_ptr().addr(), SIZE) };
    }
}
