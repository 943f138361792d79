//! Futures of unnameable types, in static storage.
//!
//! The generated code has, per task, a function `(context, message) -> impl Future`. The type of
//! its future is inferred from the function at each use.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The strictest alignment that the storage of a future provides, in bytes.
pub(super) const MAX_ALIGN: usize = 64;

/// Returns the size of the future that `make` returns.
pub const fn future_size<J, F: Future>(_: &impl FnOnce(J) -> F) -> usize {
    assert!(
        align_of::<F>() <= MAX_ALIGN,
        "the future of an async task is aligned to 64 bytes at most: keep a value of a stricter alignment in a resource"
    );
    size_of::<F>()
}

/// Creates a future of `J`, a context and a message, that may move to other threads.
///
/// A future contains its context and its message. If one of them is not `Send`, the generated code
/// reports that at the type in the user's code, and a second report about the future would only
/// hide the first. So [`future`](Self::future) exists if `J` is `Send`; otherwise the call resolves
/// to [`OfUnsent::future`], which has no bound on the future.
pub struct Place<J>(PhantomData<fn(J)>);

impl<J> Place<J> {
    /// The only value.
    pub const NEW: Self = Self(PhantomData);
}

impl<J: Send> Place<J> {
    /// Creates the future of `job` in `storage`; `job` has the message of `J` behind a pointer.
    ///
    /// # Safety
    /// `storage` is aligned to 64 bytes, has room for [`future_size`] bytes, holds no future, and
    /// has no other users.
    pub unsafe fn future<K, F>(self, make: impl FnOnce(K) -> F, job: K, storage: *mut u8)
    where
        // The error for a future that is not `Send` shows this line.
        F: Future + Send, // drop values that are not `Send` before the `.await`, or write `local_task`
    {
        // SAFETY: the storage is unused, large enough and aligned, by this function's contract, and
        // the future is `Send`.
        unsafe { future_place_local(make, job, storage) }
    }
}

/// Replaces [`Place::future`] if that does not exist.
pub trait OfUnsent<J>: Sized {
    /// Does not compile unless the generated code has already reported an error.
    ///
    /// # Safety
    /// None: it cannot be called.
    unsafe fn future<K, F: Future>(self, _: impl FnOnce(K) -> F, _: K, _: *mut u8) {
        const { panic!("what a future is made of is not `Send`") }
    }
}

impl<J> OfUnsent<J> for Place<J> {}

/// Creates the future of `job` in `storage`, which stays on the calling thread.
///
/// # Safety
/// As for [`Place::future`]; and unless the future is `Send`, it is polled and dropped on no other
/// thread.
pub unsafe fn future_place_local<J, F: Future>(make: impl FnOnce(J) -> F, job: J, storage: *mut u8) {
    // SAFETY: the storage is unused, large enough and aligned, by this function's contract;
    // `future_size` has checked that the future needs no stricter alignment.
    unsafe { storage.cast::<F>().write(make(job)) }
}

/// Polls the future of `make` in `storage`; returns whether it has completed.
///
/// # Safety
/// `storage` holds a future that `make` created there, which never moves again, and has no other
/// users.
pub unsafe fn future_poll<J, F: Future>(
    _: &impl FnOnce(J) -> F,
    storage: *mut u8,
    cx: &mut Context<'_>,
) -> bool {
    // SAFETY: the storage holds this future, which never moves and has no other users, by this
    // function's contract.
    let future = unsafe { Pin::new_unchecked(&mut *storage.cast::<F>()) };
    matches!(future.poll(cx), Poll::Ready(_))
}

/// Drops the future of `make` in `storage`.
///
/// # Safety
/// As for [`future_poll`]; afterwards there is no future.
pub unsafe fn future_drop<J, F: Future>(_: &impl FnOnce(J) -> F, storage: *mut u8) {
    // SAFETY: the storage holds this future, which has no other users, by this function's contract.
    unsafe { storage.cast::<F>().drop_in_place() }
}
