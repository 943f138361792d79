//! JSON export, one object per job and line. Unknown values are `null`.

use punctual_trace::event::{Event, Section};
use punctual_trace::jobs::{
    Actor, Blocking, Bounds, Cause, DisabledSection, FutexRole, HolderState, Job, Phase, Segment, Share,
    WaitTarget,
};
use punctual_trace::names::Names;
use punctual_trace::priority::Priority;
use punctual_trace::stats::{CapturedJob, Term};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::csv::id;
use super::{VERSION, flaw_name, kind_name, release_name};
use crate::explain::{self, Call};

/// Formats a job as a JSON object on one line.
#[must_use]
pub fn json(job: &Job, names: &Names) -> String {
    text(&JobObject::new(job, names))
}

/// Formats a job with its events as a JSON object: see [`captured_job_object`].
#[must_use]
pub fn captured_job(captured: &CapturedJob, names: &Names) -> String {
    text(&captured_job_object(captured, names))
}

/// Returns a job with its events for embedding in another object: `events` lists `[time, cpu,
/// thread, what]`, `truncated` is true if the first ones are missing, and `system_calls` lists
/// `[name, start, length, returned]` of the job's thread.
pub fn captured_job_object<'a>(captured: &'a CapturedJob, names: &'a Names) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Captured<'a> {
        #[serde(flatten)]
        job: JobObject<'a>,
        truncated: bool,
        /// Name, start in ns, length in ns, and true if it returned before the job ended.
        system_calls: Vec<(String, u64, u64, bool)>,
        events: Vec<(u64, u16, u32, String)>,
    }
    let call = |call: Call| (call.name(names), call.start, call.ns, call.returned);
    let event = |event: &Event| (event.time, event.cpu, event.by, format!("{:?}", event.kind));
    Captured {
        job: JobObject::new(&captured.job, names),
        truncated: captured.truncated,
        system_calls: explain::calls(captured).into_iter().map(call).collect(),
        events: captured.events.iter().map(event).collect(),
    }
}

fn text(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("it has numbers, texts and lists of them only")
}

#[derive(Serialize)]
struct JobObject<'a> {
    version: u32,
    number: u64,
    sort: &'static str,
    id: u64,
    name: String,
    /// Task of an app, if the app marked the job.
    task: Option<u16>,
    task_name: Option<String>,
    priority: u8,
    nice: Option<i32>,
    highest_priority: u8,
    released_by: &'static str,
    /// The earliest and the latest instant.
    released_ns: Option<(u64, u64)>,
    woken_ns: Option<u64>,
    waker: Option<String>,
    start_ns: u64,
    end_ns: u64,
    started: bool,
    /// Futex that the job waited on at its end, and its presumed role.
    ended_on: Option<(String, &'static str)>,
    first_cpu: u16,
    last_cpu: u16,
    migrations: u32,
    preemptions: u32,
    flaw: Option<&'static str>,
    terms: Terms<'a>,
    suspended_ns: u64,
    /// Under SCHED_DEADLINE.
    reservation: Option<ReservationObject>,
    /// True if it certainly missed the deadline of its reservation.
    missed: Option<bool>,
    throttled_ns: u64,
    throttles: u32,
    jitter_causes: Vec<CauseObject>,
    off: Option<SectionObject>,
    nmi_ns: u64,
    interference_causes: Vec<CauseObject>,
    blockings: Vec<BlockingObject>,
    blockings_left_out: u32,
    segments: Vec<SegmentObject>,
}

impl<'a> JobObject<'a> {
    fn new(job: &'a Job, names: &Names) -> Self {
        let names = &names.at(job.end);
        let causes = |causes: &[Cause]| {
            let object =
                |cause: &Cause| CauseObject { by: names.of(cause.actor), ns: cause.ns, times: cause.times };
            causes.iter().map(object).collect()
        };
        let segment = |&Segment { start, end, cpu, phase, .. }: &Segment| SegmentObject {
            start_ns: start,
            end_ns: end,
            cpu,
            phase: phase_name(phase),
        };
        let priority = Priority::of_kernel(job.priority);
        Self {
            version: VERSION,
            number: job.number,
            sort: kind_name(job.kind),
            id: id(job.actor),
            name: names.of(job.actor),
            task: job.task,
            task_name: job.task.map(|task| names.of(Actor::Task(task))),
            priority: priority.number(),
            nice: priority.nice(),
            highest_priority: Priority::of_kernel(job.highest).number(),
            released_by: release_name(job.released_by),
            released_ns: job.released,
            woken_ns: job.woken,
            waker: job.waker.map(|waker| names.of(waker.actor)),
            start_ns: job.start,
            end_ns: job.end,
            started: job.started,
            ended_on: job.ended_on.map(|(word, role)| (format!("{word:#x}"), role_name(role))),
            first_cpu: job.first_cpu,
            last_cpu: job.last_cpu,
            migrations: job.migrations,
            preemptions: job.preemptions,
            flaw: job.flaw.map(|flaw| flaw_name(Some(flaw))),
            terms: Terms(job),
            suspended_ns: job.suspended,
            reservation: job.reservation.map(|reservation| ReservationObject {
                runtime_ns: reservation.runtime,
                deadline_ns: reservation.deadline,
                period_ns: reservation.period,
            }),
            missed: job.missed(),
            throttled_ns: job.throttled,
            throttles: job.throttles,
            jitter_causes: causes(&job.jitter_causes),
            off: job.disabled.map(|DisabledSection { section, caller, ns }| SectionObject {
                what: match section {
                    Section::Interrupts => "interrupts",
                    Section::Preemption => "preemption",
                },
                caller,
                ns,
            }),
            nmi_ns: job.nmi,
            interference_causes: causes(&job.interference_causes),
            blockings: job.blockings.iter().map(|wait| BlockingObject::new(wait, names)).collect(),
            blockings_left_out: job.blockings_left_out,
            segments: job.segments.iter().map(segment).collect(),
        }
    }
}

