//! Fifty ticks at 1 kHz, which interrupt a floating-point computation and each other.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use punctual_bare::interrupt::{self, Handler};
use punctual_bare::{println, time};

punctual_bare::entry!(main);

const PERIOD: u64 = 1_000_000;
const TICKS: u32 = 50;

static TICKED: AtomicU32 = AtomicU32::new(0);
static UNEXPECTED: AtomicU32 = AtomicU32::new(0);
static NESTED: AtomicU32 = AtomicU32::new(0);
static EARLY: AtomicU32 = AtomicU32::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicBool = AtomicBool::new(false);

static HANDLER: Handler = Handler { timer: tick, interrupt: unexpected, after };

fn unexpected(number: u32) {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
    interrupt::disable(number);
}

fn tick() {
    let next = NEXT.load(Ordering::Relaxed);
    EARLY.fetch_add(u32::from(time::now() < next), Ordering::Relaxed);
    let ticked = TICKED.fetch_add(1, Ordering::Relaxed) + 1;
    NEXT.store(next + PERIOD, Ordering::Relaxed);
    time::alarm(if ticked < TICKS { next + PERIOD } else { u64::MAX });
}

/// Every tenth tick runs for longer than a period, with interrupts unmasked.
fn after() {
    if INSIDE.load(Ordering::Relaxed) || TICKED.load(Ordering::Relaxed) % 5 != 2 {
        return;
    }
    INSIDE.store(true, Ordering::Relaxed);
    let before = TICKED.load(Ordering::Relaxed);
    // SAFETY: the handler can interrupt itself, once.
    unsafe { interrupt::unmask() };
    while TICKED.load(Ordering::Relaxed) == before {
        black_box(compute(1.5, 10));
    }
    interrupt::mask();
    NESTED.fetch_add(1, Ordering::Relaxed);
    INSIDE.store(false, Ordering::Relaxed);
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

fn main() -> ! {
    let expected = compute(2.5, 200);
    interrupt::handle(&HANDLER);
    let start = time::now();
    NEXT.store(start + PERIOD, Ordering::Relaxed);
    time::alarm(start + PERIOD);
    time::enable_alarm();
    // SAFETY: the handler shares only atomics with the code that it interrupts.
    unsafe { interrupt::unmask() };
    let (mut rounds, mut wrong) = (0_u32, 0_u32);
    while TICKED.load(Ordering::Relaxed) < TICKS {
        rounds += 1;
        wrong += u32::from(compute(black_box(2.5), 200) != expected);
    }
    interrupt::mask();
    let took = time::now() - start;
    println!(
        "{TICKS} ticks, {} early, {} nested",
        EARLY.load(Ordering::Relaxed),
        NESTED.load(Ordering::Relaxed)
    );
    println!("in time: {}", took >= PERIOD * u64::from(TICKS) && took < PERIOD * u64::from(TICKS + 1));
    println!("computed while they came: {}, wrong: {wrong}", rounds > TICKS);
    println!("other interrupts: {}", UNEXPECTED.load(Ordering::Relaxed));
    punctual_bare::exit(0)
}
