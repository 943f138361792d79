//! Locking (section 6.2.2 and listing 2 of Balciunas): an uncontended lock, and the release of one
//! for which a lower thread or task waits.

use super::row;
use crate::contend::{self, Lock};
use crate::published::{self, Rtic};
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::suites::rtos::{locks, tasks};

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("lock and unlock, resource", |session| {
            if let Some((lock, unlock)) = tasks::lock_and_unlock(session) {
                add_uncontended(session, Subject::Punctual, &lock, &unlock);
            }
        }),
        Step::new("lock and unlock, punctual-sync", |session| {
            uncontended(session, Subject::Sync, &contend::pcp())
        }),
        Step::new("lock and unlock, POSIX", |session| {
            uncontended(session, Subject::Posix, &contend::posix())
        }),
        Step::new("lock and unlock, pcp-mutex", |session| {
            uncontended(session, Subject::PcpMutex, &contend::predecessor());
        }),
        Step::new("release, resource", |session| {
            let row = release_row(Subject::Punctual).published(published::rtic(Rtic::ContendedUnlock));
            if let Some(measured) = tasks::release(session) {
                session.add(row, &measured);
            }
        }),
        Step::new("release, punctual-sync", |session| release(session, Subject::Sync, &contend::pcp())),
        Step::new("release, POSIX", |session| release(session, Subject::Posix, &contend::posix())),
    ]
}

fn uncontended(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let (lock, unlock) = locks::lock_and_unlock(session, lock);
    add_uncontended(session, subject, &lock, &unlock);
}

fn add_uncontended(session: &mut Session<'_>, subject: Subject, lock: &Measured, unlock: &Measured) {
    let locked = row("lock", "Lock, uncontended", subject).published(published::rtic(Rtic::Lock));
    session.add(locked, lock);
    let unlocked = row("unlock", "Unlock, uncontended", subject).published(published::rtic(Rtic::Unlock));
    session.add(unlocked, unlock);
}

fn release_row(subject: Subject) -> crate::model::Row {
    row("release", "Unlock, a lower one waits: until the call returns", subject)
}

fn release(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let (recorder, lack) = contend::release(lock, session.plan.cpu, session.samples(), session.stop);
    session.add(release_row(subject), &Measured::ticks(recorder, lack));
}
