//! Threads of `punctual-kernel`: their order, priority inversion, a circular wait for resources,
//! the sequence of a semaphore, and preempting interrupts with the registers that they preserve.
//!
//! sample: one board per instruction set
#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use punctual_bare::println;
use punctual_kernel::{Exclusion, Group, OrderedGuards};
use punctual_kernel_bare::Board;

type Kernel = punctual_kernel::Kernel<Board>;
type Thread = punctual_kernel::Thread<Board>;
type Mutex<T> = punctual_kernel::Mutex<Board, T>;
type OrderedMutex<T> = punctual_kernel::OrderedMutex<Board, T>;
type Semaphore = punctual_kernel::Semaphore<Board>;
type Server = punctual_kernel::Server<Board>;
type Callback = punctual_kernel::Callback<Board>;
type Stack = punctual_kernel::Stack<Board, 16384>;

punctual_bare::entry!(main);

static STACKS: [Stack; 5] = [const { Stack::new() }; 5];

fn main() -> ! {
    punctual_kernel_bare::init();
    let parts: [fn(()); 5] = [rules, inversion, circle, sequence, preemption];
    for part in parts {
        Thread::spawn(4, &STACKS[0], part, ()).unwrap();
        Kernel::run();
    }
    let both = ROUNDS.iter().all(|rounds| rounds.load(Ordering::Relaxed) > 0);
    println!(
        "  {} calls, wrong: {}, both computed: {both}",
        CALLED.load(Ordering::Relaxed),
        WRONG.load(Ordering::Relaxed)
    );
    println!("stacks are large enough: {}", STACKS.iter().all(|stack| stack.high_water() < 8192));
    punctual_bare::exit(0)
}

fn named(name: &'static str) {
    println!("  {name}");
}

fn rules(_: ()) {
    println!("threads");
    Thread::spawn(3, &STACKS[1], named, "lower").unwrap();
    Thread::spawn(4, &STACKS[2], named, "equal").unwrap();
    Thread::spawn(5, &STACKS[3], named, "higher, at once").unwrap();
    println!("  created");
    Thread::yield_now();
    println!("  yielded");
}

static RESOURCE: Mutex<()> = Mutex::new("resource", ());

fn inversion(_: ()) {
    println!("priority inversion");
    let guard = RESOURCE.lock().unwrap();
    let medium = |()| {
        let high = |()| {
            drop(RESOURCE.lock().unwrap());
            println!("  3");
        };
        Thread::spawn(6, &STACKS[2], high, ()).unwrap();
        println!("  2");
    };
    Thread::spawn(5, &STACKS[1], medium, ()).unwrap();
    drop(guard);
    println!("  1");
}

static GROUP: Group = Group::new();
static R1: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 1, "r1", 0);
static R2: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 2, "r2", 0);

fn circle(_: ()) {
    println!("two resources, asked for crosswise");
    let r1 = R1.lock().unwrap();
    let other = |()| {
        let r2 = R2.lock().unwrap();
        let ((r2, r1), exclusion) = r2.and_lock(&R1).unwrap();
        println!(
            "  T2 has both, after another thread took one: {}",
            exclusion == Exclusion::Lost && *r1 + *r2 == 10
        );
    };
    Thread::spawn(5, &STACKS[1], other, ()).unwrap();
    let ((r1, mut r2), _) = r1.and_lock(&R2).unwrap();
    *r2 += 10;
    println!("  T1 has both");
    drop((r1, r2));
}

static SEMAPHORE: Semaphore = Semaphore::new(0, 9);

fn sequence(_: ()) {
    println!("semaphore");
    let high = |()| {
        SEMAPHORE.p().unwrap();
        for _ in 0..3 {
            SEMAPHORE.v().unwrap();
        }
        for i in 1..=4 {
            SEMAPHORE.p().unwrap();
            println!("  P {i}");
        }
    };
    Thread::spawn(5, &STACKS[1], high, ()).unwrap();
    println!("  blocked");
    SEMAPHORE.v().unwrap();
    println!("  blocked again");
    SEMAPHORE.v().unwrap();
}

const CALLS: u32 = 500;

static SERVER: Server = Server::new();
static TICK: Callback = Callback::new(&SERVER, tick, 0);
static CALLED: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);
static ROUNDS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Interrupts every 7.3 µs, at any instruction of the running thread, and uses the flags and the
/// FPU.
fn tick(_: usize) {
    let calls = CALLED.fetch_add(1, Ordering::Relaxed) + 1;
    if compute(black_box(f64::from(calls)), 1) < 0.0 {
        WRONG.fetch_add(1, Ordering::Relaxed);
    }
    if calls == CALLS {
        TICK.cancel();
        Kernel::stop();
    }
}

/// Keeps many registers of the FPU in use.
#[inline(never)]
fn compute(seed: f64, rounds: u32) -> f64 {
    let mut values = [0.0; 24];
    for (i, value) in values.iter_mut().enumerate() {
        *value = seed + i as f64;
    }
    for _ in 0..rounds {
        for i in 0..values.len() {
            values[i] = values[i] * 0.75 + values[(i + 7) % values.len()] * 0.25;
        }
    }
    values.iter().sum()
}

/// The test of 001, IV.D: returns whether the flags of a comparison survive until the branch.
fn flags_survive() -> bool {
    let equal: usize;
    // SAFETY: changes only the named registers and the flags.
    unsafe {
        #[cfg(target_arch = "arm")]
        core::arch::asm!(
            "mov {t}, #5", "cmp {t}, #5",
            "nop", "nop", "nop", "nop", "nop", "nop", "nop", "nop",
            "moveq {r}, #1", "movne {r}, #0",
            t = out(reg) _, r = out(reg) equal, options(nostack, nomem)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mov {t}, #5", "cmp {t}, #5",
            "nop", "nop", "nop", "nop", "nop", "nop", "nop", "nop",
            "cset {r}, eq",
            t = out(reg) _, r = out(reg) equal, options(nostack, nomem)
        );
    }
    equal == 1
}

fn computes(index: usize) {
    let seed = 2.5 + index as f64;
    let expected = Kernel::masked(|| compute(black_box(seed), 20));
    loop {
        let right = compute(black_box(seed), 20) == expected && (0..50).all(|_| flags_survive());
        WRONG.fetch_add(u32::from(!right), Ordering::Relaxed);
        ROUNDS[index].fetch_add(1, Ordering::Relaxed);
    }
}

fn preemption(_: ()) {
    println!("preemption");
    SERVER.start(9, &STACKS[1]).unwrap();
    Kernel::set_time_slice(31_000);
    Thread::spawn(2, &STACKS[2], computes, 0).unwrap();
    Thread::spawn(2, &STACKS[3], computes, 1).unwrap();
    TICK.every(Kernel::now() + 7_300, 7_300).unwrap();
    Thread::sleep_until(Kernel::now() + 1_000_000_000).unwrap();
}
