//! Other events recorded while a job was open: its system calls, and events unknown to the
//! analysis.

use punctual_report::format::format_part;
use punctual_report::svg::Mark;

use crate::event::Kind;
use crate::explain;
use crate::jobs::Actor;
use crate::names::Names;
use crate::stats::CapturedJob;

/// Maximum number of marks drawn of each kind.
const MAX_MARKS: usize = 500;

/// An event in addition to the phases of a job.
pub(super) struct Beside {
    pub(super) class: &'static str,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) mark: Mark,
}

/// Returns the system calls of the job's thread and the unknown events of any thread, with their
/// names.
pub(super) fn beside(captured: &CapturedJob, names: &Names) -> Vec<Beside> {
    let calls = explain::calls(captured).into_iter().take(MAX_MARKS).map(|call| {
        let title = format!("{}: {}", call.name(names), format_part(call.ns));
        Beside { class: "call", start: call.start, end: call.start + call.ns, mark: Mark::titled(title) }
    });
    let others = captured.events.iter().filter_map(|event| {
        let Kind::Other { event: id } = event.kind else { return None };
        let by = names.of(Actor::Thread(event.by));
        let title = format!("{} on CPU {}, of {by}", names.of_event(id), event.cpu);
        Some(Beside { class: "event", start: event.time, end: event.time, mark: Mark::titled(title) })
    });
    calls.chain(others.take(MAX_MARKS)).collect()
}
