//! Allocator that notifies the guard.

use std::alloc::{GlobalAlloc, Layout, System};

use punctual_sync::futex::selector;

use super::job;

/// An allocator that reports the calls of jobs to the guard, and forwards them to `A`.
///
/// ```
/// use punctual::guard::Allocator;
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator = Allocator::system();
/// ```
///
/// While no watched job runs on a thread, the overhead of a call is a check of a thread-local byte.
#[derive(Debug, Default)]
pub struct Allocator<A = System>(A);

impl Allocator {
    /// Wraps the system's allocator.
    pub const fn system() -> Self {
        Self(System)
    }
}

impl<A> Allocator<A> {
    /// Wraps `allocator`.
    pub const fn of(allocator: A) -> Self {
        Self(allocator)
    }
}

/// Reported name of an allocation.
const ALLOCATION: &str = "allocation";
/// Reported name of a deallocation.
const DEALLOCATION: &str = "deallocation";

// SAFETY: every call is forwarded unchanged; the guard does not change it, and neither allocates
// nor panics.
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

/// Makes a call to the allocator; its system calls are part of it, and not reported separately.
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
