//! Describes a wait for a lock and the delays of the lock's holder.

use punctual_report::format::format_part;
use punctual_report::text::listed;
use punctual_trace::event::Tid;
use punctual_trace::jobs::{Actor, Blocking, Bounds, HolderState, Job, WaitTarget};
use punctual_trace::names::Names;

use super::repeated;

/// Describes all waits of a job, the longest in full.
pub(super) fn all(job: &Job, names: &Names) -> String {
    let Some(longest) = job.blockings.iter().max_by_key(|wait| wait.ns()) else {
        return match job.blocking {
            Bounds::Exact(_) => "it waited for no lock".into(),
            _ => "waits for locks were not all recorded".into(),
        };
    };
    let waits = job.blockings.len() + job.blockings_left_out as usize;
    if waits == 1 {
        return blocking(longest, names);
    }
    let times = repeated(u32::try_from(waits).unwrap_or(u32::MAX));
    format!("blocked {times}, the longest for {}: {}", format_part(longest.ns()), blocking(longest, names))
}

/// Describes one wait: "blocked on futex 0x2a held by `logger/411`, which was preempted by `irq/24`
/// for 310 µs".
#[must_use]
pub fn blocking(wait: &Blocking, names: &Names) -> String {
    let on = match wait.target {
        WaitTarget::Futex { word } => format!("futex {word:#x}"),
        WaitTarget::Lock { address, .. } => format!("kernel lock {address:#x}"),
        WaitTarget::Kernel => "the kernel (uninterruptible sleep)".into(),
    };
    let how = if wait.slept { "blocked on" } else { "spinning on" };
    let mut text = format!("{how} {on}");
    let name = |tid| format!("`{}`", names.of(Actor::Thread(tid)));
    let Some(&holder) = wait.owners.first() else {
        if let Some(waker) = wait.waker {
            text += &format!(", until `{}` woke it", names.of(waker));
        }
        return text;
    };
    text += &format!(" held by {}", name(holder));
    let mut holders: Vec<(u8, Tid)> = Vec::new();
    for share in &wait.shares {
        holders.extend(share.holder.map(|tid| (share.depth, tid)).filter(|at| !holders.contains(at)));
    }
    holders.sort_by_key(|&(depth, tid)| (depth, tid != holder));
    let mut depth = 0;
    for (index, &(at, tid)) in holders.iter().enumerate() {
        if at > depth {
            let below: u64 = wait.shares.iter().filter(|share| share.depth >= at).map(|share| share.ns).sum();
            text += &format!("; it waited {} for {}", format_part(below), name(tid));
            depth = at;
        } else if index > 0 {
            text += &format!("; then by {}", name(tid));
        }
        text += &holder_activity(wait, (at, tid), names);
    }
    let back: Vec<_> = wait.shares.iter().filter(|share| share.holder.is_none()).collect();
    let total: u64 = back.iter().map(|share| share.ns).sum();
    if total > 0 {
        text += &format!("; {} to resume", format_part(total));
    }
    let mut in_the_way: Vec<_> = back
        .iter()
        .filter_map(|share| match share.state {
            HolderState::Preempted { by } => Some((share.ns, by)),
            _ => None,
        })
        .collect();
    in_the_way.sort_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    if !in_the_way.is_empty() {
        let by: Vec<_> = in_the_way
            .iter()
            .map(|&(ns, by)| format!("`{}` for {}", names.of(by), format_part(ns)))
            .collect();
        text += &format!(", kept from the CPU by {}", listed(&by));
    }
    text
}

/// Describes the holder's activity: ", which was preempted by `irq/24` for 310 µs and ran for 40
/// µs".
fn holder_activity(wait: &Blocking, (depth, tid): (u8, Tid), names: &Names) -> String {
    let mut shares: Vec<_> =
        wait.shares.iter().filter(|share| share.depth == depth && share.holder == Some(tid)).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    let mut preempted = Vec::new();
    let mut clauses = Vec::new();
    for share in shares {
        let took = format_part(share.ns);
        match share.state {
            HolderState::Preempted { by } => preempted.push(format!("`{}` for {took}", names.of(by))),
            HolderState::Running => clauses.push(format!("ran for {took}")),
            HolderState::Asleep => clauses.push(format!("slept for {took}")),
            HolderState::Unseen => clauses.push(format!("was not seen for {took}")),
            HolderState::Granted => {}
        }
    }
    if !preempted.is_empty() {
        clauses.insert(0, format!("was preempted by {}", listed(&preempted)));
    }
    if clauses.is_empty() { String::new() } else { format!(", which {}", listed(&clauses)) }
}
