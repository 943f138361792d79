//! Contended locks: a common trait, and functions that make one thread wait for another.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use punctual::sync::{Member, PcpGroup, PcpMutex};

use crate::peers::{Mutex, Protocol, Semaphore};
use crate::recorder::Recorder;
use crate::rt::{self, Lack};
use crate::{Stop, clock};

/// The priority of the lock holder, and that of the waiter.
pub(crate) const LOW: u8 = rt::PRIORITY as u8;
const HIGH: u8 = LOW + 1;
/// The ceiling: no thread that locks has a higher priority.
pub(crate) const CEILING: u8 = HIGH;

/// A lock.
pub(crate) trait Lock: Sync {
    /// The per-thread state needed for locking.
    type Member<'a>
    where
        Self: 'a;

    /// Prepares the calling thread for locking.
    fn join(&self, priority: u8) -> Self::Member<'_>;

    /// Runs `critical` while holding the lock.
    fn with<R>(&self, member: &Self::Member<'_>, critical: impl FnOnce() -> R) -> R;
}

impl Lock for Mutex {
    type Member<'a> = ();

    fn join(&self, _: u8) {}

    #[inline(always)]
    fn with<R>(&self, (): &(), critical: impl FnOnce() -> R) -> R {
        Mutex::with(self, critical)
    }
}

static GROUP: PcpGroup = PcpGroup::new();

/// Returns a mutex of `punctual-sync`.
pub(crate) fn pcp() -> PcpMutex<'static, ()> {
    PcpMutex::new(&GROUP, CEILING, ())
}

impl Lock for PcpMutex<'static, ()> {
    type Member<'a> = Member<'static>;

    fn join(&self, priority: u8) -> Member<'static> {
        GROUP.join(priority).expect("the two threads of a measurement are the only members")
    }

    #[inline(always)]
    fn with<R>(&self, member: &Member<'static>, critical: impl FnOnce() -> R) -> R {
        self.lock(member, |()| critical()).expect("no member is above the ceiling or locks twice")
    }
}

/// Returns the predecessor's mutex. It must not be contended on one CPU.
pub(crate) fn predecessor() -> pcp_mutex::PcpMutex<'static, ()> {
    pcp_mutex::PcpMutex::new((), CEILING)
}

impl Lock for pcp_mutex::PcpMutex<'static, ()> {
    type Member<'a> = ();

    fn join(&self, _: u8) {}

    #[inline(always)]
    fn with<R>(&self, (): &(), critical: impl FnOnce() -> R) -> R {
        // SAFETY: only the lifetime of the borrow is extended, which the method's signature
        // requires needlessly: it uses `self` until it returns, and `critical` has finished by
        // then.
        let this: &'static Self = unsafe { &*std::ptr::from_ref(self) };
        this.lock(|()| critical())
    }
}

/// The times of a contended lock.
pub(crate) struct Waits {
    /// From the call to the acquisition.
    pub(crate) whole: Arc<Recorder>,
    /// From the end of the holder's critical section to the acquisition.
    pub(crate) hand_over: Arc<Recorder>,
    pub(crate) lack: Lack,
}

/// Makes a low thread hold a lock while a higher one on the same CPU waits for it; `samples` times.
///
/// The low thread wakes the high one inside its critical section. The high thread preempts it and
/// blocks, so it is certain to wait, without a check of the clock.
pub(crate) fn contend(lock: &impl Lock, cpu: usize, samples: usize, stop: &Stop) -> Waits {
    let recorder = || Arc::new(Recorder::new(samples));
    let (whole, hand_over) = (recorder(), recorder());
    let (start, left) = (Semaphore::new(0), AtomicU64::new(0));
    let (rounds, ready) = (AtomicUsize::new(usize::MAX), Barrier::new(2));
    let low = || {
        let lack = rt::enter(cpu, LOW.into());
        let member = lock.join(LOW);
        ready.wait();
        let mut done = 0;
        while done < samples && !stop.is_requested() {
            lock.with(&member, || {
                start.signal();
                // Relaxed: read under the lock that is about to be released.
                left.store(clock::now(), Ordering::Relaxed);
            });
            done += 1;
        }
        rounds.store(done, Ordering::Release);
        start.signal();
        lack
    };
    let high = || {
        let lack = rt::enter(cpu, HIGH.into());
        let member = lock.join(HIGH);
        ready.wait();
        for round in 0.. {
            start.acquire();
            // The signal after the last round is observed after the number of rounds.
            if round == rounds.load(Ordering::Acquire) {
                break;
            }
            let from = clock::now();
            let to = lock.with(&member, clock::now);
            whole.push(to.saturating_sub(from));
            hand_over.push(to.saturating_sub(left.load(Ordering::Relaxed)));
        }
        lack
    };
    let lack = std::thread::scope(|scope| {
        let high = rt::spawn(scope, high);
        let low = rt::spawn(scope, low);
        let mut lack = rt::join(low);
        lack.extend(rt::join(high));
        lack
    });
    Waits { whole, hand_over, lack }
}

/// Measures releasing a lock for which a lower thread of the same CPU waits; `samples` times.
///
/// The holder lowers its priority and wakes the other thread, which preempts it and blocks. Then
/// the holder raises its priority again and unlocks, so the call returns before the other thread
/// runs.
pub(crate) fn release(lock: &impl Lock, cpu: usize, samples: usize, stop: &Stop) -> (Arc<Recorder>, Lack) {
    let recorder = Arc::new(Recorder::new(samples));
    let start = Semaphore::new(0);
    let (rounds, ready) = (AtomicUsize::new(usize::MAX), Barrier::new(2));
    let (below, waiting, above) = (rt::PRIORITY - 1, rt::PRIORITY, rt::PRIORITY + 1);
    let holds = || {
        let lack = rt::enter(cpu, below);
        let member = lock.join(LOW);
        ready.wait();
        let mut done = 0;
        while done < samples && !stop.is_requested() {
            let leaving = lock.with(&member, || {
                start.signal();
                // If refused, the rows report that there is no SCHED_FIFO.
                let _ = rt::set_fifo(above);
                clock::now()
            });
            recorder.push(clock::now() - leaving);
            let _ = rt::set_fifo(below);
            done += 1;
        }
        rounds.store(done, Ordering::Release);
        start.signal();
        lack
    };
    let waits = || {
        let lack = rt::enter(cpu, waiting);
        let member = lock.join(LOW);
        ready.wait();
        for round in 0.. {
            start.acquire();
            if round == rounds.load(Ordering::Acquire) {
                break;
            }
            lock.with(&member, || ());
        }
        lack
    };
    let lack = std::thread::scope(|scope| {
        let waits = rt::spawn(scope, waits);
        let holds = rt::spawn(scope, holds);
        let mut lack = rt::join(holds);
        lack.extend(rt::join(waits));
        lack
    });
    (recorder, lack)
}

/// Returns a POSIX mutex with priority inheritance.
pub(crate) fn posix() -> Mutex {
    Mutex::new(Protocol::Inherit)
}
