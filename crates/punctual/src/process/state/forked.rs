//! The child of a `fork` in a process that runs an app.
//!
//! The child has a copy of the memory, and only the thread that forked. It may `exec` or `_exit`.
//! If it returned from the job that forked into the executor instead, it would continue as the
//! app's only thread: run the queued jobs against devices that the parent has open as well, and
//! then wait for threads that do not exist. So it is ended at that point with a message.
//!
//! The real-time path has no overhead. In the child, before `fork` returns, every running app is
//! stopped, which rejects spawns, and gets a flag that each job checks (see
//! [`Runtime::is_instrumented`]). A thread that is about to sleep or to end is checked here.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::port::linux::{self, stderr};
use crate::state::runtime::Runtime;
use crate::state::thread;

/// Number of forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The apps that have ever run, linked by [`Forks::next`](super::app::Forks::next).
/// Without a lock: another thread may hold it while the process forks.
static FIRST: AtomicPtr<Runtime> = AtomicPtr::new(std::ptr::null_mut());

/// Records that `runtime` begins to run in this process. The caller has claimed it.
pub(crate) fn begin(runtime: &'static Runtime) -> io::Result<()> {
    static HANDLER: OnceLock<i32> = OnceLock::new();
    runtime.host.forks.generation.store(GENERATION.load(Ordering::Relaxed), Ordering::Relaxed);
    if !runtime.host.forks.listed.swap(true, Ordering::Relaxed) {
        let mut first = FIRST.load(Ordering::Relaxed);
        loop {
            runtime.host.forks.next.store(first, Ordering::Relaxed);
            let this = std::ptr::from_ref(runtime).cast_mut();
            // Release: a thread that follows the pointer sees the runtime, and the next entry.
            match FIRST.compare_exchange_weak(first, this, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
    }
    // SAFETY: the handler may be called in any child; see its documentation.
    let error = *HANDLER.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Runs in the child, on its only thread, before `fork` returns. Async-signal-safe: uses only
/// atomics and futexes.
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let mut at = FIRST.load(Ordering::Acquire);
    // SAFETY: the list consists of statics, and entries are only ever added.
    while let Some(runtime) = unsafe { at.as_ref() } {
        runtime.stop_copy();
        at = runtime.host.forks.next.load(Ordering::Relaxed);
    }
}

/// Returns the number of forks between the first process in which an app ran and this one.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Ends the process if it is a child that has returned into the executor of `runtime`.
#[inline]
pub(crate) fn check(runtime: &Runtime) {
    if runtime.host.forks.generation.load(Ordering::Relaxed) != generation() {
        end();
    }
}

#[cold]
fn end() -> ! {
    let process = std::process::id();
    match thread::get() {
        Some((partition, worker)) if worker.running() > 0 => {
            let (tasks, level) = (partition.names_at(worker.running()), worker.running());
            stderr::line(format_args!(
                "process {process}, forked by {tasks} at level {level}, has returned from the job and ends: {ADVICE}"
            ));
        }
        _ => stderr::line(format_args!(
            "process {process} was forked, came back to the executor and ends: {ADVICE}"
        )),
    }
    linux::end_process(EXIT_CODE)
}

const ADVICE: &str = "it has none of the app's threads; call exec or _exit in the child";

/// The exit code of an internal software error (`EX_SOFTWARE`).
const EXIT_CODE: i32 = 70;
