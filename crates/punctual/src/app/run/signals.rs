//! The handling of SIGINT and SIGTERM during a run.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

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
            // A previous handler is called in any case. The default action is not, and would not be restored.
            if is_default(signal)? {
                let action = move || {
                    if SIGNAL_USERS.load(Ordering::SeqCst) == 0 {
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                };
                // SAFETY: a signal handler may read an atomic, and `emulate_default_handler` is made for one.
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

/// Whether the signal has its default action.
fn is_default(signal: i32) -> std::io::Result<bool> {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and `now` is a valid place for what is; all-zero is a valid value besides.
    unsafe {
        match libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) {
            0 => Ok(now.assume_init().sa_sigaction == libc::SIG_DFL),
            _ => Err(std::io::Error::last_os_error()),
        }
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
        const TAKEN: [i32; 2] = [SIGINT, SIGTERM];
        let signal_use = SignalUse::new(&TAKEN)?;
        // From here on, a failure unregisters what was registered.
        let mut signals = Self { caught: Arc::default(), handlers: Vec::new(), _signal_use: signal_use };
        for signal in TAKEN {
            let caught = signals.caught();
            signals.handlers.push(signal_hook::flag::register_usize(signal, caught, signal as usize)?);
            signals.handlers.push(signal_hook::low_level::pipe::register(signal, notifier.try_clone()?)?);
        }
        Ok(signals)
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
