//! The thread that waits for the descriptors of an app's async tasks, and the epoll set it waits with.
//!
//! It is a worker of the highest level that an async task has, and sleeps in `epoll_wait` instead of on its futex. It
//! wakes the tasks itself, so from the kernel's wake to the poll of a task of that level there is no further thread.

use std::os::fd::{AsFd, OwnedFd};

use punctual_core::CurrentWorker;
use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::app::fault::{self, Culprit};
use crate::app::reactor::Reactor;
use crate::app::runtime::Runtime;
use crate::port::linux::suspension;

/// The descriptors of a run's reactor, if there is one; closed when dropped, which is after its threads have ended.
pub(crate) struct Opened {
    runtime: &'static Runtime,
    _fds: Option<(OwnedFd, Option<OwnedFd>)>,
}

impl Opened {
    /// Makes the epoll set, and for a run on threads the eventfd that makes the thread look.
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
            // A run that does not come about ends here as well, and somebody may be letting go of a wait.
            self.runtime.close_to_others();
            // SAFETY: the threads have ended, and the app is closed to others.
            unsafe { reactor.close() };
        }
    }
}

/// The life of the thread, which is `me`; returns once the app is stopping.
pub(crate) fn listen(reactor: &'static Reactor, me: CurrentWorker) {
    let partition = reactor.part().partition();
    while !partition.is_stopping() {
        if let Err(error) = reactor.react(true, suspension::slept) {
            let message = format!("the descriptors of async tasks cannot be waited for: {error}");
            fault::panicked(reactor.part().runtime, Culprit::Executor, Box::new(message));
            break;
        }
    }
    // As the other threads that wait for events: what was woken just now may have been handed to this one.
    partition.serve(me, None);
}
