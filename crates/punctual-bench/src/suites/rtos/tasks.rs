//! Tasks: creating a job of a lower and of a higher level, switching to the next job, and
//! resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LOOP, row};
use crate::recorder::Recorder;
use crate::session::{Measured, Session, Step};
use crate::subject::Subject;
use crate::{Stop, clock, published};

/// The operation to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    CreateLower,
    CreateHigher,
    Switch,
    LockAndUnlock,
    LockLoop,
    HandOver,
    Release,
}

/// The tasks' output, which the step reads afterwards.
#[derive(Debug)]
struct Out {
    first: Arc<Recorder>,
    second: Arc<Recorder>,
    /// An instant passed from one task to another.
    mark: AtomicU64,
    stop: Stop,
}

impl Out {
    fn is_done(&self) -> bool {
        self.first.is_full() || self.stop.is_requested()
    }
}

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("task creation, lower level", |session| {
            let row =
                row("create-lower", "Creation at a lower level, until the call returns", Subject::Punctual);
            let row = row.published(published::rtos("Thread Creation (L)"));
            if let Some((first, _)) = measure(session, Operation::CreateLower) {
                session.add(row, &first);
            }
        }),
        Step::new("task creation, higher level", |session| {
            let row = row("create-higher", "Creation at a higher level, until it runs", Subject::Punctual);
            let row = row.published(published::rtos("Thread Creation (H)"));
            if let Some((first, _)) = measure(session, Operation::CreateHigher) {
                session.add(row, &first);
            }
        }),
        Step::new("task switch", |session| {
            let row = row("switch", "Switch at one level", Subject::Punctual);
            if let Some((first, _)) = measure(session, Operation::Switch) {
                session.add(row.published(published::rtos("Thread Switch")), &first);
            }
        }),
        Step::new("resource, lock and unlock", |session| {
            let statics = "resources are statics: nothing is created or destroyed while the program runs";
            session.add_unmeasured(row("mutex-create", "Mutex create", Subject::Punctual), statics);
            session.add_unmeasured(row("mutex-destroy", "Mutex destroy", Subject::Punctual), statics);
            if let Some((lock, unlock)) = measure(session, Operation::LockAndUnlock) {
                let row_ = row("lock", "Mutex lock, uncontended", Subject::Punctual);
                session.add(row_.published(published::rtos("Mutex Lock (NC)")), &lock);
                let row_ = row("unlock", "Mutex unlock, uncontended", Subject::Punctual);
                session.add(row_.published(published::rtos("Mutex Unlock")), &unlock);
            }
            let row_ = row("lock-loop", "Mutex lock + unlock, in a loop", Subject::Punctual).per_sample(LOOP);
            if let Some((first, _)) = measure(session, Operation::LockLoop) {
                session.add(row_, &first);
            }
        }),
        Step::new("resource, contended", |session| {
            session.add_unmeasured(
                row("lock-contended", "Mutex lock, contended: the whole wait", Subject::Punctual),
                "a task starts only when all its resources are free, so it never waits in `lock`",
            );
            let row = row(
                "hand-over",
                "Mutex, contended: from the end of the critical section to who waited",
                Subject::Punctual,
            );
            if let Some((first, _)) = measure(session, Operation::HandOver) {
                session.add(row, &first);
            }
        }),
    ]
}

/// Returns the times of locking and of unlocking a resource that a higher task also uses.
pub(in crate::suites) fn lock_and_unlock(session: &mut Session<'_>) -> Option<(Measured, Measured)> {
    measure(session, Operation::LockAndUnlock)
}

/// Returns the time of unlocking a resource that a lower task, released meanwhile, also uses.
pub(in crate::suites) fn release(session: &mut Session<'_>) -> Option<Measured> {
    measure(session, Operation::Release).map(|(first, _)| first)
}

