//! The port inside a process, under signals: the order of execution, no lost wake, registers and
//! FPU intact.
//!
//! A process has one kernel, so each test but the first runs one in another process.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::arch::asm;
use std::env;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::panic;
use std::process::{Command, Output};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use punctual_kernel::linux::{Linux, Preemption, Raiser, poll, preemption, start};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

type Kernel = punctual_kernel::Kernel<Linux>;
type Thread = punctual_kernel::Thread<Linux>;
type Mutex<T> = punctual_kernel::Mutex<Linux, T>;
type Semaphore = punctual_kernel::Semaphore<Linux>;
type Server = punctual_kernel::Server<Linux>;
type Callback = punctual_kernel::Callback<Linux>;
type Stack = punctual_kernel::Stack<Linux, 65536>;

static STACKS: [Stack; 6] = [const { Stack::new() }; 6];

/// 20 kHz, on a machine that is fast enough.
const PERIOD: u64 = 50_000;

/// The number of preemptions by the timer. `PUNCTUAL_KERNEL_PREEMPTIONS=1200000` takes a minute on
/// a machine that is fast enough.
fn preemptions() -> u32 {
    env::var("PUNCTUAL_KERNEL_PREEMPTIONS").map_or(2_000, |text| text.parse().expect("a number"))
}

static WANTED: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);
static CORRUPTED: AtomicU32 = AtomicU32::new(0);
static ROUNDS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

static SERVER: Server = Server::new();
static TICK: Callback = Callback::new(&SERVER, tick, 0);

fn tick(_: usize) {
    // Leaves different values in the registers of the FPU.
    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let value = u64::from(calls) << 32 | 0xFFFF;
    if !registers_survive(value, None) || !vectors_survive(value, None) {
        CORRUPTED.fetch_add(1, Ordering::Relaxed);
    }
    if calls >= WANTED.load(Ordering::Relaxed) && have_all_run() {
        Kernel::stop();
    } else {
        // If a tick takes longer than its period, ticks are delayed until the others have run, too.
        static PAUSE: AtomicU64 = AtomicU64::new(PERIOD);
        let pause = if others_have_run() { PERIOD } else { 2 * PAUSE.load(Ordering::Relaxed).min(1 << 30) };
        PAUSE.store(pause, Ordering::Relaxed);
        TICK.after(pause);
    }
}

/// Returns `true` if the computing threads have run since the last tick.
fn others_have_run() -> bool {
    static BEFORE: AtomicU32 = AtomicU32::new(0);
    let now = ROUNDS.iter().map(|rounds| rounds.load(Ordering::Relaxed)).sum();
    BEFORE.swap(now, Ordering::Relaxed) != now
}

/// Returns `true` if all of them have run, and the one that waits for units.
fn have_all_run() -> bool {
    let ran = |count: &AtomicU32| count.load(Ordering::Relaxed) > 1;
    ROUNDS.iter().all(ran) && ran(&TAKEN)
}

