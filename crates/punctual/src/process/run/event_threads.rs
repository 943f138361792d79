//! The threads that wait for descriptors.
//!
//! Each bound task has one: a worker of the task's level that sleeps in `ppoll` instead of on its
//! futex. When the descriptor is ready it releases the job and, if the level is free, runs it
//! itself, so from the kernel's wake to the user's function there is no further thread.
//!
//! The async tasks of an app share one: a worker of their highest level, which sleeps in
//! `epoll_wait`. It wakes the tasks itself, so from the kernel's wake to the poll of a task of that
//! level there is no further thread either.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::Waker;
use std::time::Duration;

use punctual_core::{CurrentWorker, Port};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;

use crate::background::Pauses;
use crate::port::linux::suspension;
use crate::state::fault;
use crate::state::reactor::Reactor;
use crate::state::runtime::Runtime;
use crate::state::source::{ENDS, NONE, Source};
use crate::stop::Culprit;

/// One eventfd per event source, which makes its thread check again; withdrawn when dropped.
pub(crate) struct Controls {
    runtime: &'static Runtime,
    fds: Vec<OwnedFd>,
}

impl Controls {
    pub(crate) fn new(runtime: &'static Runtime) -> rustix::io::Result<Self> {
        let mut controls = Self { runtime, fds: Vec::new() };
        for source in runtime.sources() {
            let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            source.set_control(fd.as_raw_fd());
            controls.fds.push(fd);
        }
        Ok(controls)
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        self.runtime.sources().for_each(|source| {
            source.set_control(NONE);
            source.forget();
        });
    }
}

/// The main loop of such a thread, which is `me`; returns once the app is stopping.
pub(crate) fn listen(source: &'static dyn Source, me: CurrentWorker) {
    let core = source.partition().core();
    // A polling partition wakes no thread and has its jobs run by its own thread.
    let sleeps = core.port().may_sleep();
    let slept = account_for_sleeps(source.partition().runtime);
    while !core.is_stopping() {
        match wait_for_event(source, (!sleeps).then_some(&RECHECK_INTERVAL), slept) {
            Ok(Event::LookAgain) => continue,
            Ok(Event::Ready) => {}
            Err(problem) => {
                let (runtime, message) = (source.partition().runtime, format!("its event source {problem}"));
                fault::panicked(runtime, Culprit::Handler(source.name()), Box::new(message));
                break;
            }
        }
        let ended = source.ended();
        source.release();
        // Not before the job had its chance to consume the event.
        let mut pauses = Pauses::new(PAUSE);
        while source.ended() == ended && !core.is_stopping() {
            if !sleeps {
                pauses.sleep();
            } else if !core.boost_ordinary_holder(me, me.base()) {
                core.port().wait(&me, None, None);
            }
        }
    }
    if sleeps {
        // A job released just now may have been handed to this thread to run.
        core.serve(me, None);
    }
}

/// Shortest time given to a job of a polling partition to end before the next check.
const PAUSE: Duration = Duration::from_micros(50);
/// Interval at which a thread checks whether a job of a polling partition has replaced the
/// descriptor, or whether an idle source is still idle.
const RECHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

enum Event {
    Ready,
    LookAgain,
}

/// Returns the function to call after each sleep. It makes a system call on the way to the job, so
/// an app whose jobs are not checked for suspensions has another one.
fn account_for_sleeps(runtime: &Runtime) -> fn() {
    if runtime.checks_suspensions() { suspension::slept } else { || () }
}

