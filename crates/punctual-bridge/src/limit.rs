//! Calls that may never return.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

/// What `f` returns, called on an ordinary thread of this name; `None` if it takes longer than `patience`, or panics. Then the thread is left alone.
pub(crate) fn within<R: Send + 'static>(
    thread: &str,
    patience: Duration,
    f: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Option<R>> {
    let (done, is_done) = mpsc::sync_channel(1);
    punctual::background::spawn(thread, move || {
        // Nobody waits any more if it took too long.
        let _ = done.send(f());
    })?;
    Ok(is_done.recv_timeout(patience).ok())
}