/// Fills registers, waits until the counter has changed, if one is given, and returns whether the
/// registers are unchanged.
fn registers_survive(value: u64, until: Option<&AtomicU32>) -> bool {
    let before = until.map_or(0, |counter| counter.load(Ordering::Relaxed));
    let differs = AtomicU32::new(1);
    let (counter, before) = until.map_or((&differs, 0), |counter| (counter, before));
    let wrong: u64;
    // SAFETY: changes only the registers that it names, and reads the counter, which exists.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "dup v\\n\\().2d, {v}",
            ".endr",
            ".irp n, 6,7,8,9,10,11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28",
            "mov x\\n, {v}",
            ".endr",
            "2:", "ldr w5, [{c}]", "cmp w5, {b:w}", "b.eq 2b",
            "mov x5, #0",
            ".irp n, 6,7,8,9,10,11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28",
            "eor x\\n, x\\n, {v}", "orr x5, x5, x\\n",
            ".endr",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "umov x6, v\\n\\().d[0]", "eor x6, x6, {v}", "orr x5, x5, x6",
            "umov x6, v\\n\\().d[1]", "eor x6, x6, {v}", "orr x5, x5, x6",
            ".endr",
            v = in(reg) value,
            c = in(reg) counter.as_ptr(),
            b = in(reg) before,
            out("x5") wrong, out("x6") _, out("x7") _, out("x8") _, out("x9") _, out("x10") _,
            out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _, out("x17") _,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _, out("x25") _, out("x26") _,
            out("x27") _, out("x28") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "movq xmm\\n, {v}",
            ".endr",
            ".irp n, 8,9,10,11,12,13,14,15",
            "mov r\\n, {v}",
            ".endr",
            // In the red zone, which the signal's frame has to leave alone.
            "mov [rsp - 64], {v}",
            "2:", "cmp dword ptr [{c}], {b:e}", "je 2b",
            "xor r8, {v}",
            ".irp n, 9,10,11,12,13,14,15",
            "xor r\\n, {v}", "or r8, r\\n",
            ".endr",
            "mov r9, [rsp - 64]", "xor r9, {v}", "or r8, r9",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "movq r9, xmm\\n", "xor r9, {v}", "or r8, r9",
            ".endr",
            v = in(reg) value,
            c = in(reg) counter.as_ptr(),
            b = in(reg) before,
            out("r8") wrong, out("r9") _, out("r10") _, out("r11") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    wrong == 0
}

