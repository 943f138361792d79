//! Items that the generated code uses only in a process.

use std::os::fd::{AsFd, AsRawFd, RawFd};

pub use crate::background::calls::Calls;
pub use crate::external_clock::Discipline;
pub use crate::lock::{CeilingLocked, CeilingMutex};
pub use crate::logging::{Site, is_written};
pub use crate::observe::profile::Profiled;
pub use crate::process::task::descriptor::{Bound, BoundTask};
pub use crate::state::log::keep;
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
