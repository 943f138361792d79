//! The cost of the operations of `punctual-kernel` in instructions, from the call to the first
//! instruction of the code that runs next, with interrupts unmasked and all checks enabled.
//!
//! needs: virt: the counts are those of its processors, and interrupts are raised by hand
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use programs::cycles;
use punctual_bare::println;
use punctual_kernel::{LockError, SignalError, UnlockError, WaitError};
use punctual_kernel_bare::{Board, THREADS};

type Kernel = punctual_kernel::Kernel<Board>;
type Thread = punctual_kernel::Thread<Board>;
type RawMutex = punctual_kernel::RawMutex<Board>;
type Semaphore = punctual_kernel::Semaphore<Board>;
type Stack = punctual_kernel::Stack<Board, 8192>;

punctual_bare::entry!(main);

static STACKS: [Stack; 3] = [const { Stack::new() }; 3];
static SEMAPHORE: Semaphore = Semaphore::new(0, 9);
static MUTEX: RawMutex = RawMutex::new("mutex");

/// The counter at the start of the last operation.
static BEGAN: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn begin() {
    BEGAN.store(cycles::count(), Ordering::Relaxed);
}

/// Returns the instructions since `begin`. `report` subtracts the overhead of `begin` and `end`.
#[inline(always)]
fn end() -> u32 {
    cycles::count().wrapping_sub(BEGAN.load(Ordering::Relaxed))
}

static OVERHEAD: AtomicU32 = AtomicU32::new(0);

#[inline(never)]
fn report(name: &str, counted: u32) {
    println!("{name}: {}", counted - OVERHEAD.load(Ordering::Relaxed));
}

fn main() -> ! {
    punctual_kernel_bare::init();
    cycles::enable();
    for stack in &STACKS {
        stack.prepare().unwrap();
    }
    begin();
    OVERHEAD.store(end(), Ordering::Relaxed);
    Thread::spawn(5, &STACKS[0], measures, ()).unwrap();
    Kernel::run();
    punctual_bare::exit(0)
}

// Calls, because the code for an inlined operation depends on its surroundings.

#[inline(never)]
fn p() -> Result<(), WaitError> {
    SEMAPHORE.p()
}

#[inline(never)]
fn v() -> Result<(), SignalError> {
    SEMAPHORE.v()
}

#[inline(never)]
fn lock() -> Result<(), LockError> {
    MUTEX.lock()
}

#[inline(never)]
fn unlock() -> Result<(), UnlockError> {
    MUTEX.unlock()
}

fn measures(_: ()) {
    let _ = SEMAPHORE.v();
    begin();
    let taken = p();
    report("semaphore P, a unit free", end());
    begin();
    let given = v();
    report("semaphore V, no thread waits", end());
    assert!(taken.is_ok() && given.is_ok() && SEMAPHORE.try_p());

    begin();
    let locked = lock();
    report("mutex lock, free", end());
    begin();
    let unlocked = unlock();
    report("mutex unlock, no thread waits", end());
    assert!(locked.is_ok() && unlocked.is_ok());

    let waits = |()| {
        let _ = SEMAPHORE.p();
        report("semaphore V, a higher thread runs", end());
    };
    Thread::spawn(6, &STACKS[1], waits, ()).unwrap();
    begin();
    let _ = v();

    MUTEX.lock().unwrap();
    let locks = |()| {
        let _ = MUTEX.lock();
        report("mutex unlock, an inheriting waiter runs", end());
        let _ = MUTEX.unlock();
    };
    Thread::spawn(6, &STACKS[1], locks, ()).unwrap();
    begin();
    let _ = unlock();

    Thread::spawn(5, &STACKS[1], |()| report("yield, the peer runs", end()), ()).unwrap();
    begin();
    Thread::yield_now();

    begin();
    let created = Thread::spawn(4, &STACKS[1], |()| (), ());
    report("thread creation, lower", end());
    created.unwrap().join().unwrap();

    // Repeat until every slot has been used.
    for _ in 0..THREADS {
        Thread::spawn(6, &STACKS[1], |()| (), ()).unwrap();
    }
    begin();
    let created = Thread::spawn(4, &STACKS[1], |()| (), ());
    report("thread creation, lower, in a slot used before", end());
    created.unwrap().join().unwrap();

    Kernel::subscribe_irq(SPARE, |_| _ = SEMAPHORE.v()).unwrap();
    let waits = |()| {
        let _ = SEMAPHORE.p();
        report("interrupt, V in its handler, the thread runs", end());
    };
    Thread::spawn(6, &STACKS[2], waits, ()).unwrap();
    begin();
    raise();
}

/// An interrupt without a device on QEMU's `virt`.
const SPARE: u32 = 40;

/// Makes it pending in the interrupt controller.
#[inline(always)]
fn raise() {
    let set_pending = 0x0800_0000_usize + 0x200 + 4 * (SPARE as usize / 32);
    // SAFETY: a register of the board's interrupt controller; writing it changes no memory.
    unsafe { (set_pending as *mut u32).write_volatile(1 << (SPARE % 32)) };
}
