//! Threads inside one thread of a Linux process, preferably on a CPU taken from Linux: they are
//! switched in user space, and preempted by a signal.
//!
//! Threads of the kernel share the state that Linux keeps for its thread:
//!
//! * *Thread-local storage* belongs to the thread of Linux; see [`start`]. `errno` is preserved for
//!   a preempted thread.
//! * *The signal mask.* The kernel changes it only for its own signal, which is blocked from its
//!   delivery until its handler has masked interrupts; `signal.rs` explains why that is sufficient.
//! * *Async-signal-safety.* The handler reads a clock, sets a timer and works on the kernel's data,
//!   all of which is allowed. It switches to code of the program, which must satisfy the contract
//!   of [`start`].
//!
//! Shadow stacks, as in x86-64's CET, are incompatible: a process with shadow stacks enabled is
//! killed at the first switch.

mod guard;
mod perf;
mod signal;
#[cfg(all(test, target_arch = "x86_64"))]
mod steps;

use core::cell::Cell;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::io;
use std::thread_local;

use crate::{InterruptSlot, Kernel, Port, ThreadSlot};
use guard::Guard;
use signal::SIGNAL;

/// The number of threads that the kernel has slots for.
pub const THREADS: usize = 64;

/// The number of interrupts that the kernel has slots for.
pub const INTERRUPTS: usize = 64;

/// The port: one thread of this process.
#[derive(Debug)]
pub struct Linux;

/// The method of preempting threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// The first of [`Signals`](Self::Signals) and [`PerfEvents`](Self::PerfEvents) that this
    /// machine grants; [`preemption`] returns which. Linux refuses a timer if `RLIMIT_SIGPENDING`
    /// is reached, and a sandbox may refuse it too.
    Any,
    /// A signal: of a timer (`timer_create`, `SIGEV_THREAD_ID`) for due times, and of `tgkill` for
    /// a [`Raiser`].
    Signals,
    /// A signal: of a perf event (`sigtrap`) for due times, at least 10 µs after it is set, and of
    /// `tgkill` for a [`Raiser`]. The event counts the CPU time of the thread of Linux: other
    /// threads on the CPU delay it.
    ///
    /// Requires Linux 5.19, and `CAP_PERFMON` or at most 1 in
    /// `/proc/sys/kernel/perf_event_paranoid`. No other code, such as a debugger, may use `SIGTRAP`
    /// in this process.
    PerfEvents,
    /// None. Due work is done when a thread calls [`poll`], and while no thread is ready.
    Polled,
}

static SLOTS: [ThreadSlot<Linux>; THREADS] = [const { ThreadSlot::new() }; THREADS];
static INTERRUPT_SLOTS: [InterruptSlot<Linux>; INTERRUPTS] = [const { InterruptSlot::new() }; INTERRUPTS];
static KERNEL: Kernel<Linux> = Kernel::new(&SLOTS, &INTERRUPT_SLOTS);

/// Set once a thread of this process has become the kernel's.
static IS_CLAIMED: AtomicBool = AtomicBool::new(false);
static THREAD_ID: AtomicI32 = AtomicI32::new(0);
/// The timer's id, an integer or a pointer to libc.
static TIMER: AtomicUsize = AtomicUsize::new(0);
static HAS_SIGNALS: AtomicBool = AtomicBool::new(false);
/// The alarm is a perf event, not the timer.
static HAS_EVENT: AtomicBool = AtomicBool::new(false);

// The statics below are accessed by the kernel's thread and the signal handler on it, in program
// order, except for `RAISED`, which others set bits of. So the processor's ordering does not
// matter, and compiler fences preserve the program order.

