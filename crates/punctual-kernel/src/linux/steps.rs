//! The port with a signal at every instruction: the processor traps after each (its trap flag), and
//! the trap handler decides whether a signal comes there. The result does not depend on time.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::{mem, ptr};
use std::process::Command;
use std::string::String;
use std::{env, vec};

use super::signal::{self, SIGNAL};
use super::{IS_PENDING, Linux, Preemption, Raiser, start};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

type Kernel = crate::Kernel<Linux>;
type Thread = crate::Thread<Linux>;
type Mutex<T> = crate::Mutex<Linux, T>;
type Semaphore = crate::Semaphore<Linux>;
type Stack = crate::Stack<Linux, 262_144>;

static STACKS: [Stack; 3] = [const { Stack::new() }; 3];

const STEPS: u32 = 120_000;
const TRAP_FLAG: i64 = 1 << 8;

static STEP: AtomicU32 = AtomicU32::new(0);
static RAISED: AtomicU32 = AtomicU32::new(0);
/// Those raised in `signal::resume`.
static RAISED_WITHIN: AtomicU32 = AtomicU32::new(0);
static HANDLED: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);
static ROUNDS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
/// Set if the last step was in `signal::resume`.
static WAS_WITHIN: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicU32 = AtomicU32::new(0);

static UNITS: Semaphore = Semaphore::new(0, u32::MAX);
static PAIR: Mutex<[u64; 2]> = Mutex::new("pair", [0; 2]);

/// Returns `true` if a signal comes at this step: after pauses of different lengths, in which the
/// threads make progress.
fn is_due(step: u32) -> bool {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_due = step >= NEXT.load(Ordering::Relaxed);
    if is_due {
        NEXT.store(step + 2000 + (step.wrapping_mul(0x9E37_79B9) >> 22), Ordering::Relaxed);
    }
    is_due
}

/// Returns `true` if a signal comes at this instruction of `signal::resume`. With a signal at each,
/// it would never end: so there is one in each pass, at a different instruction each time, in many
/// successive passes.
fn is_in_turn(follows: bool) -> bool {
    static PASS: AtomicU32 = AtomicU32::new(0);
    static PLACE: AtomicU32 = AtomicU32::new(0);
    if follows {
        PLACE.fetch_add(1, Ordering::Relaxed);
    } else {
        PLACE.store(0, Ordering::Relaxed);
        PASS.fetch_add(1, Ordering::Relaxed);
    }
    let pass = PASS.load(Ordering::Relaxed);
    pass % 128 < 96 && PLACE.load(Ordering::Relaxed) == pass % 5
}

extern "C" fn on_step(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the context of the interrupted code, which belongs to this handler until it returns.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let instruction = registers[libc::REG_RIP as usize] as usize;
    let step = STEP.fetch_add(1, Ordering::Relaxed);
    if step >= STEPS {
        registers[libc::REG_EFL as usize] &= !TRAP_FLAG;
        return;
    }
    let is_within = signal::resume_code().contains(&instruction);
    let follows = WAS_WITHIN.swap(is_within, Ordering::Relaxed);
    let comes = if is_within { is_in_turn(follows) } else { is_due(step) };
    if comes && HANDLED.load(Ordering::Relaxed) == RAISED.load(Ordering::Relaxed) {
        RAISED_WITHIN.fetch_add(u32::from(is_within), Ordering::Relaxed);
        // Both come when this handler returns, that of the lower number first, so the other
        // interrupts its first instruction.
        send(AT_ENTRY);
        raise();
    }
}

/// A signal with a number above that of the kernel's.
const AT_ENTRY: i32 = libc::SIGVTALRM;
const _: () = assert!(AT_ENTRY > SIGNAL);

/// The number of interruptions of the kernel's signal handler at its first instruction.
static ENTRIES: AtomicU32 = AtomicU32::new(0);

/// Sends the kernel's signal once more, and this one, before the first instruction of the kernel's
/// handler: several times, which would take a frame each if they were not blocked there.
extern "C" fn on_entry(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the context of the interrupted code.
    let instruction =
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if instruction as usize == signal::on_signal as *const () as usize
        && !ENTRIES.fetch_add(1, Ordering::Relaxed).is_multiple_of(16)
    {
        send(SIGNAL);
        send(AT_ENTRY);
    }
}

/// Sends a signal to this thread.
fn send(signal: i32) {
    // SAFETY: a signal with an installed handler.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// Makes the processor trap after each instruction from here on, unless that is over.
fn step() {
    if STEP.load(Ordering::Relaxed) < STEPS {
        // SAFETY: sets the flag; a handler is installed.
        unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    }
}

fn handle_steps() {
    let stack = vec![0_u8; 65536].leak();
    // SAFETY: a permanent stack, an action that is filled in, and an async-signal-safe handler.
    unsafe {
        let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        assert_eq!(libc::sigaltstack(&stack, ptr::null_mut()), 0);
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_step as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaddset(&mut action.sa_mask, SIGNAL);
        libc::sigaddset(&mut action.sa_mask, AT_ENTRY);
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut()), 0);
        action.sa_sigaction = on_entry as *const () as usize;
        assert_eq!(libc::sigaction(AT_ENTRY, &action, ptr::null_mut()), 0);
    }
}

