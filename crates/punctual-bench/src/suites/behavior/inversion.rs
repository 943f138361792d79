//! Priority inversion between threads, for each kind of mutex.
//!
//! Thread 1 holds the mutex and creates thread 2, which creates thread 3, which locks the mutex.
//! Without a protocol, thread 2 continues and ends before thread 3, although its priority is lower
//! and it does not use the mutex.

use super::log::{Log, Seen};
use super::threads::with_thread;
use super::{NO_INVERSION, runs};
use crate::contend::{self, Lock};
use crate::model::{Check, Verdict};
use crate::peers::{Attributes, Mutex, Protocol, Thread};
use crate::rt;
use crate::session::{Session, Step};
use crate::subject::Subject;

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("priority inversion, punctual-sync", |session| {
            let seen = play(session, contend::pcp);
            NO_INVERSION.check_of(session, Subject::Sync, &seen);
        }),
        Step::new("priority inversion, POSIX with inheritance", |session| {
            let seen = play(session, contend::posix);
            let check = NO_INVERSION.check(session, "POSIX mutex with inheritance", "posix", &seen, false);
            session.check(check);
        }),
        Step::new("priority inversion, plain POSIX", |session| {
            let seen = play(session, || Mutex::new(Protocol::None));
            let check = NO_INVERSION.check(session, "plain POSIX mutex", "posix-plain", &seen, false);
            session.check(check);
            for (system, slug, seen) in PUBLISHED {
                session.check(Check {
                    id: format!("behavior/{}/published-{slug}", NO_INVERSION.slug),
                    rule: NO_INVERSION.text.into(),
                    subject: format!("published: {system}"),
                    verdict: Verdict::Observed,
                    expected: NO_INVERSION.expected.into(),
                    observed: format!("{seen} in all of 4096 runs"),
                    why: Vec::new(),
                });
            }
            session.note(
                "Published: Cunningham 2022, section III.B. The same number of runs here: --samples 4096.",
            );
        }),
    ]
}

/// The published results, with their systems.
const PUBLISHED: [(&str, &str, &str); 2] =
    [("Raspbian, mutexes", "raspbian", "2-1-3"), ("Jobbed, mutexes", "jobbed", "3-2-1")];

fn play<L: Lock>(session: &Session<'_>, make: impl Fn() -> L) -> Seen {
    let (cpu, fifo) = (session.plan.cpu, session.no_fifo.is_none());
    let mut seen = Seen::default();
    for _ in 0..runs(session) {
        let (log, lock) = (Log::default(), make());
        // The highest thread has the ceiling priority; the others are below it.
        let priority = |number: i32| contend::CEILING as i32 - 3 + number;
        let three = || {
            let member = lock.join(contend::CEILING);
            lock.with(&member, || ());
            log.event("3 ends");
        };
        let highest = Attributes::new(cpu, priority(3), fifo);
        let two = || with_thread(&log, &highest, &three, || log.event("2 ends"));
        rt::on_thread(cpu, priority(1), |_| {
            let member = lock.join(contend::CEILING - 2);
            let attributes = Attributes::new(cpu, priority(2), fifo);
            // SAFETY: the thread is dropped at the end of this closure, and nothing in between
            // panics.
            let second = lock.with(&member, || unsafe { Thread::create(&attributes, &two) });
            let second = second.inspect_err(|error| log.refuse(error));
            log.event("1 ends");
            drop(second);
        });
        seen.add_run(&log, Log::completion);
    }
    seen
}