/// As `registers_survive`, for all 32 bytes of the vector registers, if the processor has them.
#[cfg(target_arch = "x86_64")]
fn vectors_survive(value: u64, until: Option<&AtomicU32>) -> bool {
    if !std::is_x86_feature_detected!("avx2") {
        return true;
    }
    let expected = [value, !value, value << 7, value.rotate_left(32)];
    let differs = AtomicU32::new(1);
    let (counter, before) = until.map_or((&differs, 0), |counter| (counter, counter.load(Ordering::Relaxed)));
    let right: u8;
    // SAFETY: changes only the registers that it names, which the processor has, and reads
    // initialized memory.
    unsafe {
        asm!(
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmovdqu ymm\\n, [{e}]",
            ".endr",
            "2:", "cmp dword ptr [{c}], {b:e}", "je 2b",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vpxor ymm\\n, ymm\\n, [{e}]",
            ".endr",
            ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vpor ymm0, ymm0, ymm\\n",
            ".endr",
            "vptest ymm0, ymm0",
            "setz {r}",
            "vzeroupper",
            e = in(reg) expected.as_ptr(),
            c = in(reg) counter.as_ptr(),
            b = in(reg) before,
            r = out(reg_byte) right,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
    right == 1
}

/// They are 16 bytes long, and `registers_survive` checks all of them.
#[cfg(target_arch = "aarch64")]
fn vectors_survive(_: u64, _: Option<&AtomicU32>) -> bool {
    true
}

/// Computes forever, preempted in the middle each time.
fn computes(index: usize) {
    loop {
        let value = u64::from(ROUNDS[index].fetch_add(1, Ordering::Relaxed)) << 8 | index as u64;
        if !registers_survive(value, Some(&CALLS)) || !vectors_survive(value, Some(&CALLS)) {
            CORRUPTED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// An outside producer raises, a handler signals, a thread takes: every unit arrives.
static UNITS: Semaphore = Semaphore::new(0, u32::MAX);
static HANDLED: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);
static PAIR: Mutex<[u64; 2]> = Mutex::new("pair", [0; 2]);

fn takes(_: ()) {
    while UNITS.p().is_ok() {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut pair) = PAIR.lock() {
            pair[0] += 1;
            pair[1] += 1;
        }
    }
}

static LOG: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

fn log(what: usize) {
    LOG[LENGTH.fetch_add(1, Ordering::Relaxed)].store(what, Ordering::Relaxed);
}

fn inversion_low(_: ()) {
    let guard = PAIR.lock();
    let medium = |()| {
        let high = |()| {
            drop(PAIR.lock());
            log(3);
        };
        let _ = Thread::spawn(23, &STACKS[5], high, ());
        log(2);
    };
    let _ = Thread::spawn(22, &STACKS[4], medium, ());
    drop(guard);
    log(1);
}

/// Raises as long as the kernel runs: again when the last has been delivered, so that each counts,
/// and a few times for each tick, so that the computing threads get to run.
fn raise_until(ended: &AtomicBool) {
    let mut raised = 0;
    while !ended.load(Ordering::Relaxed) {
        if HANDLED.load(Ordering::Acquire) == raised && raised / 8 <= CALLS.load(Ordering::Relaxed) {
            raised += 1;
            Raiser::new(5).raise();
        }
        thread::yield_now();
    }
}

/// Runs the threads until there have been enough ticks. Returns the number of lost units, up to one
/// too many.
fn run() -> u32 {
    Thread::spawn(21, &STACKS[3], inversion_low, ()).unwrap();
    Kernel::run();
    SERVER.start(31, &STACKS[0]).unwrap();
    Thread::spawn(9, &STACKS[1], takes, ()).unwrap();
    let signals = |_| {
        let _ = UNITS.v();
        HANDLED.fetch_add(1, Ordering::Release);
    };
    Kernel::subscribe_irq(5, signals).unwrap();
    Thread::spawn(3, &STACKS[2], computes, 0).unwrap();
    Thread::spawn(3, &STACKS[3], computes, 1).unwrap();
    Kernel::set_time_slice(2 * PERIOD);
    TICK.after(PERIOD);
    Kernel::run();
    Kernel::masked(|| HANDLED.load(Ordering::Relaxed) - TAKEN.load(Ordering::Relaxed) - UNITS.units())
}

/// Selects what a test's own process does.
const OWN_PROCESS: &str = "PUNCTUAL_TEST_KERNEL_PROCESS";

/// Runs the first test in another process that does `what`.
fn in_own_process(what: &str) -> (Output, String) {
    let test = "keeps_order_registers_and_wakes_under_signals";
    let output = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(OWN_PROCESS, what)
        .output_within(TEST_LIMIT)
        .unwrap();
    let messages = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    (output, messages)
}

#[test]
fn behaves_identically_under_perf_events() {
    let (output, messages) = in_own_process("perf events");
    assert!(output.status.success(), "{}\n{messages}", output.status);
    if messages.contains(REFUSED) {
        skip(Need::System("perf events"), messages);
    }
}

#[test]
fn accepts_granted_settings() {
    let (output, messages) = in_own_process("any");
    assert!(output.status.success() && messages.contains("taken: Signals"), "{}\n{messages}", output.status);
    let (output, messages) = in_own_process("any but timers");
    let is_refused = messages.contains("cannot create a timer") && messages.contains(REFUSED);
    assert!(
        output.status.success() && (messages.contains("taken: PerfEvents") || is_refused),
        "{}\n{messages}",
        output.status
    );
}

#[test]
fn keeps_interrupt_that_a_handler_unsubscribes() {
    let (output, messages) = in_own_process("unsubscribe");
    assert!(output.status.success(), "{}\n{messages}", output.status);
}

#[test]
fn reports_stack_overflow() {
    let (output, messages) = in_own_process("overflow");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{messages}");
    assert!(
        messages.contains("punctual-kernel: the thread in slot 1 has overflowed its stack"),
        "{messages}"
    );
}

#[test]
fn passes_other_faults_to_previous_handler() {
    let (output, messages) = in_own_process("fault");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{messages}");
}

const REFUSED: &str = "no perf event preempts here";

/// Recurses until the stack overflows.
#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    if depth == 0 { 0 } else { descend(depth + 1) + black_box(frame)[31] }
}

fn accesses_nothing(_: ()) {
    let nothing: *mut u32 = ptr::without_provenance_mut(8);
    // SAFETY: the address is unmapped, so the process ends here. That is the test.
    unsafe { nothing.write_volatile(0) };
}

/// Starts with any source of interrupts, and prints it, or the reason there is none.
fn take_any() {
    // SAFETY: the closure starts no threads.
    match unsafe { start(Preemption::Any, preemption) } {
        Ok(taken) => println!("taken: {taken:?}"),
        Err(refused) => println!("{refused}"),
    }
    assert_eq!(preemption(), Preemption::Polled, "no preemption after the end");
}

/// Raises two interrupts at once, of which the first one's handler unsubscribes the other.
fn unsubscribe_in_handler() {
    let body = || {
        Kernel::subscribe_irq(1, |_| Kernel::unsubscribe_irq(2)).unwrap();
        Kernel::subscribe_irq(2, |_| unreachable!("it is unsubscribed")).unwrap();
        Raiser::new(1).raise();
        Raiser::new(2).raise();
        poll();
        assert_eq!(HANDLED.load(Ordering::Relaxed), 0);
        Kernel::subscribe_irq(2, |_| _ = HANDLED.fetch_add(1, Ordering::Relaxed)).unwrap();
    };
    // SAFETY: the closure starts no threads.
    unsafe { start(Preemption::Polled, body) }.unwrap();
    assert_eq!(HANDLED.load(Ordering::Relaxed), 1, "for the next subscriber");
}

/// Makes Linux refuse the signal of a timer from here on.
fn refuse_timers() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: lowers a limit of this process, which runs only this test.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &none) }, 0);
}

