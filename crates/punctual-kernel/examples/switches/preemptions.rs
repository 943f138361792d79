//! The cost of a preemption to the preempted thread, there and back, for each source of interrupts:
//! the time between the last reading of the clock before it and the first after it.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use punctual_kernel::linux::{Preemption, Raiser, poll, start};
use punctual_process::scheduling::set_policy;

use super::{Kernel, STACKS, Semaphore, Thread};

const ROUNDS: usize = 10;
const SAMPLES: usize = 200;
/// The time between preemptions, in nanoseconds.
const PERIOD: u64 = 200_000;

static GAPS: [AtomicU64; SAMPLES] = [const { AtomicU64::new(0) }; SAMPLES];
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The number of runs of the preempting thread.
static RUNS: AtomicU32 = AtomicU32::new(0);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

type Measure = fn() -> io::Result<()>;

pub(super) fn print() {
    let measures: [(&str, Measure); 6] = [
        ("timer signal (timer_create)", || sleeps(Preemption::Signals)),
        ("perf event (sigtrap)", || sleeps(Preemption::PerfEvents)),
        ("signal of a thread on another CPU (tgkill)", raised),
        ("a deadline that is polled", || sleeps(Preemption::Polled)),
        ("peer: a thread of Linux, its timer", linux_timer),
        ("peer: a thread of Linux, woken on another CPU", linux_wake),
    ];
    let mut results = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        for (result, (_, measure)) in results.iter_mut().zip(measures) {
            TAKEN.store(0, Ordering::Relaxed);
            HAS_ENDED.store(false, Ordering::Relaxed);
            let outcome = measure();
            set_priority(0);
            if let Err(error) = outcome {
                println!("{error}");
            }
            let taken = GAPS.iter().take(TAKEN.load(Ordering::Relaxed));
            result.extend(taken.map(|gap| gap.load(Ordering::Relaxed)));
        }
    }
    println!("\n{:<46}{:>10}{:>10}{:>10}{:>10}   ns there and back", "", "max", "p99", "median", "min");
    for (mut result, (name, _)) in results.into_iter().zip(measures) {
        result.sort_unstable();
        let Some(last) = result.len().checked_sub(1) else { continue };
        let [max, p99, median, min] = [result[last], result[last * 99 / 100], result[last / 2], result[0]];
        println!("{name:<46}{max:>10}{p99:>10}{median:>10}{min:>10}");
    }
}

/// Reads the clock until enough preemptions have been seen, for a second at most.
fn watch(each: fn()) {
    let mut before = Kernel::now();
    let end = before + 1_000_000_000;
    let mut runs = RUNS.load(Ordering::Relaxed);
    let mut taken = 0;
    while taken < SAMPLES && before < end {
        each();
        let mut now = Kernel::now();
        let seen = RUNS.load(Ordering::Relaxed);
        if seen != runs {
            // The preemption may have been between the two.
            now = Kernel::now();
            GAPS[taken].store(now - before, Ordering::Relaxed);
            runs = seen;
            taken += 1;
        }
        before = now;
    }
    TAKEN.store(taken, Ordering::Relaxed);
    HAS_ENDED.store(true, Ordering::Relaxed);
}

fn watches(is_polled: bool) {
    watch(if is_polled { poll } else { || () });
}

/// A thread of the kernel waits for times.
fn sleeps(preemption: Preemption) -> io::Result<()> {
    fn wakes(_: ()) {
        while !HAS_ENDED.load(Ordering::Relaxed) {
            let _ = Thread::sleep_until(Kernel::now() + PERIOD);
            RUNS.fetch_add(1, Ordering::Relaxed);
        }
    }
    set_priority(1);
    // SAFETY: the threads call only the kernel.
    unsafe {
        start(preemption, || {
            Thread::spawn(9, &STACKS[0], wakes, ()).expect("two slots are free");
            Thread::spawn(1, &STACKS[1], watches, preemption == Preemption::Polled)
                .expect("two slots are free");
            Kernel::run();
        })
    }
}

/// A thread of the kernel waits for interrupts that a thread of Linux raises.
fn raised() -> io::Result<()> {
    static UNITS: Semaphore = Semaphore::new(0, u32::MAX);
    fn wakes(_: ()) {
        while !HAS_ENDED.load(Ordering::Relaxed) {
            let _ = UNITS.p();
            RUNS.fetch_add(1, Ordering::Relaxed);
        }
        Kernel::unsubscribe_irq(7);
    }
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| elsewhere(&ready, || Raiser::new(7).raise()));
        ready.wait();
        set_priority(1);
        // SAFETY: the threads call only the kernel.
        unsafe {
            start(Preemption::Signals, || {
                Kernel::subscribe_irq(7, |_| _ = UNITS.v()).expect("the slot is free");
                Thread::spawn(9, &STACKS[0], wakes, ()).expect("two slots are free");
                Thread::spawn(1, &STACKS[1], watches, false).expect("two slots are free");
                Kernel::run();
            })
        }
    })
}

/// Calls `does` periodically on another CPU, until enough preemptions have been seen, and once
/// more.
fn elsewhere(ready: &Barrier, mut does: impl FnMut()) {
    // SAFETY: sets that are filled in; queries and sets an affinity that every thread may change.
    unsafe {
        let mut set: libc::cpu_set_t = MaybeUninit::zeroed().assume_init();
        let here = libc::sched_getcpu();
        (0..libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as usize)
            .filter(|&cpu| cpu != here as usize)
            .for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
    ready.wait();
    while !HAS_ENDED.load(Ordering::Relaxed) {
        sleep(PERIOD);
        does();
    }
    does();
}

/// A thread of Linux with a higher priority than the measuring thread waits for times.
fn linux_timer() -> io::Result<()> {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            set_priority(2);
            ready.wait();
            while !HAS_ENDED.load(Ordering::Relaxed) {
                sleep(PERIOD);
                RUNS.fetch_add(1, Ordering::Relaxed);
            }
        });
        ready.wait();
        set_priority(1);
        watches(false);
    });
    Ok(())
}

/// A thread of Linux with a higher priority than the measuring thread waits for one on another CPU.
fn linux_wake() -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    fn futex(operation: i32, value: u32) {
        // SAFETY: waits or wakes on a static word.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                &COUNT,
                operation | libc::FUTEX_PRIVATE_FLAG,
                value,
                ptr::null::<()>(),
            )
        };
    }
    let ready = Barrier::new(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            set_priority(2);
            ready.wait();
            let mut seen = COUNT.load(Ordering::Acquire);
            while !HAS_ENDED.load(Ordering::Relaxed) {
                futex(libc::FUTEX_WAIT, seen);
                seen = COUNT.load(Ordering::Acquire);
                RUNS.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            elsewhere(&ready, || {
                COUNT.fetch_add(1, Ordering::Release);
                futex(libc::FUTEX_WAKE, 1);
            });
        });
        ready.wait();
        set_priority(1);
        watches(false);
    });
    Ok(())
}

/// Makes this a real-time thread, so that other processes do not disturb it; or an ordinary one,
/// for 0.
fn set_priority(priority: i32) {
    let policy = if priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    if let Err(error) = set_policy(policy, priority) {
        println!("not at a real-time priority: {error}");
    }
}

fn sleep(nanoseconds: u64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds as libc::c_long };
    // SAFETY: sleeps.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &time, ptr::null_mut()) };
}