/// A member for each term and for each part of one.
struct Terms<'a>(&'a Job);

impl Serialize for Terms<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut terms = serializer.serialize_map(None)?;
        for term in Term::ALL {
            let bounds =
                BoundsObject { likely_ns: term.likely(self.0), ..BoundsObject::from(term.of(self.0)) };
            terms.serialize_entry(term.letter(), &bounds)?;
        }
        for term in Term::ALL {
            for part in term.definition().parts {
                let name = format!("{}_{}", term.letter(), part.name);
                terms.serialize_entry(&name, &BoundsObject::from((part.value)(self.0)))?;
            }
        }
        terms.end()
    }
}

#[derive(Serialize)]
struct BoundsObject {
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    /// For bounded values: the likely value, which is not certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    likely_ns: Option<u64>,
    precision: &'static str,
}

impl From<Bounds> for BoundsObject {
    fn from(bounds: Bounds) -> Self {
        Self { min_ns: bounds.lo(), max_ns: bounds.hi(), likely_ns: None, precision: bounds.precision() }
    }
}

#[derive(Serialize)]
struct ReservationObject {
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

#[derive(Serialize)]
struct CauseObject {
    by: String,
    ns: u64,
    times: u32,
}

#[derive(Serialize)]
struct SectionObject {
    what: &'static str,
    caller: i32,
    ns: u64,
}

#[derive(Serialize)]
struct SegmentObject {
    start_ns: u64,
    end_ns: u64,
    cpu: u16,
    phase: &'static str,
}

#[derive(Serialize)]
struct BlockingObject {
    start_ns: u64,
    end_ns: u64,
    on: &'static str,
    address: Option<String>,
    /// Presumed role, for a futex.
    role: Option<&'static str>,
    slept: bool,
    owners: Vec<String>,
    woken_ns: Option<u64>,
    waker: Option<String>,
    shares: Vec<ShareObject>,
}

impl BlockingObject {
    fn new(wait: &Blocking, names: &Names) -> Self {
        let (on, address) = match wait.target {
            WaitTarget::Futex { word } => ("futex", Some(word)),
            WaitTarget::Lock { address, .. } => ("lock", Some(address)),
            WaitTarget::Kernel => ("kernel", None),
        };
        let thread = |tid| names.of(Actor::Thread(tid));
        Self {
            start_ns: wait.start,
            end_ns: wait.end,
            on,
            address: address.map(|address| format!("{address:#x}")),
            role: wait.role.map(role_name),
            slept: wait.slept,
            owners: wait.owners.iter().copied().map(thread).collect(),
            woken_ns: wait.woken,
            waker: wait.waker.map(|waker| names.of(waker)),
            shares: wait.shares.iter().map(|share| ShareObject::new(share, names)).collect(),
        }
    }
}

#[derive(Serialize)]
struct ShareObject {
    depth: u8,
    holder: Option<String>,
    doing: &'static str,
    by: Option<String>,
    ns: u64,
}

impl ShareObject {
    fn new(share: &Share, names: &Names) -> Self {
        let (doing, by) = match share.state {
            HolderState::Running => ("running", None),
            HolderState::Preempted { by } => ("preempted", Some(names.of(by))),
            HolderState::Asleep => ("asleep", None),
            HolderState::Granted => ("granted", None),
            HolderState::Unseen => ("unseen", None),
        };
        let holder = share.holder.map(|tid| names.of(Actor::Thread(tid)));
        Self { depth: share.depth, holder, doing, by, ns: share.ns }
    }
}

fn role_name(role: FutexRole) -> &'static str {
    match role {
        FutexRole::Lock => "lock",
        FutexRole::LikelyLock => "likely lock",
        FutexRole::LikelyCondition => "likely condition",
        FutexRole::Condition => "condition",
    }
}

/// Name of a segment, matching the names of the terms.
pub(crate) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Jitter => "J",
        Phase::Execution => "C",
        Phase::ExecutionOrOverhead => "C or SS",
        Phase::Overhead => "SS",
        Phase::Blocking => "B",
        Phase::Interference => "I",
        Phase::Suspended => "suspended",
    }
}
