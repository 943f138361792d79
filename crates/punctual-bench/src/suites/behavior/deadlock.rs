//! Deadlock between threads: two mutexes, locked in opposite orders.
//!
//! Thread 1 locks the first mutex and creates thread 2, which locks the second and then waits for
//! the first; thread 1 then locks the second. With plain mutexes this is a deadlock, so thread 1
//! has a time limit there.

use std::sync::Barrier;
use std::time::Duration;

use super::log::{Log, Seen};
use super::{NO_DEADLOCK, runs};
use crate::contend::{self, Lock};
use crate::peers::{Mutex, Protocol, TimedOut};
use crate::rt;
use crate::session::{Session, Step};
use crate::subject::Subject;

/// The time after which a wait counts as a deadlock.
const DEADLOCK_TIMEOUT: Duration = Duration::from_millis(50);

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("deadlock, punctual-sync", |session| {
            let seen = with_ceilings(session);
            NO_DEADLOCK.check_of(session, Subject::Sync, &seen);
        }),
        Step::new("deadlock, plain POSIX", |session| {
            let seen = with_plain_mutexes(session);
            let check = NO_DEADLOCK.check(session, "plain POSIX mutexes", "posix-plain", &seen, false);
            session.check(check);
        }),
    ]
}

/// Uses one CPU and a higher thread that is woken inside the critical section and preempts it.
fn with_ceilings(session: &Session<'_>) -> Seen {
    let cpu = session.plan.cpu;
    let mut seen = Seen::default();
    for _ in 0..runs(session) {
        let (log, first, second) = (Log::default(), contend::pcp(), contend::pcp());
        let (begin, ready) = (crate::peers::Semaphore::new(0), Barrier::new(2));
        std::thread::scope(|scope| {
            let two = rt::spawn(scope, || {
                rt::enter(cpu, contend::CEILING.into());
                let member = first.join(contend::CEILING);
                ready.wait();
                begin.acquire();
                second.with(&member, || first.with(&member, || ()));
                log.event("2 ends");
            });
            let one = rt::spawn(scope, || {
                rt::enter(cpu, contend::LOW.into());
                let member = first.join(contend::LOW);
                ready.wait();
                first.with(&member, || {
                    begin.signal();
                    second.with(&member, || ());
                });
                log.event("1 ends");
            });
            rt::join(one);
            rt::join(two);
        });
        seen.add(match log.completion().split('-').count() {
            2 => NO_DEADLOCK.expected.into(),
            _ => log.order(),
        });
    }
    seen
}

/// A barrier ensures that each thread holds one mutex before it locks the other, for any
/// scheduling.
fn with_plain_mutexes(session: &Session<'_>) -> Seen {
    let cpu = session.plan.cpu;
    let mut seen = Seen::default();
    // Few runs, because each takes time.
    for _ in 0..runs(session).min(4) {
        let (first, second) = (Mutex::new(Protocol::None), Mutex::new(Protocol::None));
        let both_hold = Barrier::new(2);
        let outcome = std::thread::scope(|scope| {
            let two = rt::spawn(scope, || {
                rt::enter(cpu, contend::CEILING.into());
                second.with(|| {
                    both_hold.wait();
                    first.with(|| ());
                });
            });
            let one = rt::spawn(scope, || {
                rt::enter(cpu, contend::LOW.into());
                first.with(|| {
                    both_hold.wait();
                    second.with_timeout(DEADLOCK_TIMEOUT, || ())
                })
            });
            let outcome = rt::join(one);
            rt::join(two);
            outcome
        });
        seen.add(match outcome {
            Ok(()) => NO_DEADLOCK.expected.into(),
            Err(TimedOut) => format!("a deadlock, given up after {} ms", DEADLOCK_TIMEOUT.as_millis()),
        });
    }
    seen
}
