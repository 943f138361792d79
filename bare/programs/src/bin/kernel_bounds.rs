//! The cost of the operations of `punctual-kernel` whose number of steps depends on how many
//! threads wait, hold or precede. Each is measured for few and for more of them; the difference is
//! the cost of a step. Counted in instructions, from the call to the first instruction of the code
//! that runs next.
//!
//! needs: virt: the counts are those of its processors
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use programs::cycles;
use punctual_bare::println;
use punctual_kernel_bare::Board;

type Kernel = punctual_kernel::Kernel<Board>;
type Thread = punctual_kernel::Thread<Board>;
type RawMutex = punctual_kernel::RawMutex<Board>;
type Semaphore = punctual_kernel::Semaphore<Board>;
type Stack = punctual_kernel::Stack<Board, 4080>;

punctual_bare::entry!(main);

static STACKS: [Stack; 8] = [const { Stack::new() }; 8];
static SEMAPHORE: Semaphore = Semaphore::new(0, 100);
static MUTEXES: [RawMutex; 7] = [const { RawMutex::new("mutex") }; 7];

static BEGAN: AtomicU32 = AtomicU32::new(0);
static TOOK: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn begin() {
    BEGAN.store(cycles::count(), Ordering::Relaxed);
}

#[inline(always)]
fn end() {
    TOOK.store(cycles::count().wrapping_sub(BEGAN.load(Ordering::Relaxed)), Ordering::Relaxed);
}

fn main() -> ! {
    punctual_kernel_bare::init();
    cycles::enable();
    for stack in &STACKS {
        stack.prepare().unwrap();
    }
    Thread::spawn(4, &STACKS[0], measures, ()).unwrap();
    Kernel::run();
    punctual_bare::exit(0)
}

fn measures(_: ()) {
    begin();
    end();
    let overhead = TOOK.load(Ordering::Relaxed);
    let parts = [
        ("P that waits, priorities above that wait", waits as fn(u32)),
        ("sleep, timers that are due earlier", sleeps),
        ("V by N, threads woken", wakes),
        ("lock, threads of which each waits for the next", inherits),
        ("unlock for one that waits, mutexes held besides", unlocks),
    ];
    for (name, part) in parts {
        for count in [1, 5] {
            part(count);
            println!("{name}, {count}: {}", TOOK.load(Ordering::Relaxed) - overhead);
        }
    }
}

/// Spawns `count` threads, the first at priority `first` and each further one at the next higher
/// priority.
fn spawn(count: u32, first: u8, thread: fn(u32)) {
    for (i, stack) in (0..count).zip(&STACKS[2..]) {
        Thread::spawn(first + i as u8, stack, thread, i).unwrap();
    }
}

/// Spawns a measuring thread of the caller's priority and yields to it.
fn pass_to(thread: fn(())) {
    Thread::spawn(4, &STACKS[1], thread, ()).unwrap();
    Thread::yield_now();
    end();
}

fn waits(count: u32) {
    spawn(count, 9, |_| SEMAPHORE.p().unwrap());
    pass_to(|()| {
        begin();
        SEMAPHORE.p().unwrap();
    });
    SEMAPHORE.v_by(count + 1).unwrap();
    Thread::yield_now();
}

fn sleeps(count: u32) {
    static END: AtomicU32 = AtomicU32::new(0);
    END.store(Kernel::now() as u32 + 10_000_000, Ordering::Relaxed);
    let until = |early: u32| u64::from(END.load(Ordering::Relaxed) - early);
    spawn(count, 9, |i| {
        Thread::sleep_until(u64::from(END.load(Ordering::Relaxed) - 1_000 * (i + 1))).unwrap()
    });
    pass_to(|()| {
        let end = u64::from(END.load(Ordering::Relaxed));
        begin();
        Thread::sleep_until(end).unwrap();
    });
    Thread::sleep_until(until(0) + 1_000_000).unwrap();
}

fn wakes(count: u32) {
    for (i, stack) in (0..count).zip(&STACKS[2..]) {
        // They start to wait while the caller waits, and queue behind it.
        Thread::spawn(1 + (i % 2) as u8, stack, |_| SEMAPHORE.p().unwrap(), i).unwrap();
    }
    Thread::sleep_until(Kernel::now() + 1_000_000).unwrap();
    begin();
    let woken = SEMAPHORE.v_by(count);
    end();
    woken.unwrap();
    Thread::sleep_until(Kernel::now() + 1_000_000).unwrap();
}

fn inherits(count: u32) {
    MUTEXES[0].lock().unwrap();
    spawn(count - 1, 9, |i| {
        let (own, others) = (&MUTEXES[i as usize + 1], &MUTEXES[i as usize]);
        own.lock().unwrap();
        others.lock().unwrap();
        others.unlock().unwrap();
        own.unlock().unwrap();
    });
    let locks = |last: u32| {
        begin();
        MUTEXES[last as usize].lock().unwrap();
        MUTEXES[last as usize].unlock().unwrap();
    };
    // Its spawn returns when the thread waits.
    Thread::spawn(20, &STACKS[1], locks, count - 1).unwrap();
    end();
    MUTEXES[0].unlock().unwrap();
}

fn unlocks(count: u32) {
    let (last, others) = MUTEXES.split_last().unwrap();
    others[..count as usize].iter().for_each(|mutex| mutex.lock().unwrap());
    last.lock().unwrap();
    let locks = |()| {
        let last = &MUTEXES[MUTEXES.len() - 1];
        last.lock().unwrap();
        end();
        last.unlock().unwrap();
    };
    Thread::spawn(20, &STACKS[1], locks, ()).unwrap();
    begin();
    last.unlock().unwrap();
    others[..count as usize].iter().for_each(|mutex| mutex.unlock().unwrap());
}