/// Waits until the source is ready or the thread has to check again; calls `slept` after each
/// sleep.
fn wait_for_event(source: &dyn Source, limit: Option<&Timespec>, slept: impl Fn()) -> Result<Event, String> {
    // SAFETY: the run closes the eventfd after joining this thread.
    let control = unsafe { BorrowedFd::borrow_raw(source.control()) };
    let control_only = PollFd::from_borrowed_fd(control, PollFlags::IN);
    let mut fds = [control_only.clone(), control_only];
    let fd = source.fd();
    // Until `init` has created the resource, wait only for the notification that it has.
    if fd != NONE {
        // SAFETY: the descriptor was the resource's after its last job, and the resource lives
        // until the app's threads are joined. If a job replaces the resource while this thread
        // sleeps, the thread is notified to check again; at worst it has polled a number that is
        // closed or refers to another file by now, and polling changes nothing.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        fds[0] = PollFd::from_borrowed_fd(fd, PollFlags::IN | ENDS);
    }
    let idleness = source.idleness();
    // Detects if the source is temporarily not ready.
    let limit = if idleness.lasts() { Some(&AT_ONCE) } else { limit };
    let ready = poll(&mut fds, limit);
    slept();
    match ready {
        Err(Errno::INTR) => return Ok(Event::LookAgain),
        Err(error) => return Err(format!("cannot be waited for: {error}")),
        Ok(_) => {}
    }
    if !fds[1].revents().is_empty() {
        let mut count = [0; 8];
        let _ = rustix::io::read(control, &mut count);
        return Ok(Event::LookAgain);
    }
    match fds[0].revents() {
        events if events.is_empty() => {
            idleness.is_over();
            Ok(Event::LookAgain)
        }
        events if events.contains(PollFlags::NVAL) => Err("is not open".into()),
        // Errors and hang-ups are left to the task.
        events if idleness.releases(source, fds[0].as_fd(), events) => Ok(Event::Ready),
        _ => {
            // No event reports that a source is no longer idle.
            let _ = poll(&mut fds[1..], Some(&RECHECK_INTERVAL));
            slept();
            Ok(Event::LookAgain)
        }
    }
}

/// The descriptors of a run's reactor, if there is one; closed when dropped, which is after its
/// threads have ended.
pub(crate) struct Opened {
    runtime: &'static Runtime,
    _fds: Option<(OwnedFd, Option<OwnedFd>)>,
}

impl Opened {
    /// Creates the epoll set, and for a run on threads the eventfd that interrupts the thread.
    pub(crate) fn new(runtime: &'static Runtime, on_threads: bool) -> rustix::io::Result<Self> {
        let Some(reactor) = runtime.reactor() else { return Ok(Self { runtime, _fds: None }) };
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let control = match on_threads {
            true => Some(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            false => None,
        };
        reactor.open(set.as_fd(), control.as_ref().map(AsFd::as_fd))?;
        Ok(Self { runtime, _fds: Some((set, control)) })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(reactor) = self.runtime.reactor() {
            // A run that never started ends here as well, and a future may be ending its wait.
            self.runtime.close_foreign_spawns();
            let discard = |waker| {
                fault::contained(self.runtime, Culprit::Waker, || drop(waker));
            };
            // SAFETY: the threads have ended, and the app is closed to others.
            unsafe { reactor.close(discard) };
        }
    }
}

/// The main loop of the thread that waits for async tasks, which is `me`; returns once the app is
/// stopping.
pub(crate) fn listen_for_async(reactor: &'static Reactor, me: CurrentWorker) {
    let core = reactor.partition().core();
    let wake = |waker: Waker| {
        fault::contained(reactor.partition().runtime, Culprit::Waker, || waker.wake());
    };
    let slept = account_for_sleeps(reactor.partition().runtime);
    while !core.is_stopping() {
        if let Err(error) = reactor.react(true, slept, wake) {
            let message = format!("the descriptors of async tasks cannot be waited for: {error}");
            fault::panicked(reactor.partition().runtime, Culprit::Executor, Box::new(message));
            break;
        }
        while core.port().may_sleep() && !core.is_stopping() && core.boost_ordinary_holder(me, me.base()) {}
    }
    // As in the other event threads: a job released just now may have been handed to this one.
    core.serve(me, None);
}
