//! A thread waits for a mutex with priority inheritance, for as long as a known thread holds it.

use std::sync::Arc;

use punctual_trace::event::Tid;
use punctual_trace::jobs::{HolderState, WaitTarget};

use crate::workloads::{
    Bell, MS, Measured, PthreadMutex, ROUNDS, WAITER, me, now, perform, sleep_until, spin_until, thread,
    waiter,
};

/// Time for which the owner keeps the mutex after the waiter has requested it.
const HELD: u64 = 2 * MS;

struct Truth {
    mutex: Arc<PthreadMutex>,
    owner: Tid,
    waiter: Tid,
    /// For each round: the times of the waiter's request and of its acquisition.
    waits: Vec<(u64, u64)>,
    /// The times at which the owner began to hold it alone, and released it.
    holds: Vec<(u64, u64)>,
}

fn play() -> (Vec<Tid>, Truth) {
    let mutex = Arc::new(PthreadMutex::new(true));
    let asks = Arc::new(Bell::new());
    let waiter = waiter(&mutex, &asks);
    let owner = thread("owner", 20, {
        let mutex = Arc::clone(&mutex);
        move || {
            let holds = (0..ROUNDS).map(|_| {
                sleep_until(now() + 3 * MS);
                mutex.lock();
                // The waiter preempts, and returns without the mutex.
                asks.ring();
                let alone = now();
                spin_until(alone + HELD);
                let end = now();
                mutex.unlock();
                (alone, end)
            });
            (me(), holds.collect())
        }
    });
    let ((owner, holds), (waiter, waits)) = (owner.join().unwrap(), waiter.join().unwrap());
    (vec![owner, waiter], Truth { mutex, owner, waiter, waits, holds })
}

#[test]
fn counts_wait_as_blocking_and_names_owner() {
    perform("pi-futex", play, |played, truth| {
        let mut measured = Vec::new();
        for (&(before, after), &(alone, end)) in truth.waits.iter().zip(&truth.holds) {
            let (Some(job), Some(owner)) = (played.job(truth.waiter, after), played.job(truth.owner, end))
            else {
                continue;
            };
            // The kernel's own locks may be contended, too.
            let for_mutex =
                |on: WaitTarget| matches!(on, WaitTarget::Futex { word } if truth.mutex.has(word));
            let wait =
                job.blockings.iter().find(|wait| for_mutex(wait.target)).expect("it waits for the mutex");
            assert_eq!(wait.owners, [truth.owner], "{wait:?}");
            let held: u64 = wait
                .shares
                .iter()
                .filter(|share| share.holder == Some(truth.owner) && share.state == HolderState::Running)
                .map(|share| share.ns)
                .sum();
            measured.push(Measured::exact("B of the waiter", job.blocking, after - before));
            measured.push(Measured { what: "the owner's share of B", trace: held, truth: end - alone });
            // The owner ran at the waiter's priority and was not displaced.
            assert!(!owner.blockings.iter().any(|wait| for_mutex(wait.target)), "{owner:?}");
            assert_eq!(owner.highest, 99 - WAITER, "{owner:?}");
        }
        measured
    });
}
