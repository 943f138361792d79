//! User code that the runtime calls, in addition to handlers and destructors: `AsFd`, wakers,
//! closures for helpers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

use punctual::report::Outcome;
use punctual::{Config, Report, StartError};

use crate::faults::{Executor, executors};

/// Code that panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `AsFd` of an event source, called for the first time.
    FirstAsFd,
    /// The same, called after a job.
    SecondAsFd,
    /// A waker, woken by the clock.
    TimedWaker,
    /// A waker, woken because a descriptor is ready.
    ReadyWaker,
    /// The destructor of a waker that was never woken.
    DroppedWaker,
    /// A closure given to `background::submit`.
    Call,
}

/// Number of runs of the hook.
static HOOKS: AtomicU32 = AtomicU32::new(0);
/// Number of dropped event sources.
static DROPPED: AtomicU32 = AtomicU32::new(0);

/// An event source whose descriptor can be requested this many times.
pub(crate) struct Source {
    fd: std::os::unix::net::UnixStream,
    tells: AtomicU32,
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let left = self.tells.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "no descriptor");
        self.fd.as_fd()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Panics when woken.
struct PanicsWoken;

impl Wake for PanicsWoken {
    fn wake(self: Arc<Self>) {
        panic!("not now");
    }
}

/// Panics when dropped.
struct PanicsDropped;

impl Wake for PanicsDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsDropped {
    fn drop(&mut self) {
        panic!("not yet");
    }
}

macro_rules! app {
    ($name:ident, $($arguments:tt)*) => {
        #[punctual::app(main = false, $($arguments)*)]
        mod $name {
            use std::future::{Future, pending as for_ever};
            use std::os::unix::net::UnixStream;
            use std::pin::pin;
            use std::task::Context as PollContext;

            use punctual::prelude::*;

            use super::*;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                source: Source,
                other_end: UnixStream,
                ready: UnixStream,
                closed: Option<UnixStream>,
            }

            #[init]
            fn init(_: init::Context, place: Place) -> (Shared, Local) {
                let (fd, other_end) = UnixStream::pair().expect("sockets can be made");
                let (ready, closed) = UnixStream::pair().expect("sockets can be made");
                let tells = match place {
                    Place::FirstAsFd => 0,
                    Place::SecondAsFd => {
                        bound::pend();
                        1
                    }
                    Place::Call => {
                        job::spawn().unwrap();
                        u32::MAX
                    }
                    _ => {
                        waits::spawn(place).ok().unwrap();
                        u32::MAX
                    }
                };
                (Shared {}, Local { source: Source { fd, tells: tells.into() }, other_end, ready, closed: Some(closed) })
            }

            #[task(binds = source, priority = 3, local = [source, other_end])]
            fn bound(_: bound::Context) {}

            #[task(priority = 2)]
            fn job(_: job::Context) {
                punctual::background::submit(|| panic!("not this")).expect("there is room");
            }

            /// Registers a waker of its own, and never completes.
            #[task(priority = 1, local = [ready, closed])]
            async fn waits(cx: waits::Context, place: Place) {
                let waits::LocalResources { ready, closed, .. } = cx.local;
                let waker: Waker = match place {
                    Place::DroppedWaker => Arc::new(PanicsDropped).into(),
                    _ => Arc::new(PanicsWoken).into(),
                };
                let after = if place == Place::TimedWaker { 1.millis() } else { 3600.secs() };
                let mut delay = pin!(punctual::delay(after));
                let mut readable = pin!(punctual::readable(ready));
                {
                    let mut cx = PollContext::from_waker(&waker);
                    if place == Place::ReadyWaker {
                        assert!(readable.as_mut().poll(&mut cx).is_pending());
                        *closed = None;
                        crate::wait_until_hung_up(&*ready);
                    } else {
                        assert!(delay.as_mut().poll(&mut cx).is_pending());
                    }
                }
                if place == Place::DroppedWaker {
                    // The last one is then in the timer.
                    drop(waker);
                    punctual::shutdown();
                }
                for_ever::<()>().await;
            }

            #[shutdown]
            fn shutdown(_: shutdown::Context) {
                HOOKS.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
}

app!(partition,);
app!(polling, partitions = [fast(poll)]);
app!(global, executor = "global");

/// Checks that the app ends on every executor and in virtual time for a fault of `culprit`, in
/// order.
fn is_a_fault(place: Place, culprit: impl Fn(Executor, &Report) -> &'static str, message: &'static str) {
    let _alone = crate::alone();
    for executor in executors() {
        let run: fn(Config, Place) -> Result<Report, StartError> = match executor {
            Executor::Partition => partition::run,
            Executor::Polling => polling::run,
            Executor::Global => global::run,
        };
        if executor == Executor::Polling && place == Place::ReadyWaker {
            // In virtual time nothing waits for a descriptor.
            continue;
        }
        for config in [Config::new(), Config::new().virtual_time()] {
            HOOKS.store(0, Ordering::Relaxed);
            DROPPED.store(0, Ordering::Relaxed);
            // Limits the test in case of a lost wake.
            let config = config.until(punctual::Duration::from_secs(10));
            let report = run(config, place).expect("the app starts");
            let what = format!("{place:?}, {executor:?}, {}", report.virtual_time);
            let task = culprit(executor, &report).into();
            assert_eq!(report.outcome, Outcome::Panicked { task, message: message.into() }, "{what}");
            assert_eq!(HOOKS.load(Ordering::Relaxed), 1, "{what}");
            assert_eq!(DROPPED.load(Ordering::Relaxed), 1, "{what}");
        }
    }
}

#[test]
fn event_source_without_descriptor_stops_app() {
    is_a_fault(Place::FirstAsFd, |_, _| "bound", "no descriptor");
    is_a_fault(Place::SecondAsFd, |_, _| "bound", "no descriptor");
}

#[test]
fn panicking_waker_stops_app() {
    is_a_fault(Place::TimedWaker, |_, _| "a waker", "not now");
    is_a_fault(Place::ReadyWaker, |_, _| "a waker", "not now");
}

#[test]
fn panicking_drop_of_waker_stops_app() {
    is_a_fault(Place::DroppedWaker, |_, _| "a waker", "not yet");
}

#[test]
fn panicking_submitted_call_stops_app() {
    // A call that is made at once is part of the job.
    let culprit = |executor, report: &Report| match (executor, report.virtual_time) {
        (Executor::Polling, false) => "a call submitted to the background thread",
        _ => "job",
    };
    is_a_fault(Place::Call, culprit, "not this");
}

#[test]
fn panic_of_a_helper_reaches_its_join() {
    let helper = punctual::background::spawn("fails", || std::panic::resume_unwind(Box::new("text")));
    let payload = helper.expect("threads can be started").join().expect_err("it panics");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"text"));
}
