//! Tasks that are polled by hand, and wakers with side effects.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

/// A task that is polled by hand and counts its wakes.
pub(crate) struct Task<F: Future> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn task<F: Future>(future: F) -> Task<F> {
    Task { future: Box::pin(future), wakes: Arc::default() }
}

impl<F: Future> Task<F> {
    pub(crate) fn poll(&mut self) -> Option<F::Output> {
        let waker = Waker::from(self.wakes.clone());
        self.poll_with(&waker)
    }

    /// Polls the task with a waker that is not counted.
    pub(crate) fn poll_with(&mut self, waker: &Waker) -> Option<F::Output> {
        match self.future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    /// Leaks the task: its memory is never used or freed again.
    pub(crate) fn leak(self) {
        std::mem::forget(self.future);
    }
}

/// A waker whose every operation also uses the object that uses the waker, like a task of a higher
/// level that preempts there, on the same CPU.
struct Preempting {
    then: Box<dyn Fn(&'static str) + Send + Sync>,
}

static PREEMPTING: RawWakerVTable = RawWakerVTable::new(
    |data| {
        preempt(data, "clone");
        // SAFETY: `data` came from `Arc::into_raw`, and this waker owns a count.
        unsafe { Arc::increment_strong_count(data.cast::<Preempting>()) };
        RawWaker::new(data, &PREEMPTING)
    },
    |data| {
        preempt(data, "wake");
        // SAFETY: `data` came from `Arc::into_raw`, and this waker owns it.
        drop(unsafe { Arc::from_raw(data.cast::<Preempting>()) });
    },
    |data| preempt(data, "wake"),
    |data| {
        preempt(data, "drop");
        // SAFETY: as for waking.
        drop(unsafe { Arc::from_raw(data.cast::<Preempting>()) });
    },
);

fn preempt(data: *const (), at: &'static str) {
    // SAFETY: the waker keeps `data` alive.
    (unsafe { &*data.cast::<Preempting>() }.then)(at);
}

pub(crate) fn preempting(then: impl Fn(&'static str) + Send + Sync + 'static) -> Waker {
    let data = Arc::into_raw(Arc::new(Preempting { then: Box::new(then) }));
    // SAFETY: the table meets the contract: it counts the wakers of `data`, which may be used by
    // any thread.
    unsafe { Waker::from_raw(RawWaker::new(data.cast(), &PREEMPTING)) }
}