/// Interrupts are masked. One byte, which `signal::resume` also writes.
static IS_MASKED: AtomicBool = AtomicBool::new(false);
/// A signal came while interrupts were masked, or other work is pending.
static IS_PENDING: AtomicBool = AtomicBool::new(false);
/// The perf event has sent its signal.
static HAS_TRAPPED: AtomicBool = AtomicBool::new(false);
/// The next due time; `u64::MAX` if there is none.
static ALARM: AtomicU64 = AtomicU64::new(u64::MAX);
/// The enabled interrupts, one bit each, and the raised ones.
static ENABLED: AtomicU64 = AtomicU64::new(0);
static RAISED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_KERNELS: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread of Linux permanently the one that the kernel runs on, and calls `f`,
/// which spawns threads and calls [`Kernel::run`].
///
/// # Safety
/// Unless it is [`Preemption::Polled`], a thread of the kernel can be preempted at any instruction,
/// and another runs on the same thread of Linux. So outside of [`Kernel::masked`], threads call
/// only async-signal-safe functions: nothing that allocates, prints through `std`, or uses
/// thread-local variables. No other code handles or blocks `SIGURG` on this thread, except that
/// handlers of other signals block it while they run (`sa_mask`).
///
/// A thread must not panic: a panic ends the process.
///
/// # Errors
/// If another thread of Linux has been the kernel's, or Linux refuses the handler, the timer or the
/// perf event; for [`Preemption::Any`] if it refuses both.
///
/// # Examples
/// ```no_run
/// use punctual_kernel::linux::{Linux, Preemption, start};
///
/// type Kernel = punctual_kernel::Kernel<Linux>;
/// type Thread = punctual_kernel::Thread<Linux>;
/// type Stack = punctual_kernel::Stack<Linux, 65536>;
///
/// static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
///
/// fn task(count: u64) {
///     for _ in 0..count { /* … */ }
///     Kernel::stop();
/// }
///
/// // SAFETY: the threads only compute.
/// unsafe {
///     start(Preemption::Any, || {
///         Kernel::set_time_slice(1_000_000);
///         Thread::spawn(5, &STACKS[0], task, 1_000).unwrap();
///         Thread::spawn(5, &STACKS[1], task, 1_000).unwrap();
///         Kernel::run(); // returns after a task calls `stop`
///     })
/// }
/// .unwrap();
/// ```
pub unsafe fn start<R>(preemption: Preemption, f: impl FnOnce() -> R) -> io::Result<R> {
    if !IS_KERNELS.get() {
        if IS_CLAIMED.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other(
                "another thread of this process runs the kernel: only one thread can",
            ));
        }
        // SAFETY: a query.
        THREAD_ID.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        IS_KERNELS.set(true);
    }
    guard::watch()?;
    let taken = prepare(preemption)?;
    if taken != Preemption::Polled {
        HAS_EVENT.store(taken == Preemption::PerfEvents, Ordering::Relaxed);
        HAS_SIGNALS.store(true, Ordering::Release);
        Linux::alarm(ALARM.load(Ordering::Relaxed));
    }
    let result = f();
    if HAS_SIGNALS.swap(false, Ordering::Relaxed) {
        // A signal in flight still finds its handler.
        if HAS_EVENT.load(Ordering::Relaxed) {
            perf::close();
        } else {
            // SAFETY: created above.
            unsafe { libc::timer_delete(timer()) };
        }
    }
    Ok(result)
}

/// Returns the method of preemption in effect within [`start`]; [`Preemption::Polled`] before and
/// after it.
pub fn preemption() -> Preemption {
    match (HAS_SIGNALS.load(Ordering::Relaxed), HAS_EVENT.load(Ordering::Relaxed)) {
        (false, _) => Preemption::Polled,
        (true, false) => Preemption::Signals,
        (true, true) => Preemption::PerfEvents,
    }
}

/// Prepares the preemption of the calling thread, and returns its method.
fn prepare(preemption: Preemption) -> io::Result<Preemption> {
    match preemption {
        Preemption::Any => {
            return prepare(Preemption::Signals).or_else(|no_timer| {
                prepare(Preemption::PerfEvents).map_err(|no_event| {
                    io::Error::new(no_timer.kind(), std::format!("{no_timer}; {no_event}"))
                })
            });
        }
        Preemption::Signals => {
            signal::handle(false)?;
            create_timer()?;
        }
        Preemption::PerfEvents => {
            signal::handle(true)?;
            perf::open()?;
        }
        Preemption::Polled => {}
    }
    Ok(preemption)
}

fn create_timer() -> io::Result<()> {
    // SAFETY: a zeroed event is valid; its fields are set to valid values.
    let (outcome, timer) = unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = THREAD_ID.load(Ordering::Relaxed);
        let mut timer: libc::timer_t = ptr::null_mut();
        (libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), timer)
    };
    if outcome != 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(
            error.kind(),
            std::format!("cannot create a timer: {error}; raise `ulimit -i` by one signal"),
        ));
    }
    TIMER.store(timer.expose_provenance(), Ordering::Relaxed);
    Ok(())
}

