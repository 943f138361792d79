//! The interface for transports: crates that carry messages between the topics of an app and a
//! network.
//!
//! | direction | a transport | counted by the bridge |
//! |---|---|---|
//! | out of the app | implements [`Sink`](crate::Sink) and is given to [`Bridge::sink`](crate::Bridge::sink) | written, dropped and missed messages |
//! | into the app | owns a [`Subscription`](crate::Subscription) and passes it the bytes of each message by [`take`](crate::Subscription::take) | accepted, malformed and refused messages |
//! | parameters (feature `parameters`) | has a [`ParameterAccess`] of a server | granted, refused and malformed requests |
//!
//! Messages are bytes in CDR, those of ROS 2. For ROS 1, [`pack`](crate::message::pack) converts
//! outgoing ones, and [`Layout::Packed`](crate::message::Layout::Packed) describes incoming ones.
//! [`Dialect`](crate::message::Dialect) writes the definition of a message in the language of
//! either.
//!
//! All of it runs on ordinary threads: those of the bridge, and those that a transport starts by
//! [`punctual::background::spawn`], which leave the real-time policy and the CPUs of the app.
//! Threads of a foreign library inherit both from the thread that starts them, so a transport
//! starts the library inside [`within`].
//!
//! [`ParameterAccess`]:
//! https://docs.rs/punctual-bridge/latest/punctual_bridge/parameters/struct.ParameterAccess.html

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
    fn returns_the_result_or_nothing_after_the_limit() {
        let hour = Duration::from_secs(3600);
        assert_eq!(within("unit-within", hour, || 7).unwrap(), Some(7));
        let (release, released) = mpsc::channel::<()>();
        let never = move || released.recv().is_ok();
        assert_eq!(within("unit-within", Duration::ZERO, never).unwrap(), None);
        drop(release);
    }
}
