//! A helper for any task: an ordinary thread for operations that are not real-time.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_sync::Full;

use super::calls::{Call, Calls, Producer, put};
use super::pauses::Pauses;
use crate::port::linux::notice;

/// Shortest sleep of the thread without work. A submission does not wake it, because that would be
/// a system call.
const PAUSE: Duration = Duration::from_millis(1);
/// Time for the waiting calls at the end, as long as the app gives its jobs.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An ordinary thread that makes calls one by one: to allocate, to log, to write to files and
/// sockets.
///
/// [`submit`](super::submit) is for tasks of polling partitions, which share such a thread. This
/// type is for any task, of any executor, and for threads outside of tasks: create one in `init`
/// and give it to a task as a local resource.
///
/// Dropping it, by `#[shutdown]` or at the end of the run, first makes the waiting calls, for at
/// most 5 s. If a call blocks for longer, a warning names the helper, and the thread makes the
/// remaining calls until the process ends.
///
/// ```
/// use std::sync::mpsc;
///
/// use punctual::background::Helper;
///
/// // In `init`.
/// let mut helper = Helper::new("disk")?;
/// let (sender, receiver) = mpsc::channel();
/// // In a job, at any level.
/// let angle = 0.25_f32;
/// helper.submit(move || sender.send(format!("{angle}")).unwrap()).expect("it keeps up");
/// assert_eq!(receiver.recv().unwrap(), "0.25");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Helper {
    // Dropped before the ring it points into.
    calls: Option<Producer>,
    _ring: Arc<Calls>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Its sender is dropped at the end of the thread.
    ended: Receiver<()>,
    name: String,
    timeout: Duration,
}

impl Helper {
    /// Starts the thread, off the partitions' CPUs.
    ///
    /// Real-time safety: allocates and enters the kernel; for `init`.
    ///
    /// # Errors
    /// Returns the errors of [`std::thread::Builder::spawn`].
    pub fn new(name: &str) -> io::Result<Self> {
        let (ring, over) = (Arc::new(Calls::new()), Arc::new(AtomicBool::new(false)));
        // SAFETY: both ends are stored next to an owner of the ring, which is dropped after them,
        // and neither is moved out.
        let forever: &'static Calls = unsafe { &*Arc::as_ptr(&ring) };
        let taken = |_| io::Error::other("a new ring is taken");
        let calls = forever.producer().map_err(taken)?;
        let mut consumer = forever.consumer().map_err(taken)?;
        let (owner, is_over) = (Arc::clone(&ring), Arc::clone(&over));
        let named = name.to_owned();
        let (alive, ended) = mpsc::channel();
        let thread = super::spawn(name, move || {
            let mut pauses = Pauses::new(PAUSE);
            loop {
                // Before the scan, so that every call submitted by then is made.
                let last = is_over.load(Ordering::Acquire);
                let mut any = false;
                while let Some(call) = consumer.pop() {
                    any = true;
                    make(&named, call);
                }
                match (any, last) {
                    (false, true) => break,
                    (false, false) => pauses.sleep(),
                    (true, _) => pauses.reset(),
                }
            }
            drop(consumer);
            drop(owner);
            drop(alive);
        })?;
        let (thread, name) = (Some(thread), name.to_owned());
        Ok(Self { calls: Some(calls), _ring: ring, over, thread, ended, name, timeout: CLOSE_TIMEOUT })
    }

    /// Submits `call` to the thread, after earlier calls.
    ///
    /// The closure may have up to 112 bytes, checked at compile time. A panic in it is reported,
    /// and ends nothing else.
    ///
    /// Real-time safety: wait-free; does not allocate or enter the kernel. The thread polls after a
    /// quarter of the time since the last call, at least every 15 ms and at most every millisecond.
    ///
    /// # Errors
    /// Returns [`Full`] with the closure if 64 calls are already waiting.
    pub fn submit<F: FnOnce() + Send + 'static>(&mut self, call: F) -> Result<(), Full<F>> {
        match &mut self.calls {
            Some(calls) => put(calls, call),
            None => Err(Full(call)),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.calls.take());
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            match self.ended.recv_timeout(self.timeout) {
                // Panics of the calls are caught.
                Ok(()) | Err(RecvTimeoutError::Disconnected) => drop(thread.join()),
                Err(RecvTimeoutError::Timeout) => notice::warn(format_args!(
                    "a call of the helper {} still blocks after {} s; the app continues without waiting for it",
                    self.name,
                    self.timeout.as_secs()
                )),
            }
        }
    }
}

fn make(name: &str, call: Call) {
    // A panicking call leaves no shared state behind: it shares nothing with the others.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| call.run())) {
        notice::warn(format_args!("a call of the helper {name} has panicked: {}", message(&*payload)));
        // A payload may panic again when it is dropped.
        std::mem::forget(payload);
    }
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn runs_calls_in_order_until_end() {
        let mut helper = Helper::new("in-order").unwrap();
        let (seen, wrong) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut submitted = 0;
        while submitted < 1_000 {
            let (seen, wrong, expected) = (Arc::clone(&seen), Arc::clone(&wrong), submitted);
            let call = move || {
                let is_wrong = seen.fetch_add(1, Ordering::Relaxed) != expected;
                wrong.fetch_add(is_wrong.into(), Ordering::Relaxed);
            };
            match helper.submit(call) {
                Ok(()) => submitted += 1,
                Err(Full(_)) => std::thread::yield_now(),
            }
        }
        drop(helper);
        assert_eq!((seen.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed)), (1_000, 0));
    }

    #[test]
    fn end_waits_for_blocked_call_within_limit() {
        let mut helper = Helper::new("blocked").unwrap();
        helper.timeout = Duration::ZERO;
        let ((release, released), (made, is_made)) = (mpsc::channel::<()>(), mpsc::channel());
        let next = made.clone();
        helper.submit(move || made.send(released.recv().is_err()).unwrap()).unwrap();
        helper.submit(move || next.send(true).unwrap()).unwrap();
        drop(helper);
        assert!(is_made.try_recv().is_err(), "it is blocked");
        drop(release);
        // The remaining calls are made.
        assert_eq!(is_made.iter().collect::<Vec<_>>(), [true, true]);
    }

    #[test]
    fn panic_ends_only_one_call() {
        let mut helper = Helper::new("panics").unwrap();
        let made = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&made);
        helper.submit(|| panic!("on purpose")).unwrap();
        helper.submit(move || seen.store(true, Ordering::Relaxed)).unwrap();
        drop(helper);
        assert!(made.load(Ordering::Relaxed));
    }
}