/// Runs a thread that does not return, while another waits.
fn end_in(entry: fn(())) {
    // SAFETY: the threads call the kernel, compute, and end the process.
    let outcome = unsafe {
        start(Preemption::Signals, || {
            Thread::spawn(9, &STACKS[0], takes, ()).unwrap();
            Thread::spawn(3, &STACKS[1], entry, ()).unwrap();
            Kernel::run();
        })
    };
    outcome.unwrap();
}

#[test]
fn keeps_order_registers_and_wakes_under_signals() {
    match env::var(OWN_PROCESS).as_deref() {
        Ok("overflow") => end_in(|()| println!("{}", descend(1))),
        Ok("fault") => end_in(accesses_nothing),
        Ok("any") => take_any(),
        Ok("any but timers") => {
            refuse_timers();
            take_any();
        }
        Ok("unsubscribe") => unsubscribe_in_handler(),
        Ok("perf events") => keep_order_registers_and_wakes(Preemption::PerfEvents),
        _ => keep_order_registers_and_wakes(Preemption::Signals),
    }
}

fn keep_order_registers_and_wakes(preemption: Preemption) {
    // An event takes longer, and is handled in the same way.
    let wanted =
        if preemption == Preemption::PerfEvents { preemptions().div_ceil(10) } else { preemptions() };
    WANTED.store(wanted, Ordering::Relaxed);
    let ended = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| raise_until(&ended));
        // SAFETY: the kernel's threads only call the kernel, and compute.
        let outcome = unsafe { start(preemption, || panic::catch_unwind(run)) };
        ended.store(true, Ordering::Relaxed);
        outcome
    });
    if let Err(error) = &outcome
        && preemption == Preemption::PerfEvents
    {
        // The message when Linux refuses the event.
        assert!(error.to_string().starts_with(REFUSED), "{error}");
        return println!("{error}");
    }
    let missing = outcome.unwrap().unwrap();
    // The thread may have been stopped between taking a unit and counting it.
    assert!(missing <= 1, "{missing} units were lost");
    let order: Vec<_> = LOG[..3].iter().map(|place| place.load(Ordering::Relaxed)).collect();
    assert_eq!(order, [3, 2, 1], "no inversion");
    assert_eq!(CORRUPTED.load(Ordering::Relaxed), 0, "registers");
    assert!(CALLS.load(Ordering::Relaxed) >= wanted && have_all_run());
}
