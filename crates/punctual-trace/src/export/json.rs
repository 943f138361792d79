//! One JSON object per job, on one line.
//!
//! Members: `version`, `number`, `sort`, `id`, `name`, `task` and `task_name` (of jobs that an app marked), `priority`,
//! `highest_priority`, `released_by`, `released_ns` (least and greatest), `woken_ns`, `waker`, `start_ns`, `end_ns`,
//! `first_cpu`, `last_cpu`, `migrations`, `preemptions`, `flaw`; `terms` with `R`, `J`, `SS`, `W`, `B`, `I`, `C`,
//! `SS_entry`, `SS_exit`, each `{"min_ns", "max_ns", "precision"}`; `suspended_ns`, `nmi_ns`; `off` with `what`, `caller`, `ns`;
//! `jitter_causes`, `interference_causes` with `by`, `ns`, `times`; `blockings` with `start_ns`, `end_ns`, `on`, `slept`, `owners`,
//! `waker`, `shares`; `segments` with `start_ns`, `end_ns`, `cpu`, `phase`. What is not known is `null`.

use std::fmt::Write;

use super::csv::id;
use super::{VERSION, flaw_name, kind_name, release_name};
use crate::event::Section;
use crate::jobs::{
    Actor, Blocking, Bounds, Cause, DisabledSection, HolderState, Job, Phase, Segment, Share, WaitTarget,
};
use crate::names::Names;
use crate::stats::{CapturedJob, Term};

/// A job as a JSON object, without a line break.
#[must_use]
pub fn json(job: &Job, names: &Names) -> String {
    let mut out = String::with_capacity(1024);
    members(&mut out, job, names);
    out.push('}');
    out
}

/// A job with its events: a further member `events` lists `[time, cpu, thread, what]`, and `truncated` says whether the
/// first ones are missing.
#[must_use]
pub fn captured_job(captured: &CapturedJob, names: &Names) -> String {
    let mut out = String::with_capacity(4096);
    members(&mut out, &captured.job, names);
    let _ = write!(out, ",\"truncated\":{},\"events\":", captured.truncated);
    list(&mut out, &captured.events, |out, event| {
        let _ =
            write!(out, "[{},{},{},{}]", event.time, event.cpu, event.by, text(&format!("{:?}", event.kind)));
    });
    out.push('}');
    out
}

