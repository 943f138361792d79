//! Semaphores: P, V that wakes a thread, and V on a count that is not zero.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use punctual::sync::shared::Semaphore as SyncSemaphore;

use super::row;
use crate::peers::Semaphore as PosixSemaphore;
use crate::recorder::Recorder;
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::{clock, published, rt};

/// P and V.
trait Semaphore: Sync {
    fn p(&self);
    fn v(&self);
}

impl Semaphore for PosixSemaphore {
    #[inline(always)]
    fn p(&self) {
        self.acquire();
    }

    #[inline(always)]
    fn v(&self) {
        self.signal();
    }
}

impl Semaphore for SyncSemaphore {
    #[inline(always)]
    fn p(&self) {
        self.acquire(rt::PRIORITY as u8).expect("16 threads may wait and one does");
    }

    #[inline(always)]
    fn v(&self) {
        self.signal(1).expect("there are few units");
    }
}

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("semaphore P and V, POSIX", |session| {
            without_waiting(session, Subject::Posix, &PosixSemaphore::new(2));
        }),
        Step::new("semaphore P and V, punctual-sync", |session| {
            without_waiting(session, Subject::Sync, &SyncSemaphore::new(2));
        }),
        Step::new("semaphore V with a waiter, POSIX", |session| {
            waking(session, Subject::Posix, PosixSemaphore::new);
        }),
        Step::new("semaphore V with a waiter, punctual-sync", |session| {
            waking(session, Subject::Sync, SyncSemaphore::new);
        }),
    ]
}

/// Measures P with a free unit, and V with a nonzero count and without waiters.
fn without_waiting(session: &mut Session<'_>, subject: Subject, semaphore: &impl Semaphore) {
    let (p, v) = (Arc::new(Recorder::new(session.samples())), Arc::new(Recorder::new(session.samples())));
    let stop = session.stop;
    let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
        loop {
            let from = clock::now();
            semaphore.p();
            let taken = clock::now();
            p.push(taken - from);
            let from = clock::now();
            semaphore.v();
            let given = clock::now();
            if !v.push(given - from) || stop.is_requested() {
                return lack.clone();
            }
        }
    });
    let taking = row("semaphore-p", "Semaphore P, a unit is free", subject);
    session.add(taking.published(published::rtos("Semaphore P")), &Measured::ticks(p, lack.clone()));
    let giving = row("semaphore-v-nz", "Semaphore V, the count is not zero", subject);
    session.add(giving.published(published::rtos("Semaphore V (NZ)")), &Measured::ticks(v, lack));
}

/// Measures V with a waiting thread: of a lower priority, until the call returns, and of a higher
/// one, until that runs.
fn waking<S: Semaphore>(session: &mut Session<'_>, subject: Subject, make: impl Fn(u32) -> S) {
    let measured = wake(session, &make(0), Waiter::Lower);
    let operation = "Semaphore V, a lower thread waits: until the call returns";
    session.add(row("semaphore-v", operation, subject).published(published::rtos("Semaphore V")), &measured);
    let measured = wake(session, &make(0), Waiter::Higher);
    session.add(
        row("semaphore-v-runs", "Semaphore V, a higher thread waits: until it runs", subject),
        &measured,
    );
}

/// Wakes a waiting thread by a POSIX semaphore: the alternative to creating one.
pub(super) fn wake_waiting(session: &Session<'_>, waiter: Waiter) -> Measured {
    wake(session, &PosixSemaphore::new(0), waiter)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Lower,
    Higher,
}

/// One thread signals, one waits.
///
/// Both are on one CPU. The signaler lowers itself below the waiter before each sample, so it
/// continues only when the waiter sleeps again.
fn wake(session: &Session<'_>, semaphore: &impl Semaphore, waiter: Waiter) -> Measured {
    let recorder = Arc::new(Recorder::new(session.samples()));
    let (cpu, stop, samples) = (session.plan.cpu, session.stop, session.samples());
    let (left, ended, ready) = (AtomicU64::new(0), AtomicBool::new(false), Barrier::new(2));
    let (below, above) = (rt::PRIORITY - 1, rt::PRIORITY + 1);
    let waits = || {
        let lack = rt::enter(cpu, rt::PRIORITY);
        ready.wait();
        loop {
            semaphore.p();
            let to = clock::now();
            if ended.load(Ordering::Acquire) {
                return lack;
            }
            if waiter == Waiter::Higher {
                recorder.push(to.saturating_sub(left.load(Ordering::Relaxed)));
            }
        }
    };
    let signals = || {
        let lack = rt::enter(cpu, below);
        ready.wait();
        for _ in 0..samples {
            if stop.is_requested() {
                break;
            }
            if waiter == Waiter::Lower {
                // If refused, the rows report that there is no SCHED_FIFO.
                let _ = rt::set_fifo(above);
            }
            let from = clock::now();
            left.store(from, Ordering::Relaxed);
            semaphore.v();
            if waiter == Waiter::Lower {
                recorder.push(clock::now() - from);
                let _ = rt::set_fifo(below);
            }
        }
        ended.store(true, Ordering::Release);
        semaphore.v();
        lack
    };
    let lack = std::thread::scope(|scope| {
        let waits = rt::spawn(scope, waits);
        let signals = rt::spawn(scope, signals);
        let mut lack = rt::join(signals);
        lack.extend(rt::join(waits));
        lack
    });
    Measured::ticks(recorder, lack)
}
