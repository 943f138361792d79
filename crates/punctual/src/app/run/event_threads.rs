//! The threads that wait for event sources.
//!
//! Each bound task has one: a worker of the task's level that sleeps in `ppoll` instead of on its futex.
//! When the descriptor is ready it releases the job and, if the level is free, runs it itself, so from the
//! kernel's wake to the user's function there is no further thread.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use punctual_core::{CurrentWorker, Port};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::app::event_source::{ENDS, NONE};
use crate::app::fault::{self, Culprit};
use crate::app::runtime::{Runtime, Source};
use crate::port::linux::suspension;

/// One eventfd per event source, which makes its thread look again; taken back when dropped.
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

/// The life of such a thread, which is `me`; returns once the app is stopping.
pub(crate) fn listen(source: &'static dyn Source, me: CurrentWorker) {
    let partition = source.part().partition();
    // A polling partition wakes nobody and has its jobs run by its own thread.
    let sleeps = partition.port().may_sleep();
    while !partition.is_stopping() {
        match wait_for_event(source, (!sleeps).then_some(&LOOK_AGAIN)) {
            Ok(Event::LookAgain) => continue,
            Ok(Event::Ready) => {}
            Err(problem) => {
                let (runtime, message) = (source.part().runtime, format!("its event source {problem}"));
                fault::panicked(runtime, Culprit::Handler(source.name()), Box::new(message));
                break;
            }
        }
        let ended = source.ended();
        source.release();
        // Not before the job has had its chance to consume the event.
        while source.ended() == ended && !partition.is_stopping() {
            match sleeps {
                true => partition.port().wait(&me, None),
                false => std::thread::sleep(PAUSE),
            }
        }
    }
    if sleeps {
        // A job released just now may have been handed to this thread to run.
        partition.serve(me, None);
    }
}

/// How long a job of a polling partition is given to end before the next look.
const PAUSE: Duration = Duration::from_micros(50);
/// How often a thread looks whether a job of a polling partition has replaced the descriptor, or whether one that is at its end
/// still is.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

enum Event {
    Ready,
    LookAgain,
}

fn wait_for_event(source: &dyn Source, limit: Option<&Timespec>) -> Result<Event, String> {
    // SAFETY: the run closes the eventfd after joining this thread.
    let control = unsafe { BorrowedFd::borrow_raw(source.control()) };
    let control_only = PollFd::from_borrowed_fd(control, PollFlags::IN);
    let mut fds = [control_only.clone(), control_only];
    let fd = source.fd();
    // Until `init` has made the resource there is nothing to wait for but being told so.
    if fd != NONE {
        // SAFETY: the descriptor was the resource's after its last job, and the resource lives until the
        // app's threads are joined. Should a job replace the resource while this thread sleeps, it is told
        // to look again; at worst it has asked about a number that is closed or stands for another file by
        // now, and asking changes nothing.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        fds[0] = PollFd::from_borrowed_fd(fd, PollFlags::IN | ENDS);
    }
    let idleness = source.idleness();
    // Not to miss that it is not ready for a moment.
    let limit = if idleness.lasts() { Some(&AT_ONCE) } else { limit };
    let ready = poll(&mut fds, limit);
    suspension::slept();
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
        // Errors and hang-ups are for the task to find.
        events if idleness.releases(source, fds[0].as_fd(), events) => Ok(Event::Ready),
        _ => {
            // Being at its end cannot be waited for to be over.
            let _ = poll(&mut fds[1..], Some(&LOOK_AGAIN));
            suspension::slept();
            Ok(Event::LookAgain)
        }
    }
}
