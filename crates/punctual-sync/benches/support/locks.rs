//! The peers of the mutex: the kernel's own locks, in the same run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Once};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::scheduling::set_policy;
use punctual_sync::{Member, PcpGroup, PcpMutex, now};
use rustix::thread::futex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The kernel priorities of the two threads that contend.
const LOW: u8 = 10;
const HIGH: u8 = 11;

/// A lock that two threads contend for.
pub(crate) trait Contended: Sync {
    /// Runs `body` with a function that runs a critical section under the lock, on a thread that
    /// locks with `priority`.
    fn on_thread(&self, priority: u8, body: impl FnOnce(&dyn Fn(&dyn Fn())));
}

impl Contended for (&'static PcpGroup, PcpMutex<'static, ()>) {
    fn on_thread(&self, priority: u8, body: impl FnOnce(&dyn Fn(&dyn Fn()))) {
        let member: Member<'static> = self.0.join(priority).expect("two threads are members");
        body(&|critical| self.1.lock(&member, |()| critical()).expect("the ceiling is high enough"));
    }
}

/// A plain priority-inheritance futex.
#[derive(Default)]
pub(crate) struct RawPi(AtomicU32);

impl Contended for RawPi {
    fn on_thread(&self, _: u8, body: impl FnOnce(&dyn Fn(&dyn Fn()))) {
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        body(&|critical| {
            if self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
                futex::lock_pi(&self.0, futex::Flags::PRIVATE, None).expect("the owner is alive");
            }
            critical();
            if self.0.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_err() {
                futex::unlock_pi(&self.0, futex::Flags::PRIVATE).expect("this thread owns it");
            }
        });
    }
}

/// The total times of rounds of contention.
pub(crate) struct Rounds {
    /// From the end of the low thread's critical section to the beginning of the high one's.
    pub(crate) hand_over: Duration,
    /// The whole round: lock, wake, block, hand over, unlock twice.
    pub(crate) whole: Duration,
}

/// A low thread holds a lock, and a higher one of the same CPU waits for it; `iters` times.
///
/// The low thread wakes the high one inside its critical section; that one preempts it and blocks.
/// So the waiter is known to wait, without reading the clock or the kernel's files.
pub(crate) fn contend(lock: &impl Contended, iters: u64) -> Rounds {
    let (round, left) = (AtomicU32::new(0), AtomicU64::new(0));
    let ready = Barrier::new(2);
    let cpu = first_allowed_cpu();
    let iters = u32::try_from(iters).expect("a round takes microseconds");
    thread::scope(|scope| {
        scope.spawn(|| {
            become_real_time(cpu, LOW);
            lock.on_thread(LOW, |with| {
                ready.wait();
                for _ in 0..iters {
                    with(&|| {
                        round.fetch_add(1, Ordering::Release);
                        // No waiter is not an error.
                        let _ = futex::wake(&round, futex::Flags::PRIVATE, 1);
                        left.store(now().as_ticks(), Ordering::Release);
                    });
                }
            });
        });
        let high = scope.spawn(|| {
            become_real_time(cpu, HIGH);
            let (total, mut whole) = (Cell::new(0), Duration::ZERO);
            lock.on_thread(HIGH, |with| {
                ready.wait();
                let start = Instant::now();
                for number in 0..iters {
                    while round.load(Ordering::Acquire) == number {
                        let _ = futex::wait(&round, futex::Flags::PRIVATE, number, None);
                    }
                    with(&|| {
                        let waited = now().as_ticks().saturating_sub(left.load(Ordering::Acquire));
                        total.set(total.get() + waited);
                    });
                }
                whole = start.elapsed();
            });
            Rounds { hand_over: Duration::from_nanos(total.get()), whole }
        });
        high.join().expect("the high thread does not panic")
    })
}

/// The lowest CPU that this thread may run on.
fn first_allowed_cpu() -> usize {
    let allowed = sched_getaffinity(None).expect("a thread can read its own affinity");
    (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).expect("a running thread has a CPU")
}

/// Pins the calling thread to `cpu` and makes it `SCHED_FIFO`, or reports once which of these
/// failed.
///
/// Never panics: the other thread waits for this one.
fn become_real_time(cpu: usize, priority: u8) {
    static SAID: Once = Once::new();

    let mut only = CpuSet::new();
    only.set(cpu);
    if let Err(error) = sched_setaffinity(None, &only) {
        SAID.call_once(|| eprintln!("locks: cannot pin a thread ({error}): threads may run on several CPUs"));
    }
    if let Err(error) = set_policy(libc::SCHED_FIFO, priority.into()) {
        SAID.call_once(|| {
            eprintln!("locks: cannot set SCHED_FIFO ({error}): normal threads, figures mean little")
        });
    }
}
