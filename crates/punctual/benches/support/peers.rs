//! Peers for comparison: the predecessor crates and the kernel's own primitives.
//!
//! Absolute times are not comparable between machines, so a peer is measured in the same run as the
//! operation it is compared with. Every function performs `iters` operations and returns their
//! total time, as criterion's `iter_custom` requires:
//!
//! ```ignore
//! group.bench_function("pi_mutex", |b| b.iter_custom(peers::pi_mutex));
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Once};
use std::thread;
use std::time::{Duration, Instant};

use futex_queue::FutexQueue;
use pcp_mutex::PcpGroup;
use punctual_process::scheduling::set_policy;
use rustix::thread::futex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::pi_mutex::PiMutex;

/// Kernel priority of both hand-over threads: any real-time one that no other thread uses.
const HAND_OVER_PRIORITY: libc::c_int = 10;

/// Sends an item that is ready at once through a `futex-queue` and receives it on the same thread.
///
/// The receiver never parks and an item without an instant needs no clock, so this is the crate's
/// own cost: a mutex and a binary heap, each used twice.
pub(crate) fn futex_queue(iters: u64) -> Duration {
    let (sender, mut receiver) = FutexQueue::<u64, 8>::new();
    let start = Instant::now();
    for i in 0..iters {
        assert!(sender.send(black_box(i)).is_ok(), "the queue holds one item at a time");
        black_box(receiver.recv().into_value());
    }
    start.elapsed()
}

/// Locks and unlocks an uncontended `pcp-mutex` in its own group.
pub(crate) fn pcp_mutex(iters: u64) -> Duration {
    /// Above the priority 0 of the normal thread that benches run on, as a ceiling has to be.
    const CEILING: u8 = 1;

    let group = PcpGroup::default();
    let mutex = group.create(0_u64, CEILING);
    let start = Instant::now();
    for _ in 0..iters {
        black_box(&mutex).lock(|count| *count = count.wrapping_add(1));
    }
    start.elapsed()
}

/// Locks and unlocks an uncontended POSIX mutex with priority inheritance.
pub(crate) fn pi_mutex(iters: u64) -> Duration {
    let mutex = PiMutex::new();
    let mut count = 0_u64;
    let start = Instant::now();
    for _ in 0..iters {
        black_box(&mutex).with(|| count = black_box(count).wrapping_add(1));
    }
    start.elapsed()
}

/// Hands control from one thread to another on the same CPU through a futex: the kernel's cost of
/// one switch.
///
/// Two `SCHED_FIFO` threads pinned to one CPU wake each other in turn. An operation is one
/// direction (a wake, a wait and the switch between them), so the time of the `iters` round trips
/// is halved. Without the privilege for `SCHED_FIFO` the threads stay normal, and a line on stderr
/// reports it: then fair scheduling decides the order. A busy normal thread on the same CPU costs
/// even FIFO threads up to 5 % of every second (the kernel's fair server).
///
/// Both loops end by count, so the threads always give the CPU back.
pub(crate) fn futex_hand_over(iters: u64) -> Duration {
    const PING: u32 = 0;
    const PONG: u32 = 1;

    let turn = AtomicU32::new(PING);
    let ready = Barrier::new(2);
    let cpu = first_allowed_cpu();

    let play = |mine: u32, theirs: u32| {
        become_real_time(cpu);
        ready.wait();
        let start = Instant::now();
        for _ in 0..iters {
            await_turn(&turn, mine);
            turn.store(theirs, Ordering::Release);
            // A wake cannot fail on a word that we hold a reference to; a wake without waiters is
            // not an error.
            let _ = futex::wake(&turn, futex::Flags::PRIVATE, 1);
        }
        start.elapsed()
    };

    thread::scope(|scope| {
        let ping = scope.spawn(|| play(PING, PONG));
        let pong = scope.spawn(|| play(PONG, PING));
        // The answering side finishes last: its time covers every switch.
        ping.join().expect("the first thread does not panic");
        pong.join().expect("the second thread does not panic") / 2
    })
}

/// Sleeps until `turn` is `mine`.
fn await_turn(turn: &AtomicU32, mine: u32) {
    loop {
        let current = turn.load(Ordering::Acquire);
        if current == mine {
            return;
        }
        // A changed word and a signal both end the wait early; the loop checks again in every case.
        let _ = futex::wait(turn, futex::Flags::PRIVATE, current, None);
    }
}

/// Returns the lowest CPU that this thread may run on.
fn first_allowed_cpu() -> usize {
    let allowed = sched_getaffinity(None).expect("a thread can read its own affinity");
    (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).expect("a running thread has a CPU")
}

/// Pins the calling thread to `cpu` and makes it `SCHED_FIFO`, or reports a failure once.
///
/// It never panics: the peer thread waits for this one.
fn become_real_time(cpu: usize) {
    static SAID: Once = Once::new();

    let mut only = CpuSet::new();
    only.set(cpu);
    if let Err(error) = sched_setaffinity(None, &only) {
        SAID.call_once(|| eprintln!("peers: pinning refused ({error}): hand-over possibly between CPUs"));
    }

    if let Err(error) = set_policy(libc::SCHED_FIFO, HAND_OVER_PRIORITY) {
        SAID.call_once(|| eprintln!("peers: SCHED_FIFO refused ({error}): hand-over between normal threads"));
    }
}
