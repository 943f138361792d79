//! Event sources whose data is recorded, and replayed without the source.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::message::{Description, Layout, Numbers, decode_with};
use crate::replay::{self, Input, is_replay};
use crate::{Message, Publisher, Topic};

/// The source of a task's events, such as a socket or an input line, whose data is recorded: a
/// local that the task binds. Created by [`Topic::record_inputs`].
pub struct RecordedInput<S, T: Message, const N: usize> {
    source: Source<S, T>,
    publisher: Publisher<T, N>,
}

enum Source<S, T> {
    Real(S),
    Recorded(Arc<Recorded<T>>),
}

/// Data of a recording that the task has not read.
struct Recorded<T> {
    /// Readable while there is data.
    ready: OwnedFd,
    waiting: Mutex<VecDeque<T>>,
}

impl<T: Message, const N: usize> Topic<T, N> {
    /// Opens an event source, and records what a task reads from it as messages of this topic,
    /// which the bridge carries like others.
    ///
    /// In a [replay](is_replay) `open` is not called, and the data comes from the recording.
    ///
    /// ```
    /// use std::net::UdpSocket;
    /// use punctual_bridge::{Message, RecordedInput, Topic};
    ///
    /// #[derive(Clone, Copy, Message)]
    /// pub struct Pulse {
    ///     count: u32,
    /// }
    ///
    /// static PULSES: Topic<Pulse, 64> = Topic::new("/pulses");
    ///
    /// #[punctual::app(main = false)]
    /// mod app {
    ///     use super::{PULSES, Pulse, RecordedInput, UdpSocket};
    ///
    ///     #[shared]
    ///     struct Shared {}
    ///
    ///     #[local]
    ///     struct Local {
    ///         pulses: RecordedInput<UdpSocket, Pulse, 64>,
    ///     }
    ///
    ///     #[init]
    ///     fn init(_: init::Context) -> (Shared, Local) {
    ///         let pulses = PULSES.record_inputs(|| UdpSocket::bind("127.0.0.1:0"));
    ///         (Shared {}, Local { pulses: pulses.expect("a port is free") })
    ///     }
    ///
    ///     #[task(binds = pulses, priority = 2, local = [pulses])]
    ///     fn count(cx: count::Context) {
    ///         let pulse = cx.local.pulses.read(|socket| {
    ///             let mut bytes = [0; 4];
    ///             socket.recv(&mut bytes)?;
    ///             Ok(Pulse { count: u32::from_le_bytes(bytes) })
    ///         });
    ///         if let Ok(pulse) = pulse {
    ///             punctual::log!(Info, "{} pulses", pulse.count);
    ///         }
    ///     }
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// Those of `open`, and [`io::ErrorKind::ResourceBusy`] if the topic has a publisher.
    pub fn record_inputs<S: AsFd>(
        &'static self,
        open: impl FnOnce() -> io::Result<S>,
    ) -> io::Result<RecordedInput<S, T, N>> {
        self.is_input.store(true, Ordering::Relaxed);
        let publisher =
            self.publisher().map_err(|error| io::Error::new(io::ErrorKind::ResourceBusy, error))?;
        let source = if is_replay() {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
            let recorded = Recorded { ready: eventfd(0, flags)?, waiting: Mutex::default() };
            let recorded = Arc::new(recorded);
            replay::register_input(self.name(), &recorded);
            Source::Recorded(recorded)
        } else {
            Source::Real(open()?)
        };
        Ok(RecordedInput { source, publisher })
    }
}

impl<S, T: Message, const N: usize> RecordedInput<S, T, N> {
    /// Reads from the source by `read`, and records the result with the present time.
    ///
    /// Real-time safety: that of `read`, of [`punctual::now`], and of [`Publisher::publish`].
    ///
    /// # Errors
    /// Those of `read`, which are not recorded. In a replay [`io::ErrorKind::WouldBlock`] if the
    /// recorded task had read no more at this time.
    pub fn read(&mut self, read: impl FnOnce(&mut S) -> io::Result<T>) -> io::Result<T> {
        let data = match &mut self.source {
            Source::Real(source) => read(source)?,
            Source::Recorded(recorded) => recorded.take()?,
        };
        self.publisher.publish(punctual::now(), data);
        Ok(data)
    }
}

impl<T> Recorded<T> {
    fn take(&self) -> io::Result<T> {
        // Fails without data.
        rustix::io::read(&self.ready, &mut [0_u8; 8])?;
        let data = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        data.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl<T: Message> Input for Recorded<T> {
    fn description(&self) -> &'static Description {
        T::DESCRIPTION
    }

    fn feed(&self, payload: &[u8]) -> Result<(), String> {
        let data = decode_with(payload, Layout::Cdr, Numbers::Any).map_err(|error| error.to_string())?;
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(data);
        let counted = rustix::io::write(&self.ready, &1_u64.to_ne_bytes());
        counted.map(drop).map_err(|error| error.to_string())
    }
}

impl<S: AsFd, T: Message, const N: usize> AsFd for RecordedInput<S, T, N> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::Real(source) => source.as_fd(),
            Source::Recorded(recorded) => recorded.ready.as_fd(),
        }
    }
}

impl<S, T: Message, const N: usize> fmt::Debug for RecordedInput<S, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedInput").field("publisher", &self.publisher).finish_non_exhaustive()
    }
}
