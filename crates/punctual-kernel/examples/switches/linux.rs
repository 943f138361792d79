//! The measurements.

#[path = "preemptions.rs"]
mod preemptions;

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use punctual_kernel::linux::{Linux, Preemption, Raiser, start};

type Kernel = punctual_kernel::Kernel<Linux>;
type Thread = punctual_kernel::Thread<Linux>;
type Semaphore = punctual_kernel::Semaphore<Linux>;
type Stack = punctual_kernel::Stack<Linux, 65536>;

const WINDOWS: usize = 15;
const SWITCHES: u32 = 200_000;

static STACKS: [Stack; 2] = [const { Stack::new() }; 2];

type Measure = fn() -> f64;

pub(crate) fn main() {
    pin();
    let measures: [(&str, Measure); 5] = [
        ("yield between threads of the kernel", yields),
        ("V and P between threads of the kernel", signals),
        ("swapcontext", contexts),
        ("futex between threads of Linux, one CPU", futexes),
        ("signal until a thread runs, and back", preempts),
    ];
    let mut results = [const { Vec::new() }; 5];
    for _ in 0..WINDOWS {
        for (result, (_, measure)) in results.iter_mut().zip(measures) {
            result.push(measure());
        }
    }
    println!("{:<42}{:>10}{:>10}{:>10}   ns for one switch", "", "max", "median", "min");
    for (mut result, (name, _)) in results.into_iter().zip(measures) {
        result.sort_by(f64::total_cmp);
        let [max, median, min] = [result[WINDOWS - 1], result[WINDOWS / 2], result[0]];
        println!("{name:<42}{max:>10.1}{median:>10.1}{min:>10.1}");
    }
    preemptions::print();
}

/// Pins this thread, and those it starts, to its current CPU.
fn pin() {
    // SAFETY: a set that is filled in; queries and sets an affinity that every thread may change.
    unsafe {
        let mut set: libc::cpu_set_t = MaybeUninit::zeroed().assume_init();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Returns the CPU time of the process, in nanoseconds: other processes do not count.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn per_switch(began: u64, switches: u32) -> f64 {
    (processor_time() - began) as f64 / f64::from(switches)
}

/// Runs two threads of the kernel.
fn on_kernel(preemption: Preemption, threads: [(u8, fn(())); 2]) {
    // SAFETY: the threads call only the kernel.
    let outcome = unsafe {
        start(preemption, || {
            for (stack, (priority, entry)) in STACKS.iter().zip(threads) {
                Thread::spawn(priority, stack, entry, ()).expect("two stacks and slots are free");
            }
            Kernel::run();
        })
    };
    outcome.expect("Linux has the timer and the signal");
}

fn yields() -> f64 {
    fn yields(_: ()) {
        for _ in 0..SWITCHES / 2 {
            Thread::yield_now();
        }
    }
    let began = processor_time();
    on_kernel(Preemption::Polled, [(1, yields), (1, yields)]);
    per_switch(began, SWITCHES)
}

fn signals() -> f64 {
    static SEMAPHORE: Semaphore = Semaphore::new(0, 1);
    fn takes(_: ()) {
        for _ in 0..SWITCHES / 2 {
            let _ = SEMAPHORE.p();
        }
    }
    fn gives(_: ()) {
        for _ in 0..SWITCHES / 2 {
            let _ = SEMAPHORE.v();
        }
    }
    let began = processor_time();
    on_kernel(Preemption::Polled, [(2, takes), (1, gives)]);
    per_switch(began, SWITCHES)
}

fn contexts() -> f64 {
    static mut CONTEXTS: MaybeUninit<[libc::ucontext_t; 2]> = MaybeUninit::zeroed();
    extern "C" fn other() {
        loop {
            swap(1, 0);
        }
    }
    fn swap(from: usize, to: usize) {
        let contexts = (&raw mut CONTEXTS).cast::<libc::ucontext_t>();
        // SAFETY: both contexts exist, and only this thread uses them.
        unsafe { libc::swapcontext(contexts.add(from), contexts.add(to)) };
    }
    let mut stack = vec![0_u8; 65536];
    let contexts = (&raw mut CONTEXTS).cast::<libc::ucontext_t>();
    // SAFETY: the second context gets a stack that outlives its use.
    unsafe {
        libc::getcontext(contexts.add(1));
        (*contexts.add(1)).uc_stack.ss_sp = stack.as_mut_ptr().cast();
        (*contexts.add(1)).uc_stack.ss_size = stack.len();
        (*contexts.add(1)).uc_link = ptr::null_mut();
        libc::makecontext(contexts.add(1), other, 0);
    }
    let began = processor_time();
    for _ in 0..SWITCHES / 20 {
        swap(0, 1);
    }
    per_switch(began, SWITCHES / 10)
}

fn futexes() -> f64 {
    static TURN: AtomicU32 = AtomicU32::new(0);
    const ROUNDS: u32 = SWITCHES / 100;
    fn pass(me: u32) {
        for _ in 0..ROUNDS {
            while TURN.load(Ordering::Acquire) != me {
                // SAFETY: waits while the static word has this value.
                unsafe {
                    libc::syscall(
                        libc::SYS_futex,
                        &TURN,
                        libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                        1 - me,
                        ptr::null::<()>(),
                    )
                };
            }
            TURN.store(1 - me, Ordering::Release);
            // SAFETY: wakes waiters of a static word.
            unsafe { libc::syscall(libc::SYS_futex, &TURN, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
        }
    }
    let began = processor_time();
    thread::scope(|scope| {
        scope.spawn(|| pass(1));
        pass(0);
    });
    per_switch(began, 2 * ROUNDS)
}

/// A thread raises an interrupt for itself; the handler readies a higher thread, which runs and
/// waits again.
fn preempts() -> f64 {
    const ROUNDS: u32 = SWITCHES / 100;
    static SEMAPHORE: Semaphore = Semaphore::new(0, u32::MAX);
    fn takes(_: ()) {
        for _ in 0..ROUNDS {
            let _ = SEMAPHORE.p();
        }
        Kernel::unsubscribe_irq(7);
    }
    fn raises(_: ()) {
        Kernel::subscribe_irq(7, |_| _ = SEMAPHORE.v()).expect("the slot is free");
        for _ in 0..ROUNDS {
            Raiser::new(7).raise();
        }
    }
    let began = processor_time();
    on_kernel(Preemption::Signals, [(9, takes), (1, raises)]);
    per_switch(began, ROUNDS)
}
