//! Threads inside one thread of a Linux process, best on a CPU that is taken from Linux: they are switched in user space, and
//! preempted by a signal.
//!
//! Threads of the kernel share what Linux keeps for a thread of its own:
//!
//! * *Thread-local storage* belongs to the thread of Linux; see [`start`]. `errno` is kept for a thread that is preempted.
//! * *The signal mask.* The kernel leaves it alone but for its own signal, which is blocked from the instant it comes until its
//!   handler has masked interrupts: how that is enough, see `signal.rs`.
//! * *Async-signal-safety.* The handler reads a clock, sets a timer and works on the kernel's data, all of which is allowed. What
//!   it switches to is code of the program, and is bound by [`start`].
//!
//! Shadow stacks, as of x86-64's CET, know neither: a process that has them on is killed at the first switch.

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

/// Threads that the kernel has room for.
pub const THREADS: usize = 64;

/// Interrupts that the kernel has slots for.
pub const INTERRUPTS: usize = 64;

/// The port: one thread of this process.
#[derive(Debug)]
pub struct Linux;

/// How threads are preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// By the first of [`Signals`](Self::Signals) and [`PerfEvents`](Self::PerfEvents) that this machine grants; [`preemption`] says
    /// which that is. Linux refuses a timer where `RLIMIT_SIGPENDING` is reached, and a sandbox may.
    Any,
    /// By a signal: of a timer (`timer_create`, `SIGEV_THREAD_ID`) at what is due, and of `tgkill` for a [`Raiser`].
    Signals,
    /// By a signal: of a perf event (`sigtrap`) at what is due, 10 µs from when it is set at the earliest, and of `tgkill` for a
    /// [`Raiser`]. The event counts the time for which the thread of Linux has its CPU: what others take of that delays it.
    ///
    /// From Linux 5.19 on, with `CAP_PERFMON` or at most 1 in `/proc/sys/kernel/perf_event_paranoid`. Nobody else, such as a
    /// debugger, uses `SIGTRAP` in this process.
    PerfEvents,
    /// By user interrupts of the processor (UINTR), which reach a thread without the kernel. They are looked for, and refused in either
    /// case: Linux up to 6.18 has no system calls by which a process could receive them.
    #[cfg(feature = "uintr")]
    UserInterrupts,
    /// Not at all. What is due is done when a thread calls [`poll`], and while none is ready.
    Polled,
}

static SLOTS: [ThreadSlot<Linux>; THREADS] = [const { ThreadSlot::new() }; THREADS];
static INTERRUPT_SLOTS: [InterruptSlot<Linux>; INTERRUPTS] = [const { InterruptSlot::new() }; INTERRUPTS];
static KERNEL: Kernel<Linux> = Kernel::new(&SLOTS, &INTERRUPT_SLOTS);

/// Whether a thread of this process has begun to be the kernel's.
static IS_CLAIMED: AtomicBool = AtomicBool::new(false);
static THREAD_ID: AtomicI32 = AtomicI32::new(0);
/// The timer's id, an integer or a pointer to libc.
static TIMER: AtomicUsize = AtomicUsize::new(0);
static HAS_SIGNALS: AtomicBool = AtomicBool::new(false);
/// A perf event is the alarm, and not the timer.
static HAS_EVENT: AtomicBool = AtomicBool::new(false);

// Those below are accessed by the kernel's thread and the signal handler on it, in the order of the program, but for `RAISED`,
// to which others add. So the processor's order does not matter, and compiler fences keep that of the program.

