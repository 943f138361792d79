//! Places of the tasks' figures, and the declaration of an app to Linux on a board that shares
//! memory with it: see [`punctual_core::remote`].

use core::sync::atomic::Ordering;

use crate::cells::{Shared, area, make_ring};
use crate::report::Report;
use crate::state::runtime::Runtime;

/// Gives every measured task of `runtime` a place for its figures: a row, declared to Linux, as
/// long as there are rows, otherwise memory of the board.
///
/// # Safety
/// No job can run, and none can be spawned.
pub(super) unsafe fn begin(runtime: &'static Runtime) {
    let area = area();
    if let Some((area, uninterrupted)) = area {
        make_ring(area, uninterrupted);
        area.declare(runtime.name, runtime.home.name);
    }
    let mut rows = 0;
    for task in runtime.tasks {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        let (Some(info), Some(report)) = (task.info(), unsafe { task.report() }) else { continue };
        let row =
            area.and_then(|(area, uninterrupted)| Some((area, area.all_rows.get(rows)?, uninterrupted)));
        let Some((area, row, uninterrupted)) = row else {
            // SAFETY: as above.
            unsafe { info.cells.count() };
            continue;
        };
        let nanos = |duration: Option<punctual_core::Duration>| duration.map(|duration| duration.as_ticks());
        row.declare(info.name, info.level, report.measured, nanos(report.period), nanos(report.deadline));
        // SAFETY: as above.
        unsafe { info.cells.count_in(Shared { area, row, index: rows as u16, uninterrupted }) };
        rows += 1;
    }
    if let Some((area, _)) = area {
        area.publish(rows);
    }
}

/// Shows when the app started, in ns.
pub(super) fn started(start: u64) {
    if let Some((area, _)) = area() {
        area.header.started.store(start, Ordering::Relaxed);
    }
}

/// Shows that the run has ended.
pub(super) fn end(report: &Report) {
    if let Some((area, _)) = area() {
        area.header.dropped.store(report.dropped_jobs, Ordering::Relaxed);
        area.header.stopping.store(1, Ordering::Relaxed);
    }
}
