//! Signals that end the process, told to a supervisor: it reads the thread's stack while the thread waits for it.
//!
//! SIGSEGV and SIGBUS come from the handler of [stack overflows](super::stack); the others have one only while a supervisor
//! watches, and only where the program has none.

use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use punctual_core::heartbeat::{self, Region};

/// How long the thread waits for the supervisor.
const PATIENCE: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(2);

/// Null, or a `&'static Region`.
static REGION: AtomicPtr<Region> = AtomicPtr::new(std::ptr::null_mut());

/// Tells of such signals in `region` from now on; `None` ends that.
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

/// Without it the process ends all the same; only its stack is not seen.
fn install(signal: libc::c_int) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and the place is valid; all-zero is a valid value besides.
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
    // SAFETY: the handler does only what one may do, and then what would have happened without it.
    unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    report(signal, info, context);
    // SAFETY: both may be called in a handler. The signal is blocked until that returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Tells the supervisor, if there is one, and waits until it has looked, or for two seconds. Only the first such signal is told.
///
/// For signal handlers, with what the kernel gave them: it neither allocates nor takes a lock.
pub(crate) fn report(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: it is null, or was made from a reference that lives for ever.
    let Some(region) = (unsafe { REGION.load(Ordering::Acquire).as_ref() }) else { return };
    // The child of a `fork` has the memory, too, and its end is not the app's.
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
        // SAFETY: the kernel gives a valid pointer, and these signals come with an address.
        libc::SIGSEGV | libc::SIGBUS => unsafe { (*info).si_addr() }.addr() as u64,
        _ => 0,
    };
    fault.signal.store(signal.unsigned_abs(), Ordering::Relaxed);
    fault.thread.store(super::kernel_thread(), Ordering::Relaxed);
    fault.address.store(address, Ordering::Relaxed);
    fault.context.store(context.expose_provenance() as u64, Ordering::Relaxed);
    fault.state.store(heartbeat::WAITING, Ordering::Release);
    let pause = libc::timespec { tv_sec: 0, tv_nsec: GLANCE.as_nanos() as libc::c_long };
    for _ in 0..PATIENCE.as_millis() / GLANCE.as_millis() {
        if fault.state.load(Ordering::Acquire) == heartbeat::SEEN {
            return;
        }
        // SAFETY: a valid pointer to the time; the call may be made in a handler.
        unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
    }
}
