//! Declares an app to Linux, on a board that shares memory with it: see [`punctual_core::remote`].

use core::sync::atomic::Ordering;

use punctual_core::remote::ROWS;

use crate::cells::{Shared, area, make_ring};
use crate::report::Report;
use crate::state::runtime::Runtime;

/// Declares the tasks of `runtime` to Linux, and has their jobs counted in the rows.
///
/// # Safety
/// No job can run, and none can be spawned.
pub(super) unsafe fn begin(runtime: &'static Runtime) {
    let Some((area, uninterrupted)) = area() else { return };
    make_ring(area, uninterrupted);
    area.declare(runtime.name, runtime.home.name);
    let mut rows = area.all_rows.iter().enumerate();
    for task in runtime.tasks {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        let (Some(info), Some(report)) = (task.info(), unsafe { task.end() }.0) else { continue };
        let Some((index, row)) = rows.next() else { break };
        let nanos = |duration: Option<punctual_core::Duration>| duration.map(|duration| duration.as_ticks());
        row.declare(info.name, info.level, report.measured, nanos(report.period), nanos(report.deadline));
        // SAFETY: as above.
        unsafe { info.cells.count_in(Shared { area, row, index: index as u16, uninterrupted }) };
    }
    area.publish(ROWS - rows.len());
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