fn timer() -> libc::timer_t {
    ptr::with_exposed_provenance_mut(TIMER.load(Ordering::Relaxed))
}

/// Does the due work, and delivers raised interrupts. For threads that compute for long without
/// preemption.
pub fn poll() {
    if is_something_due() {
        IS_PENDING.store(true, Ordering::Relaxed);
        Kernel::<Linux>::masked(|| ());
    }
}

/// Raises an interrupt, from any thread of the process or a signal handler.
///
/// An interrupt raised again before it is delivered is delivered once.
#[derive(Clone, Copy, Debug)]
pub struct Raiser {
    bit: u64,
}

impl Raiser {
    /// Creates a raiser of the interrupt with this number.
    ///
    /// # Panics
    /// If it is not below [`INTERRUPTS`].
    pub fn new(number: u32) -> Self {
        assert!((number as usize) < INTERRUPTS, "interrupts have numbers below {INTERRUPTS}");
        Self { bit: 1 << number }
    }

    /// Raises the interrupt.
    pub fn raise(self) {
        // Release: the handler sees the caller's earlier writes.
        RAISED.fetch_or(self.bit, Ordering::Release);
        if HAS_SIGNALS.load(Ordering::Acquire) {
            // SAFETY: a signal with an installed handler.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), THREAD_ID.load(Ordering::Relaxed), SIGNAL)
            };
        }
    }
}