/// Runs the app; on failure, adds a note to the suite.
fn measure(session: &mut Session<'_>, operation: Operation) -> Option<(Measured, Measured)> {
    let samples = session.samples();
    let out = Arc::new(Out {
        first: Arc::new(Recorder::new(samples)),
        second: Arc::new(Recorder::new(samples)),
        mark: AtomicU64::new(0),
        stop: session.stop.clone(),
    });
    let config = punctual::Config::new().cpu(session.plan.cpu);
    match app::run(config, operation, out.clone()) {
        Ok(report) => {
            let lack = crate::subject::refused_settings(&report);
            let measured = |recorder: &Arc<Recorder>| Measured::ticks(recorder.clone(), lack.clone());
            Some((measured(&out.first), measured(&out.second)))
        }
        Err(error) => {
            session.note(format!("Tasks were not measured: {error}"));
            None
        }
    }
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use std::hint::black_box;

    use super::*;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        counter: u64,
        out: Arc<Out>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, operation: Operation, out: Arc<Out>) -> (Shared, Local) {
        driver::spawn(operation).expect("it is spawned once");
        (Shared { counter: 0, out }, Local {})
    }

    #[task(priority = 2, capacity = 2, shared = [counter, &out])]
    fn driver(mut cx: driver::Context, operation: Operation) {
        let out = cx.shared.out;
        match operation {
            Operation::CreateLower => {
                let from = clock::now();
                let spawned = lower::spawn(operation);
                let to = clock::now();
                spawned.expect("the one before has run");
                out.first.push(to - from);
                return;
            }
            Operation::Release => {
                let leaving = cx.shared.counter.lock(|_| {
                    lower::spawn(operation).expect("the one before has run");
                    clock::now()
                });
                out.first.push(clock::now() - leaving);
                return;
            }
            Operation::Switch => return link::spawn().expect("it fits"),
            Operation::CreateHigher => {
                while !out.is_done() {
                    higher::spawn(clock::now()).expect("it runs at once");
                }
            }
            Operation::LockAndUnlock => {
                while !out.is_done() {
                    let from = clock::now();
                    let (locked, leaving) = cx.shared.counter.lock(|counter| {
                        let locked = clock::now();
                        *counter = black_box(*counter + 1);
                        (locked, clock::now())
                    });
                    let to = clock::now();
                    out.first.push(locked - from);
                    out.second.push(to - leaving);
                }
            }
            Operation::LockLoop => {
                while !out.is_done() {
                    let from = clock::now();
                    for _ in 0..LOOP {
                        cx.shared.counter.lock(|counter| *counter = black_box(*counter + 1));
                    }
                    out.first.push(clock::now() - from);
                }
            }
            Operation::HandOver => {
                while !out.is_done() {
                    let spawned = cx.shared.counter.lock(|_| {
                        let spawned = waits::spawn();
                        // Relaxed: the two tasks run on one thread or are ordered by the level.
                        out.mark.store(clock::now(), Ordering::Relaxed);
                        spawned
                    });
                    if spawned.is_err() {
                        // Without real-time scheduling the previous job may not have run yet.
                        std::thread::yield_now();
                    }
                }
            }
        }
        punctual::shutdown();
    }

    /// Created at a lower level; triggers the creation of the next one.
    #[task(priority = 1, capacity = 2, shared = [counter, &out])]
    fn lower(mut cx: lower::Context, operation: Operation) {
        cx.shared.counter.lock(|counter| *counter += 1);
        if cx.shared.out.is_done() {
            punctual::shutdown();
        } else {
            driver::spawn(operation).expect("it runs at once");
        }
    }

    #[task(priority = 3, shared = [&out])]
    fn higher(cx: higher::Context, from: u64) {
        cx.shared.out.first.push(clock::now() - from);
    }

    /// A link of a chain: the ending job makes room for the next.
    #[task(priority = 2, capacity = 4, shared = [&out])]
    fn link(cx: link::Context) {
        let to = clock::now();
        let out = cx.shared.out;
        // Relaxed: jobs of one level are ordered.
        match out.mark.load(Ordering::Relaxed) {
            0 => {}
            from => drop(out.first.push(to - from)),
        }
        if out.is_done() {
            return punctual::shutdown();
        }
        link::spawn().expect("one waits at a time");
        out.mark.store(clock::now(), Ordering::Relaxed);
    }

    /// Needs the resource that the driver holds, and starts when it is free.
    #[task(priority = 3, capacity = 2, shared = [counter, &out])]
    fn waits(mut cx: waits::Context) {
        let to = clock::now();
        let from = cx.shared.out.mark.load(Ordering::Relaxed);
        cx.shared.counter.lock(|counter| *counter += 1);
        cx.shared.out.first.push(to - from);
    }
}
