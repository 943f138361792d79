//! Running a job that is marked, profiled, shown to a supervisor or guarded.

use punctual_core::{Arguments, CurrentWorker, Duration, Instant, Port, Stamp};

use crate::cells::Slot;
use crate::observe::guard;
use crate::observe::profile::{self, ProfiledJob};
use crate::port::Suspensions;
use crate::task::body::{Release, released};
use crate::task::job::{JobObserver, measured};
use crate::task::monitor::Monitor;

/// Runs one job of any task with its observers. The cost of the marks is not included in this job's
/// measurements: the clock is read after the first mark and before the second, and again for the
/// next job.
///
/// # Safety
/// As for [`Body::call`](crate::task::body::Body::call) of the task with this monitor.
pub(crate) unsafe fn execute(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
) -> Stamp {
    let (cells, partition) = (&monitor.cells, (monitor.declared.partition)());
    let port = partition.core.port();
    cells.mark.start(released(partition.runtime, release, || port.stamp()).as_ticks());
    let begun = cells.beat.get().map(|beat| {
        let start = port.stamp();
        (start, beat.begin(me.thread(), start, partition.executed(), port.may_sleep()))
    });
    let start = begun.as_ref().map(|(start, _)| *start);
    guard::job(&cells.guard, partition.runtime, cells.guard_stop, || {
        let observed = Observed { slot: &cells.profile, profiled: None };
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        unsafe { measured(monitor, me, args, release, start, observed) };
    });
    if let Some((_, begun)) = begun {
        begun.end(partition.executed());
    }
    cells.mark.end();
    None
}

/// A job with observers.
struct Observed<'a> {
    slot: &'a Slot,
    profiled: Option<ProfiledJob>,
}

impl JobObserver for Observed<'_> {
    const IS_ON: bool = true;

    fn begin(&mut self, release: Instant) {
        self.profiled = profile::begin(self.slot, release);
    }

    fn call(&mut self, f: impl FnOnce()) {
        guard::users_code(f);
    }

    fn stop(&mut self) {
        if let Some(profiled) = &mut self.profiled {
            profiled.stop();
        }
    }

    unsafe fn end(self, deadline: Option<Duration>, suspensions: Suspensions, end: Instant) {
        if let Some(profiled) = self.profiled {
            // SAFETY: by this function's contract this thread occupies the task's level.
            unsafe { profiled.record(deadline, suspensions.count, end) };
        }
    }
}