/// Handles interrupts until none is pending, on behalf of the code that has just unmasked them.
#[cold]
fn deliver() {
    loop {
        IS_MASKED.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        serve();
        compiler_fence(Ordering::SeqCst);
        IS_MASKED.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if !IS_PENDING.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Handles the pending interrupts, and continues another thread if it goes first then. Called with
/// interrupts masked.
fn serve() {
    IS_PENDING.store(false, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    handle();
    // SAFETY: interrupts are masked; all state that the thread may use is in the signal's frame, or
    // it has made a call.
    unsafe { KERNEL.interrupt_end() };
}

/// Calls the kernel for every pending interrupt. Called with interrupts masked.
fn handle() {
    let enabled = ENABLED.load(Ordering::Relaxed);
    // Acquire: see `Raiser::raise`.
    let mut raised = RAISED.fetch_and(!enabled, Ordering::Acquire) & enabled;
    while raised != 0 {
        let number = raised.trailing_zeros();
        let bit = 1 << number;
        raised &= !bit;
        if ENABLED.load(Ordering::Relaxed) & bit == 0 {
            // An earlier handler has disabled it: it is pending until it is enabled again.
            RAISED.fetch_or(bit, Ordering::Relaxed);
            continue;
        }
        // SAFETY: interrupts are masked, and both callers end the interrupt.
        unsafe { KERNEL.interrupt(number) };
    }
    let alarm = ALARM.load(Ordering::Relaxed);
    let has_trapped = HAS_TRAPPED.swap(false, Ordering::Relaxed);
    if Linux::now() >= alarm {
        ALARM.store(u64::MAX, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { KERNEL.timer_interrupt() };
        if has_trapped && ALARM.load(Ordering::Relaxed) == u64::MAX {
            // It would trigger again.
            perf::disarm();
        }
    } else if has_trapped {
        // Too early, and the next one would be too late.
        Linux::alarm(alarm);
    }
}

fn is_something_due() -> bool {
    RAISED.load(Ordering::Relaxed) & ENABLED.load(Ordering::Relaxed) != 0
        || Linux::now() >= ALARM.load(Ordering::Relaxed)
}

// SAFETY: `enter` panics on every thread of Linux but the one that has claimed the kernel
// permanently; so there is one kernel, and its slots are private to this module. The signal handler
// runs nothing between `mask` and `restore`, see `signal.rs`. `switch` and `prepare` are those of
// the processor.
unsafe impl Port for Linux {
    type Home = ();
    const HOME: () = ();
    type Mask = bool;
    // Two signal frames, and the needs of an interrupt handler: see `signal::handle`.
    const MIN_STACK: usize = 32 * 1024;

    type Guard = Guard;
    const GUARD: Guard = Guard::new();
    // If pages are larger, there is no guard.
    const GUARDED: bool = false;

    fn guard(guard: &'static Guard) {
        guard.forbid();
    }

    #[inline]
    unsafe fn enter((): &()) -> &'static Kernel<Self> {
        assert!(
            IS_KERNELS.get(),
            "not the thread that the kernel runs on: see punctual_kernel::linux::start"
        );
        &KERNEL
    }

    #[inline]
    fn mask() -> bool {
        let was_masked = IS_MASKED.load(Ordering::Relaxed);
        IS_MASKED.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        was_masked
    }

    #[inline]
    fn was_masked(mask: bool) -> bool {
        mask
    }

    #[inline]
    unsafe fn restore(was_masked: bool) {
        if !was_masked {
            compiler_fence(Ordering::SeqCst);
            IS_MASKED.store(false, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if IS_PENDING.load(Ordering::Relaxed) {
                deliver();
            }
        }
    }

    unsafe fn unmask() {
        // SAFETY: interrupts are masked, by this function's contract.
        unsafe { Self::restore(false) };
    }

    #[inline]
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
        // SAFETY: the stack below `top` is unused and long enough, by this function's contract.
        unsafe { crate::prepare(top, entry) }
    }

    #[inline]
    unsafe fn switch(from: *mut *mut u8, to: *mut u8) {
        // SAFETY: interrupts are masked, `from` is writable, and `to` was saved or prepared and not
        // continued since, by this function's contract.
        unsafe { crate::switch(from, to) }
    }

    fn now() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fills in the structure; this clock always exists.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn alarm(time: u64) {
        ALARM.store(time, Ordering::Relaxed);
        if !HAS_SIGNALS.load(Ordering::Relaxed) {
            return;
        }
        if HAS_EVENT.load(Ordering::Relaxed) {
            return match time {
                u64::MAX => perf::disarm(),
                time => perf::arm(time.saturating_sub(Self::now())),
            };
        }
        // All zero disarms the timer. A time in the past expires at once.
        let value = match time {
            u64::MAX => libc::timespec { tv_sec: 0, tv_nsec: 0 },
            time => libc::timespec {
                tv_sec: (time / 1_000_000_000) as libc::time_t,
                tv_nsec: (time % 1_000_000_000).max(1) as libc::c_long,
            },
        };
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: interval, it_value: value };
        // SAFETY: created in `start`. Does not fail with valid values.
        unsafe { libc::timer_settime(timer(), libc::TIMER_ABSTIME, &setting, ptr::null_mut()) };
    }

    unsafe fn idle() {
        if HAS_SIGNALS.load(Ordering::Relaxed) {
            wait_for_signal();
        } else {
            while !is_something_due() {
                core::hint::spin_loop();
            }
        }
        IS_PENDING.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        handle();
    }

    fn enable_interrupt(number: u32) {
        ENABLED.fetch_or(1 << number, Ordering::Relaxed);
        // The interrupt may have been raised before. Interrupts are masked here; the code that
        // unmasks them checks the flag.
        IS_PENDING.store(true, Ordering::Relaxed);
    }

    fn disable_interrupt(number: u32) {
        ENABLED.fetch_and(!(1 << number), Ordering::Relaxed);
    }
}

/// Sleeps until the signal has come, even if it has come since interrupts were masked.
fn wait_for_signal() {
    // SAFETY: sets of signals are filled in before they are used; the signal mask is restored at
    // the end.
    unsafe {
        let mut blocked: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, SIGNAL);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        // The blocked signal cannot come between the check and the sleep.
        if !IS_PENDING.load(Ordering::Relaxed) {
            match ALARM.load(Ordering::Relaxed) {
                // A perf event sends nothing to a sleeping thread, and has counted too little then.
                time if time != u64::MAX && HAS_EVENT.load(Ordering::Relaxed) => {
                    let left = time.saturating_sub(Linux::now());
                    let left = libc::timespec {
                        tv_sec: (left / 1_000_000_000) as libc::time_t,
                        tv_nsec: (left % 1_000_000_000) as libc::c_long,
                    };
                    libc::ppoll(ptr::null_mut(), 0, &left, &before);
                    HAS_TRAPPED.store(true, Ordering::Relaxed);
                }
                _ => _ = libc::sigsuspend(&before),
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
}
