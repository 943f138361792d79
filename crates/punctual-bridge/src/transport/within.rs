//! Calls of foreign libraries.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

/// Calls `f` on an ordinary thread named `thread`, and waits for its result for at most `limit`;
/// `None` if it takes longer. In that case the thread continues, and its result is dropped.
///
/// For calls of foreign libraries that may never return, and whose threads inherit settings from
/// the caller.
///
/// Real-time safety: allocates and blocks; for `init` and ordinary threads.
///
/// # Errors
/// If the thread cannot be started.
pub fn within<R: Send + 'static>(
    thread: &str,
    limit: Duration,
    f: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Option<R>> {
    let (done, is_done) = mpsc::sync_channel(1);
    punctual::background::spawn(thread, move || {
        // After the limit there is no receiver.
        let _ = done.send(f());
    })?;
    Ok(is_done.recv_timeout(limit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_result_or_none_after_limit() {
        let hour = Duration::from_secs(3600);
        assert_eq!(within("unit-within", hour, || 7).unwrap(), Some(7));
        let (release, released) = mpsc::channel::<()>();
        let never = move || released.recv().is_ok();
        assert_eq!(within("unit-within", Duration::ZERO, never).unwrap(), None);
        drop(release);
    }
}
