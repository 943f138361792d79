//! Measurements and checks of the program `kernel_bench`.

pub mod latency;
pub mod operations;
mod registers;
pub mod rules;

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use punctual_kernel_bare::Board;

use crate::{bench, cycles};

type Kernel = punctual_kernel::Kernel<Board>;
type Thread = punctual_kernel::Thread<Board>;
type RawMutex = punctual_kernel::RawMutex<Board>;
type Mutex<T> = punctual_kernel::Mutex<Board, T>;
type OrderedMutex<T> = punctual_kernel::OrderedMutex<Board, T>;
type Semaphore = punctual_kernel::Semaphore<Board>;
type Server = punctual_kernel::Server<Board>;
type Callback = punctual_kernel::Callback<Board>;
type Stack = punctual_kernel::Stack<Board, 8192>;

static STACKS: [Stack; 4] = [const { Stack::new() }; 4];

/// Number of samples required for the current row.
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// The counter at the start of the current measurement.
static BEGAN: AtomicU32 = AtomicU32::new(0);

/// Returns whether more samples are needed.
fn are_wanted() -> bool {
    bench::recorded() < WANTED.load(Ordering::Relaxed)
}

#[inline(always)]
fn begin() {
    BEGAN.store(cycles::count(), Ordering::Relaxed);
}

/// Records the cycles since `begin`.
#[inline(always)]
fn end() {
    let now = cycles::count();
    bench::record(now.wrapping_sub(BEGAN.load(Ordering::Relaxed)));
}

/// Priorities and entry points of threads.
type Threads = [(u8, fn(()))];

/// Runs threads with the given priorities until all have ended or one has stopped the kernel.
fn run(threads: &Threads) {
    for (&(priority, entry), stack) in threads.iter().zip(&STACKS) {
        Thread::spawn(priority, stack, entry, ()).expect("there are as many stacks");
    }
    Kernel::run();
}
