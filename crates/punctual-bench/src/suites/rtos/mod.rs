//! The benchmark of real-time operating systems by Zhang and Timmerman, as run by Cunningham:
//! creating and switching threads, mutexes, semaphores.
//!
//! Each operation is measured for Punctual and for the corresponding POSIX object, all on one CPU.
//! Tasks are not created while a program runs; their rows explain the corresponding operation.

pub(in crate::suites) mod locks;
mod semaphores;
pub(in crate::suites) mod tasks;
mod threads;

use std::sync::Arc;

use crate::clock;
use crate::model::Row;
use crate::options::{Plan, SuiteName};
use crate::published;
use crate::recorder::Recorder;
use crate::rt;
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::suites::Registration;

/// The number of operations in a sample that is measured in a loop.
const LOOP: u32 = 64;

/// Name of the suite.
pub const NAME: SuiteName = SuiteName("rtos");

pub(super) const SUITE: Registration = Registration {
    name: NAME,
    title: "Operations of a real-time operating system",
    summary: "cost of creating, switching, locking and signaling",
    is_usual: true,
    has_references: true,
    steps,
};

fn steps(_: &Plan) -> Vec<Step> {
    let mut steps = vec![Step::new("tracing", tracing)];
    steps.extend(threads::steps());
    steps.extend(tasks::steps());
    steps.extend(locks::steps());
    steps.extend(semaphores::steps());
    steps
}

fn row(slug: &str, operation: &str, subject: Subject) -> Row {
    Row::new(NAME, slug, operation, subject)
}

/// The cost of recording the time.
fn tracing(session: &mut Session<'_>) {
    let recorder = Arc::new(Recorder::new(session.samples()));
    let traces = Recorder::new(session.samples());
    let lack = rt::on_thread(session.plan.cpu, rt::PRIORITY, |lack| {
        loop {
            let from = clock::now();
            traces.push(from);
            let to = clock::now();
            if !recorder.push(to - from) {
                return lack.clone();
            }
        }
    });
    let row = Row {
        subject: "this clock".into(),
        ..row("tracing", "Tracing: reading the clock and writing it down", Subject::Punctual)
    };
    let row = Row { id: "rtos/tracing".into(), ..row.published(published::rtos("Tracing")) };
    session.add(row, &Measured::ticks(recorder, lack));
}
