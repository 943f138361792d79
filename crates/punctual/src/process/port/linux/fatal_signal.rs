//! Reports signals that end the process to a supervisor, which reads the thread's stack while the
//! thread waits.
//!
//! SIGSEGV and SIGBUS arrive through the handler of [stack overflows](super::stack). The others
//! have a handler only while a supervisor watches, and only if the program has none.

use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use punctual_core::heartbeat::{self, Region};

/// Maximum time that the thread waits for the supervisor.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(2);

/// Null, or a `&'static Region`.
static REGION: AtomicPtr<Region> = AtomicPtr::new(std::ptr::null_mut());

/// Reports such signals in `region` from now on; `None` ends this.
pub(crate) fn watch(region: Option<&'static Region>) {
    REGION.store(
        region.map_or(std::ptr::null_mut(), |region| std::ptr::from_ref(region).cast_mut()),
        Ordering::Release,
    );
    static INSTALLED: Once = Once::new();
    if region.is_some() {
        INSTALLED.call_once(|| [libc::SIGABRT, libc::SIGILL, libc::SIGFPE].into_iter().for_each(install));
    }
}

/// Without a handler the process still ends, but its stack is not read.
fn install(signal: libc::c_int) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and the destination is valid; all-zero is a valid value.
    let before = unsafe {
        libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr());
        before.assume_init()
    };
    if before.sa_sigaction != libc::SIG_DFL {
        return;
    }
    // SAFETY: all-zero is a valid value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler is async-signal-safe, and ends with the default action of the signal.
    unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    report(signal, info, context);
    // SAFETY: both may be called in a handler. The signal is blocked until the handler returns, and
    // then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Notifies the supervisor, if there is one, and waits until it has read the stack, or for two
/// seconds. Only the first such signal is reported.
///
/// For signal handlers, with their arguments: it neither allocates nor takes a lock.
pub(crate) fn report(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: it is null, or was made from a `'static` reference.
    let Some(region) = (unsafe { REGION.load(Ordering::Acquire).as_ref() }) else { return };
    // The child of a `fork` shares the memory, but its end is not the app's.
    if region.app.process.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let fault = &region.fault;
    let first = fault.state.compare_exchange(
        heartbeat::NO_FAULT,
        heartbeat::REPORTING,
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    if first.is_err() {
        return;
    }
    let address = match signal {
        // SAFETY: the kernel passes a valid pointer, and these signals have an address.
        libc::SIGSEGV | libc::SIGBUS => unsafe { (*info).si_addr() }.addr() as u64,
        _ => 0,
    };
    fault.signal.store(signal.unsigned_abs(), Ordering::Relaxed);
    fault.thread.store(super::kernel_thread(), Ordering::Relaxed);
    fault.address.store(address, Ordering::Relaxed);
    fault.context.store(context.expose_provenance() as u64, Ordering::Relaxed);
    fault.state.store(heartbeat::WAITING, Ordering::Release);
    let pause = libc::timespec { tv_sec: 0, tv_nsec: GLANCE.as_nanos() as libc::c_long };
    for _ in 0..REPORT_TIMEOUT.as_millis() / GLANCE.as_millis() {
        if fault.state.load(Ordering::Acquire) == heartbeat::SEEN {
            return;
        }
        // SAFETY: a valid pointer to the time; the call may be made in a handler.
        unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
    }
}
