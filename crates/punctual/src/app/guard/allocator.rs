//! The allocator that tells the guard.

use std::alloc::{GlobalAlloc, Layout, System};

use punctual_sync::futex::selector;

use super::job;

/// An allocator that tells the guard of what jobs ask of it, and has `A` do it.
///
/// ```
/// use punctual::guard::Allocator;
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator = Allocator::system();
/// ```
///
/// While no watched job runs on a thread, a call costs it a look at a thread-local byte.
#[derive(Debug, Default)]
pub struct Allocator<A = System>(A);

impl Allocator {
    /// The system's allocator, watched.
    pub const fn system() -> Self {
        Self(System)
    }
}

impl<A> Allocator<A> {
    /// `allocator`, watched.
    pub const fn of(allocator: A) -> Self {
        Self(allocator)
    }
}

/// What memory is asked for.
const ALLOCATION: &str = "allocation";
/// What it is given back by.
const DEALLOCATION: &str = "deallocation";

// SAFETY: every call is passed on as it is; the guard takes no part in it, and neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's contract.
        watched(ALLOCATION, || unsafe { self.0.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's contract.
        watched(ALLOCATION, || unsafe { self.0.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the caller's contract.
        watched(ALLOCATION, || unsafe { self.0.realloc(memory, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        watched(DEALLOCATION, || unsafe { self.0.dealloc(memory, layout) });
    }
}

/// Makes a call to the allocator; what that asks of the kernel is a part of it, and not found again.
#[inline]
fn watched<R>(what: &'static str, call: impl FnOnce() -> R) -> R {
    if !selector::is_watched() {
        return call();
    }
    selector::unwatched(|| {
        job::found(what, None);
        call()
    })
}
