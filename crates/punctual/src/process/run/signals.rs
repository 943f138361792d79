//! The handling of SIGINT and SIGTERM during a run.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_process::signals::{self, Disposition};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Signals that stop an app.
const STOPPING: [i32; 2] = [SIGINT, SIGTERM];

/// Makes the calling thread receive the signals that stop an app, even if the program was started
/// with them blocked.
pub(super) fn receive() {
    signals::unblock(&STOPPING);
}

/// The number of runs that handle signals.
static SIGNAL_USERS: AtomicUsize = AtomicUsize::new(0);

/// Handles signals for a run. Without one, signals have their default effect again.
struct SignalUse;

impl SignalUse {
    fn new(signals: &[i32]) -> std::io::Result<Self> {
        static HANDLED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
        let mut handled = HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
        for &signal in signals {
            if handled.contains(&signal) {
                continue;
            }
            // A previous handler is always called. The default action is not, and would not be
            // restored.
            if signals::disposition(signal)? == Disposition::Default {
                let action = move || {
                    if SIGNAL_USERS.load(Ordering::SeqCst) == 0 {
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                };
                // SAFETY: a signal handler may read an atomic, and `emulate_default_handler` is
                // made for one.
                unsafe { signal_hook::low_level::register(signal, action) }?;
            }
            handled.push(signal);
        }
        SIGNAL_USERS.fetch_add(1, Ordering::SeqCst);
        Ok(Self)
    }
}

impl Drop for SignalUse {
    fn drop(&mut self) {
        SIGNAL_USERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The signals of a run, until dropped.
pub(super) struct Signals {
    /// The last pending signal, or 0.
    caught: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
    _signal_use: SignalUse,
}

impl Signals {
    /// Handles them from now on; each also writes to `notifier`.
    pub(super) fn take(notifier: &UnixStream) -> std::io::Result<Self> {
        // A parent that ignores a signal, as a shell does for background jobs and some CI runners
        // do, wants it ignored here too.
        let mut taken = Vec::new();
        for signal in STOPPING {
            if signals::disposition(signal)? != Disposition::Ignored {
                taken.push(signal);
            }
        }
        let signal_use = SignalUse::new(&taken)?;
        // From here on, a failure unregisters what was registered.
        let mut run = Self { caught: Arc::default(), handlers: Vec::new(), _signal_use: signal_use };
        for signal in taken {
            let caught = run.caught();
            run.handlers.push(signal_hook::flag::register_usize(signal, caught, signal as usize)?);
            run.handlers.push(signal_hook::low_level::pipe::register(signal, notifier.try_clone()?)?);
        }
        Ok(run)
    }

    pub(super) fn caught(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.caught)
    }

    /// Handles no further signal. Until dropped, signals still do not have their default action.
    pub(super) fn leave(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.leave();
    }
}
