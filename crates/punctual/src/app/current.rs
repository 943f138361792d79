//! Which app, and which of its threads, the calling code runs on; and what a task can ask of its app.

use std::cell::Cell;

use punctual_core::{CurrentWorker, Duration, Instant, IntoDuration, Port};

use crate::app::cause::Cause;
use crate::app::fault;
use crate::app::partition::Part;
use crate::app::runtime::{self, Runtime};
use crate::app::spawn_gate::Visit;
use crate::app::virtual_time;
use crate::lock::Membership;
use crate::port::linux;

thread_local! {
    static CURRENT: Cell<Option<(&'static Part, CurrentWorker)>> = const { Cell::new(None) };
}

/// Makes the calling thread a thread of `part` until dropped.
#[derive(Debug)]
pub(crate) struct Member {
    _membership: Option<Membership>,
    /// What the thread was before: an app may run another.
    before: Option<(&'static Part, CurrentWorker)>,
}

impl Member {
    pub(crate) fn join(part: &'static Part, worker: CurrentWorker) -> Self {
        let before = CURRENT.replace(Some((part, worker)));
        let ceilings = part.runtime.ceilings.filter(|_| !part.partition.port().is_virtual());
        Self { _membership: ceilings.map(|ceilings| Membership::join(ceilings, &worker)), before }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Of which part, and which of its workers, the calling thread is, if it is one of an app.
#[inline]
pub(crate) fn get() -> Option<(&'static Part, CurrentWorker)> {
    CURRENT.get()
}

/// The worker that the calling thread is in `part`, if it is one of its threads.
#[inline]
pub(crate) fn worker_of(part: &'static Part) -> Option<CurrentWorker> {
    CURRENT.get().filter(|(p, _)| std::ptr::eq(*p, part)).map(|(_, worker)| worker)
}

/// The right to release something in an app that is not stopping, while this lives.
pub(crate) enum Entry<'a> {
    /// The run waits for its own threads.
    Member,
    /// Of other threads it waits for those that are in the middle of this.
    Visitor { _visit: Visit<'a> },
}

/// Lets the calling thread release something in `runtime`; `None` if that is not running, or stopping.
#[inline]
pub(crate) fn enter(runtime: &'static Runtime) -> Option<Entry<'static>> {
    let entry = match is_of(runtime) {
        true => Entry::Member,
        false => Entry::Visitor { _visit: runtime.enter_from_outside()? },
    };
    (!runtime.is_stopping()).then_some(entry)
}

/// Whether the calling thread is one of `runtime`'s.
#[inline]
pub(crate) fn is_of(runtime: &'static Runtime) -> bool {
    CURRENT.get().is_some_and(|(part, _)| std::ptr::eq(part.runtime, runtime))
}

/// The time now: `CLOCK_MONOTONIC` on Linux, virtual time in an app that runs in it.
///
/// Real-time safety: does not allocate or block; enters the kernel only where the machine's clock source
/// cannot be read from user space.
#[inline]
pub fn now() -> Instant {
    match CURRENT.get() {
        Some((part, _)) => part.partition.port().now(),
        None => linux::clock::now(),
    }
}

/// Stops the app of the calling thread (on any other thread: every app of this process).
///
/// Nothing more is released; jobs already released are finished, the `#[shutdown]` hook runs, every thread is joined, and
/// the app's `run` returns. What a thread of the app spawns meanwhile counts among the jobs that were not run: see
/// [`SpawnError`](crate::SpawnError).
///
/// Real-time safety: enters the kernel to wake the threads; from a thread of no app it takes a lock.
pub fn shutdown() {
    match CURRENT.get() {
        Some((part, _)) => part.runtime.stop(&Cause::Shutdown),
        None => runtime::each_running(|runtime| runtime.stop(&Cause::Shutdown)),
    }
}

/// Consumes execution time: virtual time passes, but not in `init`, or this thread's CPU time is burnt.
///
/// In virtual time, jobs of higher levels released meanwhile preempt the calling job and their execution
/// time is not counted, as on a CPU. What would take longer than virtual time lasts, until 2⁶⁴ − 2 ns, takes until then.
/// For models of a load, tests and demonstrations.
pub fn spend(duration: impl IntoDuration) {
    let duration = duration.into_duration();
    match CURRENT.get() {
        Some((part, worker)) if part.partition.port().is_virtual() => {
            virtual_time::spend(part, worker, duration);
        }
        Some((part, _)) if !part.partition.port().may_sleep() => {
            let now = || part.partition.port().now().as_ticks();
            let end = now().saturating_add(duration.as_ticks());
            while now() < end {
                std::hint::spin_loop();
            }
        }
        _ => {
            let end = linux::clock::thread_cpu_time().saturating_add(duration.as_ticks());
            while linux::clock::thread_cpu_time() < end {
                std::hint::spin_loop();
            }
        }
    }
}

/// Waits in `idle` until something may have happened; does not return once the app is stopping.
///
/// The counterpart of `wfi` on a microcontroller: for the loop of an `idle` that never returns. Returns after 10 ms
/// at the latest, since jobs may have run, on other threads, in the meantime. In virtual time it moves the clock to the
/// next event, in whichever partition. When the app stops it leaves `idle` by unwinding, running destructors on the way,
/// and without a panic message.
///
/// # Panics
/// If called anywhere but in `idle`.
pub fn wait_for_event() {
    let idles = |&(part, worker): &(&'static Part, CurrentWorker)| {
        // The thread of `init` is the same one.
        let initialised = match part.partition.port().is_virtual() {
            true => part.runtime.turns.is_open(),
            false => part.runtime.has_started(),
        };
        worker.base() == 0 && worker.running() == 0 && initialised
    };
    let current = CURRENT.get().filter(idles);
    let (part, worker) = current.expect("wait_for_event is for idle only");
    if part.partition.port().is_virtual() {
        virtual_time::wait_for_event(part, worker);
    } else if !part.partition.is_stopping() {
        // Jobs preempt idle by themselves; the tick only lets loops that poll something see it.
        let tick = part.partition.port().now() + Duration::from_millis(10);
        part.partition.port().wait(&worker, Some(tick));
    }
    if part.partition.is_stopping() {
        fault::leave_idle();
    }
}
