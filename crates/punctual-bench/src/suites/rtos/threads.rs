//! POSIX threads: creating one of a lower and of a higher priority, and switching between two of
//! one priority.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use super::row;
use super::semaphores::{Waiter, wake_waiting};
use crate::model::Row;
use crate::peers::{Attributes, Thread};
use crate::recorder::Recorder;
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::{clock, published, rt};

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("thread creation, lower priority", |session| {
            let row =
                row("create-lower", "Creation at a lower level, until the call returns", Subject::Posix);
            create(session, row.clone().published(published::rtos("Thread Creation (L)")), -1);
            let measured = wake_waiting(session, Waiter::Lower);
            session.add(waiting(row), &measured);
        }),
        Step::new("thread creation, higher priority", |session| {
            let row = row("create-higher", "Creation at a higher level, until it runs", Subject::Posix);
            create(session, row.clone().published(published::rtos("Thread Creation (H)")), 1);
            let measured = wake_waiting(session, Waiter::Higher);
            session.add(waiting(row), &measured);
        }),
        Step::new("thread switch", switch),
    ]
}

/// Returns the row of an existing thread that is woken, for comparison with a created one.
fn waiting(row: Row) -> Row {
    Row { id: format!("{}-waiting", row.id), subject: "POSIX, one that waits".into(), ..row }
}

/// Creates threads of a priority `above` that of the creator, which is one more or one less.
fn create(session: &mut Session<'_>, row: Row, above: i32) {
    let recorder = Arc::new(Recorder::new(session.samples()));
    let (cpu, stop) = (session.plan.cpu, session.stop);
    let attributes = Attributes::new(cpu, rt::PRIORITY + above, session.no_fifo.is_none());
    let lack = rt::on_thread(cpu, rt::PRIORITY, |lack| {
        let mut lack = lack.clone();
        let began = AtomicU64::new(0);
        let body = || began.store(clock::now(), Ordering::Relaxed);
        while !stop.is_requested() {
            let from = clock::now();
            // SAFETY: the thread is dropped below, within this iteration.
            let thread = unsafe { Thread::create(&attributes, &body) };
            let returned = clock::now();
            let thread = match thread {
                Ok(thread) => thread,
                Err(error) => {
                    lack.push(format!("a thread was not started: {error}"));
                    break;
                }
            };
            // Joined before its instant is read.
            drop(thread);
            let to = if above > 0 { began.load(Ordering::Relaxed) } else { returned };
            if !recorder.push(to.saturating_sub(from)) {
                break;
            }
        }
        lack
    });
    session.add(row, &Measured::ticks(recorder, lack));
}

/// Two threads of one priority on one CPU switch by `sched_yield`.
fn switch(session: &mut Session<'_>) {
    let recorder = Arc::new(Recorder::new(session.samples()));
    let (cpu, stop) = (session.plan.cpu, session.stop);
    let row = row("switch", "Switch at one level", Subject::Posix);
    /// The thread that yielded last, in the lowest bit, and the time.
    const WHO: u64 = 1;
    let left = AtomicU64::new(0);
    let ready = Barrier::new(2);
    let play = |me: u64| {
        let lack = rt::enter(cpu, rt::PRIORITY);
        ready.wait();
        // A yield that returns to the same thread is not a switch; many of those mean that the
        // other thread is gone.
        let mut alone = 0;
        while !recorder.is_full() && !stop.is_requested() && alone < 100_000 {
            // Relaxed: the kernel's switch orders the two threads on one CPU.
            left.store(clock::now() & !WHO | me, Ordering::Relaxed);
            std::thread::yield_now();
            let to = clock::now();
            let from = left.load(Ordering::Relaxed);
            if from & WHO == me {
                alone += 1;
            } else {
                alone = 0;
                recorder.push(to.saturating_sub(from));
            }
        }
        lack
    };
    let lack = std::thread::scope(|scope| {
        let threads = [rt::spawn(scope, || play(0)), rt::spawn(scope, || play(1))];
        threads.map(rt::join).concat()
    });
    session.add(row.published(published::rtos("Thread Switch")), &Measured::ticks(recorder, lack));
}
