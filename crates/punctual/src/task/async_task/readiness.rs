//! Waits for descriptors.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use punctual_core::Standing;
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::timers;
use crate::state::partition::ThreadModel;
use crate::state::reactor::{Reactor, Ticket};

/// Waits until `fd` is readable: a socket, a pipe, a `timerfd`, an `eventfd`, a GPIO line, or
/// anything else that is [`AsFd`].
///
/// The end of the data, a hang-up and an error end the wait as well; reading then determines which.
/// A regular file is always ready. Readiness is a hint: another task may have read the data in
/// between, so use a nonblocking descriptor and try first.
///
/// ```no_run
/// # use std::io::{ErrorKind, Read, Result};
/// # async fn work(mut socket: std::os::unix::net::UnixStream) -> Result<()> {
/// socket.set_nonblocking(true)?;
/// let mut bytes = [0; 64];
/// let length = loop {
///     match socket.read(&mut bytes) {
///         Err(error) if error.kind() == ErrorKind::WouldBlock => punctual::readable(&socket).await?,
///         read => break read?,
///     }
/// };
/// # let _ = length;
/// # Ok(())
/// # }
/// ```
///
/// For a limit on the wait, see [`timeout_after`](crate::timeout_after).
///
/// Several futures may wait for one descriptor. When it is ready all of them continue, unless one
/// reads the data before the others are woken. A completed future that is polled once more waits
/// again. In virtual time descriptors are checked when no other work is left and while execution
/// time passes, like those of `binds` tasks.
///
/// Real-time safety: does not allocate or wait for another thread of the app. The first poll makes
/// one system call, an `epoll_ctl`, for which the kernel allocates an entry, and takes one of the
/// app's slots, found by a linear scan of some nanoseconds per slot. Later polls make none, and the
/// end of the wait, also by dropping the future, one more. If another future already waits for the
/// same descriptor, the first poll makes three, because it needs a duplicate, and the end two. One
/// thread of the app, at the highest level of its async tasks, waits for all the descriptors and
/// wakes. A task of that level is polled there; one below, by the thread of its level, and waking
/// that thread takes a few microseconds from the tasks in between.
///
/// # Errors
/// Returns the error of `epoll_ctl` for the descriptor: `EBADF` if it is not open; and `EMFILE` if
/// a duplicate is needed and there are too many descriptors.
///
/// # Panics
/// Panics if polled outside an async task of a [`punctual::app`](macro@crate::app), or if the async
/// tasks of the app wait for more descriptors at once than the sum of their `waits`.
pub fn readable(fd: &(impl AsFd + ?Sized)) -> Readiness<'_> {
    Readiness::new(fd.as_fd(), EventFlags::IN)
}

/// Waits until `fd` is writable; otherwise as [`readable`].
///
/// # Errors
/// Those of [`readable`].
///
/// # Panics
/// As [`readable`].
pub fn writable(fd: &(impl AsFd + ?Sized)) -> Readiness<'_> {
    Readiness::new(fd.as_fd(), EventFlags::OUT)
}

/// A future that waits for a descriptor: from [`readable`] or [`writable`].
///
/// A leaked one keeps its slot until the end of the run, and its duplicate descriptor, if any,
/// forever.
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Readiness<'a> {
    fd: BorrowedFd<'a>,
    interest: EventFlags,
    pending: Option<Pending>,
}

/// An occupied slot, and the waker it wakes.
#[derive(Debug)]
struct Pending {
    reactor: &'static Reactor,
    /// Owned by this future.
    ticket: Ticket,
    waker: Waker,
    /// A duplicate of a descriptor that another future waits for.
    duplicate: Option<OwnedFd>,
}

impl<'a> Readiness<'a> {
    fn new(fd: BorrowedFd<'a>, interest: EventFlags) -> Self {
        Self { fd, interest, pending: None }
    }

    /// Frees the slot, if there is one.
    fn end(&mut self) {
        if let Some(Pending { reactor, ticket, duplicate, .. }) = self.pending.take() {
            let fd = duplicate.as_ref().map_or(self.fd, AsFd::as_fd);
            // SAFETY: the ticket came from this reactor and belonged only to this future, which has
            // none anymore.
            unsafe { reactor.end(ticket, fd) };
        }
    }

    /// Begins to wait; returns whether it is ready at once.
    fn begin(&mut self, reactor: &'static Reactor, waker: &Waker) -> io::Result<bool> {
        let mut duplicate = None;
        let mut begun = reactor.begin(self.fd, self.interest, waker);
        if matches!(begun, Err(Errno::EXIST)) {
            // The set has one entry per descriptor, but another descriptor may refer to the same
            // file.
            let fd = duplicate.insert(fcntl_dupfd_cloexec(self.fd, 0)?);
            begun = reactor.begin(fd.as_fd(), self.interest, waker);
        }
        match begun {
            Ok(ticket) => {
                let pending = |ticket| Pending { reactor, ticket, waker: waker.clone(), duplicate };
                self.pending = ticket.map(pending);
                Ok(false)
            }
            // A file that cannot be waited for, such as a regular one, can always be read and
            // written.
            Err(Errno::PERM) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Readiness<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Future for Readiness<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let timers = timers::current().expect("descriptors are waited for by the async tasks of an app");
        if timers.partition().model == ThreadModel::Polling {
            let why = "a task of a polling partition must not enter the kernel, so it cannot wait for a descriptor; bind a \
                       task to it, or wait in a task of another partition that spawns this one";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
        let reactor = timers.partition().runtime.reactor().expect("an app with async tasks has a reactor");
        // A future may be moved to another app between polls, and to another run.
        if let Some(pending) = &mut self.pending
            && std::ptr::eq(pending.reactor, reactor)
        {
            let standing = match pending.waker.will_wake(cx.waker()) {
                true => reactor.standing(pending.ticket),
                false => {
                    pending.waker.clone_from(cx.waker());
                    // SAFETY: the ticket came from this reactor and belongs only to this future.
                    unsafe { reactor.renew(pending.ticket, cx.waker()) }
                }
            };
            match standing {
                Standing::Waiting => return Poll::Pending,
                Standing::Fired => {
                    self.end();
                    return Poll::Ready(Ok(()));
                }
                Standing::Over => {}
            }
        }
        self.end();
        match self.begin(reactor, cx.waker()) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
