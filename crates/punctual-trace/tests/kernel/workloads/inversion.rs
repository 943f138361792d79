//! Priority inversion: the owner of a mutex is displaced by a thread of medium priority, unless it
//! inherits the waiter's.

use std::sync::Arc;

use punctual_trace::event::Tid;
use punctual_trace::jobs::{Actor, HolderState};

use crate::workloads::{
    Bell, MS, Measured, PthreadMutex, ROUNDS, me, now, perform, sleep_until, spin_until, thread, waiter,
};

/// Run time of the medium thread, and the owner's own execution time until it releases the mutex.
const MEDIUM: u64 = 2 * MS;
const HELD: u64 = MS;

struct Truth {
    owner: Tid,
    medium: Tid,
    waiter: Tid,
    waits: Vec<(u64, u64)>,
    runs: Vec<(u64, u64)>,
}

fn play(inherits: bool) -> (Vec<Tid>, Truth) {
    let mutex = Arc::new(PthreadMutex::new(inherits));
    let (asks, works) = (Arc::new(Bell::new()), Arc::new(Bell::new()));
    let waiter = waiter(&mutex, &asks);
    let medium = thread("medium", 20, {
        let works = Arc::clone(&works);
        move || {
            let runs = (0..ROUNDS).map(|_| {
                works.wait();
                let start = now();
                spin_until(start + MEDIUM);
                (start, now())
            });
            (me(), runs.collect())
        }
    });
    let owner = thread("owner", 10, move || {
        for _ in 0..ROUNDS {
            sleep_until(now() + 5 * MS);
            mutex.lock();
            asks.ring();
            // Here the medium thread runs, if it may.
            works.ring();
            spin_until(now() + HELD);
            mutex.unlock();
        }
        me()
    });
    let owner = owner.join().unwrap();
    let ((waiter, waits), (medium, runs)) = (waiter.join().unwrap(), medium.join().unwrap());
    (vec![owner, medium, waiter], Truth { owner, medium, waiter, waits, runs })
}

#[test]
fn blames_medium_thread_for_inversion_on_plain_mutex() {
    perform(
        "inversion",
        || play(false),
        |played, truth| {
            let mut measured = Vec::new();
            for (&(before, after), &(start, end)) in truth.waits.iter().zip(&truth.runs) {
                assert!(before < start && end < after, "this is an inversion");
                let Some(job) = played.job(truth.waiter, after) else { continue };
                let wait = job.blockings.iter().max_by_key(|wait| wait.ns()).expect("it waits for the mutex");
                assert_eq!(wait.owners, [truth.owner], "{wait:?}");
                let by = Actor::Thread(truth.medium);
                let nested = wait.shares.iter().find(|share| share.state == HolderState::Preempted { by });
                let nested = nested.expect("the medium thread is the nested cause");
                assert_eq!((nested.holder, nested.depth), (Some(truth.owner), 0), "{wait:?}");
                measured.push(Measured::exact("B of the waiter", job.blocking, after - before));
                measured.push(Measured {
                    what: "the medium thread's share",
                    trace: nested.ns,
                    truth: end - start,
                });
            }
            measured
        },
    );
}

#[test]
fn blames_no_medium_thread_with_priority_inheritance() {
    perform(
        "no-inversion",
        || play(true),
        |played, truth| {
            let mut measured = Vec::new();
            for (&(before, after), &(start, _)) in truth.waits.iter().zip(&truth.runs) {
                assert!(start > after, "the medium thread runs after the wait");
                let Some(job) = played.job(truth.waiter, after) else { continue };
                let wait = job.blockings.iter().max_by_key(|wait| wait.ns()).expect("it waits for the mutex");
                assert_eq!(wait.owners, [truth.owner], "{wait:?}");
                let medium =
                    |doing: HolderState| doing == HolderState::Preempted { by: Actor::Thread(truth.medium) };
                assert!(!wait.shares.iter().any(|share| medium(share.state)), "{wait:?}");
                measured.push(Measured::exact("B of the waiter", job.blocking, after - before));
            }
            measured
        },
    );
}
