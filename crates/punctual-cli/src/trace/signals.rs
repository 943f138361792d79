//! Signals, and the end of a child, as messages.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{SI_KERNEL, siginfo_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_registry::register_sigaction;

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
pub(crate) struct Signals(Arc<Pipe>);

/// Of two bytes for each signal: its number, and 1 if the kernel sent it.
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Signals {
    /// Turns signals into messages from now on, instead of ending the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let pipe = Arc::new(Pipe { read, write });
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGCHLD] {
            let pipe = Arc::clone(&pipe);
            let send = move |info: &siginfo_t| {
                let message = [signal as u8, u8::from(info.si_code == SI_KERNEL)];
                // If the pipe is full, thousands of messages wait to be read.
                let _ = rustix::io::write(&pipe.write, &message);
            };
            // SAFETY: `send` is async-signal-safe. It reads memory that it owns, and writes to a
            // pipe. It does not allocate, take locks, or panic.
            unsafe { register_sigaction(signal, send) }?;
        }
        Ok(Self(pipe))
    }

    /// Returns the next one, if one arrives in time.
    pub(crate) fn wait(&self, time: Duration) -> Option<Notice> {
        let start = Instant::now();
        loop {
            let mut message = [0_u8; 2];
            // A message is written and read as a whole.
            if let Ok(2) = rustix::io::read(&self.0.read, &mut message) {
                return Some(match message.map(i32::from) {
                    [SIGCHLD, _] => Notice::Child,
                    [signal, cause] => Notice::End { signal, from_terminal: cause == 1 },
                });
            }
            let left = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero())?;
            let left = Timespec::try_from(left).ok();
            // An error is the interruption by a signal, whose message is read next.
            let _ = poll(&mut [PollFd::new(&self.0.read, PollFlags::IN)], left.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// With SIGHUP, which no other test of this process sends or handles.
    #[test]
    fn returns_signals_in_order_with_their_origin() {
        let signals = Signals::listen().unwrap();
        let next = || std::iter::from_fn(|| signals.wait(Duration::from_secs(60)));
        for _ in 0..2 {
            kill_process(getpid(), Signal::HUP).unwrap();
            // Tests that run in parallel start children.
            let notice = next().find(|notice| *notice != Notice::Child);
            assert_eq!(notice, Some(Notice::End { signal: SIGHUP, from_terminal: false }));
        }
    }
}