/// Interrupts are masked. A byte that `signal::resume` writes as well.
static IS_MASKED: AtomicBool = AtomicBool::new(false);
/// A signal has come while they were, or something else has to be looked at.
static IS_PENDING: AtomicBool = AtomicBool::new(false);
/// The perf event has sent its signal.
static HAS_TRAPPED: AtomicBool = AtomicBool::new(false);
/// When something is due; never if it is `u64::MAX`.
static ALARM: AtomicU64 = AtomicU64::new(u64::MAX);
/// Interrupts that the controller passes on, a bit each, and those that have come.
static ENABLED: AtomicU64 = AtomicU64::new(0);
static RAISED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_KERNELS: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread of Linux the one that the kernel runs on, for good, and calls `f`, which spawns threads and calls
/// [`Kernel::run`].
///
/// # Safety
/// Unless it is [`Preemption::Polled`], a thread of the kernel can be preempted at any instruction, and another runs on the same thread of
/// Linux. So outside of [`Kernel::masked`], threads call only what is async-signal-safe: nothing that allocates, prints through
/// `std`, or uses thread-local variables. Nobody else handles or blocks `SIGURG` on this thread, but that
/// handlers of other signals block it while they run (`sa_mask`).
///
/// A thread may not panic: that ends the process.
///
/// # Errors
/// If another thread of Linux has been the kernel's, or Linux refuses the handler, the timer or the perf event; for
/// [`Preemption::Any`] if it refuses both.
pub unsafe fn start<R>(preemption: Preemption, f: impl FnOnce() -> R) -> io::Result<R> {
    if !IS_KERNELS.get() {
        if IS_CLAIMED.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other(
                "another thread of this process runs the kernel: there can be one only",
            ));
        }
        // SAFETY: asks.
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
        // A signal that is on its way still finds its handler.
        if HAS_EVENT.load(Ordering::Relaxed) {
            perf::close();
        } else {
            // SAFETY: created above.
            unsafe { libc::timer_delete(timer()) };
        }
    }
    Ok(result)
}

/// How threads are preempted where this is called, within [`start`]; before and after it, not at all.
pub fn preemption() -> Preemption {
    match (HAS_SIGNALS.load(Ordering::Relaxed), HAS_EVENT.load(Ordering::Relaxed)) {
        (false, _) => Preemption::Polled,
        (true, false) => Preemption::Signals,
        (true, true) => Preemption::PerfEvents,
    }
}

/// Prepares what preempts the calling thread, and returns what it is.
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
        #[cfg(feature = "uintr")]
        Preemption::UserInterrupts => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                match has_user_interrupts() {
                    true => "Linux does not give a process the user interrupts that this processor has",
                    false => "this processor has no user interrupts (UINTR)",
                },
            ));
        }
        Preemption::Polled => {}
    }
    Ok(preemption)
}

/// Whether the processor has user interrupts: Intel's *Software Developer's Manual*, volume 2, `CPUID`, leaf 7, bit 5 of EDX.
#[cfg(feature = "uintr")]
pub fn has_user_interrupts() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & 1 << 5 != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn create_timer() -> io::Result<()> {
    // SAFETY: zeroed it is an event of nothing; what it is set to are valid values.
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
            std::format!(
                "no timer's signal preempts here: {error}; it takes room in `ulimit -i`, for one signal"
            ),
        ));
    }
    TIMER.store(timer.expose_provenance(), Ordering::Relaxed);
    Ok(())
}

fn timer() -> libc::timer_t {
    ptr::with_exposed_provenance_mut(TIMER.load(Ordering::Relaxed))
}

/// Does what is due, and delivers what has been raised. For threads that compute for long where nothing preempts them.
pub fn poll() {
    if is_something_due() {
        IS_PENDING.store(true, Ordering::Relaxed);
        Kernel::<Linux>::masked(|| ());
    }
}

/// Raises an interrupt, from any thread of the process or a signal handler.
///
/// If it comes again before it is delivered, it is delivered once.
#[derive(Clone, Copy, Debug)]
pub struct Raiser {
    bit: u64,
}

impl Raiser {
    /// Of the interrupt with this number.
    ///
    /// # Panics
    /// If it is not below [`INTERRUPTS`].
    pub fn new(number: u32) -> Self {
        assert!((number as usize) < INTERRUPTS, "interrupts have numbers below {INTERRUPTS}");
        Self { bit: 1 << number }
    }

