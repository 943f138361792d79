//! Items that the generated code uses only in a process.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use punctual_core::Port;
use punctual_sync::futex::selector::unwatched;

use crate::logging::{self, Format, Record};
use crate::port::linux::clock;
use crate::state::thread;

pub use crate::background::calls::Calls;
pub use crate::external_clock::Discipline;
pub use crate::lock::{CeilingLocked, CeilingMutex};
pub use crate::logging::{Site, is_written};
pub use crate::observe::profile::Profiled;
pub use crate::process::task::descriptor::{Bound, BoundTask};
pub use crate::state::reactor::Reactor;
pub use ::log;
pub use punctual_sync::PcpGroup as Ceilings;

/// A type with a descriptor that becomes readable when there is an event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event source",
    label = "does not implement `AsFd`",
    note = "`binds` names a local resource that is `std::os::fd::AsFd`: a socket, a pipe, a timerfd, an eventfd"
)]
pub trait EventSource {
    /// Returns its descriptor.
    fn raw_fd(&self) -> RawFd;
}

#[diagnostic::do_not_recommend]
impl<T: AsFd> EventSource for T {
    fn raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Stores a message of `site` for the writer, with the time of the app whose thread logs, or logs
/// it at once on a thread that may.
#[doc(hidden)]
#[inline]
pub fn keep<F: Format>(site: &'static Site, message: F) {
    let record = || {
        let now = thread::get().map_or(0, |(partition, _)| partition.core.port().stamp().as_ticks());
        Record::new(site, now, message)
    };
    if !logging::keep(record) {
        write_now(site, message);
    }
}

/// Logs at once, on a thread that may.
#[cold]
fn write_now<F: Format>(site: &'static Site, message: F) {
    // In virtual time it may be a job that the guard watches, and this is permitted.
    let now = || thread::get().map_or_else(clock::now, |(partition, _)| partition.core.port().now());
    unwatched(|| Record::new(site, now().as_ticks(), message).write());
}
