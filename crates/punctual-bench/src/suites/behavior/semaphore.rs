//! A semaphore blocks only when its count is zero: Cunningham's sequence of P and V.

use std::time::{Duration, Instant};

use punctual::sync::shared::Semaphore;

use super::log::{Log, Seen};
use super::{BLOCKS_AT_ZERO, runs};
use crate::contend;
use crate::peers;
use crate::rt;
use crate::session::{Session, Step};
use crate::subject::Subject;

pub(super) fn steps() -> Vec<Step> {
    vec![Step::new("semaphore at zero, punctual-sync", |session| {
        let mut seen = Seen::default();
        for _ in 0..runs(session) {
            seen.add(play(session));
        }
        BLOCKS_AT_ZERO.check_of(session, Subject::Sync, &seen);
    })]
}

/// One thread does P, the other V; they synchronize through `go` and `done`, so that there is one
/// order, even without real-time scheduling.
fn play(session: &Session<'_>) -> String {
    let (log, semaphore) = (Log::default(), Semaphore::<16>::new(0));
    let (go, done) = (peers::Semaphore::new(0), peers::Semaphore::new(0));
    let cpu = session.plan.cpu;
    let waits = || {
        rt::enter(cpu, contend::CEILING.into());
        for phase in [1, 4] {
            go.acquire();
            for _ in 0..phase {
                semaphore.acquire(1).expect("nobody else waits");
                log.event("P done");
            }
            done.signal();
        }
    };
    let signals = || {
        rt::enter(cpu, contend::LOW.into());
        let blocked = |rounds_before: usize| {
            // The thread has blocked if it waits and the log has no further entry, and has not if
            // it has logged more. On a busy machine this takes time.
            let deadline = Instant::now() + Duration::from_secs(30);
            let got = || log.order().matches("P done").count();
            while semaphore.waiting() == 0 && got() <= rounds_before && Instant::now() < deadline {
                std::thread::yield_now();
            }
            log.event(if semaphore.waiting() == 1 && got() == rounds_before {
                "P blocks"
            } else {
                "P does not block"
            });
        };
        let v = || {
            log.event("V");
            semaphore.signal(1).expect("there are few units");
        };
        go.signal();
        blocked(0);
        v();
        done.acquire();
        for _ in 0..3 {
            v();
        }
        go.signal();
        blocked(4);
        v();
        done.acquire();
    };
    std::thread::scope(|scope| {
        let waits = rt::spawn(scope, waits);
        let signals = rt::spawn(scope, signals);
        rt::join(signals);
        rt::join(waits);
    });
    log.order()
}
