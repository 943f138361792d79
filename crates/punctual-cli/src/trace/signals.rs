//! Signals, and the end of a child, as messages.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use libc::SI_KERNEL;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// Meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Request to end.
    End {
        /// The signal.
        signal: i32,
        /// True if the terminal sent it, which also sends it to children.
        from_terminal: bool,
    },
    /// A child has ended.
    Child,
}

/// Pending signals.
pub(crate) struct Signals(Receiver<Notice>);

impl Signals {
    /// Turns signals into messages from now on, instead of ending the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithRawSiginfo>::new([SIGINT, SIGTERM, SIGHUP, SIGCHLD])?;
        let (send, receive) = mpsc::channel();
        std::thread::Builder::new().name("punctual-signals".into()).spawn(move || {
            for info in &mut signals {
                let notice = match info.si_signo {
                    SIGCHLD => Notice::Child,
                    signal => Notice::End { signal, from_terminal: info.si_code == SI_KERNEL },
                };
                if send.send(notice).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self(receive))
    }

    /// Returns the next one, if one arrives in time.
    pub(crate) fn wait(&self, time: Duration) -> Option<Notice> {
        match self.0.recv_timeout(time) {
            Ok(notice) => Some(notice),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread has ended, which does not happen; without it time still passes.
                std::thread::sleep(time);
                None
            }
        }
    }
}