fn members(out: &mut String, job: &Job, names: &Names) {
    let of = |actor| text(&names.of(actor));
    let _ = write!(
        out,
        "{{\"version\":{VERSION},\"number\":{},\"sort\":\"{}\",\"id\":{},\"name\":{}",
        job.number,
        kind_name(job.kind),
        id(job.actor),
        of(job.actor)
    );
    let _ = write!(out, ",\"task\":{}", or_null(job.task));
    let _ = write!(out, ",\"task_name\":{}", or_null(job.task.map(|task| of(Actor::Task(task)))));
    let _ = write!(out, ",\"priority\":{},\"highest_priority\":{}", job.priority, job.highest);
    let released = job.released.map(|(lo, hi)| format!("[{lo},{hi}]"));
    let _ = write!(
        out,
        ",\"released_by\":\"{}\",\"released_ns\":{}",
        release_name(job.released_by),
        or_null(released)
    );
    let _ = write!(
        out,
        ",\"woken_ns\":{},\"waker\":{}",
        or_null(job.woken),
        or_null(job.waker.map(|w| of(w.actor)))
    );
    let _ = write!(out, ",\"start_ns\":{},\"end_ns\":{}", job.start, job.end);
    let _ = write!(out, ",\"first_cpu\":{},\"last_cpu\":{}", job.first_cpu, job.last_cpu);
    let _ = write!(out, ",\"migrations\":{},\"preemptions\":{}", job.migrations, job.preemptions);
    let flaw = job.flaw.map(|flaw| text(flaw_name(Some(flaw))));
    let _ = write!(out, ",\"flaw\":{},\"terms\":{{", or_null(flaw));
    for term in Term::ALL {
        let _ = write!(out, "\"{}\":{},", term.letter(), value(term.of(job)));
    }
    let _ =
        write!(out, "\"SS_entry\":{},\"SS_exit\":{}}}", value(job.overhead_entry), value(job.overhead_exit));
    let _ = write!(out, ",\"suspended_ns\":{}", job.suspended);
    let cause = |out: &mut String, cause: &Cause| {
        let _ = write!(out, "{{\"by\":{},\"ns\":{},\"times\":{}}}", of(cause.actor), cause.ns, cause.times);
    };
    out.push_str(",\"jitter_causes\":");
    list(out, &job.jitter_causes, cause);
    let off = job.disabled.map(|DisabledSection { section, caller, ns }| {
        let what = match section {
            Section::Interrupts => "interrupts",
            Section::Preemption => "preemption",
        };
        format!("{{\"what\":\"{what}\",\"caller\":{caller},\"ns\":{ns}}}")
    });
    let _ = write!(out, ",\"off\":{},\"nmi_ns\":{}", or_null(off), job.nmi);
    out.push_str(",\"interference_causes\":");
    list(out, &job.interference_causes, cause);
    out.push_str(",\"blockings\":");
    list(out, &job.blockings, |out, wait| blocking(out, wait, names));
    let _ = write!(out, ",\"blockings_left_out\":{},\"segments\":", job.blockings_left_out);
    list(out, &job.segments, |out, &Segment { start, end, cpu, phase }| {
        let phase = phase_name(phase);
        let _ = write!(out, "{{\"start_ns\":{start},\"end_ns\":{end},\"cpu\":{cpu},\"phase\":\"{phase}\"}}");
    });
}

fn blocking(out: &mut String, wait: &Blocking, names: &Names) {
    let (on, address) = match wait.target {
        WaitTarget::Futex { word } => ("futex", Some(word)),
        WaitTarget::Lock { address, .. } => ("lock", Some(address)),
        WaitTarget::Kernel => ("kernel", None),
    };
    let address = or_null(address.map(|address| format!("\"{address:#x}\"")));
    let waker = or_null(wait.waker.map(|waker| text(&names.of(waker))));
    let _ = write!(out, "{{\"start_ns\":{},\"end_ns\":{},\"on\":\"{on}\"", wait.start, wait.end);
    let _ = write!(out, ",\"address\":{address},\"slept\":{},\"owners\":", wait.slept);
    list(out, &wait.owners, |out, &tid| out.push_str(&text(&names.of(Actor::Thread(tid)))));
    let _ = write!(out, ",\"woken_ns\":{},\"waker\":{waker},\"shares\":", or_null(wait.woken));
    list(out, &wait.shares, |out, share: &Share| {
        let (state, by) = match share.state {
            HolderState::Running => ("running", None),
            HolderState::Preempted { by } => ("preempted", Some(text(&names.of(by)))),
            HolderState::Asleep => ("asleep", None),
            HolderState::Granted => ("granted", None),
            HolderState::Unseen => ("unseen", None),
        };
        let holder = or_null(share.holder.map(|tid| text(&names.of(Actor::Thread(tid)))));
        let _ = write!(out, "{{\"depth\":{},\"holder\":{holder},\"doing\":\"{state}\"", share.depth);
        let _ = write!(out, ",\"by\":{},\"ns\":{}}}", or_null(by), share.ns);
    });
    out.push('}');
}

/// What a segment is, as the terms are called.
pub(super) fn phase_name(phase: Phase) -> &'static str {
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

fn value(value: Bounds) -> String {
    let (lo, hi) = (or_null(value.lo()), or_null(value.hi()));
    format!("{{\"min_ns\":{lo},\"max_ns\":{hi},\"precision\":\"{}\"}}", value.precision())
}

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or("null".into(), |value| value.to_string())
}

fn list<T>(out: &mut String, items: &[T], mut each: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

/// A JSON string.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
