//! Implementation of [`log!`](crate::log): a record has the time of the app whose thread logs.

use punctual_core::Port;
use punctual_sync::futex::selector::unwatched;

use super::thread;
use crate::logging::{self, Format, Record, Site};
use crate::port::linux::clock;

/// Stores a message of `site` for the writer, or logs it at once on a thread that may.
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
