//! System calls on behalf of polling partitions, which must not enter the kernel.
//!
//! A polling partition has a ring of calls, small closures, which one ordinary thread of the app
//! makes.

use std::cell::RefCell;
use std::mem::{ManuallyDrop, MaybeUninit};

use punctual_sync::shared::{Ring, RingConsumer, RingProducer};
use punctual_sync::{Full, Taken};

/// Maximum number of pending calls of a partition.
pub(super) const CAPACITY: usize = 64;
/// The largest closure, in bytes.
const MAX_CLOSURE_SIZE: usize = 112;

/// The submitted calls of a polling partition.
pub struct Calls(Ring<Call, CAPACITY>);

impl Calls {
    /// Creates an empty ring.
    #[expect(
        clippy::new_without_default,
        reason = "it is for statics, of which the generated code makes one"
    )]
    pub const fn new() -> Self {
        Self(Ring::new())
    }

    /// Returns the producer, unless it is taken.
    pub(super) fn producer(&'static self) -> Result<Producer, Taken> {
        self.0.producer()
    }

    /// Returns the consumer, unless it is taken.
    pub(crate) fn consumer(&'static self) -> Result<Consumer, Taken> {
        self.0.consumer()
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.0.len()).finish()
    }
}

/// Producer of [`Calls`].
pub(super) type Producer = RingProducer<'static, Call, CAPACITY>;

/// Consumer of [`Calls`].
pub(crate) type Consumer = RingConsumer<'static, Call, CAPACITY>;

thread_local! {
    static MINE: RefCell<Option<Producer>> = const { RefCell::new(None) };
}

/// Lets the calling thread submit to `calls` while `f` runs.
pub(crate) fn with<R>(calls: &'static Calls, f: impl FnOnce() -> R) -> R {
    MINE.set(calls.0.producer().ok());
    let result = f();
    MINE.take();
    result
}

/// Makes `call` on a thread that may enter the kernel: to write to a file or a socket, to print, to
/// allocate.
///
/// In a task of a polling partition, an ordinary thread on another CPU makes the call. It makes the
/// calls of a partition one by one in order. On an idle CPU, each begins within about 100 µs plus a
/// quarter of the time since the previous one, and within 15 ms: without calls, the thread looks
/// for them less and less often. A call can return a result by spawning a task. Everywhere else,
/// and in virtual time, `submit` makes the call at once.
///
/// Calls still waiting when the app stops are made before `#[shutdown]` runs, also after a fault. A
/// panic in a call stops the app like a panic in a task; the remaining calls are made. A call made
/// at once is a part of the task.
///
/// The closure may have up to 112 bytes, checked at compile time.
///
/// Real-time safety: in a polling partition wait-free; does not allocate or enter the kernel.
///
/// # Errors
/// Returns [`Full`] with the closure if 64 calls of the partition are already waiting.
///
/// ```
/// # use punctual::background;
/// let angle = 0.25_f32;
/// if background::submit(move || println!("{angle}")).is_err() {
///     // The log cannot keep up; the control loop can.
/// }
/// ```
pub fn submit<F: FnOnce() + Send + 'static>(call: F) -> Result<(), Full<F>> {
    let done = MINE.with_borrow_mut(|mine| match mine {
        Some(calls) => Ok(put(calls, call)),
        None => Err(call),
    });
    done.unwrap_or_else(|call| {
        call();
        Ok(())
    })
}

/// Adds a call if there is room.
pub(super) fn put<F: FnOnce() + Send + 'static>(calls: &mut Producer, call: F) -> Result<(), Full<F>> {
    if calls.room() == 0 {
        return Err(Full(call));
    }
    // There is room, because this is the only producer, so it cannot fail.
    let _ = calls.push(Call::new(call));
    Ok(())
}

#[repr(C, align(16))]
struct Room(MaybeUninit<[u8; MAX_CLOSURE_SIZE]>);

/// A type-erased closure.
pub(crate) struct Call {
    room: Room,
    run: unsafe fn(*mut Room),
    drop: unsafe fn(*mut Room),
}

// SAFETY: the contents of the buffer are `Send`, by the bound of `new`.
unsafe impl Send for Call {}

impl Call {
    fn new<F: FnOnce() + Send + 'static>(call: F) -> Self {
        const {
            assert!(
                size_of::<F>() <= MAX_CLOSURE_SIZE,
                "a submitted closure may have up to 112 bytes; send a pointer"
            );
            assert!(
                align_of::<F>() <= align_of::<Room>(),
                "a submitted closure is aligned to 16 bytes at most"
            );
        }
        let mut room = Room(MaybeUninit::uninit());
        // SAFETY: the assertions ensure that it fits.
        unsafe { (&raw mut room).cast::<F>().write(call) };
        // SAFETY: one of the two functions is called, once, with the buffer that was just filled.
        let run = |room: *mut Room| unsafe { room.cast::<F>().read()() };
        // SAFETY: as above.
        let drop = |room: *mut Room| unsafe { room.cast::<F>().drop_in_place() };
        Self { room, run, drop }
    }

    pub(crate) fn run(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `new` filled the buffer, and it is not dropped again.
        unsafe { (this.run)(&raw mut this.room) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: `new` filled the buffer, and `run` has not consumed it.
        unsafe { (self.drop)(&raw mut self.room) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Counts live instances.
    struct Counted(Arc<()>);

    #[test]
    fn call_runs_or_drops_once() {
        static CALLS: Calls = Calls::new();
        let (count, made) = (Arc::new(()), Arc::new(AtomicBool::new(false)));
        with(&CALLS, || {
            let (counted, made) = (Counted(Arc::clone(&count)), Arc::clone(&made));
            let call = move || made.store(Arc::strong_count(&counted.0) == 2, Ordering::Relaxed);
            submit(call).expect("there is room");
        });
        CALLS.0.consumer().unwrap().pop().expect("one was submitted").run();
        assert!(made.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&count), 1);
        let counted = Counted(Arc::clone(&count));
        drop(Call::new(move || drop(counted)));
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn returns_rejected_value() {
        static CALLS: Calls = Calls::new();
        with(&CALLS, || {
            let submitted = (0..CAPACITY + 3).filter(|_| submit(|| ()).is_ok()).count();
            assert_eq!(submitted, CAPACITY);
        });
    }

    #[test]
    fn outside_app_the_call_runs_at_once() {
        let made = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&made);
        submit(move || seen.store(true, Ordering::Relaxed)).expect("nothing can be full");
        assert!(made.load(Ordering::Relaxed));
    }
}