/// The interrupt: the code after it, until the interrupted thread continues, is stepped through as
/// well. One in three is raised again at once, while interrupts are masked.
fn interrupt(_: u32) {
    // Before this one is counted: no other code raises in between.
    let comes_again = (HANDLED.load(Ordering::Relaxed) + 1).is_multiple_of(3);
    if comes_again {
        raise();
    }
    HANDLED.fetch_add(1, Ordering::Relaxed);
    let _ = UNITS.v();
    step();
}

/// Only called when all interrupts but the one being handled have been handled, so each counts.
fn raise() {
    RAISED.fetch_add(1, Ordering::Relaxed);
    Raiser::new(5).raise();
}

fn takes(_: ()) {
    while UNITS.p().is_ok() {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the location of `errno`.
        unsafe { errno().write_volatile(1) };
        // The thread preempted by this one was in the handler.
        if is_something_pending()
            || is_signal_blocked()
            || compute(f64::from(TAKEN.load(Ordering::Relaxed))).is_nan()
        {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns `true` if an interrupt is pending, which must be handled before a thread continues, not
/// at its next call of the kernel.
fn is_something_pending() -> bool {
    IS_PENDING.load(Ordering::Relaxed)
}

fn is_signal_blocked() -> bool {
    // SAFETY: a set that is filled in.
    unsafe {
        let mut blocked: libc::sigset_t = mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut blocked);
        libc::sigismember(&blocked, SIGNAL) == 1
    }
}

fn compute(seed: f64) -> f64 {
    (seed * 0.75 + 0.25) * (seed - 0.5)
}

/// Returns the location of this thread's `errno`, whose value the handler has to preserve.
fn errno() -> *mut i32 {
    // SAFETY: a query.
    unsafe { libc::__errno_location() }
}

fn computes((index, expected): (usize, f64)) {
    step();
    while STEP.load(Ordering::Relaxed) < STEPS {
        let code = 1000 + index as i32;
        // SAFETY: the location of `errno`.
        unsafe { errno().write_volatile(code) };
        let is_right = (0..20).all(|_| compute(black_box(index as f64)) == expected);
        // SAFETY: the location of `errno`.
        let is_unchanged = unsafe { errno().read_volatile() } == code;
        let mut was_late = is_something_pending();
        let pair = PAIR.lock().map(|mut pair| {
            pair[0] += 1;
            pair[1] += 1;
            pair[0] == pair[1]
        });
        was_late |= is_something_pending();
        if !is_right || was_late || !is_unchanged || pair != Ok(true) {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
        ROUNDS[index].fetch_add(1, Ordering::Relaxed);
        Thread::yield_now();
        if is_something_pending() {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
    }
    if ENDED.fetch_add(1, Ordering::Relaxed) == 1 {
        Kernel::stop();
    }
}

/// The test runs in another process, so that it can report how that ended.
const OWN_PROCESS: &str = "PUNCTUAL_TEST_KERNEL_STEPS";

#[test]
fn resumes_after_signal_at_any_instruction() {
    if env::var_os(OWN_PROCESS).is_some() {
        return goes_on();
    }
    let name = concat!(module_path!(), "::resumes_after_signal_at_any_instruction");
    let (_, name) = name.split_once("::").unwrap();
    let test = env::current_exe().unwrap();
    let output =
        Command::new(test).args([name, "--exact"]).env(OWN_PROCESS, "1").output_within(TEST_LIMIT).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{}\n{printed}", output.status);
}

fn goes_on() {
    static LEFT: AtomicU64 = AtomicU64::new(0);
    // Bounds an endless loop: some hundred times the normal run time.
    let limit = libc::rlimit { rlim_cur: 200, rlim_max: 200 };
    // SAFETY: sets a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CPU, &limit) }, 0);
    let expected = [compute(black_box(0.0)), compute(black_box(1.0))];
    handle_steps();
    // SAFETY: the kernel's threads only call the kernel, and compute; the step handler excludes the
    // signal.
    let outcome = unsafe {
        start(Preemption::Signals, || {
            Kernel::subscribe_irq(5, interrupt).unwrap();
            Thread::spawn(9, &STACKS[0], takes, ()).unwrap();
            for (index, expected) in expected.into_iter().enumerate() {
                Thread::spawn(3, &STACKS[1 + index], computes, (index, expected)).unwrap();
            }
            Kernel::run();
            LEFT.store(UNITS.units().into(), Ordering::Relaxed);
        })
    };
    outcome.unwrap();
    let [raised, handled, taken] = [&RAISED, &HANDLED, &TAKEN].map(|count| count.load(Ordering::Relaxed));
    let within = RAISED_WITHIN.load(Ordering::Relaxed);
    let entries = ENTRIES.load(Ordering::Relaxed);
    assert!(entries > 100, "too few signals at the entry of the handler: {entries}");
    assert!(raised > 50 && within > 20, "too few signals: {raised}, {within} at the end");
    assert_eq!((handled, taken, LEFT.load(Ordering::Relaxed)), (raised, raised, 0), "no wake is lost");
    assert_eq!(WRONG.load(Ordering::Relaxed), 0, "registers, the FPU, errno");
    let rounds = ROUNDS.each_ref().map(|rounds| rounds.load(Ordering::Relaxed));
    assert!(rounds.iter().all(|&rounds| rounds > 1), "both make progress: {rounds:?}");
    // SAFETY: a query.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let used = STACKS.each_ref().map(Stack::high_water);
    let bound = 2 * frame.max(2048) + 8 * 1024;
    assert!(used.iter().all(|&used| used < bound), "frames pile up: {used:?} bytes used, {bound} expected");
}
