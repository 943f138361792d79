//! The guard's selector: records whether the calling thread runs guarded code of a job, or code
//! that may enter the kernel.
//!
//! For the guard of `punctual`. The kernel reads the byte at each system call of a thread that has
//! enabled Syscall User Dispatch with its address; the guard's allocator reads it at each
//! allocation. Code that enters the kernel by design, such as the wait for a lock under its
//! protocol, runs in [`unwatched`].

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence};

/// `SYSCALL_DISPATCH_FILTER_ALLOW`.
const ALLOW: u8 = 0;
/// `SYSCALL_DISPATCH_FILTER_BLOCK`.
const BLOCK: u8 = 1;

std::thread_local! {
    // Constant and without a destructor: an allocator and a signal handler may use it at any time.
    // Atomic because the kernel and the handler read it without the compiler's knowledge.
    static SELECTOR: AtomicU8 = const { AtomicU8::new(ALLOW) };
}

#[inline]
fn replace(selector: u8) -> u8 {
    SELECTOR.with(|byte| {
        compiler_fence(Ordering::SeqCst);
        let before = byte.load(Ordering::Relaxed);
        byte.store(selector, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        before
    })
}

/// Returns `true` if the guard monitors the calling thread.
#[inline]
pub fn is_watched() -> bool {
    SELECTOR.with(|byte| byte.load(Ordering::Relaxed)) == BLOCK
}

/// Returns the address of the calling thread's selector byte, valid for the lifetime of the thread.
pub fn address() -> *const u8 {
    SELECTOR.with(|byte| byte.as_ptr().cast_const())
}

/// Enables or disables monitoring of the calling thread until dropped.
#[derive(Debug)]
pub struct Watch {
    before: u8,
    /// Belongs to the calling thread.
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Watch {
    /// Enables monitoring of the calling thread if `watched`, or disables it.
    #[inline]
    pub fn set(watched: bool) -> Self {
        let before = replace(if watched { BLOCK } else { ALLOW });
        Self { before, _not_send: std::marker::PhantomData }
    }
}

impl Drop for Watch {
    #[inline]
    fn drop(&mut self) {
        replace(self.before);
    }
}

/// Runs `f`, which may allocate and enter the kernel, without monitoring.
#[inline]
pub fn unwatched<R>(f: impl FnOnce() -> R) -> R {
    let _watch = Watch::set(false);
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end_with_panic() {
        assert!(!is_watched());
        let watch = Watch::set(true);
        assert!(unwatched(|| !is_watched()) && is_watched());
        let panicked = std::panic::catch_unwind(|| unwatched(|| std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err() && is_watched());
        drop(watch);
        assert!(!is_watched());
    }
}