    /// Raises it.
    pub fn raise(self) {
        // Release: the handler sees what was done before.
        RAISED.fetch_or(self.bit, Ordering::Release);
        if HAS_SIGNALS.load(Ordering::Acquire) {
            // SAFETY: a signal that has its handler.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), THREAD_ID.load(Ordering::Relaxed), SIGNAL)
            };
        }
    }
}

/// Does what interrupts ask for, until there is nothing more, on behalf of who has just stopped masking them.
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

/// Does what interrupts ask for now, and continues another thread if that goes first then. Called with interrupts masked.
fn serve() {
    IS_PENDING.store(false, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    handle();
    // SAFETY: masked; everything that the thread may use is in the signal's frame, or it has called.
    unsafe { KERNEL.interrupt_end() };
}

/// Calls the kernel for every interrupt that has come. Called with interrupts masked.
fn handle() {
    let enabled = ENABLED.load(Ordering::Relaxed);
    // Acquire: see `Raiser::raise`.
    let mut raised = RAISED.fetch_and(!enabled, Ordering::Acquire) & enabled;
    while raised != 0 {
        let number = raised.trailing_zeros();
        raised &= raised - 1;
        // SAFETY: masked, and both callers end the interrupt.
        unsafe { KERNEL.interrupt(number) };
    }
    let alarm = ALARM.load(Ordering::Relaxed);
    let has_trapped = HAS_TRAPPED.swap(false, Ordering::Relaxed);
    if Linux::now() >= alarm {
        ALARM.store(u64::MAX, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { KERNEL.timer_interrupt() };
        if has_trapped && ALARM.load(Ordering::Relaxed) == u64::MAX {
            // It would come again.
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

// SAFETY: `enter` panics on every thread of Linux but the one that has claimed the kernel, which is one for good; so there is one
// kernel, and its slots are private here. The signal handler runs nothing between `mask` and `restore`, see `signal.rs`. `switch` and
// `prepare` are those of the processor.
unsafe impl Port for Linux {
    type Home = ();
    const HOME: () = ();
    type Mask = bool;
    // Two frames of signals, and what a handler of an interrupt needs: see `signal::handle`.
    const MIN_STACK: usize = 32 * 1024;

    type Guard = Guard;
    const GUARD: Guard = Guard::new();
    // Where pages are larger, there is no guard.
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
        // SAFETY: masked, by this function's contract.
        unsafe { Self::restore(false) };
    }

    #[inline]
    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
        // SAFETY: nobody uses the stack below `top`, and it is long enough, by this function's contract.
        unsafe { crate::prepare(top, entry) }
    }

    #[inline]
    unsafe fn switch(from: *mut *mut u8, to: *mut u8) {
        // SAFETY: interrupts are masked, `from` can be written, and `to` was saved or prepared and not continued since, by this
        // function's contract.
        unsafe { crate::switch(from, to) }
    }

    fn now() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fills it in; this clock is always there.
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
        // All zero is never. A time in the past is at once.
        let value = match time {
            u64::MAX => libc::timespec { tv_sec: 0, tv_nsec: 0 },
            time => libc::timespec {
                tv_sec: (time / 1_000_000_000) as libc::time_t,
                tv_nsec: (time % 1_000_000_000).max(1) as libc::c_long,
            },
        };
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: interval, it_value: value };
        // SAFETY: created in `start`. With valid values it does not fail.
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
        // It may have come before. Interrupts are masked here; whoever ends that looks.
        IS_PENDING.store(true, Ordering::Relaxed);
    }

    fn disable_interrupt(number: u32) {
        ENABLED.fetch_and(!(1 << number), Ordering::Relaxed);
    }
}

/// Sleeps until the signal has come, also if it has since interrupts were masked.
fn wait_for_signal() {
    // SAFETY: sets of signals are filled in before they are used; the mask is what it was in the end.
    unsafe {
        let mut blocked: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, SIGNAL);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        // While it is blocked it does not come between the look and the sleep.
        if !IS_PENDING.load(Ordering::Relaxed) {
            match ALARM.load(Ordering::Relaxed) {
                // A perf event sends nothing to who sleeps, and has counted too little then.
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
