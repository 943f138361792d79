//! Mutexes: creating, destroying, locking and unlocking them, uncontended and contended.

use std::hint::black_box;
use std::sync::Arc;

use super::{LOOP, row};
use crate::contend::{self, Lock};
use crate::peers::{Mutex, Protocol};
use crate::recorder::Recorder;
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::{clock, published, rt};

/// The reason why the predecessor's mutex is not measured under contention.
const PCP_MUTEX_SPINS: &str =
    "on one CPU its threads may spin for one that they have preempted, which never ends at SCHED_FIFO";

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("mutex create and destroy, POSIX", |session| {
            let (create, destroy) = (recorder(session), recorder(session));
            let stop = session.stop;
            let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
                Mutex::creations(|made, destroyed| {
                    create.push(made);
                    destroy.push(destroyed) && !stop.is_requested()
                });
                lack.clone()
            });
            add_creations(session, Subject::Posix, create, destroy, lack);
        }),
        Step::new("mutex create and destroy, punctual-sync", |session| {
            let group = punctual::sync::PcpGroup::new();
            creations(session, Subject::Sync, || {
                punctual::sync::PcpMutex::new(&group, contend::CEILING, 0_u64)
            });
        }),
        Step::new("mutex create and destroy, pcp-mutex", |session| {
            creations(session, Subject::PcpMutex, || pcp_mutex::PcpMutex::new(0_u64, contend::CEILING));
        }),
        Step::new("mutex lock and unlock, POSIX", |session| {
            uncontended(session, Subject::Posix, &Mutex::new(Protocol::Inherit));
        }),
        Step::new("mutex lock and unlock, punctual-sync", |session| {
            uncontended(session, Subject::Sync, &contend::pcp());
        }),
        Step::new("mutex lock and unlock, pcp-mutex", |session| {
            uncontended(session, Subject::PcpMutex, &contend::predecessor());
        }),
        Step::new("mutex contended, POSIX", |session| {
            contended(session, Subject::Posix, &Mutex::new(Protocol::Inherit));
        }),
        Step::new("mutex contended, punctual-sync", |session| {
            contended(session, Subject::Sync, &contend::pcp());
            session.add_unmeasured(contended_wait(Subject::PcpMutex), PCP_MUTEX_SPINS);
        }),
    ]
}

fn recorder(session: &Session<'_>) -> Arc<Recorder> {
    Arc::new(Recorder::new(session.samples()))
}

/// Measures creating and dropping something, without system calls or initialization by the C
/// library.
fn creations<T>(session: &mut Session<'_>, subject: Subject, make: impl Fn() -> T + Sync) {
    let (create, destroy) = (recorder(session), recorder(session));
    let stop = session.stop;
    let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
        loop {
            let from = clock::now();
            let made = black_box(make());
            let between = clock::now();
            drop(made);
            let to = clock::now();
            create.push(between - from);
            if !destroy.push(to - between) || stop.is_requested() {
                return lack.clone();
            }
        }
    });
    add_creations(session, subject, create, destroy, lack);
}

fn add_creations(
    session: &mut Session<'_>,
    subject: Subject,
    create: Arc<Recorder>,
    destroy: Arc<Recorder>,
    lack: rt::Lack,
) {
    let made = row("mutex-create", "Mutex create", subject).published(published::rtos("Mutex Create"));
    session.add(made, &Measured::ticks(create, lack.clone()));
    let destroyed =
        row("mutex-destroy", "Mutex destroy", subject).published(published::rtos("Mutex Destroy"));
    session.add(destroyed, &Measured::ticks(destroy, lack));
}

/// Locks and unlocks without contention, individually and in a loop.
fn uncontended(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let (locking, unlocking) = lock_and_unlock(session, lock);
    let locked =
        row("lock", "Mutex lock, uncontended", subject).published(published::rtos("Mutex Lock (NC)"));
    session.add(locked, &locking);
    let unlocked =
        row("unlock", "Mutex unlock, uncontended", subject).published(published::rtos("Mutex Unlock"));
    session.add(unlocked, &unlocking);

    let (looping, stop) = (recorder(session), session.stop);
    let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
        let member = lock.join(contend::LOW);
        let mut count = 0_u64;
        loop {
            let from = clock::now();
            for _ in 0..LOOP {
                lock.with(&member, || count = black_box(count + 1));
            }
            if !looping.push(clock::now() - from) || stop.is_requested() {
                return lack.clone();
            }
        }
    });
    let looped = row("lock-loop", "Mutex lock + unlock, in a loop", subject).per_sample(LOOP);
    session.add(looped, &Measured::ticks(looping, lack));
}

/// Returns the times of locking and of unlocking without contention.
pub(in crate::suites) fn lock_and_unlock(session: &Session<'_>, lock: &impl Lock) -> (Measured, Measured) {
    let (locking, unlocking, stop) = (recorder(session), recorder(session), session.stop);
    let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
        let member = lock.join(contend::LOW);
        let mut count = 0_u64;
        loop {
            let from = clock::now();
            let (locked, leaving) = lock.with(&member, || {
                let locked = clock::now();
                count = black_box(count + 1);
                (locked, clock::now())
            });
            let to = clock::now();
            locking.push(locked - from);
            if !unlocking.push(to - leaving) || stop.is_requested() {
                return lack.clone();
            }
        }
    });
    (Measured::ticks(locking, lack.clone()), Measured::ticks(unlocking, lack))
}

fn contended_wait(subject: Subject) -> crate::model::Row {
    row("lock-contended", "Mutex lock, contended: the whole wait", subject)
}

/// A higher thread waits for a lock that a lower one holds.
fn contended(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let waits = contend::contend(lock, session.plan.cpu, session.samples(), session.stop);
    let whole = contended_wait(subject).published(published::rtos("Mutex Lock (C)"));
    session.add(whole, &Measured::ticks(waits.whole, waits.lack.clone()));
    let operation = "Mutex, contended: from the end of the critical section to who waited";
    let hand_over = row("hand-over", operation, subject);
    session.add(hand_over, &Measured::ticks(waits.hand_over, waits.lack));
}
